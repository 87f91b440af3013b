package kv

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/kv/backup"
	"licet/kv/embedded"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

func backupConfig(endpoints ...string) backup.Config {
	return backup.Config{Endpoints: endpoints, Metrics: kvtest.Metrics(), Log: zerolog.Nop()}
}

func backUp(t *testing.T, e *embedded.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "backup.db")
	kvtest.Must(backup.Make(t.Context(), backupConfig(e.Endpoints()...), path, nil))(t)
	return path
}

// disaster is a store whose data is lost and restored from a backup. A node is up all the time, and the socket of etcd
// stays the same.
type disaster struct {
	*lab
	dir, backup string
	etcd        *embedded.Server
	lost        specimens
}

func newDisaster(t *testing.T) *disaster {
	t.Helper()
	d := &disaster{dir: embeddedtest.Dir(t)}
	d.etcd = embeddedtest.Start(t, d.dir)
	d.lab = labOn(t, d.etcd.Endpoints())
	d.lost = d.fill()
	d.backup = backUp(t, d.etcd)
	return d
}

// restore removes the data and restores the backup.
func (d *disaster) restore(bump uint64) {
	d.t.Helper()
	d.etcd.Close()
	if err := os.RemoveAll(filepath.Join(d.dir, embedded.StoreDir)); err != nil {
		d.t.Fatal(err)
	}
	fresh := filepath.Join(d.t.TempDir(), "data")
	if bump == keyspace.RevisionBump {
		kvtest.Must(backup.Restore(d.ctx(), d.backup, fresh, nil))(d.t)
	} else {
		lock := kvtest.Must(embedded.LockDir(fresh))(d.t)
		if err := errors.Join(backup.Unpack(d.ctx(), d.backup, fresh, bump), lock.Close()); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := os.Rename(filepath.Join(fresh, embedded.StoreDir), filepath.Join(d.dir, embedded.StoreDir)); err != nil {
		d.t.Fatal(err)
	}
	d.etcd = embeddedtest.Start(d.t, d.dir)
	waitUntil(d.t, func() bool { return d.store.Ping(d.ctx()) == nil })
}

func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not become true in time")
		}
	}
}

// swapWithOldToken lets a store remember a license as it was after the backup,
// restores, lets another store change the license anew, and then swaps on what
// the first one remembers.
func (d *disaster) swapWithOldToken(bump uint64) store.Outcome {
	d.t.Helper()
	ref := licensing.LicenseRef(d.lost.paid.LicenseKey)
	// The node that starts after the restore does the same: without the bump, both activations have the same revision.
	if err := d.store.OpenEpoch(d.ctx()); err != nil {
		d.t.Fatal(err)
	}
	d.activate(d.lost.paid.LicenseKey, "lost with the store")
	remembered := loadOne(d.t, d.store, ref, "from memory")
	d.restore(bump)

	after := labOn(d.t, d.etcd.Endpoints())
	after.activate(d.lost.paid.LicenseKey, "acknowledged after the restore")
	outcome, err := d.store.Commit(d.ctx(), bind(d.t, ref, remembered, "from memory"))
	if err != nil {
		d.t.Fatal(err)
	}
	return outcome
}

// TestRestoredStoreRefusesOldTokens: nodes that are up during a restore remember revisions that the restored store
// never had.
func TestRestoredStoreRefusesOldTokens(t *testing.T) {
	t.Parallel()
	d := newDisaster(t)
	outcome := d.swapWithOldToken(keyspace.RevisionBump)
	if outcome.Landed {
		t.Fatal("a swap on a revision of the lost store landed")
	}
	rival := outcome.Rivals[0]
	if rival.Record.License.CurrentDevices != 2 || rival.Record.Devices["from memory"].Bound {
		t.Errorf("it lost to %+v", rival.Record.License)
	}
	again, err := d.store.Commit(d.ctx(), bind(t, licensing.LicenseRef(d.lost.paid.LicenseKey), rival, "from memory"))
	if err != nil || !again.Landed {
		t.Errorf("made again on the rival: %+v, %v", again, err)
	}
	d.wantBound(map[string]bool{"laptop": true, "lost with the store": false, "acknowledged after the restore": true,
		"from memory": true})

	// The main job, on the node that was up all the time.
	paid := d.pay(d.order(900))
	d.activate(paid.LicenseKey, "a", "b")
	d.remove(paid.LicenseKey, "a")
	for _, o := range []licensing.Order{d.lost.paid, paid} {
		if got := kvtest.Must(d.node.Order(d.ctx(), labOwner, o.OrderNo))(t); got.LicenseKey != o.LicenseKey {
			t.Errorf("order %s is %+v", o.OrderNo, got)
		}
	}
	summary, found := d.verify(verify.Config{})
	if len(found) > 0 || summary.Revision <= keyspace.RevisionBump {
		t.Errorf("at revision %d verify found %v", summary.Revision, found)
	}
	if n := kvtest.Counted(t, d.metrics.InvariantViolations); n != 0 {
		t.Errorf("licet_invariant_violations_total is %v", n)
	}
}

