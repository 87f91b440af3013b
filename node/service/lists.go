package service

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/metrics"
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

// enter lets a page be read, or fails with ErrOverloaded. A caller that was let in must call
// leave.
func (g *listGate) enter(ctx context.Context) error {
	select {
	case g.reading <- struct{}{}:
		return nil
	default:
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > listsWaiting {
		g.shed.Inc()
		return licensing.ErrOverloaded
	}
	select {
	case g.reading <- struct{}{}:
		return nil
	case <-ctx.Done():
		g.shed.Inc()
		return licensing.ErrOverloaded
	}
}

// leave ends what enter has let in.
func (g *listGate) leave() { <-g.reading }
