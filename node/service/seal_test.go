package service_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// epochs is a store of nothing but epochs.
type epochs struct {
	store.Events
	bytes int64

	mu     sync.Mutex
	number uint64
	sealed []time.Time
}

// EventEpoch has as many bytes in each epoch, from its beginning.
func (s *epochs) EventEpoch(context.Context) (store.Epoch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.Epoch{Number: s.number, Written: true, Bytes: s.bytes}, nil
}

func (s *epochs) SealEvents(_ context.Context, epoch store.Epoch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch.Number == s.number {
		s.number++
		s.sealed = append(s.sealed, time.Now())
	}
	return nil
}

func (*epochs) WatchEpochs(ctx context.Context, _ func()) { <-ctx.Done() }

// TestPaceOfSeals has three nodes seal the epochs of a store into which somebody writes as
// much as can be, or little.
func TestPaceOfSeals(t *testing.T) {
	for _, c := range []struct {
		name            string
		bytes           int64
		atLeast, atMost int
		apart           time.Duration
	}{
		{"much", 1 << 40, 60, 120, 500 * time.Millisecond},
		{"little", 1, 40, 100, 600 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &epochs{bytes: c.bytes, number: 1}
			var nodes []*service.Service
			for range 3 {
				nodes = append(nodes, service.New(service.Config{
					Config: node.Config{
						Clock:   time.Now,
						Log:     zerolog.Nop(),
						Metrics: metrics.New(prometheus.NewRegistry(), "test", "", ""),
					},
					Events: store,
				}))
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var group sync.WaitGroup
				for _, n := range nodes {
					group.Go(func() { n.KeepSealing(ctx) })
				}
				group.Wait()
			})
			if n := len(store.sealed); n < c.atLeast || n > c.atMost {
				t.Errorf("in a minute %d epochs are sealed, want %d to %d", n, c.atLeast, c.atMost)
			}
			for i := range len(store.sealed) - 1 {
				if apart := store.sealed[i+1].Sub(store.sealed[i]); apart < c.apart {
					t.Errorf("an epoch is sealed %v old", apart)
				}
			}
		})
	}
}
