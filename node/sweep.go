package node

import (
	"context"
	"math/rand/v2"
	"time"

	"licet"
)

// Sweep removes claims of Idempotency-Keys whose time is over, again and again
// at about the given interval, until ctx ends. Any number of nodes may do it.
func (n *Node) Sweep(ctx context.Context, every time.Duration) {
	for {
		timer := time.NewTimer(every/2 + rand.N(every))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if err := n.SweepOnce(ctx); err != nil && ctx.Err() == nil {
			n.cfg.Log.Warn().Err(err).Msg("the sweep of old claims will go on later")
		}
	}
}

// SweepOnce removes all claims whose time is over.
func (n *Node) SweepOnce(ctx context.Context) error {
	before := n.Now().Add(-licet.ClaimLifetime)
	for {
		swept, err := n.cfg.Store.SweepClaims(ctx, before, MaxSweep)
		if err != nil || swept == 0 {
			return err
		}
	}
}
