package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"licet/licensing"
)

// verified is what licet store verify --output json prints.
type verified struct {
	Violations []struct{ Family, Key, Rule, Problem string }
	Summary    struct {
		Revision, Keys, Violations int64
		Families                   map[string]int64
		OtherKeys                  int64   `json:"other_keys"`
		Duration                   float64 `json:"duration_seconds"`
		Error                      *string
		UsageDrifted               int64        `json:"usage_drifted"`
		UsageDrifts                []usageDrift `json:"usage_drifts"`
	}
}

func verifyJSONOf(t *testing.T, code int, args ...string) verified {
	t.Helper()
	got := runLicet(t, append([]string{"store", "verify", "--output", "json"}, args...)...)
	var v verified
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.code != code {
		t.Fatalf("exit code %d, %v: %+v", got.code, err, got)
	}
	return v
}

// socket is the endpoint of a running licet dev's etcd.
func (p *process) socket() string { return "unix://" + filepath.Join(p.dir, "run", "etcd.sock") }

// etcd returns a client of a running licet dev's etcd.
func (p *process) etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.socket()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// endWithKey puts a key into the etcd of a running licet dev, and ends licet dev.
func (p *process) endWithKey(t *testing.T, key, value string) {
	t.Helper()
	if _, err := p.etcd(t).Put(t.Context(), key, value); err != nil {
		t.Fatal(err)
	}
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
}

// drawn reports whether a command has drawn on a stream that is no terminal. Log lines of etcd do not count.
func drawn(stderr string) bool { return strings.Contains(stderr, "\r") }

// someTraffic leaves orders and licenses in a service, and returns a license key.
func (p *process) someTraffic(t *testing.T) string {
	t.Helper()
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"USD"}`).Data
	p.want(t, 200, "PUT", "/v1/orders/"+order.text("order_no")+"/sandbox_payment", "")
	p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":1,"currency":"USD"}`)
	p.want(t, 201, "POST", "/v1/licenses", `{"product_id":"editor","quantity":3,"metadata":{"seat":1}}`)
	key := p.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data.text("license_key")
	if r, err := p.activate(t.Context(), key, "laptop"); err != nil || r.status != 200 {
		t.Fatalf("activating: %v %s", err, r.body)
	}
	return key
}

