package node_test

import (
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestWrongClockEndsNoReceipt: a node whose clock is not known to agree with others lists the receipts of a device that
// it removes, although by its clock they have ended. Once the clock agrees, there is nothing to list.
func TestWrongClockEndsNoReceipt(t *testing.T) {
	t.Parallel()
	clock := &nodetest.Clock{}
	comparison := nodetest.NewComparison(clock.Source)
	db := nodetest.OpenStore(t)
	n := nodetest.New(t, db, nodetest.WithClock(clock), func(cfg *service.Config) { cfg.Clocks = comparison })
	nodetest.CompareWith(comparison, 0)
	keys := make([]licensing.LicenseKey, 2)
	ids := map[licensing.RevocationName]int{}
	for i := range keys {
		keys[i] = nodetest.Grant(t, n, 3)
		ids[licensing.RevocationOf(keys[i].ID(), "pc")] = i
		_, err := n.Activate(nodetest.Context(t), licensing.Activate{Target: licensing.Target{Key: keys[i]},
			Device: "pc", Receipt: licensing.AskReceipt(true, false, 0)})
		nodetest.WantError(t, err, nil)
	}
	listed := func() (count [2]int) {
		t.Helper()
		list, err := db.ReadRevocations(nodetest.Context(t), nodetest.Owner, store.RevocationsWanted{Most: 10_000})
		nodetest.WantError(t, err, nil)
		for _, entry := range list.Entries {
			if i, ours := ids[entry.Name]; ours {
				count[i]++
			}
		}
		return count
	}
	remove := func(key licensing.LicenseKey) {
		t.Helper()
		_, err := n.RemoveDevice(nodetest.Context(t),
			licensing.RemoveDevice{Target: licensing.Target{Key: key, Caller: nodetest.Owner}, Device: "pc"})
		nodetest.WantError(t, err, nil)
	}
	const later = 100 * 24 * time.Hour
	clock.Advance(later)
	nodetest.CompareWith(comparison, -later) // a second node says that it is earlier
	nodetest.WantError(t, n.ActsByTime(), licensing.ErrUnavailable)
	remove(keys[0])
	if got := listed(); got != [2]int{1, 0} {
		t.Errorf("the list of a node whose clock may be ahead has %v entries, want one of the first license", got)
	}
	nodetest.CompareWith(comparison, 0, 0)
	nodetest.CompareWith(comparison, 0, 0)
	nodetest.WantError(t, n.ActsByTime(), nil)
	remove(keys[1])
	if got := listed(); got != [2]int{1, 0} {
		t.Errorf("the list of a node whose clock agrees has %v entries, want no further entry", got)
	}
}
