package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/store"
)

// dueOrders is a store in which one owner has more due records than a pass looks at. Behind them, a record of another
// owner in the same slot is due.
type dueOrders struct {
	store.Store
	pages int
	busy  licensing.Owner
	other licensing.Ref
}

func (d *dueOrders) DueSlots(context.Context, licensing.DueKind, store.DueSpan) ([]licensing.Slot, error) {
	return []licensing.Slot{1}, nil
}

func (d *dueOrders) Due(
	_ context.Context, _ licensing.DueKind, _ licensing.Slot, _ store.DueSpan, from string, limit int,
) (page store.DuePage, err error) {
	at := 0
	if from != "" {
		if _, err := fmt.Sscan(from, &at); err != nil {
			return page, err
		}
	}
	if at == d.pages {
		return store.DuePage{Records: []licensing.Ref{d.other}}, nil
	}
	page.Next = fmt.Sprint(at + 1)
	for i := range limit {
		page.Records = append(page.Records, licensing.OrderRef(d.busy, fmt.Sprint("ord_", at*limit+i)))
	}
	return page, nil
}

// TestBusyOwnerHidesNoOther: a pass postpones the records of a busy owner, however many they are, and whichever way the
// node refuses them. The next passes reach the records behind them, and then the postponed records.
func TestBusyOwnerHidesNoOther(t *testing.T) {
	for _, refusal := range []error{node.ErrOwnerBusy, licensing.ErrOverloaded} {
		busyOwnerHidesNoOther(t, refusal)
	}
}

func busyOwnerHidesNoOther(t *testing.T, refusal error) {
	t.Helper()
	busy := licensing.Owner{AccountID: "acct_busy", Mode: licensing.Test}
	other := licensing.OrderRef(licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}, "ord_other")
	due := &dueOrders{pages: maxDueRecords / store.MaxDue, busy: busy, other: other}
	n := stateService(Config{Config: node.Config{Records: due, Queries: due}, Keys: due, Sweeps: due, Events: due})
	seen := make(map[licensing.Ref]int)
	var mu sync.Mutex
	for range 3 {
		_ = n.eachDue(t.Context(), licensing.DueOrderEnd, store.DueSpan{Until: time.Now()},
			func(_ context.Context, ref licensing.Ref) error {
				mu.Lock()
				defer mu.Unlock()
				seen[ref]++
				if ref.Owner == busy {
					return refusal
				}
				return nil
			})
	}
	if first := licensing.OrderRef(busy, "ord_0"); seen[other] != 1 || seen[first] != 2 {
		t.Errorf("%v: in three passes the other owner's record had %d turns, and the busy owner's first %d", refusal,
			seen[other], seen[first])
	}
}

// stateService is a service whose tests need no store.
func stateService(cfg Config) *Service {
	cfg.Clock, cfg.Metrics, cfg.Log = time.Now, metrics.New(prometheus.NewRegistry(), "test", "", ""), zerolog.Nop()
	return New(cfg)
}

// TestSlotsTakeTurns: a pass works on each slot with due records, however many records are due in one of the slots.
func TestSlotsTakeTurns(t *testing.T) {
	busy := licensing.Owner{AccountID: "acct_busy", Mode: licensing.Test}
	due := &busySlot{dueOrders{pages: 1 << 20, busy: busy}}
	n := stateService(Config{Config: node.Config{Records: due, Queries: due}, Keys: due, Sweeps: due, Events: due})
	seen := make(map[licensing.Ref]int)
	var mu sync.Mutex
	if err := n.eachDue(t.Context(), licensing.DueOrderEnd, store.DueSpan{Until: time.Now()},
		func(_ context.Context, ref licensing.Ref) error {
			mu.Lock()
			defer mu.Unlock()
			seen[ref]++
			return nil
		}); err != nil {
		t.Fatal(err)
	}
	for slot := range licensing.Slot(100) {
		if n := seen[orderIn(slot)]; slot != 50 && n != 1 {
			t.Errorf("the record in slot %v had %d turns", slot, n)
		}
	}
	if len(seen) < maxDueRecords || len(seen) > maxDueRecords+store.MaxDue {
		t.Errorf("the pass worked on %d records, want about %d", len(seen), maxDueRecords)
	}
}

// busySlot is a store with one due record in each of 100 slots, and endlessly many in slot 50.
type busySlot struct{ dueOrders }

func (b *busySlot) DueSlots(context.Context, licensing.DueKind, store.DueSpan) (slots []licensing.Slot, err error) {
	for slot := range licensing.Slot(100) {
		slots = append(slots, slot)
	}
	return slots, nil
}

func (b *busySlot) Due(
	ctx context.Context, kind licensing.DueKind, slot licensing.Slot, span store.DueSpan, from string, limit int,
) (store.DuePage, error) {
	if slot == 50 {
		return b.dueOrders.Due(ctx, kind, slot, span, from, limit)
	}
	return store.DuePage{Records: []licensing.Ref{orderIn(slot)}}, nil
}

func orderIn(slot licensing.Slot) licensing.Ref {
	return licensing.OrderRef(licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}, fmt.Sprint("ord_", slot))
}

// TestStoppedPassBeginsAnew: after a pass that ended at failures, the next pass begins with the same records.
func TestStoppedPassBeginsAnew(t *testing.T) {
	due := &dueOrders{pages: 3, busy: licensing.Owner{AccountID: "acct_busy", Mode: licensing.Test},
		other: orderIn(1)}
	n := stateService(Config{Config: node.Config{Records: due, Queries: due}, Keys: due, Sweeps: due, Events: due})
	seen := make(map[licensing.Ref]bool)
	var mu sync.Mutex
	pass := func(fails error) error {
		return n.eachDue(t.Context(), licensing.DueOrderEnd, store.DueSpan{Until: time.Now()},
			func(_ context.Context, ref licensing.Ref) error {
				mu.Lock()
				defer mu.Unlock()
				seen[ref] = fails == nil
				return fails
			})
	}
	if err := pass(licensing.ErrUnavailable); !errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("a pass without a store: %v", err)
	}
	if err := pass(nil); err != nil {
		t.Error(err)
	}
	for at := range 3 * store.MaxDue {
		if ref := licensing.OrderRef(due.busy, fmt.Sprint("ord_", at)); !seen[ref] {
			t.Fatalf("%s had no turn in the second pass", ref.ID)
		}
	}
}
