package service_test

import (
	"context"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/kv/deliveries"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// replayStore calls a hook before it stores a replay, and counts the stored replays.
type replayStore struct {
	store.DeliveryLog
	before func()
	stored *atomic.Int32
}

// AddReplay implements store.DeliveryLog.
func (s *replayStore) AddReplay(
	ctx context.Context, owner licensing.Owner, endpoint string, replay store.Replay, claims ...store.Write,
) error {
	if s.before != nil {
		s.before()
	}
	err := s.DeliveryLog.AddReplay(ctx, owner, endpoint, replay, claims...)
	if err == nil {
		s.stored.Add(1)
	}
	return err
}

// TestReplayAtTwoNodes sends two requests for a replay under one Idempotency-Key to two nodes, so that the second
// request is answered after the first has read that the key is free. The nodes execute the same request once, and
// refuse another request.
func TestReplayAtTwoNodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, second string
		replayed     bool
		err          error
	}{
		{"the same request", "request", true, nil},
		{"another request", "another request", false, licensing.ErrIdempotencyKeyReused},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner := nodetest.NewOwner(licensing.Test)
			var stored atomic.Int32
			nodeOn := func(before func()) *service.Service {
				on := nodetest.OpenStore(t)
				return hookNodeOn(t, on, func(cfg *service.Config) {
					cfg.Deliveries = &replayStore{DeliveryLog: deliveries.New(on), before: before, stored: &stored}
				})
			}
			second := nodeOn(nil)
			endpoint := createHook(t, second, hook(owner)).Endpoint.ID
			ask := func(n *service.Service, request string) (bool, error) {
				return n.ReplayWebhook(nodetest.Context(t), service.ReplayRequest{
					Owner: owner, Endpoint: endpoint, Replay: store.Replay{Dead: true}, Once: nodetest.Once("key",
						request),
				})
			}
			first := nodeOn(func() {
				if replayed, err := ask(second, "request"); err != nil || replayed {
					t.Errorf("the second node: replayed %v, %v", replayed, err)
				}
			})
			replayed, err := ask(first, c.second)
			nodetest.WantError(t, err, c.err)
			if replayed != c.replayed || stored.Load() != 1 {
				t.Errorf("replayed %v, and %d replays are stored", replayed, stored.Load())
			}
		})
	}
}
