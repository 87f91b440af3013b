package kv

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"licet/kv/backup"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/node/store"
)

// TestRestoredClaims: the leases in a restored store go on and end, so claims of dead nodes keep no worker off for
// long.
func TestRestoredClaims(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "backup.db")
	func() {
		etcd := embeddedtest.Start(t, t.TempDir())
		l := labOn(t, etcd.Endpoints())
		l.endpoint()
		atWork(t, l.store, func(ctx context.Context, w store.DeliveryWorker) {
			hold := holding(t, ctx, w)
			if err := hold.Checkpoint(ctx, store.Checkpoint{Progress: store.DeliveryProgress{Place: "evt_1"},
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
	if claim := kvtest.Must(l.client.Get(l.ctx(), layout.DeliveryClaimKey(hooked)))(t); len(claim.Kvs) != 1 ||
		claim.Kvs[0].Lease == 0 {
		t.Fatalf("the claim is %v", claim.Kvs)
	}
	l.clean()
	atWork(t, l.store, func(ctx context.Context, w store.DeliveryWorker) {
		for until := time.Now().Add(3 * 10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			hold, ok, err := w.Claim(ctx, labOwner, hooked)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				state, err := hold.Resume(ctx)
				if err != nil || state.Progress.Place != "evt_1" || len(state.Pending) != 1 {
					t.Errorf("it resumes at %+v, %v", state, err)
				}
				return
			}
			if time.Now().After(until) {
				t.Fatal("the restored claim keeps others off")
			}
		}
	})
}
