package kv

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// TestListenDuringABatch makes an owner listen after many changes were prepared: one request returns the new state to
// all changes, and then all of them have events.
func TestListenDuringABatch(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("listens")
	l.listen()
	s := l.open(nil)
	var changes []store.Change
	var refs []licensing.Ref
	for range 20 {
		refs = append(refs, l.license(s, owner))
	}
	for _, ref := range refs {
		changes = append(changes, l.bound(s, ref, "a"))
	}
	l.listen(owner)
	kvtest.Must(s.readOpenEpoch(t.Context()))(t) // so that it knows
	requests := &requestCount{KVClient: s.etcd.Remote}
	s.etcd.Remote = requests
	outcomes, errs := batched(t, s, changes...)
	sent := requests.n.Load()
	for i := range outcomes {
		if errs[i] != nil || outcomes[i].Landed || len(outcomes[i].Rivals) != 1 ||
			!outcomes[i].Rivals[0].Record.Listening {
			t.Fatalf("change %d: %+v, %v", i, outcomes[i], errs[i])
		}
		changes[i] = l.bound(s, refs[i], "a")
	}
	if sent > 10 {
		t.Errorf("for %d changes that were lost %d requests were sent", len(changes), sent)
	}
	outcomes, errs = batched(t, s, changes...)
	for i := range outcomes {
		if errs[i] != nil || !outcomes[i].Landed {
			t.Errorf("change %d, made anew: %+v, %v", i, outcomes[i], errs[i])
		}
	}
	l.closeEpoch()
	counts := make(map[licensing.EventType]int)
	for _, e := range l.feed(owner, 7) {
		counts[e.Type]++
	}
	if want := map[licensing.EventType]int{licensing.EventLicenseIssued: 20, licensing.EventLicenseActivated: 20,
		licensing.EventDeviceBound: 20}; !cmp.Equal(want, counts) {
		t.Errorf("the feed has %v", counts)
	}
}

// requestCount counts transactions.
type requestCount struct {
	etcdserverpb.KVClient
	n atomic.Int64
}

func (c *requestCount) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	c.n.Add(1)
	return c.KVClient.Txn(ctx, request, opts...)
}
