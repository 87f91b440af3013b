//go:build !race

// The race detector lets a sync.Pool forget values, so these tests hold without the detector only.

package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

// TestNoEntitlementsAllocateNothing: most licenses have none.
func TestNoEntitlementsAllocateNothing(t *testing.T) {
	now := time.Now()
	var none licensing.Entitled
	if n := testing.AllocsPerRun(100, func() {
		if none.Over(none).At(now, now) != "" {
			t.Fatal("there are entitlements")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
