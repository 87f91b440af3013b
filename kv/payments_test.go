package kv

import (
	"crypto/rand"
	"sync"
	"testing"
	"time"

	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// TestOutsidePayments records outside payments through two nodes at the same time: each order is paid once, and each
// reference pays one order.
func TestOutsidePayments(t *testing.T) {
	t.Parallel()
	l := newTrialLab(t)
	nodes := []*service.Service{l.node, l.nodeWith(rand.Reader, time.Now)}
	orders := []licensing.Order{l.order(100), l.order(100), l.order(100)}
	sizes := map[licensing.Owner]licensing.Size{}
	l.sized(sizes)
	record := func(n int, order *licensing.Order, reference string, once *node.Once) (licensing.Order, bool, error) {
		return nodes[n%len(nodes)].RecordPayment(l.ctx(), labOwner, order.OrderNo,
			service.OutsidePayment{Reference: reference, By: "key_1", Once: once})
	}
	var lock sync.Mutex
	var group sync.WaitGroup
	paid := map[string]licensing.LicenseKey{}
	for i := range 12 { // four times each of the orders, all with the same reference
		group.Go(func() {
			order := &orders[i%len(orders)]
			now, _, err := record(i/len(orders), order, "INV-1", nil)
			lock.Lock()
			defer lock.Unlock()
			switch known, is := paid[order.OrderNo]; {
			case licensing.ReasonOf(err) == licensing.ReasonInvalidField:
			case err != nil:
				t.Errorf("record: %v", err)
			case is && known != now.LicenseKey || now.PaidAt.IsZero():
				t.Errorf("the order is %+v, and had the license %v", now, known)
			default:
				paid[order.OrderNo] = now.LicenseKey
			}
		})
	}
	group.Wait()
	if len(paid) != 1 {
		t.Errorf("one reference pays %d orders", len(paid))
	}
	l.healthy("one reference")
	for i := range orders {
		order := &orders[i]
		if _, done := paid[order.OrderNo]; done {
			continue
		}
		once := &node.Once{Hash: order.OrderNo[len(order.OrderNo)-16:], Fingerprint: [32]byte{1}}
		first, replayed, err := record(0, order, "INV-"+order.OrderNo, once)
		if err != nil || replayed || first.LicenseKey.IsZero() {
			t.Fatalf("%+v, replayed %v, %v", first, replayed, err)
		}
		second, replayed, err := record(1, order, "INV-"+order.OrderNo, once)
		if err != nil || !replayed || second.LicenseKey != first.LicenseKey {
			t.Errorf("again: %+v, replayed %v, %v", second, replayed, err)
		}
		if _, _, err := record(1, order, "INV-2", nil); licensing.ReasonOf(err) != licensing.ReasonInvalidOrderState {
			t.Errorf("another payment of a paid order: %v", err)
		}
	}
	l.healthy("all paid")
	l.sized(sizes)
}

// TestOutsidePaymentUpgradesTrial pays an order that names a trial.
func TestOutsidePaymentUpgradesTrial(t *testing.T) {
	t.Parallel()
	l := newTrialLab(t)
	trial := kvtest.Must(l.start("pc"))(t).License.Key
	var orders [2]licensing.Order
	for i := range orders {
		order, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: "pro", Amount: 100,
			Currency: "USD", UpgradeOf: trial, Outside: true})
		if orders[i] = order; err != nil || order.PaySeed != (licensing.PaySeed{}) {
			t.Fatalf("%+v, %v", order, err)
		}
	}
	for i := range orders {
		paid, _, err := l.node.RecordPayment(l.ctx(), labOwner, orders[i].OrderNo,
			service.OutsidePayment{Reference: orders[i].OrderNo})
		if upgraded := paid.LicenseKey == trial; err != nil || paid.LicenseKey.IsZero() || upgraded != (i == 0) {
			t.Errorf("order %d: %+v, %v", i, paid, err)
		}
	}
	l.healthy("upgraded")
}
