package service

import (
	"testing"

	"licet/licensing"
)

// TestFeedWaits: one owner gets half of the places for waiting, and leaves the rest to other owners.
func TestFeedWaits(t *testing.T) {
	t.Parallel()
	f := newFeed()
	greedy, other := licensing.Owner{AccountID: "greedy", Mode: licensing.Live}, licensing.Owner{AccountID: "other",
		Mode: licensing.Live}
	taken := 0
	for f.waits.TryEnter(greedy) {
		taken++
	}
	if taken != maxFeedWaits/2 {
		t.Errorf("one owner has %d places of %d", taken, maxFeedWaits)
	}
	others := 0
	for f.waits.TryEnter(other) {
		others++
	}
	if others != maxFeedWaits/4 {
		t.Errorf("the next owner has %d places", others)
	}
}
