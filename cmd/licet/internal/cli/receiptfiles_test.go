package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"licet/receipt"
)

// TestReceiptFilesOfTheirOwn: no request loses its receipt file to another one.
func TestReceiptFilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	newUser(t).refuses(true, []string{"two requests", filepath.Join("out", "lab.receipt.txt")},
		"receipts", "issue", "a/lab.txt", "b/lab.txt", "--dir", "out")
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
