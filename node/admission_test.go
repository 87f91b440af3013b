package node_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// still is a clock that stands still until a test moves it.
type still struct{ nanos atomic.Int64 }

func (s *still) now() time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(s.nanos.Load()))
}

func (s *still) move(d time.Duration) { s.nanos.Add(int64(d)) }

// held is a node whose swaps wait until letGo is called. hold selects the records whose swaps wait.
type held struct {
	*service.Service
	clock   still
	metrics *metrics.Metrics
	arrived chan struct{}
	letGo   func()
	reads   atomic.Int32
	swaps   atomic.Int32
	onRead  atomic.Pointer[func()]                 // called before each read
	passing atomic.Pointer[[]licensing.LicenseKey] // whose swaps are not held back
	group   sync.WaitGroup
}

func newHeld(t *testing.T, hold func(licensing.Ref) bool) *held {
	open := make(chan struct{})
	h := &held{
		metrics: metrics.New(prometheus.NewRegistry(), "test", "", ""),
		arrived: make(chan struct{}, 1000),
		letGo:   sync.OnceFunc(func() { close(open) }),
	}
	h.Service = nodetest.New(t, &storetest.Faulty{
		Store: nodetest.OpenStore(t),
		OnLoad: func([]store.Want) error {
			h.reads.Add(1)
			if hold := h.onRead.Load(); hold != nil {
				(*hold)()
			}
			return nil
		},
		OnCommit: func(change store.Change) storetest.Fault {
			h.swaps.Add(1)
			if ref := change.Writes[0].Ref; hold(ref) && !h.passes(ref) {
				h.arrived <- struct{}{}
				<-open
			}
			return storetest.Fault{}
		},
	}, func(c *service.Config) { c.Clock, c.Metrics = h.clock.now, h.metrics })
	t.Cleanup(func() {
		h.letGo()
		h.group.Wait()
		if got := h.UnderWay(); got != 0 {
			t.Errorf("%d commands are under way at the end", got)
		}
		if own, hopped := h.SharesUnder(); own != [2]int{} || hopped != [2]int{} {
			t.Errorf("the shares count %v and %v commands under way at the end", own, hopped)
		}
	})
	return h
}

func everything(licensing.Ref) bool { return true }

// start begins an activation that must succeed.
func (h *held) start(t *testing.T, key licensing.LicenseKey, device string) {
	h.group.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		_, err := nodetest.Activate(ctx, h.Service, key, device)
		nodetest.WantError(t, err, nil)
	})
}

func (h *held) wantShed(t *testing.T, reason string, want int) {
	t.Helper()
	if got := testutil.ToFloat64(h.metrics.CommandsShed.WithLabelValues(reason)); got != float64(want) {
		t.Errorf("%v were refused because of %s, want %d", got, reason, want)
	}
}

// grants makes licenses through another node, so that the node under test has no memory of them.
func grants(t *testing.T, count int) []licensing.LicenseKey {
	return grantsTo(t, nodetest.Owner, count)
}

func grantsTo(t *testing.T, owner licensing.Owner, count int) []licensing.LicenseKey {
	other := nodetest.New(t, nodetest.OpenStore(t))
	keys := make([]licensing.LicenseKey, count)
	for i := range keys {
		keys[i] = grantTo(t, other, owner, 0)
	}
	return keys
}

