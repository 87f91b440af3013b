package service

import (
	"slices"
	"testing"

	"licet/licensing"
	"licet/node/store"
)

// TestEachSlotHasOneNode: the nodes divide the slots about evenly. If a node goes, only its slots change hands. Over
// some periods each slot changes hands.
func TestEachSlotHasOneNode(t *testing.T) {
	t.Parallel()
	nodes := []store.Incarnation{{1}, {2, 2}, {0, 0, 3}, {9, 9, 9, 9}}
	of := make(map[store.Incarnation]int)
	for slot := range licensing.Slot(licensing.Slots) {
		owner := nodeOf(slot, 7, nodes)
		of[owner]++
		for _, gone := range nodes {
			left := slices.DeleteFunc(slices.Clone(nodes), func(n store.Incarnation) bool { return n == gone })
			if now := nodeOf(slot, 7, left); gone != owner && now != owner {
				t.Errorf("slot %v goes from %x to %x since %x is gone", slot, owner, now, gone)
			}
		}
		kept := int64(0)
		for nodeOf(slot, 7+kept, nodes) == owner && kept < 64 {
			kept++
		}
		if kept == 64 {
			t.Errorf("slot %v stays with %x for 64 periods", slot, owner)
		}
	}
	for _, n := range nodes {
		if got, fair := of[n], licensing.Slots/len(nodes); got < fair/2 || got > 2*fair {
			t.Errorf("%x sweeps %d slots, want about %d", n, got, fair)
		}
	}
}
