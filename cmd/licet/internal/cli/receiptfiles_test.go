package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"licet/receipt"
)

// TestReceiptFilesOfTheirOwn: no request loses its receipt file to another one, or for want of a directory.
func TestReceiptFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.refuses(true, []string{"--dir out is no directory"}, "receipts", "issue", "a/lab.txt", "--dir", "out")
	u.refuses(true, []string{"two requests", filepath.Join("out", "lab.receipt.txt")},
		"receipts", "issue", "a/lab.txt", "b/lab.txt", "--dir", "out")
}

// TestManyReceiptFiles: the command makes the receipt files of more requests than one call takes, and reports the
// requests that are refused.
func TestManyReceiptFiles(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.must("products", "put", "lab", "--max-devices", "58")
	granted := u.asJSON("licenses", "grant", "--product-id", "lab")["licenses"].([]any)
	key := granted[0].(map[string]any)["license_key"].(string)
	dir := t.TempDir()
	issue := []string{"receipts", "issue", "--dir", dir, "no-such-file.txt"}
	for i := range 60 {
		text, err := (&receipt.Request{LicenseKey: key, DeviceID: fmt.Sprintf("lab-%d", i), Nonce: "n",
			DeviceName: "Microscope \u00fc"}).Armor()
		if i == 7 {
			text = "no request"
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.txt", i))
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		issue = append(issue, path)
	}
	for range 2 { // the second time takes no further slot
		got := u.run(issue...)
		if got.err == nil || !strings.Contains(got.err.Error(), "3 of 61 requests failed") {
			t.Errorf("the command ends with %v", got.err)
		}
		for _, problem := range []string{
			"no-such-file.txt", "7.txt: REQUEST is not good", "59.txt: device limit reached",
		} {
			if !strings.Contains(got.stderr, problem) {
				t.Errorf("it does not say %q: %s", problem, got.stderr)
			}
		}
		made := strings.Fields(got.stdout)
		if len(made) != 58 || made[8] != filepath.Join(dir, "9.receipt.txt") {
			t.Fatalf("it made %q", made)
		}
		for i, path := range made {
			text, err := os.ReadFile(path)
			if err == nil {
				_, err = receipt.ParseFile(string(text))
			}
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
}

// TestReleaseWithAnotherKey: a release that the service would refuse is not made.
func TestReleaseWithAnotherKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) error {
		cmd := OfflineCommands()
		cmd.SetArgs(append(args, "--key", filepath.Join(dir, "device.key")))
		cmd.SetOut(new(bytes.Buffer))
		cmd.SetErr(new(bytes.Buffer))
		return cmd.ExecuteContext(t.Context())
	}
	if err := run("request", "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1", "lab-7"); err != nil {
		t.Fatal(err)
	}
	text, err := (&receipt.File{Keys: "k", Receipt: "a.b.c"}).Armor()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "receipt.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run("release", file); err == nil || !strings.Contains(err.Error(), "does not name the key") {
		t.Errorf("a release with a key that the receipt does not name: %v", err)
	}
}