// TestOldTokenLandsWithoutBump shows that the test above can fail: without the bump a revision occurs twice, and the
// swap lands on a record that its node has never read.
func TestOldTokenLandsWithoutBump(t *testing.T) {
	t.Parallel()
	d := newDisaster(t)
	if !d.swapWithOldToken(0).Landed {
		t.Fatal("the swap was lost: the test above proves nothing")
	}
	d.wantBound(map[string]bool{"laptop": true, "lost with the store": true, "acknowledged after the restore": false,
		"from memory": true})
}

// wantBound checks which devices the license of the paid order has.
func (d *disaster) wantBound(want map[string]bool) {
	d.t.Helper()
	devices := slices.Sorted(maps.Keys(want))
	loaded := loadOne(d.t, d.store, licensing.LicenseRef(d.lost.paid.LicenseKey), devices...)
	for device, entry := range loaded.Record.Devices {
		if entry.Bound != want[device] {
			d.t.Errorf("%q is bound: %v", device, entry.Bound)
		}
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	e := embeddedtest.Start(t, t.TempDir())
	l := labOn(t, e.Endpoints())
	l.fill()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup.db")
	// the last backup, and the file of a killed backup
	for _, name := range []string{path, path + ".new", path + ".sha256"} {
		if err := os.WriteFile(name, bytesOf(strings.Repeat("old", 1<<20)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var done, total []int64
	progress := func(d, t int64) { done, total = append(done, d), append(total, t) }
	revision := kvtest.Must(l.client.Get(l.ctx(), "x"))(t).Header.Revision
	unreachable := "unix://" + filepath.Join(dir, "nobody.sock")
	info := kvtest.Must(backup.Make(l.ctx(), backupConfig(unreachable, e.Endpoints()[0]), path, progress))(t)

	text := kvtest.Must(os.ReadFile(path))(t)
	sum := sha256.Sum256(text)
	want := backup.Info{Endpoint: e.Endpoints()[0], Revision: revision, Bytes: int64(len(text)),
		SHA256: hex.EncodeToString(sum[:])}
	if info != want {
		t.Errorf("got %+v, want %+v", info, want)
	}
	if beside := string(kvtest.Must(os.ReadFile(path + ".sha256"))(t)); beside != want.SHA256+"  backup.db\n" {
		t.Errorf("backup.db.sha256 is %q", beside)
	}
	for _, name := range []string{path, path + ".sha256"} {
		kvtest.WantMode(t, name, 0o600)
	}
	kvtest.WantGone(t, path+".new")
	if !slices.IsSorted(done) || done[len(done)-1] != info.Bytes || slices.Min(total) < info.Bytes/2 {
		t.Errorf("progress %v of %v", done, total)
	}
}

func TestBackupThatFailsLeavesTheLastOne(t *testing.T) {
	t.Parallel()
	e := embeddedtest.Start(t, t.TempDir())
	labOn(t, e.Endpoints()).fill()
	f := func(name, problem string, ctx context.Context, endpoints ...string) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "backup.db")
		if err := os.WriteFile(path, bytesOf("the last one"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := backup.Make(ctx, backupConfig(endpoints...), path, nil)
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got error %v", name, err)
		}
		if text := kvtest.Must(os.ReadFile(path))(t); string(text) != "the last one" {
			t.Errorf("%s: the last backup is now %q", name, text)
		}
		kvtest.WantGone(t, path+".new")
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	f("canceled", "context canceled", canceled, e.Endpoints()...)
	unused := "unix://" + filepath.Join(t.TempDir(), "unused.sock")
	f("no server", unused, t.Context(), unused)

	_, err := backup.Make(t.Context(), backupConfig(e.Endpoints()...),
		filepath.Join(t.TempDir(), "no", "such", "directory"), nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no directory: got error %v", err)
	}
}

// TestRestoreRefuses: Restore refuses damaged backups and directories that are in use. It says why, and leaves no file
// behind.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	e := embeddedtest.Start(t, t.TempDir())
	labOn(t, e.Endpoints()).fill()
	good := kvtest.Must(os.ReadFile(backUp(t, e)))(t)

	damaged := func(at int) []byte {
		text := bytes.Clone(good)
		text[at] ^= 1
		return text
	}
	noise := bytes.Repeat([]byte("noise---"), 1024)
	sum := sha256.Sum256(noise)
	write := func(t *testing.T, text []byte) string {
		path := filepath.Join(t.TempDir(), "backup.db")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, problem string
		text          []byte
	}{
		{"empty", "cut off: 0 bytes", nil},
		{"a byte short", "cut off", good[:len(good)-1]},
		{"without its checksum", "cut off", good[:len(good)-sha256.Size]},
		{"a block short", "checksum inside does not match",
			append(bytes.Clone(good[:len(good)-sha256.Size-512]), good[len(good)-sha256.Size:]...)},
		{"a bit wrong", "checksum inside does not match", damaged(len(good) / 2)},
		{"a bit of the checksum wrong", "checksum inside does not match", damaged(len(good) - 1)},
		{"no database", "not an etcd database", append(bytes.Clone(noise), sum[:]...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			_, err := backup.Restore(t.Context(), write(t, c.text), dir, nil)
			if err == nil || !strings.Contains(err.Error(), c.problem) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got error %v, want %q", err, c.problem)
			}
			kvtest.WantGone(t, dir)
		})
	}

	t.Run("other checksum beside it", func(t *testing.T) {
		path, dir := write(t, good), filepath.Join(t.TempDir(), "data")
		if err := os.WriteFile(path+".sha256", fmt.Appendf(nil, "%x  backup.db\n", sum), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), path, dir, nil); err == nil ||
			!strings.Contains(err.Error(), path+".sha256 has another SHA-256") {
			t.Errorf("got error %v", err)
		}
		kvtest.WantGone(t, dir)
	})
	t.Run("no file", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "data")
		if _, err := backup.Restore(t.Context(), filepath.Join(t.TempDir(), "none"), dir, nil); !errors.Is(err,
			fs.ErrNotExist) {
			t.Errorf("got error %v", err)
		}
		kvtest.WantGone(t, dir)
	})
	t.Run("directory with something in it", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), write(t, good), dir, nil); err == nil ||
			!strings.Contains(err.Error(), dir+" is not empty") {
			t.Errorf("got error %v", err)
		}
		if entries := kvtest.Must(os.ReadDir(dir))(t); len(entries) != 1 {
			t.Errorf("the directory contains %v", entries)
		}
	})
	t.Run("a file in the directory's place", func(t *testing.T) {
		file := write(t, nil)
		if _, err := backup.Restore(t.Context(), write(t, good), file, nil); err == nil ||
			!strings.Contains(err.Error(), "not a directory") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("empty directory", func(t *testing.T) {
		dir := t.TempDir()
		info := kvtest.Must(backup.Restore(t.Context(), write(t, good), dir, nil))(t)
		if info.Bytes != int64(len(good)) || !embedded.HasStore(dir) {
			t.Errorf("got %+v", info)
		}
		var names []string
		for _, entry := range kvtest.Must(os.ReadDir(dir))(t) {
			names = append(names, entry.Name())
		}
		if !slices.Equal(names, []string{"etcd", "lock"}) {
			t.Errorf("the directory contains %v", names)
		}
		kvtest.WantMode(t, dir, 0o700)
		kvtest.WantMode(t, filepath.Join(dir, "etcd"), 0o700)
		if _, err := backup.Restore(t.Context(), write(t, good), dir, nil); err == nil ||
			!strings.Contains(err.Error(), "not empty") {
			t.Errorf("once more: got error %v", err)
		}
	})
}

// TestRestoreStops: a canceled restore leaves no file behind, whether it ends early in the check of the backup or when
// the new directory is complete.
func TestRestoreStops(t *testing.T) {
	t.Parallel()
	e := embeddedtest.Start(t, t.TempDir())
	labOn(t, e.Endpoints()).fill()
	made := backUp(t, e)
	for name, atEnd := range map[string]bool{"at the first byte": false, "at the last byte": true} {
		ctx, cancel := context.WithCancel(t.Context())
		dir := filepath.Join(t.TempDir(), "data")
		_, err := backup.Restore(ctx, made, dir, func(done, total int64) {
			if !atEnd || done == total {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got error %v", name, err)
		}
		kvtest.WantGone(t, dir)
	}
}
