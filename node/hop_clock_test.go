package node_test

import (
	"errors"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// TestWrongClockTakesNoHops: a node whose clock differs from most nodes' clocks runs no commands of other nodes.
func TestWrongClockTakesNoHops(t *testing.T) {
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	n := nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) { c.Clocks = comparison })
	key := nodetest.Grant(t, n, 3)
	hop := func() error {
		_, err := n.Execute(node.Hop{License: key.ID(), Over: time.Now().Add(10 * time.Second),
			Commands: []licensing.Command{
				licensing.Activate{Target: licensing.Target{Key: key}, Device: "by a hop"},
			}})
		return err
	}
	nodetest.CompareWith(comparison, -9*24*time.Hour, -9*24*time.Hour)
	if err := hop(); !errors.Is(err, node.ErrNotTaken) {
		t.Errorf("a hop to a node whose clock is wrong: %v", err)
	}
	if count, _ := nodetest.Devices(t, n, key); count != 0 {
		t.Errorf("%d devices are bound", count)
	}
	nodetest.CompareWith(comparison, 0, 0)
	nodetest.WantError(t, hop(), nil)
}

// TestHopsWithoutReceipts: a node that cannot date receipts returns commands of other nodes whose answers would lack
// the receipt that the product's terms add, and runs other commands.
func TestHopsWithoutReceipts(t *testing.T) {
	comparison := nodetest.NewComparison(new(nodetest.Clock).Source)
	n := nodetest.New(t, nodetest.OpenStore(t), func(c *service.Config) { c.Clocks = comparison })
	nodetest.CompareWith(comparison, 0)
	owner, terms := nodetest.Owner, licensing.DefaultTerms()
	terms.Receipts.Always = true
	_, _, err := n.PutProduct(nodetest.Context(t), licensing.PutProduct{ID: "signed", Owner: owner, Terms: terms})
	nodetest.WantError(t, err, nil)
	hop := func(product string) (node.Answer, licensing.LicenseKey) {
		granted, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{ProductID: product, Quantity: 1})
		nodetest.WantError(t, err, nil)
		key := granted[0].License.Key
		reply, err := n.Execute(node.Hop{License: key.ID(), Over: time.Now().Add(10 * time.Second),
			Commands: []licensing.Command{
				licensing.Activate{Target: licensing.Target{Key: key}, Device: "by a hop"},
			}})
		nodetest.WantError(t, err, nil)
		return reply.Answers[0], key
	}
	if a, _ := hop("signed"); a.Err != nil || a.Result.Receipt == (licensing.ReceiptTimes{}) {
		t.Errorf("by a clock that agrees: %+v, %v", a.Result.Receipt, a.Err)
	}
	nodetest.CompareWith(comparison, -4*24*time.Hour)
	a, key := hop("signed")
	if !errors.Is(a.Err, licensing.ErrClockInDoubt) {
		t.Errorf("by clocks that are days apart: %+v, %v", a.Result.Receipt, a.Err)
	}
	if count, _ := nodetest.Devices(t, n, key); count != 0 {
		t.Errorf("%d devices are bound", count)
	}
	if a, _ := hop("unsigned"); a.Err != nil {
		t.Errorf("without receipts: %v", a.Err)
	}
	_, err = nodetest.Activate(nodetest.Context(t), n, key, "by a request") // there is no other node to run it
	nodetest.WantError(t, err, nil)
}
