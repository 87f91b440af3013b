package kv

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/backup"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// void stores entries of an owner's list, and returns their names.
func (l *lab) void(owner licensing.Owner, from, to int, until licensing.ReceiptDay) (names []licensing.RevocationName) {
	l.t.Helper()
	for i := from; i < to; i++ {
		r := licensing.Revocation{Name: licensing.RevocationOf(licensing.LicenseID{1}, fmt.Sprint(i)),
			Revision: uint64(i) + 1, Until: until}
		names = append(names, r.Name)
		kvtest.Must(l.client.Put(l.ctx(), keyspace.RevocationKey(owner, r.Name),
			string(layout.EncodeRevocation(r))))(l.t)
	}
	return names
}

func (l *lab) revocations(owner licensing.Owner, after int64) store.Revocations {
	l.t.Helper()
	return kvtest.Must(l.store.ReadRevocations(l.ctx(), owner, store.RevocationsWanted{After: after, Most: 1000}))(l.t)
}

// TestSweepOfRevocations removes many entries of several owners that are over, but neither other entries nor the
// newest entry of each owner: the position of no list falls.
func TestSweepOfRevocations(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	owners := []licensing.Owner{labOwner, {AccountID: labOwner.AccountID, Mode: licensing.Live}, labListener}
	for _, owner := range owners {
		kvtest.Must(l.client.Put(l.ctx(), keyspace.SlotKey(licensing.SlotOf(owner)), ""))(t)
	}
	l.void(owners[0], 0, 200, 100)
	good := l.void(owners[0], 200, 203, 101)
	l.void(owners[0], 203, 206, 100)
	l.void(owners[1], 0, 1, 100)
	l.void(owners[2], 0, 2, 101)
	before := make([]store.Revocations, len(owners))
	for i, owner := range owners {
		before[i] = l.revocations(owner, 0)
	}
	for _, want := range []int{202 + 3 - 2 - 1, 0} {
		if swept := kvtest.Must(l.store.SweepRevocations(l.ctx(), 100))(t); swept != want {
			t.Errorf("a sweep has removed %d entries, want %d", swept, want)
		}
	}
	for i, want := range []int{len(good) + 1, 1, 2} {
		after := l.revocations(owners[i], 0)
		if len(after.Entries) != want || after.Epoch != before[i].Epoch || before[i].Epoch == 0 {
			t.Errorf("owner %d has %d entries at %d, before %d", i, len(after.Entries), after.Epoch, before[i].Epoch)
		}
	}
}

// TestLongListOfRevocations: a reading ends with the page on which it finds too many entries. Entries that void no
// receipt any more do not count.
func TestLongListOfRevocations(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newLab(t)
	puts := make([]clientv3.Op, revocationPage+1)
	for i := range puts {
		r := licensing.Revocation{Name: licensing.RevocationOf(licensing.LicenseID{1}, fmt.Sprint(i)), Revision: 1,
			Until: 50_000}
		puts[i] = clientv3.OpPut(keyspace.RevocationKey(labOwner, r.Name), string(layout.EncodeRevocation(r)))
	}
	for some := range slices.Chunk(puts, etcd.MaxOps) {
		kvtest.Must(l.client.Txn(l.ctx()).Then(some...).Commit())(t)
	}
	for _, c := range []struct {
		want    store.RevocationsWanted
		entries int
		tooMany bool
	}{
		{store.RevocationsWanted{Most: 5}, revocationPage, true},
		{store.RevocationsWanted{Most: revocationPage}, revocationPage + 1, true},
		{store.RevocationsWanted{Most: revocationPage + 1}, revocationPage + 1, false},
		{store.RevocationsWanted{Most: 5, Today: 50_000}, 0, false},
	} {
		list := kvtest.Must(l.store.ReadRevocations(l.ctx(), labOwner, c.want))(t)
		if len(list.Entries) != c.entries || list.TooMany != c.tooMany {
			t.Errorf("%+v wanted: %d entries, too many: %v", c.want, len(list.Entries), list.TooMany)
		}
	}
}

// TestRevocationsOfARestoredStore: the position of a list does not fall with a restore, and a node that goes on with
// what it has read of the lost store gets the whole list.
func TestRevocationsOfARestoredStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup.db")
	var lost, backed store.Revocations
	func() {
		server := embeddedtest.Start(t, t.TempDir())
		l := labOn(t, server.Endpoints())
		l.void(labOwner, 0, 3, 50_000)
		backed = l.revocations(labOwner, 0)
		if _, err := backup.Make(l.ctx(), backup.Config{Endpoints: server.Endpoints(), Metrics: kvtest.Metrics(),
			Log: l.store.log}, path, nil); err != nil {
			t.Fatal(err)
		}
		l.void(labOwner, 3, 5, 50_000)
		lost = l.revocations(labOwner, backed.Revision)
	}()
	if len(backed.Entries) != 3 || !backed.Complete || len(lost.Entries) != 2 || lost.Complete ||
		lost.Epoch <= backed.Epoch {
		t.Fatalf("%+v, then %+v", backed, lost)
	}
	after := filepath.Join(dir, "after")
	if _, err := backup.Restore(t.Context(), path, after, nil); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, store: openStoreOn(t, embeddedtest.Start(t, after))}
	l.client = l.store.etcd.Native
	restored := l.revocations(labOwner, lost.Revision)
	if !restored.Complete || len(restored.Entries) != 3 || restored.Epoch <= lost.Epoch {
		t.Errorf("restored: %+v after %+v", restored, lost)
	}
	l.void(labOwner, 5, 6, 50_000)
	if next := l.revocations(labOwner, restored.Revision); next.Complete || len(next.Entries) != 1 ||
		next.Epoch <= restored.Epoch {
		t.Errorf("then: %+v", next)
	}
}
