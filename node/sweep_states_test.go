package node

import (
	"context"
	"errors"
	"sync"
	"testing"

	"licet/licensing"
)

// TestNoRoomHidesNoFailure: a pass in which one record has failed, and for another of which
// there was no room, has failed, in whatever order both came.
func TestNoRoomHidesNoFailure(t *testing.T) {
	n := stateNode(&sends{})
	broken := errors.New("broken")
	for range 50 {
		var both sync.WaitGroup
		both.Add(2)
		_, err := n.doEach(t.Context(), []licensing.Ref{contestedRef, licensing.OrderRef(licensing.Owner{}, "ord_1")}, func(_ context.Context, ref licensing.Ref) error {
			both.Done()
			both.Wait()
			if ref == contestedRef {
				return broken
			}
			return errNoRoom
		})
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ one, other, want error }{
		{nil, errNoRoom, errNoRoom}, {errNoRoom, nil, errNoRoom}, {broken, errNoRoom, broken}, {errNoRoom, broken, broken}, {broken, nil, broken}, {nil, nil, nil},
	} {
		if got := graver(c.one, c.other); got != c.want {
			t.Errorf("%v, %v: %v", c.one, c.other, got)
		}
	}
}
