package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
)

// leasePasses notes when a sweep asks for the slots in which leases are due.
type leasePasses struct {
	store.Store
	at []time.Time
}

func (p *leasePasses) DueSlots(
	_ context.Context, kind licensing.DueKind, _ store.DueSpan,
) ([]licensing.Slot, error) {
	if kind == licensing.DueLeases {
		p.at = append(p.at, time.Now())
	}
	return nil, nil
}

// TestLeasesAreSweptWithinAMinute: between two passes is less time than from the moment when a lease may be removed to
// a minute after its end, with some to spare for the pass.
func TestLeasesAreSweptWithinAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		passes := &leasePasses{at: []time.Time{time.Now()}}
		n := stateService(Config{Config: node.Config{Records: passes, Queries: passes}, Keys: passes, Sweeps: passes,
			Events: passes})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
		defer cancel()
		n.SweepLeases(ctx)
		if len(passes.at) < 180 {
			t.Fatalf("%d passes in three hours", len(passes.at))
		}
		for i, at := range passes.at[1:] {
			if after := at.Sub(passes.at[i]); after > time.Minute-licensing.LeaseGuard-5*time.Second {
				t.Errorf("%v between two passes", after)
			}
		}
	})
}
