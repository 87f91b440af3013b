package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// fill starts activations of licenses that hang, until the node refuses one for its
// owner. It returns how many hang.
func (h *held) fill(t *testing.T, keys []licensing.LicenseKey) int {
	t.Helper()
	for i, key := range keys {
		refused := make(chan error, 1)
		h.group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			_, err := nodetest.Activate(ctx, h.Service, key, "held")
			if err != nil {
				refused <- err
			}
		})
		select {
		case <-h.arrived:
		case err := <-refused:
			nodetest.WantError(t, err, licensing.ErrOverloaded)
			return i
		}
	}
	t.Fatalf("%d activations of one owner were let in", len(keys))
	return 0
}

// TestStormingOwner fills one owner's share with activations of many licenses, whose swaps hang: the owner gets half of
// the places, and the node lets in all requests of other owners.
func TestStormingOwner(t *testing.T) {
	const limit = 20
	storming, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	for name, hot := range map[string]bool{"licenses that the node remembers": true,
		"licenses that the node does not remember": false} {
		t.Run(name, func(t *testing.T) {
			keys, others := grantsTo(t, storming, limit+1), grantsTo(t, other, limit/4)
			var holding atomic.Bool
			held := make(map[licensing.Ref]bool)
			for _, key := range keys {
				held[licensing.LicenseRef(key)] = true
			}
			h := newHeld(t, func(ref licensing.Ref) bool { return holding.Load() && held[ref] })
			if hot {
				for _, key := range keys {
					nodetest.MustActivate(t, h.Service, key, "warm")
				}
			}
			h.Admit(1, limit, 20_000)
			holding.Store(true)
			if got := h.fill(t, keys); got != limit/2 {
				t.Errorf("%d of the owner's activations were let in, want %d", got, limit/2)
			}

			ctx := nodetest.Context(t)
			order := func(owner licensing.Owner) error {
				_, _, err := h.CreateOrder(ctx, owner, nodetest.NewOrder(100))
				return err
			}
			lookup := func(owner licensing.Owner, key licensing.LicenseKey) error {
				_, err := h.License(ctx, owner, key, store.DevicePage{Limit: 1})
				return err
			}
			list := func(owner licensing.Owner) error {
				_, err := h.ListLicenses(ctx, owner, service.LicenseFilter{}, store.Page{Limit: 1})
				return err
			}
			nodetest.WantError(t, lookup(storming, keys[0]), licensing.ErrOverloaded)
			nodetest.WantError(t, order(storming), licensing.ErrOverloaded)
			nodetest.WantError(t, list(storming), licensing.ErrOverloaded)
			_, err := h.RemoveDevice(ctx,
				licensing.RemoveDevice{Target: licensing.Target{Key: others[0], Caller: storming}, Device: "x"})
			nodetest.WantError(t, err, licensing.ErrOverloaded) // it counts for who asks
			nodetest.WantError(t, h.RefuseIfShared(keys[limit/2-1]), licensing.ErrOverloaded)

			nodetest.WantError(t, h.RefuseIfShared(others[0]), nil)
			nodetest.WantError(t, lookup(other, others[0]), nil)
			nodetest.WantError(t, order(other), nil)
			nodetest.WantError(t, list(other), nil)
			failed := make(chan error, len(others))
			for _, key := range others[:limit/4] { // all at once
				go func() {
					_, err := nodetest.Activate(ctx, h.Service, key, "at once")
					failed <- err
				}()
			}
			for range others[:limit/4] {
				nodetest.WantError(t, <-failed, nil)
			}
			h.wantShed(t, "limit", 0)
			h.wantShed(t, "share", 0)
		})
	}
}

