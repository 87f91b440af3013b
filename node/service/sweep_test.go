package service_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// skewed is the clock of one node: the true time plus an error, by.
type skewed struct {
	truth *atomic.Int64 // Unix milliseconds
	by    time.Duration
}

func (c skewed) now() time.Time { return time.UnixMilli(c.truth.Load()).Add(c.by) }

// TestEndsAreRecordedOnce runs the sweeps of three nodes at the same time, with clocks that are behind, right and
// ahead: each end is recorded once, and not too early.
func TestEndsAreRecordedOnce(t *testing.T) {
	start := time.Now().UTC().Truncate(time.Millisecond)
	var truth atomic.Int64
	truth.Store(start.UnixMilli())
	owner := nodetest.NewOwner(licensing.Test)
	var nodes []*service.Service
	for _, by := range []time.Duration{-time.Minute, 0, time.Minute} {
		nodes = append(nodes, nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) {
			c.Clock = skewed{&truth, by}.now
			c.TestOrderLifetime = time.Hour
		}))
	}
	n := nodes[1]
	ctx := nodetest.Context(t)
	var orders []licensing.Order
	for range 12 {
		order, _, err := n.CreateOrder(ctx, owner, nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		orders = append(orders, order)
	}
	paid, err := n.PayOrder(ctx, orders[0], nodetest.SandboxPayment(orders[0].OrderNo))
	nodetest.WantError(t, err, nil)
	_, err = n.CancelOrder(ctx, orders[1])
	nodetest.WantError(t, err, nil)
	granted, _, err := n.Grant(ctx, owner,
		service.Grant{ProductID: "pro", Quantity: 40, ExpiresAt: start.Add(time.Hour)})
	nodetest.WantError(t, err, nil)
	_ = paid

	sweep := func() {
		t.Helper()
		var group sync.WaitGroup
		for _, each := range nodes {
			for range 2 {
				group.Go(func() {
					for _, chore := range each.Chores() {
						if err := chore.Once(ctx); err != nil {
							t.Errorf("%s: %v", chore.Name, err)
						}
					}
				})
			}
		}
		group.Wait()
	}
	order := func(i int) licensing.Order {
		t.Helper()
		stored, err := n.Order(ctx, owner, orders[i].OrderNo)
		nodetest.WantError(t, err, nil)
		return stored
	}
	license := func(i int) licensing.License {
		t.Helper()
		view, err := n.License(ctx, owner, granted[i].License.Key, store.DevicePage{Limit: 1})
		nodetest.WantError(t, err, nil)
		return view.License
	}
	check := func(when string, recorded bool) {
		t.Helper()
		for i := range orders {
			stored := order(i)
			if want := recorded && i > 1; stored.ExpiredAt.IsZero() == want {
				t.Errorf("%s: order %d is recorded at %v", when, i, stored.ExpiredAt)
			}
		}
		for i := range granted {
			l := license(i)
			if want := recorded; l.EndRecorded.Equal(l.ExpiresAt) != want {
				t.Errorf("%s: license %d is recorded for %v", when, i, l.EndRecorded)
			}
		}
	}
	for _, early := range []time.Duration{0, time.Hour, time.Hour + time.Minute - time.Millisecond} {
		truth.Store(start.Add(early).UnixMilli())
		sweep()
		check(early.String(), false)
	}
	if run := order(2); run.Status(n.Now()) != licensing.OrderExpired { // at once, whatever is recorded
		t.Errorf("the order is %s", run.Status(n.Now()))
	}
	truth.Store(start.Add(time.Hour + 4*time.Minute).UnixMilli())
	sweep()
	check("after the margin", true)
	first := order(2)
	truth.Store(start.Add(2 * time.Hour).UnixMilli())
	sweep()
	if again := order(2); again != first {
		t.Errorf("recorded again: %+v, before %+v", again, first)
	}

	// A renewed license ends again, and the second end is recorded too.
	end := start.Add(3 * time.Hour)
	key := granted[0].License.Key
	_, err = n.Do(ctx, licensing.LicenseRef(key),
		licensing.RenewLicense{Target: licensing.Target{Key: key}, ExpiresAt: end})
	nodetest.WantError(t, err, nil)
	sweep()
	if l := license(0); l.EndRecorded.Equal(end) || l.Status(n.Now()) != licensing.NotActivated {
		t.Errorf("the renewed license is %+v", l)
	}
	truth.Store(end.Add(4 * time.Minute).UnixMilli())
	sweep()
	if l := license(0); !l.EndRecorded.Equal(end) {
		t.Errorf("the license at its second end is %+v", l)
	}
}

