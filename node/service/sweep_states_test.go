package service

import (
	"context"
	"errors"
	"sync"
	"testing"

	"licet/licensing"
	"licet/node"
)

// TestFullNodeHidesNoFailure: a pass has failed if one record has failed, even if the node was too full for another
// record, in either order.
func TestFullNodeHidesNoFailure(t *testing.T) {
	n := stateService(Config{})
	broken := errors.New("broken")
	licenseRef := licensing.LicenseID{1}.Ref()
	for range 50 {
		var both sync.WaitGroup
		both.Add(2)
		_, err := n.Sweeps.doEach(t.Context(), []licensing.Ref{licenseRef,
			licensing.OrderRef(licensing.Owner{}, "ord_1")}, func(_ context.Context, ref licensing.Ref) error {
			both.Done()
			both.Wait()
			if ref == licenseRef {
				return broken
			}
			return node.ErrNoRoom
		})
		if !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ one, other, want error }{
		{nil, node.ErrNoRoom, node.ErrNoRoom}, {node.ErrNoRoom, nil, node.ErrNoRoom}, {broken, node.ErrNoRoom,
			broken}, {node.ErrNoRoom, broken, broken}, {broken, nil, broken}, {nil, nil, nil},
	} {
		if got := worseError(c.one, c.other); got != c.want {
			t.Errorf("%v, %v: %v", c.one, c.other, got)
		}
	}
}
