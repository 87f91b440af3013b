package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"licet/kv/embedded/embeddedtest"
)

// members are the addresses of etcd in the pages.
const members = "10.0.0.1:2379,10.0.0.2:2379,10.0.0.3:2379"

// blockWith returns the only sh block of a page that has a text.
func blockWith(t *testing.T, page, text string) (found string) {
	t.Helper()
	for _, block := range blocksOf(page, "sh") {
		if !strings.Contains(block, text) {
			continue
		}
		if found != "" {
			t.Errorf("two blocks of the page have %q", text)
		}
		found = block
	}
	if found == "" {
		t.Errorf("no block of the page has %q", text)
	}
	return found
}

// withoutBlock returns the commands of a page, but those of the only sh block that has a text.
func withoutBlock(t *testing.T, page, text string) string {
	t.Helper()
	skipped := blockWith(t, page, text)
	return strings.Replace(page, "```sh\n"+skipped+"```\n", "", 1)
}

// wantOutput checks that documented commands printed some texts.
func wantOutput(t *testing.T, out string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("the commands did not print %q, but\n%s", text, out)
		}
	}
}

// TestDocumentedKeysRun runs all commands of docs/guides/keys.md, with an etcd instead of the three members. The ids of
// the page become those of the key and of the master key that the page creates. Between its commands a reader replaces
// the master key by hand.
func TestDocumentedKeysRun(t *testing.T) {
	t.Parallel()
	etcd := embeddedtest.Start(t, t.TempDir())
	page := strings.NewReplacer(
		members, etcd.Endpoints()[0],
		"licet store keys rotate key_vq01jd4q8x2m7r3n5t9v1w4y6z8a", "id=$(licet store keys list --account acct_acme "+
			"--mode test --output json --etcd-endpoints $etcd | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n"+
			"licet store keys rotate $id",
		"key_vq01jd4q8x2m7r3n5t9v1w4y6z8a", "$id",
		"licet store master-key status", "old=$(sed 's/:.*//' master.keys)\n"+
			"licet store master-key add --last --master-key-file master.keys\n"+
			"first=$(head -n 1 master.keys)\nsed -i 1d master.keys\necho \"$first\" >> master.keys\n"+
			"licet store keys create --account acct_acme --mode test --name next --scopes orders "+
			"--etcd-endpoints $etcd --master-key-file master.keys\nlicet store master-key status",
		"mk_01jd4q8x2m7r3n5t9v1w4y6z8a", "$old",
	).Replace(docPage(t, "guides/keys.md"))
	_, out, blocks := runDocumented(t, page)
	if blocks != 5 {
		t.Errorf("the page has %d blocks", blocks)
	}
	wantOutput(t, out, "lk_test_", "lks_test_", "REVOKED", "is retired")
}

// TestDocumentedBackupRuns runs the commands of docs/guides/backup.md with a licet dev instead of the three members.
// TestDocumentedClusterRuns restores a cluster.
func TestDocumentedBackupRuns(t *testing.T) {
	t.Parallel()
	page := strings.NewReplacer(members, "unix://$PWD/licet-data/run/etcd.sock",
		"licet store backup /backups ", "mkdir backups\nlicet store backup backups ",
	).Replace(docPage(t, "guides/backup.md"))
	p, out, blocks := runDocumented(t, withoutBlock(t, page, "etcdutl "))
	if blocks != 4 {
		t.Errorf("the page has %d blocks", blocks)
	}
	wantOutput(t, out, lastLineOfStart)
	if kept, err := filepath.Glob(filepath.Join(filepath.Dir(p.dir), "backups", "licet-*.db")); len(kept) != 1 {
		t.Errorf("the folder has %q, %v", kept, err)
	}
}

// TestDocumentedPaymentsRun runs the commands of docs/guides/payments.md twice: the two orders have 21 licenses.
func TestDocumentedPaymentsRun(t *testing.T) {
	t.Parallel()
	page := docPage(t, "guides/payments.md")
	p, out, blocks := runDocumented(t, page+page)
	wantOutput(t, out, "pay_8114")
	if n := len(p.want(t, 200, "GET", "/v1/licenses?limit=100", "").Data.list("licenses")); n != 21 || blocks != 14 {
		t.Errorf("%d licenses after %d blocks", n, blocks)
	}
}

// TestDocumentedSubscriptionsRun runs the commands of docs/guides/subscriptions.md.
func TestDocumentedSubscriptionsRun(t *testing.T) {
	t.Parallel()
	page := withoutBlock(t, docPage(t, "guides/subscriptions.md"), "card-page") // the sandbox has no cards
	p, out, blocks := runDocumented(t, page)
	if got := p.want(t, 200, "GET", "/v1/products/cloud", "").Data.text("name"); got != "Cloud" || blocks != 5 {
		t.Errorf("the product has the name %q after %d blocks", got, blocks)
	}
	wantOutput(t, out, "planned_change", `"team"`, "cancel_at")
}

// TestDocumentedSandboxRuns runs the commands of docs/guides/sandbox.md.
func TestDocumentedSandboxRuns(t *testing.T) {
	t.Parallel()
	p, _, blocks := runDocumented(t, docPage(t, "guides/sandbox.md"))
	var states []string
	for _, o := range p.want(t, 200, "GET", "/v1/orders", "").Data.list("orders") {
		states = append(states, o.text("status"))
	}
	if want := []string{"paid", "refunded", "paid", "refunded", "paid"}; !slices.Equal(states, want) || blocks != 10 {
		t.Errorf("the orders are %q after %d blocks; want %q", states, blocks, want)
	}
}

// TestDocumentedBooksRun runs the commands of docs/guides/books.md: export, report and list have the payment.
func TestDocumentedBooksRun(t *testing.T) {
	t.Parallel()
	page := docPage(t, "guides/books.md")
	_, out, blocks := runDocumented(t, page+"\n```sh\ncat march.csv\n```\n")
	wantOutput(t, out, "march.csv: 1 order\n", "march-refunds.csv: 0 orders\n",
		",2025-03-14T09:26:53.000Z,,USD,49.00,0.00,,outside,INV-2025-0042,1\n",
		"2025-03  USD       1         4900   0        0         4900\n", `"period":"2025-03-14"`)
	if blocks != 5 {
		t.Errorf("the page has %d blocks", blocks-1)
	}
}

// TestDocumentedPersonalDataRuns runs the commands of docs/guides/personal-data.md, for a license of the buyer.
// TestDocumentedClusterRuns removes the history.
func TestDocumentedPersonalDataRuns(t *testing.T) {
	t.Parallel()
	needTools(t, "curl")
	const sell = "\n```sh\n. ./licet-data/dev.env\n" +
		"license_key=$(licet sandbox buy editor --buyer-email anna@example.com)\n" +
		"license_id=$(licet licenses get \"$license_key\" --output json | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/')\n" +
		"licet licenses activate \"$license_key\" laptop-1\n```\n"
	page := withoutBlock(t, docPage(t, "guides/personal-data.md"), "etcdctl ")
	_, out, blocks := runDocumented(t, sell+page)
	if blocks != 5 {
		t.Errorf("the page has %d blocks", blocks)
	}
	wantOutput(t, out, `"removed":true`, lastLineOfStart)
	if failures := strings.Count(out, `{"code":4`); failures > 0 {
		t.Errorf("%d requests failed:\n%s", failures, out)
	}
}
