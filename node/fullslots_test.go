package node_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
)

// What the tests of lapsed leases and of inactive devices share: full licenses whose devices lose their slots by time.

// grantOf grants a license of a product with these terms. The terms of a product must always be the same.
func grantOf(t *testing.T, n *service.Service, product string, terms licensing.Terms) licensing.LicenseKey {
	t.Helper()
	terms.KeyPrefix = "LIC"
	if _, _, err := n.PutProduct(nodetest.Context(t),
		licensing.PutProduct{ID: product, Owner: nodetest.Owner, Terms: terms}); err != nil {
		t.Fatal(err)
	}
	granted, _, err := n.Grant(nodetest.Context(t), nodetest.Owner, service.Grant{ProductID: product, Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	return granted[0].License.Key
}

// nodesOf returns which node to ask next: n itself, or, if forgetful, each time another one, which remembers nothing.
func nodesOf(t *testing.T, n *service.Service, clock *nodetest.Clock, forgetful bool) func() *service.Service {
	return func() *service.Service {
		if forgetful {
			return nodetest.New(t, nodetest.OpenStore(t), nodetest.WithClock(clock))
		}
		return n
	}
}

// wantFull demands that a license has no slot for a device.
func wantFull(t *testing.T, n *service.Service, key licensing.LicenseKey, device string) {
	t.Helper()
	_, err := nodetest.Activate(nodetest.Context(t), n, key, device)
	if licensing.ReasonOf(err) != licensing.ReasonDeviceLimitReached {
		t.Fatalf("%s was answered %v", device, err)
	}
}

// activateAtOnce activates the devices from one number to another, all at the same time, at both nodes. It returns how
// many got a slot; the license must be full for the others.
func activateAtOnce(t *testing.T, nodes [2]*service.Service, key licensing.LicenseKey, from, to int) int64 {
	t.Helper()
	var group sync.WaitGroup
	var count atomic.Int64
	for i := from; i < to; i++ {
		group.Go(func() {
			switch _, err := nodetest.Activate(nodetest.Context(t), nodes[i%2], key, fmt.Sprint("device ", i)); {
			case err == nil:
				count.Add(1)
			case licensing.ReasonOf(err) != licensing.ReasonDeviceLimitReached:
				t.Errorf("device %d: %v", i, err)
			}
		})
	}
	group.Wait()
	return count.Load()
}
