package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"licet/receipt"
)

// TestNextSteps meets refusals on the paths of the guides. Each message says what to do next.
func TestNextSteps(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("products", "put", "many", "--max-devices", "1")
	key := u.grant(1)[0]
	u.must("licenses", "activate", key, "laptop-1")

	u.refuses(false, []string{"40901", "licet licenses remove-device"}, "licenses", "activate", key, "laptop-2")
	u.refuses(false, []string{"40308", "licet products put --trial-validity"}, "trials", "start", "many", "laptop-2")
	u.refuses(false, []string{"40404", "licet products list"}, "products", "get", "nosuch")
	u.refuses(false, []string{"40404", "licet products list"}, "products", "rollout", "nosuch", "--terms", "receipt")
	u.refuses(false, []string{"40404", "licet products list"}, "products", "rollout-status", "nosuch")
	// An API key finds only licenses of its own account and mode.
	foreign := newUser(t).grant(1)[0]
	u.refuses(false, []string{"40401", "$LICET_API_KEY finds only licenses of its account in test mode"},
		"licenses", "activate", foreign, "laptop-1")
	stranger := newStranger(t)
	stranger.env["LICET_URL"] = svc.URL
	stranger.refuses(false, []string{"40404", "the account's id and the mode"}, "trials", "start", "many",
		"laptop-2", "--account-id", "acct_nobody", "--mode", "test")

	got := u.run("licenses", "remove-device", key, "nosuch")
	if got.err != nil || !strings.Contains(got.stderr, "no device nosuch; licet licenses devices") {
		t.Errorf("a device that is not bound: %+v", got)
	}
	u.must("licenses", "suspend", key)
	u.refuses(false, []string{"40302", "licet licenses reinstate"}, "licenses", "activate", key, "laptop-1")

	// What customers meet later.
	replaced := u.grant(1)[0]
	id := u.asJSON("licenses", "get", replaced)["id"].(string)
	u.must("licenses", "reissue", replaced)
	u.refuses(false, []string{"40306", "with the id of the license"}, "licenses", "activate", replaced, "laptop-1")
	if next := u.asJSON("licenses", "get", id)["license_key"].(string); next == replaced {
		t.Error("the id does not show the new key")
	}
	u.must("licenses", "revoke", id, "--yes")
	u.refuses(false, []string{"40301", "licet licenses grant"},
		"licenses", "activate", u.asJSON("licenses", "get", id)["license_key"].(string), "laptop-1")
	u.must("products", "put", "many", "--max-devices", "1", "--trial-validity", "P14D", "--trial-per", "email")
	trial := []string{"trials", "start", "many", "laptop-1", "--buyer-email", "ada@example.com"}
	u.must(trial...)
	trial[3] = "laptop-2"
	u.refuses(false, []string{"40307", "licet orders create --upgrade-of"}, trial...)

	create := []string{"orders", "create", "--product-id", "many", "--price", "49.00", "--currency", "USD",
		"--payment-provider", "outside"}
	order := u.asJSON(create...)["order_no"].(string)
	u.refuses(false, []string{"40904", "record its payment with licet orders record-payment ("},
		"sandbox", "pay", order)
	pay := []string{"orders", "record-payment", order, "--reference"}
	u.refuses(true, []string{"--amount 4900 for 49.00 USD", "leave --amount out"},
		append(pay, "INV-1", "--amount", "49.00")...)
	u.must(append(pay, "INV-1", "--amount", "4900")...)
	u.refuses(false, []string{"40902", "create another order"}, append(pay, "INV-2")...)
}

// TestNextStepsOffline is TestNextSteps for the commands of devices without network.
func TestNextStepsOffline(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	offline := func(args ...string) error {
		cmd := OfflineCommands()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append(args, "--key", file("device.key")))
		return cmd.ExecuteContext(t.Context())
	}
	fails := func(err error, word string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("it says %v, want %q", err, word)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	u := newUser(t)
	u.must("products", "put", "many", "--max-devices", "1", "--self-service-deactivation")
	key := u.grant(1)[0]

	for _, typo := range []string{"LIC-1", key[:len(key)-1], key + "0", strings.Replace(key, "-", "", 1),
		key[:len(key)-1] + "U", "lic_77vwt5zc5zqn856r8rb6xh0hgc"} {
		fails(offline("request", typo, "lab-7", "--out", file("request.txt")), "the form of a license key")
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("%d files after license keys with typos", len(files))
	}
	if err := offline("request", strings.ToLower(key), "lab-7", "--out", file("request.txt")); err != nil {
		t.Fatal(err)
	}
	first := read("request.txt")
	again := []string{"request", key, "lab-7", "--out", file("request.txt"), "--qr", file("request.png")}
	fails(offline(again...), "request.txt exists: name another file, or replace it with --force")
	fails(offline("request", key, "lab-7", "--out", file("new.txt"), "--qr", file("request.txt")), "request.txt exists")
	if read("request.txt") != first {
		t.Error("a request was replaced without --force")
	}
	if err := offline(append(again, "--force")...); err != nil || read("request.txt") == first {
		t.Errorf("with --force: %v", err)
	}

	u.must("receipts", "issue", file("request.txt"))
	fails(u.run("receipts", "release", file("request.receipt.txt")).err,
		"request.receipt.txt: this is a licet receipt, not a licet release; name a file that licet offline release")
	fails(offline("release", file("request.txt")), "this is a licet request, not a licet receipt")

	// The service refuses what the form does not tell.
	if err := offline("request", key, "lab-8", "--out", file("other.txt")); err != nil {
		t.Fatal(err)
	}
	last := "0"
	if strings.HasSuffix(key, last) {
		last = "1"
	}
	typo := receipt.Request{LicenseKey: key[:len(key)-1] + last, DeviceID: "lab-9"}
	text, err := typo.Armor()
	if err == nil {
		err = os.WriteFile(file("typo.txt"), []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, words := range map[string][]string{
		"other.txt": {"40901", "licet licenses remove-device"},
		"typo.txt":  {"40001", "make another request with the right key"},
	} {
		got := u.run("receipts", "issue", file(name))
		for _, word := range words {
			if !strings.Contains(got.stderr, word) {
				t.Errorf("%s: it says %q, want %q", name, got.stderr, word)
			}
		}
	}
}
