package service_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/metrics"
	"licet/node/clocks"
	"licet/node/service"
	"licet/node/store"
)

// TestNodesDivideDueWork: of two nodes that know of each other, each records the ends of the orders in its own slots.
// A node that is alone records all. A node that is not registered records none.
func TestNodesDivideDueWork(t *testing.T) {
	t.Parallel()
	db := nodetest.OpenStore(t)
	var clock nodetest.Clock
	comparison := func(self byte) *clocks.Comparison {
		return clocks.New(clocks.Config{Self: store.Incarnation{self}, Clock: clock.Source,
			Metrics: metrics.New(prometheus.NewRegistry(), "", "", ""), Log: zerolog.Nop()})
	}
	node := func(self byte) (*service.Service, *clocks.Comparison) {
		c := comparison(self)
		return nodetest.New(t, db, nodetest.WithClock(&clock), func(cfg *service.Config) {
			cfg.Clocks, cfg.Self = c, store.Incarnation{self}
			cfg.SweepEvery = 1000 * time.Hour // one turn
		}), c
	}
	one, oneClock := node(9) // the node that CompareWith adds to the others
	other, otherClock := node(1)
	stranger, strangerClock := node(3)
	const owners = 40
	up := make([]time.Duration, 1) // how far the clock of each other running node is ahead
	// recorded makes an order of each owner, which ends, and returns how many ends the sweeps of some nodes record.
	recorded := func(sweepers ...*service.Service) (ended []int) {
		t.Helper()
		var orders []licensing.Order
		for range owners {
			order, _, err := one.CreateOrder(nodetest.Context(t), nodetest.NewOwner(licensing.Test),
				nodetest.NewOrder(100))
			nodetest.WantError(t, err, nil)
			orders = append(orders, order)
		}
		clock.Advance(48 * time.Hour)
		for _, c := range []*clocks.Comparison{oneClock, otherClock, strangerClock} {
			nodetest.CompareWith(c, up...)
		}
		for _, n := range sweepers {
			nodetest.WantError(t, n.RecordOrderEnds(nodetest.Context(t)), nil)
			count := 0
			for _, order := range orders {
				now, err := one.Order(nodetest.Context(t), order.Owner, order.OrderNo)
				nodetest.WantError(t, err, nil)
				if !now.ExpiredAt.IsZero() {
					count++
				}
			}
			ended = append(ended, count)
		}
		return ended
	}
	if got := recorded(one, one, other); got[0] == 0 || got[0] == owners || got[1] != got[0] || got[2] != owners {
		t.Errorf("after two passes of one node and one of the other, %v of %d ends are recorded", got, owners)
	}
	if err := stranger.RecordOrderEnds(nodetest.Context(t)); !clocks.IsUntrusted(err) {
		t.Errorf("a node that is not registered: %v", err)
	}
	up = nil
	if got := recorded(one); got[0] != owners {
		t.Errorf("a node whose neighbor has gone has recorded %d of %d ends", got[0], owners)
	}
}