// TestPayTokenBeforePlace asks for an order of an owner that has no place left: only a caller with the pay token learns
// that the order exists.
func TestPayTokenBeforePlace(t *testing.T) {
	const limit = 20
	owner := nodetest.NewOwner(licensing.Test)
	keys := grantsTo(t, owner, limit+1)
	h := newHeld(t, func(ref licensing.Ref) bool { return ref.Kind == licensing.KindLicense })
	ctx := nodetest.Context(t)
	order, _, err := h.CreateOrder(ctx, owner, nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	right, err := nodetest.Ring(t).PayToken(&order)
	nodetest.WantError(t, err, nil)
	h.Admit(1, limit, 20_000)
	h.fill(t, keys)
	absent := licensing.NewOrderNo(owner, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	for _, c := range []struct {
		orderNo, token string
		want           error
	}{
		{order.OrderNo, right, licensing.ErrOverloaded},
		{order.OrderNo, strings.Repeat("0", len(right)), licensing.ErrOrderNotFound},
		{absent, right, licensing.ErrOrderNotFound},
	} {
		_, err := h.OrderToPay(ctx, c.orderNo, c.token)
		nodetest.WantError(t, err, c.want)
	}
}

// TestPayTokenGivesPlaceBack asks for an order by its pay token more often than its owner has places: each place ends
// with the owner that the order was found to have.
func TestPayTokenGivesPlaceBack(t *testing.T) {
	const limit = 20
	h := newHeld(t, func(licensing.Ref) bool { return false })
	ctx := nodetest.Context(t)
	order, _, err := h.CreateOrder(ctx, nodetest.NewOwner(licensing.Test), nodetest.NewOrder(100))
	nodetest.WantError(t, err, nil)
	token, err := nodetest.Ring(t).PayToken(&order)
	nodetest.WantError(t, err, nil)
	h.Admit(1, limit, 20_000)
	for range 2 * limit {
		_, err := h.OrderToPay(ctx, order.OrderNo, token)
		nodetest.WantError(t, err, nil)
	}
}

// TestStormKeepsNoOthersOrderOpen records the ends of orders while one owner storms the node: the ends of orders of
// other owners, and not of that owner.
func TestStormKeepsNoOthersOrderOpen(t *testing.T) {
	const limit = 100
	storming, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	keys := grantsTo(t, storming, limit+1)
	h := newHeld(t, func(ref licensing.Ref) bool { return ref.Kind == licensing.KindLicense })
	orders := make(map[licensing.Owner]string)
	for i := range 100 { // many more than are worked on at a time
		owner := storming
		if i == 0 {
			owner = other
		}
		order, _, err := h.CreateOrder(nodetest.Context(t), owner, nodetest.NewOrder(100))
		nodetest.WantError(t, err, nil)
		orders[owner] = order.OrderNo
	}
	h.clock.move(48 * time.Hour)
	nodetest.WantError(t, h.RefuseIfFull(), nil) // the rate is measured now, and not any more
	h.Admit(1, limit, 20_000)
	h.fill(t, keys)
	ended := func(owner licensing.Owner) bool {
		t.Helper()
		snapshots, err := nodetest.OpenStore(t).Load(nodetest.Context(t),
			store.Want{Ref: licensing.OrderRef(owner, orders[owner])})
		nodetest.WantError(t, err, nil)
		return !snapshots[0].Record.Order.ExpiredAt.IsZero()
	}
	if err := h.RecordOrderEnds(nodetest.Context(t)); err != nil {
		t.Log(err)
	}
	if !ended(other) || ended(storming) {
		t.Errorf("recorded of the other owner: %v, of the storming owner: %v", ended(other), ended(storming))
	}
	h.letGo()
	h.group.Wait()
	h.Admit(1, 2000, 20_000)
	nodetest.WantError(t, h.RecordOrderEnds(nodetest.Context(t)), nil)
	if !ended(storming) {
		t.Error("the end of an order was forgotten")
	}
}

// TestStrangersTakeNoMoreThanAnOwner asks for licenses that the node does not know while reads hang: the unknown
// licenses get half of the places, and known licenses the rest. Once a license is read, its commands count for its
// owner, and other unknown licenses find room again.
func TestStrangersTakeNoMoreThanAnOwner(t *testing.T) {
	const limit = 20
	storming, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	keys, others := grantsTo(t, storming, limit+1), grantsTo(t, other, 2)
	h := newHeld(t, everything)
	h.letSwapsGo(others...)
	nodetest.MustActivate(t, h.Service, others[0], "warm")
	h.Admit(1, limit, 20_000)
	reads := h.holdReads()
	for _, key := range keys[:limit/2] {
		h.start(t, key, "held")
		<-reads.arrived
	}
	_, err := nodetest.Activate(nodetest.Context(t), h.Service, keys[limit/2], "stranger")
	nodetest.WantError(t, err, licensing.ErrOverloaded)
	_, err = nodetest.Activate(nodetest.Context(t), h.Service, others[1], "stranger")
	nodetest.WantError(t, err, licensing.ErrOverloaded)
	nodetest.MustActivate(t, h.Service, others[0], "known")

	reads.letGo()
	for range limit / 2 {
		<-h.arrived
	}
	nodetest.MustActivate(t, h.Service, others[1], "stranger")
	_, err = nodetest.Activate(nodetest.Context(t), h.Service, keys[limit/2], "of the same owner")
	nodetest.WantError(t, err, licensing.ErrOverloaded)
}

// TestNetworksShareUnknownLicenses: an address that asks for many licenses that the node does not know, while reads
// hang, leaves places for such licenses to other addresses.
func TestNetworksShareUnknownLicenses(t *testing.T) {
	const limit = 30
	keys := grants(t, limit+1)
	h := newHeld(t, everything)
	h.Admit(1, limit, 20_000)
	reads := h.holdReads()
	next := 0
	// fill starts activations from an address until one is refused, and returns how many hang.
	fill := func(from string) (held int) {
		for ; ; held++ {
			target := licensing.Target{Key: keys[next], Network: netip.MustParseAddr(from)}
			next++
			refused := make(chan error, 1)
			h.group.Go(func() {
				if _, err := h.Activate(nodetest.Context(t),
					licensing.Activate{Target: target, Device: "d"}); err != nil {
					refused <- err
				}
			})
			select {
			case <-reads.arrived:
			case err := <-refused:
				nodetest.WantError(t, err, licensing.ErrOverloaded)
				return held
			}
		}
	}
	var got []int
	for _, from := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
		got = append(got, fill(from))
	}
	if want := []int{10, 3, 1}; !slices.Equal(got, want) { // of the 15 that all unknown licenses may have
		t.Errorf("the addresses have %v places of %d, want %v", got, limit, want)
	}
	reads.letGo()
	h.letGo()
}

// TestStormingOwnersShare has two owners storm the node: each gets a third, and a
// third is left.
func TestStormingOwnersShare(t *testing.T) {
	gate := newGate(30)
	a, b, c := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Live)
	got := map[licensing.Owner]int{}
	for range 30 {
		for _, owner := range []licensing.Owner{a, b} {
			if gate.Enter(t.Context(), owner) == nil {
				got[owner]++
			}
		}
	}
	for ; gate.Enter(t.Context(), c) == nil; got[c]++ {
	}
	if got[a] != 10 || got[b] != 10 || got[c] != 5 {
		t.Errorf("two storming owners have %d and %d, and a third owner then gets %d, of 30", got[a], got[b], got[c])
	}
}

