package node

import (
	"licet/node/store"
	"testing"
	"time"
)

// TestBusyIsForgotten: an owner that was busy long ago need not be busy now. Commands of a license that was unused for
// an hour do not hop.
func TestBusyIsForgotten(t *testing.T) {
	p := newTestPlacement(5)
	p.loses(yieldAfter, 7)
	p.served(contestedRef, incarnation(7), store.Incarnation{}, true)
	p.pass(sweepEvery - time.Millisecond)
	if hint := p.receives(incarnation(2)); !hint.IsZero() {
		t.Errorf("names %v as the owner, to which it yielded long ago", hint)
	}
	p.pass(time.Hour)
	p.wantOwner(t, 0)
}
