package deliveries

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// unreadable is an etcd of which so many requests that only read fail.
type unreadable struct {
	etcdserverpb.KVClient
	left atomic.Int32
}

func (u *unreadable) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	if !kvtest.IsWrite(request) && u.left.Add(-1) >= 0 {
		return nil, rpctypes.ErrTimeout
	}
	return u.KVClient.Txn(ctx, request, opts...)
}

// TestCheckpointReadsAgain: what has to be read for a checkpoint is read as often as it
// takes, and where it can't be understood the lease is given up: while the context
// lives there is no other error.
func TestCheckpointReadsAgain(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	s := openDeliveries(t)
	w := newWorker(t, s)
	hold := holdOf(t, w, owner, endpoint)
	remote := &unreadable{KVClient: s.etcd.Remote}
	s.etcd.KV = clientv3.NewKVFromKVClient(remote, s.etcd.Native)
	for n := range 2 { // the first one reads how far it is, and the second one what is dead
		remote.left.Store(3)
		if err := hold.Checkpoint(t.Context(),
			store.Checkpoint{Dead: messages(n, n+1)}); err != nil || remote.left.Load() > 0 {
			t.Errorf("checkpoint %d: %v, and %d reads have not failed", n, err, remote.left.Load())
		}
	}
	remote.left.Store(1 << 30)
	ended, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := hold.Checkpoint(ended, store.Checkpoint{Dead: messages(2, 3)}); !errors.Is(err,
		licensing.ErrUnavailable) {
		t.Errorf("without an answer: %v", err)
	}
	remote.left.Store(0)
	if err := hold.Checkpoint(t.Context(), store.Checkpoint{Dead: messages(3, 4)}); err != nil {
		t.Error(err)
	}
	if _, kinds := keptOf(t, endpoint); kinds[keyspace.KeyOfDead] != 4 {
		t.Errorf("there is %v", kinds)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	hold = holdOf(t, w, owner, endpoint)
	if _, err := own.Client.Put(t.Context(), keyspace.WebhooksKey(owner), "?"); err != nil {
		t.Fatal(err)
	}
	if err := hold.Checkpoint(t.Context(), store.Checkpoint{}); !errors.Is(err,
		store.ErrLeaseLost) || !errors.Is(err, licensing.ErrInternal) {
		t.Errorf("of endpoints that can't be read: %v", err)
	}
	if _, err := own.Client.Delete(t.Context(), keyspace.WebhooksKey(owner)); err != nil {
		t.Fatal(err) // tests beside read all endpoints
	}
	if leases, err := w.Leases(t.Context()); err != nil ||
		leases[endpoint] != (store.Incarnation{}) {
		t.Errorf("it is leased by %v, %v", leases[endpoint], err)
	}
}

// TestUnreadablePending damages a pending message and a dead message: they are read as messages of which only the
// event is known, and the endpoint's other messages go on.
func TestUnreadablePending(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	m := kvtest.Metrics()
	s := deliveriesCountedBy(t, m)
	hold := holdOf(t, newWorker(t, s), owner, endpoint)
	ctx := t.Context()
	if err := hold.Checkpoint(ctx, store.Checkpoint{Pending: messages(0, 2), Dead: messages(2, 4)}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{keyspace.PendingKey(endpoint, "evt_000001"),
		keyspace.DeadKey(endpoint, "evt_000003")} {
		if _, err := own.Client.Put(ctx, key, "\x09garbled"); err != nil {
			t.Fatal(err)
		}
	}
	state, err := hold.Resume(ctx)
	want := []store.PendingDelivery{{EventID: "evt_000000", Attempts: 1, Next: kvtest.Time}, {EventID: "evt_000001"}}
	if err != nil || !slices.Equal(state.Pending, want) {
		t.Errorf("pending are %+v, %v", state.Pending, err)
	}
	read, err := hold.Pending(ctx, "evt_000000", "evt_000001")
	if err != nil || len(read) != 2 || read[1].EventID != "evt_000001" || read[1].Status != store.DeliveryPending {
		t.Errorf("read are %+v, %v", read, err)
	}
	dead, err := hold.Dead(ctx, "", 10)
	if err != nil || len(dead) != 2 || dead[1].EventID != "evt_000003" || dead[1].Status != store.DeliveryDead {
		t.Errorf("dead are %+v, %v", dead, err)
	}
	if n := kvtest.Counted(t, m.EventValuesUnreadable); n != 2 {
		t.Errorf("%v values are counted", n)
	}
}
