package kv

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

const (
	forgottenBuyer = "Canary.Buyer@example.com"
	canary         = "canary"
	forgottenRef   = "Canary-1"
)

// traces returns everything that identifies the buyer to a reader of the store: the buyer's data, and hashes of the
// address, which can be guessed.
func traces() map[string][]byte {
	found := map[string][]byte{"the text": []byte(canary)}
	for form, address := range map[string]string{"as it was typed": forgottenBuyer,
		"in lower case": strings.ToLower(forgottenBuyer)} {
		sum := sha256.Sum256([]byte(address))
		found["a hash of the address "+form] = sum[:8]
		found["a hash in hex of the address "+form] = []byte(hex.EncodeToString(sum[:8]))
	}
	sum := sha256.Sum256([]byte(forgottenRef))
	found["a hash of the reference"] = sum[:8]
	return found
}

// wantForgotten searches all keys and values that etcd has now.
func (l *lab) wantForgotten() {
	l.t.Helper()
	all := kvtest.Must(l.client.Get(l.ctx(), "", clientv3.WithPrefix()))(l.t)
	for what, trace := range traces() {
		for _, kv := range all.Kvs {
			if bytes.Contains(bytes.ToLower(kv.Key), trace) || bytes.Contains(bytes.ToLower(kv.Value), trace) {
				l.t.Errorf("%s is in %q: %q", what, kv.Key, kv.Value)
			}
		}
	}
}

// traced returns how many keys have a trace of the buyer.
func (l *lab) traced() (count int) {
	l.t.Helper()
	for _, kv := range kvtest.Must(l.client.Get(l.ctx(), "", clientv3.WithPrefix()))(l.t).Kvs {
		for _, trace := range traces() {
			if bytes.Contains(bytes.ToLower(kv.Key), trace) || bytes.Contains(bytes.ToLower(kv.Value), trace) {
				count++
				break
			}
		}
	}
	return count
}