// TestSweepContinuesAfterFailures: an unreadable record must not keep the sweep from other records.
func TestSweepContinuesAfterFailures(t *testing.T) {
	plain := nodetest.OpenStore(t)
	owner := nodetest.NewOwner(licensing.Test)
	var damaged atomic.Pointer[string]
	broken := errors.New("broken")
	store := &storetest.Faulty{Store: plain, OnLoad: func(wants []store.Want) error {
		if bad := damaged.Load(); bad != nil && wants[0].Ref.ID == *bad {
			return broken
		}
		return nil
	}}
	var ahead atomic.Int64
	n := nodetest.New(t, store, func(c *service.Config) {
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c.TestOrderLifetime = time.Minute
	})
	var orders []licensing.Order
	for range 20 {
		order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		orders = append(orders, order)
	}
	damaged.Store(&orders[0].OrderNo)
	ahead.Store(int64(time.Hour))
	nodetest.WantError(t, n.RecordOrderEnds(nodetest.Context(t)), broken)
	damaged.Store(nil)
	for i, order := range orders {
		stored, err := n.Order(nodetest.Context(t), owner, order.OrderNo)
		nodetest.WantError(t, err, nil)
		if stored.ExpiredAt.IsZero() != (i == 0) {
			t.Errorf("order %d is recorded at %v", i, stored.ExpiredAt)
		}
	}
	nodetest.WantError(t, n.RecordOrderEnds(nodetest.Context(t)), nil)
	if stored, _ := n.Order(nodetest.Context(t), owner, orders[0].OrderNo); stored.ExpiredAt.IsZero() {
		t.Error("the order that could not be read is not recorded later")
	}
}

// TestSweepRuns: Sweep runs its chores again and again until its context ends, also after a chore has failed.
func TestSweepRuns(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	ctx, cancel := context.WithCancel(nodetest.Context(t))
	var ran [2]int
	n.Sweep(ctx, service.Chore{Name: "the first", Once: func(context.Context) error {
		ran[0]++
		return errors.New("it fails")
	}}, service.Chore{Name: "the second", Once: func(context.Context) error {
		if ran[1]++; ran[1] == 3 {
			cancel()
		}
		return nil
	}})
	if ran != [2]int{3, 3} {
		t.Errorf("the chores ran %v times, want 3 each", ran)
	}
}

// TestOrderLifetimes: orders in test mode may have a lifetime of their own.
func TestOrderLifetimes(t *testing.T) {
	for _, c := range []struct{ all, test, live, want time.Duration }{
		{0, 0, 24 * time.Hour, 24 * time.Hour},
		{time.Hour, 0, time.Hour, time.Hour},
		{0, time.Second, 24 * time.Hour, time.Second},
		{time.Hour, time.Minute, time.Hour, time.Minute},
	} {
		db := nodetest.OpenStore(t)
		n := nodetest.New(t, db, func(cfg *service.Config) { cfg.OrderLifetime, cfg.TestOrderLifetime = c.all, c.test })
		live := nodetest.NewOwner(licensing.Live)
		product := &licensing.Product{ID: "pro", Owner: live, Terms: licensing.DefaultTerms(), CreatedAt: n.Now()}
		if _, err := db.Commit(nodetest.Context(t),
			store.Change{Writes: []store.Write{{Ref: licensing.ProductRef(live, "pro"),
				Record: licensing.Record{Product: product}}}}); err != nil {
			t.Fatal(err)
		}
		for owner, want := range map[licensing.Owner]time.Duration{live: c.live,
			nodetest.NewOwner(licensing.Test): c.want} {
			order, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(0))
			nodetest.WantError(t, err, nil)
			if got := order.ExpiresAt.Sub(order.CreatedAt); got != want {
				t.Errorf("%+v: an order in %s mode lives %v", c, owner.Mode, got)
			}
		}
	}
}

