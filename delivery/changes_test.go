package delivery

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"licet/licensing"
	"licet/node/store"
)

// staleStore is a store whose scans don't see changes of endpoints while it is stale; how says why. Loops still read
// endpoints and the feed.
type staleStore struct {
	Store
	how    string
	stale  atomic.Bool
	mark   atomic.Int64 // the last mark that was returned
	listed atomic.Int64 // the number of reads of all endpoints
	closed atomic.Bool  // reads of the leases fail
	scans  atomic.Int64 // the number of reads of the leases
	leases atomic.Int64 // the number of leases of endpoints
	jobs   sync.Map     // the number of reads of replays, by account
}

const (
	hangingMark = "a node that is paused within its lease"
	oldMark     = "a mark that does not move"
	slowList    = "a reading of all endpoints that does not end"
)

// WatchWebhooks hangs: the engine must not depend on a watch.
func (b *staleStore) WatchWebhooks(ctx context.Context, _ func()) { <-ctx.Done() }

func (b *staleStore) WebhooksMark(ctx context.Context) (int64, error) {
	switch {
	case !b.stale.Load():
	case b.how == hangingMark:
		<-ctx.Done()
		return 0, ctx.Err()
	case b.how == oldMark:
		return b.mark.Load(), nil
	}
	mark, err := b.Store.WebhooksMark(ctx)
	if err == nil {
		b.mark.Store(mark)
	}
	return mark, err
}

func (b *staleStore) AllWebhooks(ctx context.Context) iter.Seq2[store.OwnerWebhooks, error] {
	return func(yield func(store.OwnerWebhooks, error) bool) {
		if b.stale.Load() {
			<-ctx.Done()
			yield(store.OwnerWebhooks{}, ctx.Err())
			return
		}
		b.Store.AllWebhooks(ctx)(yield)
		b.listed.Add(1)
	}
}

func (b *staleStore) Work(ctx context.Context, do func(context.Context, store.DeliveryWorker) error) error {
	return b.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
		return do(ctx, staleWorker{w, b})
	})
}

type staleWorker struct {
	store.DeliveryWorker
	b *staleStore
}

func (w staleWorker) Leases(ctx context.Context) (map[string]store.Incarnation, error) {
	if w.b.closed.Load() {
		return nil, licensing.ErrUnavailable
	}
	w.b.scans.Add(1)
	return w.DeliveryWorker.Leases(ctx)
}

func (w staleWorker) Acquire(
	ctx context.Context, owner licensing.Owner, endpoint string,
) (store.DeliveryLease, bool, error) {
	lease, ok, err := w.DeliveryWorker.Acquire(ctx, owner, endpoint)
	if ok {
		w.b.leases.Add(1)
		lease = staleLease{lease, owner.AccountID, w.b}
	}
	return lease, ok, err
}

type staleLease struct {
	store.DeliveryLease
	account string
	b       *staleStore
}

func (h staleLease) Jobs(ctx context.Context) ([]store.Replay, store.EndpointAt, error) {
	count, _ := h.b.jobs.LoadOrStore(h.account, new(atomic.Int64))
	count.(*atomic.Int64).Add(1)
	return h.DeliveryLease.Jobs(ctx)
}

// staleNode starts a node that delivers through a store that can become stale.
func (l *testCluster) staleNode(how string) (*testNode, *staleStore) {
	s := l.node()
	store := &staleStore{Store: s.deliveries, how: how}
	s.engineStore = store
	s.listInterval = 2 * waitLimit
	return s, store
}

// update changes an endpoint.
func (s *testNode) update(change licensing.UpdateEndpoint) {
	s.cluster.t.Helper()
	s.cluster.waitUntil("the endpoint is changed", func() bool {
		_, err := s.service.UpdateWebhook(s.cluster.ctx(), s.cluster.owner, change)
		return err == nil // etcd may be slow on a busy machine
	})
}

// waitForExactly waits until a receiver has accepted all of some events, and fails if it got others.
func (r *receiver) waitForExactly(l *testCluster, events []string) {
	r.t.Helper()
	r.waitForAll(l, events)
	if n, _ := r.count(); n != len(events) {
		r.t.Errorf("%d events arrived, want %d", n, len(events))
	}
}

