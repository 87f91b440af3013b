package backup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"licet/kv/internal/kvtest"
)

// TestPruneBackups keeps the newest, and whatever is no backup of the set.
func TestPruneBackups(t *testing.T) {
	dir := t.TempDir()
	begun := time.Date(2026, 11, 22, 23, 59, 58, 999, time.UTC)
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var made []string
	for i := range 4 {
		name := filepath.Base(Path(dir, begun.Add(time.Duration(i)*time.Second)))
		made = append(made, name)
		write(name)
		write(name + ".sha256")
	}
	foreign := []string{"store.db", "licet-latest.db", "licet-20261122T130700Z.db.gz", "licet-20261122T130700Z.txt",
		"other.db.new"}
	for _, name := range foreign {
		write(name)
	}
	if err := os.Mkdir(filepath.Join(dir, "licet-20200101T000000Z.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("licet-20251122T130700Z.db.new") // of a process that was killed
	held := kvtest.Must(lockNew(filepath.Join(dir, "licet-20251122T130701Z.db.new")))(t)
	defer held.Close()

	newest := filepath.Join(dir, made[3])
	if err := Prune(newest, 2); err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(foreign, []string{"licet-20200101T000000Z.db", "licet-20251122T130701Z.db.new"})
	for _, name := range made[2:] {
		want = append(want, name, name+".sha256")
	}
	slices.Sort(want)
	var have []string
	for _, entry := range kvtest.Must(os.ReadDir(dir))(t) {
		have = append(have, entry.Name())
	}
	if !slices.Equal(have, want) {
		t.Errorf("left are %q, want %q", have, want)
	}
	if made[3] != "licet-20261123T000001Z.db" {
		t.Errorf("the last one is called %s", made[3])
	}
	if err := Prune(newest, 2); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := Prune(filepath.Join(dir, "none", made[3]), 2); err == nil {
		t.Error("a directory that is not there was pruned")
	}
	// A backup made by a clock that is behind.
	write("licet-20200102T000000Z.db")
	if err := Prune(filepath.Join(dir, "licet-20200102T000000Z.db"), 1); err != nil {
		t.Error(err)
	}
	left := kvtest.Must(filepath.Glob(filepath.Join(dir, "licet-*Z.db")))(t)
	if want := []string{filepath.Join(dir, "licet-20200101T000000Z.db"),
		filepath.Join(dir, "licet-20200102T000000Z.db")}; !slices.Equal(left, want) {
		t.Errorf("left are %q, want %q", left, want)
	}
}
