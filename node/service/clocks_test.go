package service_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing"
	"licet/metrics"
	"licet/node/clocks"
	"licet/node/service"
	"licet/node/store"
)

// clocked is a node whose clock is wrong by a time that may change. It compares its clock with the clocks of the other
// nodes in the store.
type clocked struct {
	*service.Service
	store *kv.Store
	ahead atomic.Int64
	clock *clocks.Comparison
}

// hurry is how many times as fast as real clocks the clocks of clocked nodes run, since a node waits for seconds of its
// own clock until a step of the clock is over. Bounds of clocks are wider by as much, so with faster clocks a busy
// machine proves no two clocks alike.
const hurry = 2

var began = time.Now()

// newClocked starts a node whose clock is ahead by a time. leave ends the registration of the node.
func newClocked(t *testing.T, etcd kv.Config, ahead time.Duration) (n *clocked, leave func()) {
	t.Helper()
	n = &clocked{store: nodetest.OpenWith(t, etcd)}
	n.ahead.Store(int64(ahead))
	source := func() (time.Time, time.Duration) {
		elapsed := hurry * time.Since(began)
		return began.Round(0).Add(elapsed + time.Duration(n.ahead.Load())), elapsed
	}
	n.clock = clocks.New(clocks.Config{Self: n.store.Incarnation(), Clock: source,
		Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), Log: zerolog.Nop()})
	n.Service = nodetest.New(t, n.store, func(c *service.Config) {
		c.Clock = func() time.Time { wall, _ := source(); return wall }
		c.Clocks = n.clock
		c.KeepEvents.Age = 24 * time.Hour
		c.Usages = n.store
	})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		n.store.Register(ctx, func() store.Registration {
			return store.Registration{Incarnation: n.store.Incarnation()}
		}, n.clock)
	})
	leave = func() { cancel(); group.Wait() }
	t.Cleanup(leave)
	return n, leave
}

// await waits until the nodes are in states: s, serves and acts by time; u, serves only; r, refuses since the clock
// differs; x, refuses since the clock was just set.
func await(t *testing.T, states string, nodes ...*clocked) {
	t.Helper()
	for giveUp := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got := ""
		for _, n := range nodes {
			switch err := n.RefuseByClock(); {
			case err != nil && strings.Contains(err.Error(), "differs"):
				got += "r"
			case err != nil:
				got += "x"
			case n.clock.Untrusted() != nil:
				got += "u"
			default:
				got += "s"
			}
		}
		if got == states {
			return
		}
		if time.Now().After(giveUp) {
			t.Fatalf("the nodes are %s, and never %s", got, states)
		}
	}
}

// TestWrongClocks runs the chores of three nodes on a real etcd while clocks are days ahead, days behind and set again
// and again: a node that does not agree with most nodes removes nothing and records nothing, and nothing is executed
// twice. Once the clocks are right, all nodes do their chores again.
func TestWrongClocks(t *testing.T) {
	etcd := nodetest.OwnEtcd(t) // chores work on the records of all accounts
	a, leaveA := newClocked(t, etcd, 0)
	b, leaveB := newClocked(t, etcd, 0)
	c, _ := newClocked(t, etcd, 9*24*time.Hour)
	await(t, "ssr", a, b, c)

	ctx := nodetest.Context(t)
	owner := nodetest.NewOwner(licensing.Test)
	order, _, err := a.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "r"))
	nodetest.WantError(t, err, nil)
	granted, _, err := a.Grant(ctx, owner,
		service.Grant{ProductID: "pro", Quantity: 1, ExpiresAt: time.Now().Add(time.Hour)})
	nodetest.WantError(t, err, nil)
	key := granted[0].License.Key
	due, _, err := a.CreateOrder(ctx, owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	_, err = a.PayOrder(ctx, due, nodetest.SandboxPayment(due.OrderNo))
	nodetest.WantError(t, err, nil)
	_, _, err = a.ChangeOrder(ctx, owner, due.OrderNo, licensing.RequestRefund{By: "key_1"}, nil)
	nodetest.WantError(t, err, nil)
	events := len(nodetest.FeedOf(t, a.store, owner))

	// chores runs all chores of a node, and tries the refunds that are due. It reports how many refunds the node tries.
	chores := func(n *clocked, works bool) {
		t.Helper()
		var want error
		if !works {
			want = clocks.ErrUntrusted
		}
		for _, chore := range n.Chores() {
			if chore.Label == "webhooks" {
				continue // does not depend on time
			}
			if err := chore.Once(ctx); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s: %v, want %v", chore.Name, err, want)
			}
		}
		if err := n.Recount(ctx); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("a recount: %v, want %v", err, want)
		}
		var refunds atomic.Int64
		err := n.EachRefundDue(ctx, func(context.Context, licensing.Order) error { refunds.Add(1); return nil })
		if !errors.Is(err, want) || want == nil && err != nil || (refunds.Load() > 0) != works {
			t.Errorf("%d refunds, %v; want %v", refunds.Load(), err, want)
		}
	}
	unharmed := func(when string) {
		t.Helper()
		for _, n := range []*clocked{a, b, c} {
			again, replayed, err := n.CreateOrder(ctx, owner, nodetest.OrderOnce("k", "r"))
			if err != nil || !replayed || again.OrderNo != order.OrderNo {
				t.Errorf("%s: the same request made %s, replayed %v: %v", when, again.OrderNo, replayed, err)
			}
		}
		stored, err := a.Order(ctx, owner, order.OrderNo)
		if err != nil || !stored.ExpiredAt.IsZero() {
			t.Errorf("%s: the order ended at %v, %v", when, stored.ExpiredAt, err)
		}
		view, err := a.License(ctx, owner, key, store.DevicePage{Limit: 1})
		if err != nil || !view.License.EndRecorded.IsZero() {
			t.Errorf("%s: the license ended at %v, %v", when, view.License.EndRecorded, err)
		}
		if got := len(nodetest.FeedOf(t, a.store, owner)); got != events {
			t.Errorf("%s: %d events, want %d", when, got, events)
		}
	}
	chores(a, true)
	chores(b, true)
	chores(c, false)
	unharmed("one is ahead")
	if err := c.Ready(ctx); licensing.ReasonOf(err) != licensing.ReasonUnavailable {
		t.Errorf("the node that is ahead is ready: %v", err)
	}
	nodetest.WantError(t, a.Ready(ctx), nil)

	// Three clocks that all differ: there is no majority.
	b.ahead.Store(int64(-9 * 24 * time.Hour))
	if err := b.clock.Untrusted(); err == nil { // at once, before any comparison
		t.Error("a clock that was just set is trusted")
	}
	await(t, "uuu", a, b, c)
	for _, n := range []*clocked{a, b, c} {
		chores(n, false)
		nodetest.WantError(t, n.Ready(ctx), nil)
	}
	unharmed("all differ")

	c.ahead.Store(0)
	await(t, "srs", a, b, c)
	chores(b, false)
	b.ahead.Store(0)
	await(t, "sss", a, b, c)
	for _, n := range []*clocked{a, b, c} {
		chores(n, true)
	}
	unharmed("all agree")

	// The departure of the other nodes proves no clock right.
	c.ahead.Store(int64(9 * 24 * time.Hour))
	await(t, "ssr", a, b, c)
	leaveA()
	leaveB()
	await(t, "u", c)
	chores(c, false)
	unharmed("the others have gone")
}