func TestVerifyCommand(t *testing.T) {
	p := startProcess(t, t.TempDir())
	key := p.someTraffic(t)
	endpoint := "--etcd-endpoints=" + p.socket()

	got := runLicet(t, "store", "verify", endpoint)
	if got.code != exitOK || !strings.HasSuffix(got.stdout, "no violations\n") || drawn(got.stderr) {
		t.Fatalf("a healthy store: %+v", got)
	}
	for _, line := range []string{"^FAMILY +KEYS$", "^license +4$", "^order +2$", "^metadata +3$"} {
		if !regexp.MustCompile("(?m)" + line).MatchString(got.stdout) {
			t.Errorf("there is no line %s in\n%s", line, got.stdout)
		}
	}
	v := verifyJSONOf(t, exitOK, endpoint)
	if len(v.Violations) != 0 || v.Summary.Families["license"] != 4 || v.Summary.Revision < 5 ||
		v.Summary.Duration <= 0 || v.Summary.Error != nil {
		t.Errorf("a healthy store: %+v", v)
	}
	if got := runLicet(t, "store", "verify", "--data-dir", p.dir); got.code != exitFailed ||
		!strings.Contains(got.stderr, "in use by another licet process") {
		t.Errorf("the directory of a running service: %+v", got)
	}

	client := p.etcd(t)
	all, err := client.Get(t.Context(), "lc2/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		path := string(kv.Key[len("lc2/00/"):])
		for _, listing := range []string{"i/", "j/1i/", "j/2i/"} { // with its upper levels
			if strings.HasPrefix(path, listing) {
				if _, err := client.Delete(t.Context(), string(kv.Key)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if _, err := client.Put(t.Context(), "lc2/zz/secret", ""); err != nil {
		t.Fatal(err)
	}
	owner := licensing.Owner{AccountID: "acct_drifted", Mode: licensing.Test}
	slot := licensing.SlotOf(owner).String()
	usage := "lc2/" + slot + "/s/acct_drifted/t/"
	if _, err := client.Put(t.Context(), "lc2/cell/s/"+slot, ""); err != nil {
		t.Fatal(err)
	}
	drifted := "\x01\x08\x80\x80\x80\x80\x01\x10\x05" // a usage record of 256 MiB in 5 keys
	if _, err := client.Put(t.Context(), usage, drifted); err != nil {
		t.Fatal(err)
	}
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}

	t.Setenv("LICET_ETCD_ENDPOINTS", "127.0.0.1:1") // the command line names another store
	dir := "--data-dir=" + p.dir
	got = runLicet(t, "store", "verify", dir)
	if got.code != exitFailed ||
		strings.Count(got.stdout, "it is not in its owner's listing (listing_missing)\n") != 4 ||
		!strings.Contains(got.stdout, `unknown "lc2/zz/": 1 keys`) ||
		!strings.Contains(got.stdout, "note: the usage record of acct_drifted (test) says 268435456 bytes in 5 keys") ||
		!strings.HasSuffix(got.stdout, "violations: 5\n") {
		t.Errorf("a damaged store: %+v", got)
	}
	if !strings.HasSuffix(got.stderr, "licet: the store contradicts itself: violations: 5\n") || drawn(got.stderr) {
		t.Errorf("standard error is %q", got.stderr)
	}
	if strings.Contains(got.stdout, key[4:]) || strings.Contains(got.stdout, "secret") {
		t.Errorf("a secret is shown:\n%s", got.stdout)
	}
	if v := verifyJSONOf(t, exitFailed, dir); len(v.Violations) != 5 || v.Summary.Violations != 5 ||
		v.Violations[0].Rule == "" || v.Summary.UsageDrifted != 1 || len(v.Summary.UsageDrifts) != 1 ||
		v.Summary.UsageDrifts[0].RecordedBytes != 256<<20 || v.Summary.UsageDrifts[0].AccountID != "acct_drifted" {
		t.Errorf("a damaged store: %+v", v)
	}
}

func TestStoreFlags(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	f := func(code int, problem string, args ...string) {
		t.Helper()
		got := runLicet(t, args...)
		if got.code != code || !strings.Contains(got.stderr, problem) || got.stdout != "" {
			t.Errorf("licet %v: want exit code %d and %q, got %+v", args, code, problem, got)
		}
		if _, err := os.Stat(none); err == nil {
			t.Errorf("licet %v has made %s", args, none)
		}
	}
	for _, command := range [][]string{{"store", "verify"}, {"store", "backup", "file"}, {"store", "defragment"}} {
		f(exitUsage, "no store: set --etcd-endpoints", command...)
		f(exitUsage, "name two stores", append(command, "--data-dir", none, "--etcd-endpoints", "127.0.0.1:1")...)
		f(exitUsage, "--etcd-cert and --etcd-key",
			append(command, "--etcd-endpoints", "127.0.0.1:1", "--etcd-cert", "x")...)
		f(exitFailed, "there is no store in "+none, append(command, "--data-dir", none)...)
	}
	f(exitUsage, `--output is "xml"`, "store", "verify", "--data-dir", none, "-o", "xml")
	f(exitUsage, "licet store backup needs FILE", "store", "backup", "--data-dir", none)
	f(exitUsage, "--keep is -1", "store", "backup", none, "--keep=-1", "--etcd-endpoints", "127.0.0.1:1")
	f(exitUsage, `--keep is "two": write a whole number`, "store", "backup", none, "--keep=two", "--etcd-endpoints",
		"127.0.0.1:1")
	f(exitUsage, "licet store defragment takes no argument", "store", "defragment", "now", "--data-dir", none)
	f(exitUsage, "licet store restore needs FILE", "store", "restore", "--data-dir", none)
	f(exitUsage, "--data-dir must name", "store", "restore", "file")
	f(exitFailed, "no such file", "store", "restore", filepath.Join(t.TempDir(), "file"), "--data-dir", none)
}

// TestBackupAndRestore backs a running service up, loses its data and brings
// it back.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	key := p.someTraffic(t)
	file := filepath.Join(t.TempDir(), "store.db")
	// Twice: the second one has the note of the first in it.
	if first := runLicet(t, "store", "backup", file, "--etcd-endpoints", p.socket()); first.code != exitOK ||
		first.stderr != "" {
		t.Fatalf("backup: %+v", first)
	}
	got := runLicet(t, "store", "backup", file, "--etcd-endpoints", p.socket())
	if got.code != exitOK || !strings.Contains(got.stdout, "every change up to revision") || drawn(got.stderr) {
		t.Fatalf("backup: %+v", got)
	}
	p.kill()

	dir := filepath.Join(t.TempDir(), "restored")
	restored := runLicet(t, "store", "restore", file, "--data-dir", dir)
	_, sum, _ := strings.Cut(got.stdout, "SHA-256 ")
	if restored.code != exitOK || !strings.Contains(restored.stdout, "SHA-256 "+sum) || drawn(restored.stderr) {
		t.Fatalf("restore: %+v", restored)
	}
	if again := runLicet(t, "store", "restore", file, "--data-dir", dir); again.code != exitFailed ||
		!strings.Contains(again.stderr, "not empty") {
		t.Errorf("restore again: %+v", again)
	}
	if v := verifyJSONOf(t, exitOK, "--data-dir", dir); v.Summary.Families["license"] != 4 || v.Summary.Revision < 1e9 {
		t.Errorf("verify: %+v", v)
	}
	opened := filepath.Join(t.TempDir(), "opened")
	if got := runLicet(t, "store", "restore", file, "--data-dir", opened, "--master-key-file",
		filepath.Join(p.dir, masterFile)); got.code != exitOK || got.stderr != "" {
		t.Errorf("restore with the master keys: %+v", got)
	}
	if masterKeyOf(t, opened) != masterKeyOf(t, p.dir) {
		t.Error("the restored directory has other master keys")
	}
	if got := runLicet(t, "store", "verify", "--data-dir", opened); got.code != exitOK ||
		strings.Contains(got.stdout, "license ids were not checked") {
		t.Errorf("verify with the master keys: %+v", got)
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if got := runLicet(t, "store", "restore", file, "--data-dir", closed, "--master-key-file",
		ringFile(t)); got.code != exitFailed || !strings.Contains(got.stderr, "is restored, without master keys") ||
		!strings.Contains(got.stderr, "the store uses another master key") {
		t.Errorf("restore with other master keys: %+v", got)
	}
	more := filepath.Join(t.TempDir(), "store.db")
	startProcess(t, opened).endWithKey(t, "lc2/cell/master/m9", strings.Repeat("f", 32)) // another master key in use
	if got := runLicet(t, "store", "backup", more, "--data-dir", opened); got.code != exitOK {
		t.Fatalf("backup: %+v", got)
	}
	if got := runLicet(t, "store", "restore", more, "--data-dir", filepath.Join(t.TempDir(), "partly"),
		"--master-key-file", filepath.Join(p.dir, masterFile)); got.code != exitFailed ||
		!strings.Contains(got.stderr, `the store uses the master key "m9"`) {
		t.Errorf("restore with one of two master keys: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(closed, masterFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the restored directory has master keys that do not open it: %v", err)
	}
	for _, name := range []string{masterFile, keyFile} { // not in the store: kept apart
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	after := startProcess(t, dir, "--metrics-listen", "127.0.0.1:0")
	// The node reports the backup that the store knows of.
	waitFor(t, func() bool { return after.metric(t, "licet_backup_last_success_timestamp_seconds") != 0 })
	if after.key != p.key || after.secret != p.secret {
		t.Error("the key pair has changed")
	}
	if license := after.want(t, 200, "GET", "/v1/licenses/"+key, "").Data; license.number("current_devices") != 1 {
		t.Errorf("the license is %v", license)
	}
	after.someTraffic(t)
	if code := after.terminate(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if v := verifyJSONOf(t, exitOK, "--data-dir", dir); v.Summary.Families["license"] != 8 {
		t.Errorf("verify: %+v", v)
	}
}
