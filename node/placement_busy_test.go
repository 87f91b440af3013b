package node

import (
	"licet/node/store"
	"testing"
	"time"
)

// TestBusyIsForgotten: that an owner was busy long ago says nothing of now. A
// license that has been cold for an hour does not hop.
func TestBusyIsForgotten(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	p.served(contestedRef, incarnation(7), store.Incarnation{}, true)
	p.pass(sweepEvery - time.Millisecond)
	if hint := p.receives(incarnation(2)); !hint.IsZero() {
		t.Errorf("tells others to go to %v, whom it yielded to long ago", hint)
	}
	p.pass(time.Hour)
	p.wantOwner(t, 0)
}