// noted makes an order of the buyer. If sold, the license of the order gets metadata and a device.
func (l *lab) noted(number int, sold bool) licensing.Order {
	l.t.Helper()
	order, _, err := l.node.CreateOrder(l.ctx(), labOwner, service.NewOrder{
		ProductID: "pro", Amount: 100, Currency: "USD", Description: "canary description", BuyerEmail: forgottenBuyer,
		Metadata: `{"crm":"canary"}`, Once: &node.Once{Hash: rand.Text()[:keyspace.ClaimHashSize]},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	if !sold {
		return order
	}
	order = l.pay(order)
	l.activate(order.LicenseKey, fmt.Sprint("device ", number))
	target := licensing.Target{Key: order.LicenseKey, Caller: labOwner}
	for _, cmd := range []licensing.Command{
		licensing.UpdateLicense{Target: target, Metadata: `{"seat":"canary"}`, CustomerReference: new(forgottenRef)},
		licensing.SuspendLicense{Target: target,
			Reason: "canary reason"},
	} {
		kvtest.Must(l.node.Do(l.ctx(), licensing.LicenseRef(order.LicenseKey), cmd))(l.t)
	}
	return order
}

// until repeats a call while its outcome is unknown, or the service can't execute it now.
func until(do func() error) error {
	for {
		err := do()
		if !errors.Is(err, licensing.ErrUnavailable) && !errors.Is(err, licensing.ErrOverloaded) &&
			!errors.Is(err, licensing.ErrOutcomeUnknown) && !errors.Is(err, licensing.ErrRequestInProgress) {
			return err
		}
	}
}

// forget redacts the buyer until the redaction is complete, each time at a random node.
func forget(ctx context.Context, nodes []*service.Service, once *node.Once) error {
	for {
		var done licensing.Redaction
		err := until(func() (err error) {
			ctx, cancel := context.WithTimeout(ctx, time.Duration(5+mathrand.IntN(500))*time.Millisecond)
			defer cancel()
			done, _, err = nodes[mathrand.IntN(len(nodes))].Redact(ctx, labOwner,
				licensing.Customer{BuyerEmail: forgottenBuyer}, once)
			return err
		})
		if err != nil || done.Complete {
			return err
		}
	}
}

// TestRedactionUnderFaults redacts a buyer's orders and granted licenses from two sides, while they are paid, canceled,
// refunded, activated and changed, and every second write of one of the nodes fails, is applied late, or is applied and
// answered with an error. Afterwards etcd has no data of the buyer, and no acknowledged change is lost.
func TestRedactionUnderFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	faulty := &kvtest.FaultyKV{KVClient: clientv3.RetryKVClient(l.client), Next: kvtest.Storm(7)}
	other, err := storeOver(faulty, l.client, l.metrics)
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*service.Service{l.node, service.New(service.Config{
		Config: node.Config{
			Records:     other,
			Queries:     other,
			LicenseKeys: l.keys,
			Clock:       time.Now,
			Metrics:     l.metrics,
			Log:         zerolog.Nop(),
		},
		Keys:    other,
		Sweeps:  other,
		Events:  other,
		Ring:    kvtest.Ring(t),
		Entropy: rand.Reader,
	})}
	l.product()
	var orders []licensing.Order
	var granted []licensing.LicenseKey
	for i := range 40 {
		orders = append(orders, l.noted(i, i%2 == 0))
	}
	for range 20 {
		granted = append(granted, l.grantOne(service.Grant{MaxDevices: new(2), Metadata: `{"a":"canary"}`,
			Customer: licensing.Customer{BuyerEmail: forgottenBuyer, Reference: forgottenRef}}))
	}
	kept := l.grantOne(service.Grant{MaxDevices: new(2), Customer: labCustomer})
	stranger := l.pay(l.order(200))
	if l.traced() < 4*len(orders)/2 {
		t.Fatalf("only %d keys have data of the buyer", l.traced())
	}

	acked := make([]acknowledged, len(orders))
	var group sync.WaitGroup
	for i, order := range orders {
		random := mathrand.New(mathrand.NewPCG(uint64(i), 1))
		group.Go(func() { acked[i] = disturb(t, nodes, order, random) })
	}
	grants := make([]acknowledged, len(granted))
	for i, key := range granted {
		random := mathrand.New(mathrand.NewPCG(uint64(i), 2))
		group.Go(func() {
			grants[i].license = key
			grants[i].change(t, nodes, labOwner, random)
		})
	}
	for _, once := range []*node.Once{nil, {Hash: rand.Text()[:keyspace.ClaimHashSize]},
		{Hash: rand.Text()[:keyspace.ClaimHashSize]}} {
		group.Go(func() {
			if err := forget(l.ctx(), nodes, once); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, run := range faulty.Late { // old proposals that commit late
		run()
	}

	l.wantForgotten()
	for i, order := range orders {
		acked[i].check(l, order)
	}
	for _, a := range grants {
		if view := a.checkLicense(l); view.Metadata.BuyerEmail != "" {
			t.Errorf("a granted license is now %+v", view)
		}
	}
	if now := kvtest.Must(l.node.License(l.ctx(), labOwner, kept, store.DevicePage{}))(t); now.Metadata.Customer !=
		labCustomer {
		t.Errorf("another buyer's license is now %+v", now)
	}
	if now := kvtest.Must(l.node.Order(l.ctx(), labOwner, stranger.OrderNo))(t); now.BuyerEmail != labBuyer {
		t.Errorf("another buyer's order is now %+v", now)
	}
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("violations: %v", found)
	}
}

// acknowledged contains the acknowledged changes of an order and its license during the redaction.
type acknowledged struct {
	license          licensing.LicenseKey
	paid, refunded   bool
	canceled, renews bool
	devices          []string
}

var laterEnd = time.Date(2098, 1, 2, 3, 4, 5, 0, time.UTC)

// disturb makes all kinds of changes to an order and its license, and notes which were acknowledged. Data of the buyer
// that is added meanwhile may stay.
func disturb(t *testing.T, nodes []*service.Service, order licensing.Order, random *mathrand.Rand) (a acknowledged) {
	ctx := t.Context()
	any := func() *service.Service { return nodes[random.IntN(len(nodes))] }
	a.license = order.LicenseKey
	a.paid = !a.license.IsZero()
	if !a.paid {
		if random.IntN(3) == 0 {
			err := until(func() error {
				_, err := any().CancelOrder(ctx, order)
				return err
			})
			a.canceled = err == nil
		}
		err := until(func() error {
			result, err := any().PayOrder(ctx, order, sandboxPayment(order.OrderNo))
			a.license = result.Order().LicenseKey
			return err
		})
		if a.paid = err == nil; !a.paid {
			t.Error(err)
		}
	}
	if !a.license.IsZero() {
		a.change(t, nodes, order.Owner, random)
	}
	if random.IntN(2) == 0 && a.paid {
		err := until(func() error {
			_, err := any().RecordRefund(ctx, order, service.MadeRefund{})
			return err
		})
		if a.refunded = err == nil; !a.refunded {
			t.Error(err)
		}
	}
	return a
}

// change makes all kinds of changes to the license.
func (a *acknowledged) change(t *testing.T, nodes []*service.Service, owner licensing.Owner, random *mathrand.Rand) {
	for step := range 12 {
		target := licensing.Target{Key: a.license, Caller: owner}
		var cmd licensing.Command
		switch random.IntN(6) {
		case 0:
			cmd = licensing.UpdateLicense{Target: target, MaxDevices: new(0),
				Metadata: fmt.Sprintf(`{"later":%d}`, step), CustomerReference: new(fmt.Sprint("later ", step))}
		case 1:
			cmd = licensing.RenewLicense{Target: target, ExpiresAt: laterEnd}
		case 2:
			cmd = licensing.SuspendLicense{Target: target, Reason: "later"}
		case 3:
			cmd = licensing.ReinstateLicense{Target: target}
		default:
			cmd = licensing.Activate{Target: target, Device: fmt.Sprint("later ", step)}
		}
		err := until(func() error {
			_, err := nodes[random.IntN(len(nodes))].Do(t.Context(), licensing.LicenseRef(a.license), cmd)
			return err
		})
		var refusal *licensing.Error
		switch c := cmd.(type) {
		case licensing.RenewLicense:
			a.renews = a.renews || err == nil
		case licensing.Activate:
			if err == nil {
				a.devices = append(a.devices, c.Device)
			}
		}
		if err != nil && (!errors.As(err, &refusal) || refusal.Reason == licensing.ReasonInternal) {
			t.Error(err)
		}
	}
}

// check checks that the acknowledged changes are stored.
func (a *acknowledged) check(l *lab, order licensing.Order) {
	l.t.Helper()
	now := kvtest.Must(l.node.Order(l.ctx(), labOwner, order.OrderNo))(l.t)
	if now.BuyerEmail+now.Description+now.Metadata != "" || now.Amount != order.Amount ||
		now.PayHash != order.PayHash {
		l.t.Errorf("the order is now %+v", now)
	}
	status := now.Status(time.Now())
	want := licensing.OrderPaid
	switch {
	case a.refunded:
		want = licensing.OrderRefunded
	case a.canceled:
		want = licensing.OrderCanceled
	}
	if status != want || now.LicenseKey != a.license || now.PaidAt.IsZero() {
		l.t.Errorf("it was %+v, and the order is now %s: %+v", a, status, now)
	}
	if !a.license.IsZero() {
		a.checkLicense(l)
	}
}

// checkLicense checks that the acknowledged changes of the license are stored, and returns the license.
func (a *acknowledged) checkLicense(l *lab) *store.LicenseView {
	l.t.Helper()
	view := kvtest.Must(l.node.License(l.ctx(), labOwner, a.license, store.DevicePage{Limit: 100}))(l.t)
	bound := map[string]bool{}
	for _, device := range view.Devices {
		bound[device.ID] = true
	}
	for _, device := range a.devices {
		if !bound[device] {
			l.t.Errorf("%s was activated and is not bound: %+v", device, view)
		}
	}
	if a.refunded != !view.License.RevokedAt.IsZero() || a.renews && !view.License.ExpiresAt.Equal(laterEnd) {
		l.t.Errorf("it was %+v, and the license is now %+v", a, view.License)
	}
	return view
}

// TestRedactionLeavesNoHash redacts a buyer with so many orders and granted licenses that their listings have
// upper levels: their keys contain the hash of the address too.
func TestRedactionLeavesNoHash(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.product()
	for i, tall := 0, false; !tall; i++ {
		order := l.noted(i, false)
		tall = keyspace.SkipHeight(keyspace.BuyerListingKey(&order)) > 0
	}
	l.noted(0, true)
	for tall := false; !tall; {
		key := l.grantOne(service.Grant{MaxDevices: new(2), Metadata: `{"a":"canary"}`,
			Customer: licensing.Customer{BuyerEmail: forgottenBuyer, Reference: forgottenRef}})
		view := kvtest.Must(l.node.License(l.ctx(), labOwner, key, store.DevicePage{}))(t)
		for _, entry := range keyspace.CustomerKeys(&view.License, view.Metadata.Customer) {
			tall = tall || keyspace.SkipHeight(entry) > 0
		}
	}
	if err := forget(l.ctx(), []*service.Service{l.node}, nil); err != nil {
		t.Fatal(err)
	}
	l.wantForgotten()
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		t.Errorf("violations: %v", found)
	}
}
