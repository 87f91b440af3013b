package kv

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"licet/kv/backup"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/node/store"
)

// TestRestoredLeases: the etcd leases in a restored store end, so leases of dead nodes on endpoints do not keep workers
// off for long.
func TestRestoredLeases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup.db")
	func() {
		etcd := embeddedtest.Start(t, t.TempDir())
		l := labOn(t, etcd.Endpoints())
		l.endpoint()
		atWork(t, l.store, func(ctx context.Context, w store.DeliveryWorker) {
			lease := holding(t, ctx, w)
			if err := lease.Checkpoint(ctx, store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"},
				Pending: []store.Delivery{kvtest.Delivery()}}); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Make(ctx, backup.Config{Endpoints: etcd.Endpoints(), Metrics: kvtest.Metrics(),
				Log: l.store.log}, path, nil); err != nil {
				t.Fatal(err)
			}
		})
	}()
	after := filepath.Join(dir, "after")
	if _, err := backup.Restore(t.Context(), path, after, nil); err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, store: openStoreOn(t, embeddedtest.Start(t, after))}
	l.client = l.store.etcd.Native
	if lease := kvtest.Must(l.client.Get(l.ctx(), keyspace.DeliveryLeaseKey(hooked)))(t); len(lease.Kvs) != 1 ||
		lease.Kvs[0].Lease == 0 {
		t.Fatalf("the lease is %v", lease.Kvs)
	}
	l.clean()
	atWork(t, l.store, func(ctx context.Context, w store.DeliveryWorker) {
		for until := time.Now().Add(3 * 10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			lease, ok, err := w.Acquire(ctx, labOwner, hooked)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				state, err := lease.Resume(ctx)
				if err != nil || state.Progress.Place != "evt_1" || len(state.Pending) != 1 {
					t.Errorf("it resumes at %+v, %v", state, err)
				}
				return
			}
			if time.Now().After(until) {
				t.Fatal("the restored lease keeps others off")
			}
		}
	})
}