// TestShedsOverTheLimit fills a node up: the node then refuses every request at once, without a request to the store.
// Once there is room, it serves requests again.
func TestShedsOverTheLimit(t *testing.T) {
	keys := grants(t, 4)
	h := newHeld(t, everything)
	h.Admit(1, 3, 20_000)
	h.start(t, keys[0], "held")
	<-h.arrived
	for range 2 { // each owner has as many as are free
		h.start(t, grantsTo(t, nodetest.NewOwner(licensing.Test), 1)[0], "held")
		<-h.arrived
	}
	reads, swaps := h.reads.Load(), h.swaps.Load()
	ctx := nodetest.Context(t)
	unknownKey := nodetest.LicenseKeys.MintAPIKey(nodetest.Owner, [keyring.APIKeyEntropy]byte{1})
	for what, ask := range map[string]func() error{
		"activation":  func() error { _, err := nodetest.Activate(ctx, h.Service, keys[3], "shed"); return err },
		"another one": func() error { _, err := nodetest.Activate(ctx, h.Service, keys[0], "shed"); return err },
		"removal":     func() error { _, err := remove(ctx, h.Service, keys[0], "held"); return err },
		"lookup": func() error {
			_, err := h.License(ctx, nodetest.Owner, keys[0], store.DevicePage{Limit: 1})
			return err
		},
		"order": func() error {
			_, _, err := h.CreateOrder(ctx, nodetest.Owner, service.NewOrder{ProductID: "pro", Currency: "USD"})
			return err
		},
		"order lookup": func() error {
			_, err := h.Order(ctx, nodetest.Owner, licensing.NewOrderNo(nodetest.Owner, "01ARZ3NDEKTSV4RRFFQ69G5FAV"))
			return err
		},
		"licenses": func() error {
			_, err := h.ListLicenses(ctx, nodetest.Owner, service.LicenseFilter{}, store.Page{})
			return err
		},
		"orders": func() error {
			_, err := h.ListOrders(ctx, nodetest.Owner, service.OrderFilter{}, store.Page{})
			return err
		},
		"products": func() error { _, err := h.ListProducts(ctx, nodetest.Owner, store.Page{}); return err },
		"API keys": func() error { _, err := h.ListAPIKeys(ctx, nodetest.Owner, store.Page{}); return err },
		"payment": func() error {
			order := licensing.Order{Owner: nodetest.Owner, ProductID: "pro", OrderNo: "x"}
			_, err := h.PayOrder(ctx, order, nodetest.SandboxPayment(order.OrderNo))
			return err
		},
		"grant": func() error {
			_, _, err := h.Grant(ctx, nodetest.Owner, service.Grant{ProductID: "pro", Quantity: 1})
			return err
		},
		"asked early": h.RefuseIfFull,
		"API key":     func() error { _, err := h.Authenticate(ctx, unknownKey); return err },
	} {
		t.Run(what, func(t *testing.T) { nodetest.WantError(t, ask(), licensing.ErrOverloaded) })
	}
	if h.reads.Load() != reads || h.swaps.Load() != swaps {
		t.Errorf("a refused request has reached the store")
	}
	if !h.Full() {
		t.Error("a full node does not report that it is full")
	}
	h.wantShed(t, "limit", 14)
	if got := testutil.ToFloat64(h.metrics.CommandsUnderWay); got != 3 {
		t.Errorf("the gauge shows %v under way, want 3", got)
	}
	h.letGo()
	h.group.Wait()
	if err := h.RefuseIfFull(); err != nil || h.Full() || h.UnderWay() != 0 {
		t.Errorf("an idle node that was asked: %v, full: %v, %d under way", err, h.Full(), h.UnderWay())
	}
	nodetest.MustActivate(t, h.Service, keys[3], "served")
	if _, ids := nodetest.Devices(t, h.Service, keys[3]); ids["shed"] || !ids["served"] {
		t.Errorf("bound: %v", ids)
	}
	if _, ids := nodetest.Devices(t, h.Service, keys[0]); ids["shed"] || !ids["held"] {
		t.Errorf("bound: %v", ids)
	}
}

// TestStormedLicense storms one license whose swap hangs: that license gets a third of the places, other licenses of
// its owner a sixth, and other owners a half.
func TestStormedLicense(t *testing.T) {
	const limit, most, left = 40, 13, 7
	keys := grants(t, 1+left)
	stormed, siblings := keys[0], keys[1:]
	others := grantsTo(t, nodetest.NewOwner(licensing.Test), limit/4)
	h := newHeld(t, func(ref licensing.Ref) bool { return ref == licensing.LicenseRef(stormed) })
	h.Admit(1, limit, 20_000)
	h.start(t, stormed, "first")
	<-h.arrived
	for i := range most - 1 {
		h.start(t, stormed, fmt.Sprint("waiting-", i))
		h.AwaitQueued(licensing.LicenseRef(stormed), i+1)
	}
	for i := range 100 {
		_, err := nodetest.Activate(nodetest.Context(t), h.Service, stormed, fmt.Sprint("shed-", i))
		nodetest.WantError(t, err, licensing.ErrOverloaded)
		nodetest.MustActivate(t, h.Service, siblings[i%len(siblings)], fmt.Sprint("device-", i))
		nodetest.MustActivate(t, h.Service, others[i%len(others)], fmt.Sprint("device-", i))
	}
	h.wantShed(t, "share", 100)
	h.wantShed(t, "owner", 0)
	h.wantShed(t, "limit", 0)
	// All the others at once find room as well.
	for _, keys := range [][]licensing.LicenseKey{siblings, others} {
		var group sync.WaitGroup
		for _, key := range keys {
			group.Go(func() {
				_, err := nodetest.Activate(nodetest.Context(t), h.Service, key, "at once")
				nodetest.WantError(t, err, nil)
			})
		}
		group.Wait()
	}
	h.letGo()
	h.group.Wait()
	if count, ids := nodetest.Devices(t, h.Service, stormed); count != most || ids["shed-0"] {
		t.Errorf("%d devices of the stormed license are bound, want %d: %v", count, most, ids)
	}
}