// TestChangeAppliesToLaterEvents: events that are recorded after a change of an endpoint was acknowledged follow the
// change, whatever keeps the scan from seeing it.
func TestChangeAppliesToLaterEvents(t *testing.T) {
	for _, how := range []string{hangingMark, oldMark, slowList} {
		t.Run(how, func(t *testing.T) {
			l := newTestCluster(t)
			s, store := l.staleNode(how)
			typed, left, moved := newReceiver(t), newReceiver(t), newReceiver(t)
			none := []licensing.EventType{licensing.EventOrderPaid}
			first, second := s.subscribe(typed), s.subscribe(left)
			s.update(licensing.UpdateEndpoint{ID: first.ID, Types: &none})
			s.startEngine()
			s.grant(1)
			before := s.waitForEvents(1)
			left.waitForAll(l, before)
			l.waitUntil("both endpoints are leased", func() bool { return len(s.engine.leasedIDs()) == 2 })
			store.stale.Store(true)
			s.update(licensing.UpdateEndpoint{ID: first.ID, Types: &second.Types})
			s.update(licensing.UpdateEndpoint{ID: second.ID, URL: &moved.server.URL})
			moved.trustAll()
			s.grant(4)
			after := slices.DeleteFunc(s.waitForEvents(5), func(id string) bool { return id == before[0] })
			typed.waitForAll(l, after)
			moved.waitForExactly(l, after)
			left.waitForExactly(l, before)
		})
	}
}

// TestDisabledIsFoundWithThePage: a disabled endpoint gets no event that is recorded after the change, although no
// scan has seen the change. The endpoint is not leased again before a scan sees it enabled.
func TestDisabledIsFoundWithThePage(t *testing.T) {
	l := newTestCluster(t)
	s, store := l.staleNode(oldMark)
	r := newReceiver(t)
	endpoint := s.subscribe(r)
	s.startEngine()
	s.grant(1)
	before := s.waitForEvents(1)
	r.waitForAll(l, before)
	store.stale.Store(true)
	off, on := false, true
	s.update(licensing.UpdateEndpoint{ID: endpoint.ID, Enabled: &off})
	s.grant(1)
	after := s.waitForEvents(2)
	l.waitUntil("the endpoint is released", func() bool { return len(s.engine.leasedIDs()) == 0 })
	scans := store.scans.Load()
	l.waitUntil("scans go on", func() bool { return store.scans.Load() > scans+1 })
	r.waitForExactly(l, before)
	if n := store.leases.Load(); n != 1 {
		t.Errorf("the endpoint was leased %d times", n)
	}
	store.stale.Store(false)
	s.update(licensing.UpdateEndpoint{ID: endpoint.ID, Enabled: &on})
	r.waitForExactly(l, after)
}

// TestOnlyTheOwnersLoopsReread: after a change of an endpoint, or a new replay, only the loops of its owner reread
// their endpoints.
func TestOnlyTheOwnersLoopsReread(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	s.listInterval = 2 * waitLimit
	mine, theirs := newReceiver(t), newReceiver(t)
	s.subscribe(mine)
	l.owner.AccountID = "acct_other"
	other := s.subscribe(theirs)
	db := &staleStore{Store: s.deliveries}
	s.engineStore = db
	s.startEngine()
	l.waitUntil("both endpoints are leased", func() bool { return len(s.engine.leasedIDs()) == 2 })
	asked := func(owner string) (n int64) {
		if count, ok := db.jobs.Load(owner); ok {
			n = count.(*atomic.Int64).Load()
		}
		return n
	}
	l.waitUntil("all loops read their endpoints at the start", func() bool {
		return asked("acct_lab") == 1 && asked("acct_other") == 1
	})
	s.grant(1)
	event := s.waitForEvents(1)[0]
	theirs.waitForAll(l, []string{event})
	s.replay(other.ID, store.Replay{EventID: event})
	l.waitUntil("the event arrives again", func() bool { return theirs.timesReceived(event) == 2 })
	before := asked("acct_other")
	s.update(licensing.UpdateEndpoint{ID: other.ID, Description: &other.URL})
	l.waitUntil("its loop rereads it", func() bool { return asked("acct_other") > before })
	if n := asked("acct_lab"); n != 1 {
		t.Errorf("the loop of another owner has read %d times, want once", n)
	}
}

// TestLeaseStartsFromTheRecord: a node that saw an endpoint before a change, and leases it after the change, delivers
// to the changed endpoint.
func TestLeaseStartsFromTheRecord(t *testing.T) {
	l := newTestCluster(t)
	s, store := l.staleNode(oldMark)
	left, moved := newReceiver(t), newReceiver(t)
	endpoint := s.subscribe(left)
	none := []licensing.EventType{licensing.EventOrderPaid}
	s.update(licensing.UpdateEndpoint{ID: endpoint.ID, Types: &none})
	store.closed.Store(true)
	s.startEngine()
	l.waitUntil("the endpoint is found", func() bool { return store.listed.Load() > 0 })
	store.stale.Store(true)
	s.update(licensing.UpdateEndpoint{ID: endpoint.ID, Types: &endpoint.Types, URL: &moved.server.URL})
	moved.trustAll()
	s.grant(3)
	store.closed.Store(false)
	moved.waitForExactly(l, s.waitForEvents(3))
	if n := left.attempts(); n > 0 {
		t.Errorf("%d messages arrived at the old URL", n)
	}
}
