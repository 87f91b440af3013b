package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/store"
)

// dueOrders is a store in which more is due for one owner than a pass looks at, and then
// something for another owner.
type dueOrders struct {
	store.Store
	pages int
	busy  licensing.Owner
	other licensing.Ref
}

func (d *dueOrders) Due(
	_ context.Context, _ licensing.DueKind, _ store.DueSpan, from string, _ int,
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
	return store.DuePage{Records: []licensing.Ref{licensing.OrderRef(d.busy, fmt.Sprint("ord_", at))},
		Next: fmt.Sprint(at + 1)}, nil
}

// TestBusyOwnerHidesNoOther: a pass postpones the records of a busy owner, however many they are. The next passes reach
// the records behind them, and then the postponed records.
func TestBusyOwnerHidesNoOther(t *testing.T) {
	busy := licensing.Owner{AccountID: "acct_busy", Mode: licensing.Test}
	other := licensing.OrderRef(licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}, "ord_other")
	n := stateService(Config{Config: node.Config{Records: &dueOrders{pages: maxDuePages, busy: busy, other: other},
		Queries: &dueOrders{pages: maxDuePages, busy: busy,
			other: other}}, Keys: &dueOrders{pages: maxDuePages, busy: busy, other: other},
		Sweeps: &dueOrders{pages: maxDuePages, busy: busy, other: other},
		Events: &dueOrders{pages: maxDuePages, busy: busy, other: other}})
	seen := make(map[licensing.Ref]int)
	for range 3 {
		_ = n.eachDue(t.Context(), licensing.DueOrderEnd, store.DueSpan{Until: time.Now()},
			func(_ context.Context, ref licensing.Ref) error {
				seen[ref]++
				if ref.Owner == busy {
					return node.ErrOwnerBusy
				}
				return nil
			})
	}
	if first := licensing.OrderRef(busy, "ord_0"); seen[other] != 1 || seen[first] != 2 {
		t.Errorf("in three passes the other owner's record had %d turns, and the busy owner's first %d", seen[other],
			seen[first])
	}
}

// stateService is a service over a store that is not asked.
func stateService(cfg Config) *Service {
	cfg.Clock, cfg.Metrics, cfg.Log = time.Now, metrics.New(prometheus.NewRegistry(), "test", "", ""), zerolog.Nop()
	return New(cfg)
}
