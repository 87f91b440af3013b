package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBackupSet keeps the last backups in a directory, each with its checksum, and removes
// none where it makes none.
func TestBackupSet(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	p.someTraffic(t)
	dir := t.TempDir()
	older := []string{"licet-20260101T000000Z.db", "licet-20260102T000000Z.db", "licet-20260103T000000Z.db"}
	for _, name := range older {
		writeText(t, filepath.Join(dir, name), "x")
		writeText(t, filepath.Join(dir, name+".sha256"), "x")
	}
	writeText(t, filepath.Join(dir, "notes.txt"), "x")
	listed := func() []string {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		return names
	}

	before := listed()
	got := runLicet(t, "store", "backup", filepath.Join(dir, "none"), "--keep", "2", "--etcd-endpoints", p.socket())
	if got.code != exitFailed || !strings.Contains(got.stderr, "no such file or directory") ||
		!slices.Equal(listed(), before) {
		t.Errorf("into a directory that is not there: %+v; %q", got, listed())
	}
	begun := time.Now().UTC().Truncate(time.Second)
	got = runLicet(t, "store", "backup", dir, "--keep", "2", "--etcd-endpoints", p.socket())
	if got.code != exitOK || got.stderr != "" {
		t.Fatalf("backup: %+v", got)
	}
	path, _, _ := strings.Cut(got.stdout, ": ")
	made := filepath.Base(path)
	if at, err := time.Parse("licet-20060102T150405Z.db", made); err != nil || filepath.Dir(path) != dir ||
		at.Before(begun) || at.After(time.Now()) {
		t.Errorf("it is called %s, begun at %s: %v", path, begun, err)
	}
	if want := []string{older[2], older[2] + ".sha256", made, made + ".sha256", "notes.txt"}; !slices.Equal(listed(),
		want) {
		t.Errorf("left are %q, want %q", listed(), want)
	}
	if restored := runLicet(t, "store", "restore", path, "--data-dir",
		filepath.Join(t.TempDir(), "restored")); restored.code != exitOK {
		t.Errorf("restore: %+v", restored)
	}
}

// TestDefragment works on the store of a service that runs, which goes on.
func TestDefragment(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir())
	p.someTraffic(t)
	got := runLicet(t, "store", "defragment", "--etcd-endpoints", p.socket())
	if got.code != exitOK || got.stderr != "" || !strings.HasPrefix(got.stdout, p.socket()+": ") ||
		strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("of a service that runs: %+v", got)
	}
	p.someTraffic(t)
	if code := p.terminate(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if got := runLicet(t, "store", "defragment", "--data-dir", p.dir); got.code != exitOK ||
		strings.Count(got.stdout, " bytes, ") != 1 {
		t.Errorf("of a stopped backup: %+v", got)
	}
	if got := runLicet(t, "store", "defragment", "--etcd-endpoints", p.socket()); got.code != exitFailed ||
		got.stdout != "" {
		t.Errorf("of an unreachable etcd: %+v", got)
	}
}
