package main

import (
	"strings"
	"testing"

	"licet/cmd/licet/internal/doctor"
)

// TestOldLayoutIsRefused runs the commands that open a store on a store that a build with the layout before has
// written.
func TestOldLayoutIsRefused(t *testing.T) {
	p := startProcess(t, t.TempDir())
	p.endWithKey(t, "lc1/s/check", "x")
	for _, args := range [][]string{
		{"dev", "--data-dir", p.dir, "--listen", "127.0.0.1:0"},
		{"store", "verify", "--data-dir", p.dir},
		{"store", "keys", "list", "--account", "acct_1", "--mode", "test", "--data-dir", p.dir},
		{"store", "master-key", "status", "--data-dir", p.dir},
		{"store", "backup", t.TempDir() + "/store.db", "--data-dir", p.dir},
	} {
		if got := runLicet(t, args...); got.code != exitFailed ||
			!strings.Contains(got.stderr, "wrote this store in the layout lc1") ||
			!strings.Contains(got.stderr, `rename the column license_key of the file to external_key`) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	wantFinding(t, doctorReport(t, exitFailed, "--data-dir", p.dir), doctor.Problem, "store", "in the layout lc1")
}