// TestSweepStopsIfEveryRecordFails: a sweep stops early if every record fails.
func TestSweepStopsIfEveryRecordFails(t *testing.T) {
	const many = 100
	var failing atomic.Bool
	var loads atomic.Int32
	db := &storetest.Faulty{Store: nodetest.OpenStore(t), OnLoad: func([]store.Want) error {
		if failing.Load() {
			loads.Add(1)
			return licensing.ErrUnavailable
		}
		return nil
	}}
	var ahead atomic.Int64
	n := nodetest.New(t, db, func(c *service.Config) {
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		c.TestOrderLifetime = time.Minute
	})
	owner := nodetest.NewOwner(licensing.Test)
	var group sync.WaitGroup
	for range many {
		group.Go(func() {
			_, _, err := n.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
			nodetest.WantError(t, err, nil)
		})
	}
	group.Wait()
	ahead.Store(int64(time.Hour))
	failing.Store(true)
	nodetest.WantError(t, n.RecordOrderEnds(nodetest.Context(t)), licensing.ErrUnavailable)
	if got := loads.Load(); got >= many/2 {
		t.Errorf("%d of %d records were tried", got, many)
	}
	failing.Store(false)
	nodetest.WantError(t, n.RecordOrderEnds(nodetest.Context(t)), nil)
	page, err := db.Due(nodetest.Context(t), licensing.DueOrderEnd, licensing.SlotOf(owner),
		store.DueSpan{Until: n.Now().Add(-2 * time.Minute)}, "", store.MaxDue)
	nodetest.WantError(t, err, nil)
	for _, ref := range page.Records {
		if ref.Owner == owner {
			t.Errorf("%s was left", ref.ID)
		}
	}
}

// TestRefundTriedByAFastClock: a node whose clock is nine days ahead tries a refund, and stores that the next try is
// due nine days later than it should be. A sweep of a right clock tries the refund at once, and counts it.
func TestRefundTriedByAFastClock(t *testing.T) {
	db := nodetest.OpenStore(t)
	fast := nodetest.New(t, db, func(c *service.Config) {
		c.Clock = func() time.Time { return time.Now().Add(9 * 24 * time.Hour) }
	})
	counted := metrics.New(prometheus.NewRegistry(), "test", "", "")
	right := nodetest.New(t, db, func(c *service.Config) { c.Metrics = counted })
	ctx := nodetest.Context(t)
	owner := nodetest.NewOwner(licensing.Test)
	order, _, err := right.CreateOrder(ctx, owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	_, err = right.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo))
	nodetest.WantError(t, err, nil)
	_, _, err = right.ChangeOrder(ctx, owner, order.OrderNo, licensing.RequestRefund{By: "key_1"}, nil)
	nodetest.WantError(t, err, nil)
	_, err = fast.TryRefund(ctx, order, false)
	nodetest.WantError(t, err, nil)

	tries := func() (due int) {
		t.Helper()
		var mu sync.Mutex
		err := right.EachRefundDue(ctx, func(ctx context.Context, o licensing.Order) error {
			if o.Owner != owner {
				return nil
			}
			result, err := right.TryRefund(ctx, o, true)
			if result.RefundDue {
				mu.Lock()
				due++
				mu.Unlock()
			}
			return err
		})
		nodetest.WantError(t, err, nil)
		return due
	}
	for pass, want := range []int{1, 0} { // the second pass waits as the first has stored
		if got := tries(); got != want {
			t.Errorf("pass %d tries the refund %d times, want %d", pass, got, want)
		}
		if testutil.ToFloat64(counted.RefundsDue) < 1 {
			t.Errorf("pass %d counts no due refund", pass)
		}
	}
}
