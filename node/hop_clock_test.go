package node_test

import (
	"errors"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/clocks"
	"licet/node/service"
)

// TestWrongClockTakesNoHops: a node whose clock differs from most nodes' clocks runs no commands of other nodes.
func TestWrongClockTakesNoHops(t *testing.T) {
	comparison := nodetest.NewComparison(clocks.System())
	n := nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) { c.Clocks = comparison })
	key := nodetest.Grant(t, n, 3)
	hop := func() error {
		_, err := n.Execute(node.Hop{License: key.ID(), Over: time.Now().Add(10 * time.Second),
			Commands: []licensing.Command{
				licensing.Activate{Target: licensing.Target{Key: key}, Device: "by a hop"},
			}})
		return err
	}
	nodetest.MeetNodes(comparison, -9*24*time.Hour, -9*24*time.Hour)
	if err := hop(); !errors.Is(err, node.ErrNotTaken) {
		t.Errorf("a hop to a node whose clock is wrong: %v", err)
	}
	if count, _ := nodetest.Devices(t, n, key); count != 0 {
		t.Errorf("%d devices are bound", count)
	}
	nodetest.MeetNodes(comparison, 0, 0)
	nodetest.WantError(t, hop(), nil)
}
