package service

import (
	"context"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/metrics"
)

const (
	// listsAtOnce bounds the pages of lists that the node reads at the same time. A page takes up to some megabytes
	// and 25 requests to the store, many times the cost of a command.
	listsAtOnce = 16
	// listsWaiting bounds the pages that wait to be read. Each holds an admission place that a command could use.
	listsWaiting = 64
)

// listGate bounds the pages that the node reads at the same time.
type listGate struct {
	reading chan struct{}
	waiting atomic.Int64
	shed    prometheus.Counter // refusals because listsWaiting pages wait
}

func newListGate(m *metrics.Metrics) *listGate {
	return &listGate{reading: make(chan struct{}, listsAtOnce), shed: m.CommandsShed.WithLabelValues("lists")}
}

// enter waits until the page may be read, or fails with ErrOverloaded. After a nil error the caller
// must call leave.
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

// leave ends the read that enter has allowed.
func (g *listGate) leave() { <-g.reading }