// TestHopelessDeadline: the node refuses a command at once if its turn can't come before its deadline.
func TestHopelessDeadline(t *testing.T) {
	soon := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		t.Cleanup(cancel)
		return ctx
	}
	t.Run("of the node", func(t *testing.T) {
		keys := grants(t, 3)
		h := newHeld(t, everything)
		h.Admit(1, 10, 0.1) // a waiting command has its turn after 10 s
		h.start(t, keys[0], "served")
		<-h.arrived
		_, err := nodetest.Activate(soon(t), h.Service, keys[1], "hopeless")
		nodetest.WantError(t, err, licensing.ErrOverloaded)
		h.wantShed(t, "deadline", 1)
		h.start(t, keys[2], "patient")
		<-h.arrived
	})
	t.Run("of a license", func(t *testing.T) {
		key := grants(t, 1)[0]
		ref := licensing.LicenseRef(key)
		turns := make(chan struct{})
		arrived := make(chan struct{}, 10)
		var clock still
		// A store that remembers devices would have room for all waiting commands in one swap.
		n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), Forgetful: true,
			OnCommit: func(store.Change) storetest.Fault {
				arrived <- struct{}{}
				<-turns
				clock.move(10 * time.Second)
				return storetest.Fault{}
			}}, func(c *service.Config) { c.Clock = clock.now })
		n.Admit(10_000, 10_000, 20_000)
		var group sync.WaitGroup
		start := func(i int) {
			group.Go(func() {
				_, err := nodetest.Activate(nodetest.Context(t), n, key, fmt.Sprint("device-", i))
				nodetest.WantError(t, err, nil)
			})
		}
		start(0)
		<-arrived
		const waiting = 3 * store.MaxTouchedDevices
		for i := range waiting {
			start(1 + i)
		}
		n.AwaitQueued(ref, waiting)
		turns <- struct{}{} // the first, alone
		<-arrived
		turns <- struct{}{} // a full swap, which takes 10 s
		<-arrived           // another one is under way, and a third is waiting
		n.AwaitQueued(ref, waiting-2*store.MaxTouchedDevices)
		_, err := nodetest.Activate(soon(t), n, key, "hopeless")
		nodetest.WantError(t, err, licensing.ErrOverloaded)
		start(1 + waiting) // patient
		n.AwaitQueued(ref, waiting-2*store.MaxTouchedDevices+1)
		close(turns)
		group.Wait()
		if count, ids := nodetest.Devices(t, n, key); count != waiting+2 || ids["hopeless"] {
			t.Errorf("%d devices are bound, want %d", count, waiting+2)
		}
	})
}

// TestBackgroundYields: while half of the places are taken, the node does not store when devices were seen. It stores
// this later.
func TestBackgroundYields(t *testing.T) {
	keys := grants(t, 3)
	holding := atomic.Bool{}
	h := newHeld(t, func(licensing.Ref) bool { return holding.Load() })
	nodetest.MustActivate(t, h.Service, keys[0], "seen")
	h.clock.move(licensing.DefaultSeenStep)
	nodetest.MustActivate(t, h.Service, keys[0], "seen")
	h.Admit(1, 4, 20_000)
	holding.Store(true)
	for _, key := range keys[1:] {
		h.start(t, key, "held")
		<-h.arrived
	}
	swaps := h.swaps.Load()
	for range 3 {
		h.StoreSeen()
	}
	if got := h.swaps.Load(); got != swaps {
		t.Errorf("%d swaps stored when devices were seen, while commands waited", got-swaps)
	}
	h.wantShed(t, "background", 3)
	holding.Store(false)
	h.letGo()
	h.group.Wait()
	h.StoreSeen()
	if got := seenAt(t, h.Service, keys[0], "seen"); !got.Equal(h.clock.now()) {
		t.Errorf("the device was seen at %v, want %v", got, h.clock.now())
	}
}

// TestBusy: a node is busy while that many commands wait for its store.
func TestBusy(t *testing.T) {
	enough := node.BusyCommands * runtime.GOMAXPROCS(0)
	keys := grants(t, enough)
	h := newHeld(t, func(licensing.Ref) bool { return true })
	for i, key := range keys {
		if h.Busy() {
			t.Fatalf("%d commands keep the node busy, of %d", i, enough)
		}
		h.start(t, key, "held")
		<-h.arrived
	}
	if !h.Busy() {
		t.Errorf("%d commands don't keep the node busy", enough)
	}
	h.letGo()
	h.group.Wait()
	if h.Busy() {
		t.Error("an idle node is busy")
	}
}

// TestIdleNodeRefusesNothing: however slow its store is, a node serves commands that come one at a time, and as many at
// once as the store takes.
func TestIdleNodeRefusesNothing(t *testing.T) {
	key := grants(t, 1)[0]
	var clock still
	n := nodetest.New(t, &storetest.Faulty{Store: nodetest.OpenStore(t), OnCommit: func(store.Change) storetest.Fault {
		clock.move(3 * time.Second)
		return storetest.Fault{}
	}}, func(c *service.Config) { c.Clock = clock.now })
	for i := range 30 {
		nodetest.MustActivate(t, n, key, fmt.Sprint("device-", i))
	}
	keys := grants(t, 64)
	for range 4 {
		var group sync.WaitGroup
		for i := range 512 {
			group.Go(func() {
				_, err := nodetest.Activate(nodetest.Context(t), n, keys[i%len(keys)], fmt.Sprint("device-", i))
				nodetest.WantError(t, err, nil)
			})
		}
		group.Wait()
	}
}