func newGate(limit int) *node.Admission {
	var clock still
	gate := node.NewAdmission(clock.now, metrics.New(prometheus.NewRegistry(), "test", "", ""))
	gate.SetLimit(limit)
	return gate
}

// TestSharesProperty lets owners come and go at random: the number of commands under way never exceeds the limit, an
// owner with no command under way finds a place while there is any, and an owner is never refused while an owner with
// more commands is let in.
func TestSharesProperty(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 20 {
		limit := 1 + random.IntN(60)
		gate := newGate(limit)
		owners := make([]licensing.Owner, 1+random.IntN(6))
		for i := range owners {
			owners[i] = licensing.Owner{AccountID: fmt.Sprint(i), Mode: licensing.Test}
		}
		under := make([]int, len(owners))
		sum := 0
		for range 1000 {
			i := random.IntN(len(owners))
			if random.IntN(3) == 0 {
				if under[i] > 0 {
					gate.Leave(owners[i], nil)
					under[i]--
					sum--
				}
				continue
			}
			free := limit - sum - 1 // with the next call
			err := gate.Enter(t.Context(), owners[i])
			if want := free >= 0 && under[i] <= free; want != (err == nil) || err != nil &&
				!errors.Is(err, licensing.ErrOverloaded) {
				t.Fatalf("limit %d, %v under way, owner %d: %v", limit, under, i, err)
			}
			if err == nil {
				under[i]++
				sum++
			}
		}
		if got := gate.Under(); got != [2]int{sum, sum} || sum > limit {
			t.Fatalf("%v are counted, of %d: %v", got, sum, under)
		}
		for i, count := range under {
			for range count {
				gate.Leave(owners[i], nil)
			}
		}
		if got := gate.Under(); got != [2]int{} {
			t.Errorf("%v are counted when all have left", got)
		}
	}
}

// heldReads holds back what a node reads.
type heldReads struct {
	arrived chan struct{}
	letGo   func()
}

// letSwapsGo lets the swaps of some licenses pass.
func (h *held) letSwapsGo(keys ...licensing.LicenseKey) {
	h.passing.Store(&keys)
}

func (h *held) passes(ref licensing.Ref) bool {
	keys := h.passing.Load()
	return keys != nil &&
		slices.ContainsFunc(*keys, func(key licensing.LicenseKey) bool { return ref == licensing.LicenseRef(key) })
}

func (h *held) holdReads() *heldReads {
	open := make(chan struct{})
	r := &heldReads{arrived: make(chan struct{}, 1000), letGo: func() { h.onRead.Store(nil); close(open) }}
	hold := func() {
		r.arrived <- struct{}{}
		<-open
	}
	h.onRead.Store(&hold)
	return r
}
