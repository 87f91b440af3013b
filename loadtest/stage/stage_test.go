package stage

import (
	"os"
	"path/filepath"
	"testing"

	"licet/loadtest/rig"
)

// TestStageThatCantBeSetUpLeavesNothing is given a program that is not there.
func TestStageThatCantBeSetUpLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s, err := New(t.Context(),
		&Config{Setup: rig.Setup{Dir: dir, Binary: filepath.Join(dir, "licet")}, Name: "test", Members: 1, Nodes: 1})
	if err == nil || s != nil {
		t.Fatalf("%v, %v", s, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// TestKeptLogs keeps logs in a directory that is not there yet.
func TestKeptLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "logs")
	s := &Stage{Logs: []string{"first", "second"}}
	if err := s.KeepLogs(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"node-1.log": "first", "node-2.log": "second"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
