package service

import (
	"testing"

	"licet/licensing"
)

// TestFeedWaits lets one owner have half of the places for waiting, and leaves the
// rest to others.
func TestFeedWaits(t *testing.T) {
	t.Parallel()
	f := newFeed()
	greedy, other := licensing.Owner{AccountID: "greedy", Mode: licensing.Live}, licensing.Owner{AccountID: "other",
		Mode: licensing.Live}
	taken := 0
	for f.enter(greedy) {
		taken++
	}
	if taken != maxFeedWaits/2 {
		t.Errorf("one owner has %d places of %d", taken, maxFeedWaits)
	}
	others := 0
	for f.enter(other) {
		others++
	}
	if others != maxFeedWaits/4 {
		t.Errorf("the next one has %d", others)
	}
	for range taken {
		f.leave(greedy)
	}
	for range others {
		f.leave(other)
	}
	if f.waiting != 0 || len(f.waits) != 0 {
		t.Errorf("%d still wait: %v", f.waiting, f.waits)
	}
}
