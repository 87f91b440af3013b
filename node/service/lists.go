package service

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
)

const (
	// listsAtOnce bounds the pages of listings that are read at a time. A page is up
	// to some megabytes and 25 requests to the store, many times what a command is.
	listsAtOnce = 16
	// listsWaiting bounds those that wait for that, each with a place that a command
	// could have.
	listsWaiting = 64
)

// listGate lets a bounded number of pages be read at a time.
type listGate struct {
	reading chan struct{}
	waiting atomic.Int64
	shed    prometheus.Counter // as many pages of listings are being read as may be
}

func newListGate(m *metrics.Metrics) *listGate {
	return &listGate{reading: make(chan struct{}, listsAtOnce), shed: m.CommandsShed.WithLabelValues("lists")}
}

// enterList lets an owner's reader of a page in, or refuses it with ErrOverloaded.
// A caller that was let in must call leaveList with the place.
func (c *core) enterList(ctx context.Context, owner licensing.Owner) (node.Place, error) {
	place, err := c.engine.Enter(ctx, owner)
	if err != nil {
		return place, err
	}
	if err = c.enterPage(ctx); err != nil {
		place.Leave(err)
	}
	return place, err
}

// leaveList ends what enterList has let in.
func (c *core) leaveList(place node.Place, err error) {
	c.leavePage()
	place.Leave(err)
}

// enterPage is enterList for whoever has a place already, such as a redaction, which
// reads a page of orders. Who was let in must call leavePage.
func (c *core) enterPage(ctx context.Context) error {
	if c.lists.enter(ctx) != nil {
		c.lists.shed.Inc()
		return licensing.ErrOverloaded
	}
	return nil
}

// leavePage ends what enterPage has let in.
func (c *core) leavePage() { <-c.lists.reading }

func (g *listGate) enter(ctx context.Context) error {
	select {
	case g.reading <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > listsWaiting {
		return licensing.ErrOverloaded
	}
	select {
	case g.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return licensing.ErrOverloaded
	}
}
