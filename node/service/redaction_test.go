package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

const (
	buyer = "Ada@Example.com"
	// secret is a part of everything that a shop stores about a buyer in these tests.
	secret = "secret"
)

// named returns a customer whose address is known.
func named(email string) licensing.Customer { return licensing.Customer{BuyerEmail: email} }

// bought makes an order with everything that identifies its buyer.
func bought(t *testing.T, n *service.Service, owner licensing.Owner, email string) licensing.Order {
	t.Helper()
	order, _, err := n.CreateOrder(nodetest.Context(t), owner, service.NewOrder{
		ProductID: "pro", Amount: 100, Currency: "USD", SuccessURL: "https://shop.example.com/",
		BuyerEmail: email, Description: secret, Metadata: `{"crm":"secret"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	return order
}

// sell pays an order, and adds metadata to its license.
func sell(t *testing.T, n *service.Service, order licensing.Order) licensing.Order {
	t.Helper()
	result, err := n.PayOrder(nodetest.Context(t), order, nodetest.SandboxPayment(order.OrderNo))
	if err != nil {
		t.Fatal(err)
	}
	note(t, n, result.Order())
	return result.Order()
}

func note(t *testing.T, n *service.Service, order licensing.Order) {
	t.Helper()
	change(t, n, order, func(target licensing.Target) licensing.Command {
		return licensing.UpdateLicense{Target: target, Metadata: `{"seat":"secret"}`}
	})
}

func change(t *testing.T, n *service.Service, order licensing.Order, command func(licensing.Target) licensing.Command) {
	t.Helper()
	target := licensing.Target{Key: order.LicenseKey, Caller: order.Owner}
	if _, _, err := n.ChangeLicense(nodetest.Context(t), order.Owner,
		service.LicenseChange{Key: order.LicenseKey, Command: command(target)}); err != nil {
		t.Fatal(err)
	}
}

// TestRedactionOfNobody: a redaction without an address and without a reference is refused, and changes nothing.
func TestRedactionOfNobody(t *testing.T) {
	t.Parallel()
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	customer := licensing.Customer{BuyerEmail: buyer, Reference: "c-1"}
	granted, _, err := n.Grant(nodetest.Context(t), owner,
		service.Grant{ProductID: "pro", Quantity: 1, Customer: customer})
	nodetest.WantError(t, err, nil)
	for _, once := range []*node.Once{nil, nodetest.Once("k", "r")} {
		done, _, err := n.Redact(nodetest.Context(t), owner, licensing.Customer{}, once)
		if licensing.ReasonOf(err) != licensing.ReasonInvalidField || done != (licensing.Redaction{}) {
			t.Errorf("redacted %+v, %v", done, err)
		}
	}
	view, err := n.License(nodetest.Context(t), owner, granted[0].License.Key, store.DevicePage{Limit: 1})
	if err != nil || !view.Metadata.Has(customer) {
		t.Errorf("the license names %+v, %v", view.Metadata.Customer, err)
	}
}

// wantRedaction redacts the buyer's orders and checks the answer.
func wantRedaction(
	t *testing.T, n *service.Service, owner licensing.Owner, once *node.Once, want licensing.Redaction, wantReplay bool,
) {
	t.Helper()
	got, replayed, err := n.Redact(nodetest.Context(t), owner, named(strings.ToLower(buyer)), once)
	if err != nil || got != want || replayed != wantReplay {
		t.Fatalf("redacted %+v, replayed %v, %v; want %+v, %v", got, replayed, err, want, wantReplay)
	}
}

// shown returns everything that the service returns about an order and its license, as text.
func shown(t *testing.T, n *service.Service, order licensing.Order) (text string) {
	t.Helper()
	order, err := n.Order(nodetest.Context(t), order.Owner, order.OrderNo)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Sprintf("%+v", order)
	if !order.LicenseKey.IsZero() {
		view, err := n.License(nodetest.Context(t), order.Owner, order.LicenseKey, store.DevicePage{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("\n%+v", *view)
	}
	return text
}

// wantForgotten checks that the service no longer returns any data of the buyer.
func wantForgotten(t *testing.T, n *service.Service, orders ...licensing.Order) {
	t.Helper()
	for _, order := range orders {
		text := shown(t, n, order)
		if strings.Contains(text, secret) || strings.Contains(strings.ToLower(text), strings.ToLower(buyer)) {
			t.Errorf("after the redaction:\n%s", text)
		}
	}
	list, err := n.ListOrders(nodetest.Context(t), orders[0].Owner, service.OrderFilter{BuyerEmail: buyer},
		store.Page{Limit: 1})
	if err != nil || len(list.Items) > 0 || list.Next != "" {
		t.Errorf("orders of the buyer: %+v, %v", list, err)
	}
}

// TestRedact redacts orders in all states: data of other buyers stays as it is, and every order can go on to the same
// states as without the redaction.
func TestRedact(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	ctx := nodetest.Context(t)
	owner := nodetest.NewOwner(licensing.Test)
	others := []licensing.Order{
		sell(t, n, bought(t, n, owner, "bob@example.com")),
		sell(t, n, bought(t, n, nodetest.NewOwner(licensing.Test), buyer)),
	}
	live := licensing.Owner{AccountID: owner.AccountID, Mode: licensing.Live}
	if _, _, err := n.PutProduct(ctx,
		licensing.PutProduct{ID: "pro", Owner: live, Terms: licensing.DefaultTerms()}); err != nil {
		t.Fatal(err)
	}
	var before []string
	for _, other := range others {
		before = append(before, shown(t, n, other))
	}

	wantRedaction(t, n, owner, nil, licensing.Redaction{Complete: true}, false)
	unpaid, paid, refunded := bought(t, n, owner, buyer), sell(t, n, bought(t, n, owner, "ADA@EXAMPLE.COM")), sell(t, n,
		bought(t, n, owner, buyer))
	canceled, paidThen := bought(t, n, owner, buyer), bought(t, n, owner, buyer)
	for _, order := range []licensing.Order{canceled, paidThen} {
		_, _, err := n.ChangeOrder(ctx, owner, order.OrderNo, licensing.CancelOrder{Reason: secret}, nil)
		nodetest.WantError(t, err, nil)
	}
	_, err := n.PayOrder(ctx, paidThen, nodetest.SandboxPayment(paidThen.OrderNo))
	nodetest.WantError(t, err, nil)
	_, _, err = n.ChangeOrder(ctx, owner, refunded.OrderNo, licensing.RequestRefund{Reason: secret}, nil)
	nodetest.WantError(t, err, nil)
	_, err = n.RecordRefund(ctx, refunded, service.MadeRefund{})
	nodetest.WantError(t, err, nil)
	change(t, n, paid, func(target licensing.Target) licensing.Command {
		return licensing.SuspendLicense{Target: target, Reason: secret}
	})
	all := []licensing.Order{unpaid, paid, refunded, canceled, paidThen}

	wantRedaction(t, n, owner, nil, licensing.Redaction{Orders: 5, Licenses: 2, Complete: true}, false)
	wantForgotten(t, n, all...)
	wantRedaction(t, n, owner, nil, licensing.Redaction{Complete: true}, false)
	for i, other := range others {
		if now := shown(t, n, other); now != before[i] {
			t.Errorf("the order of another buyer was\n%s\nand is\n%s", before[i], now)
		}
	}

	result, err := n.PayOrder(ctx, unpaid, nodetest.SandboxPayment(unpaid.OrderNo))
	if err != nil || new(result.Order()).Status(n.Now()) != licensing.OrderPaid ||
		result.Order().SuccessURL != unpaid.SuccessURL || result.Order().Amount != 100 {
		t.Errorf("paid after the redaction: %+v, %v", result.Order(), err)
	}
	change(t, n, paid,
		func(target licensing.Target) licensing.Command { return licensing.ReinstateLicense{Target: target} })
	_, err = nodetest.Activate(ctx, n, paid.LicenseKey, "laptop")
	nodetest.WantError(t, err, nil)
	_, _, err = n.ChangeOrder(ctx, owner, paid.OrderNo, licensing.RequestRefund{}, nil)
	nodetest.WantError(t, err, nil)
	result, err = n.RecordRefund(ctx, paid, service.MadeRefund{})
	if err != nil || new(result.Order()).Status(n.Now()) != licensing.OrderRefunded {
		t.Errorf("refunded after the redaction: %+v, %v", result.Order(), err)
	}
	_, err = nodetest.Activate(ctx, n, paid.LicenseKey, "laptop")
	nodetest.WantError(t, err, licensing.ErrLicenseRevoked)
	result, err = n.RecordRefund(ctx, paidThen, service.MadeRefund{})
	if err != nil || new(result.Order()).Status(n.Now()) != licensing.OrderRefunded {
		t.Errorf("sent back after the redaction: %+v, %v", result.Order(), err)
	}
	if order, _, err := n.ChangeOrder(ctx, owner, canceled.OrderNo, licensing.CancelOrder{Reason: "again"},
		nil); err != nil || order.StateReason != "" {
		t.Errorf("canceled again after the redaction: %+v, %v", order, err)
	}
	wantForgotten(t, n, all...)

	// Data that comes later stays until the next redaction.
	later := bought(t, n, owner, buyer)
	if now := shown(t, n, later); !strings.Contains(now, secret) {
		t.Errorf("an order that was made later:\n%s", now)
	}
	wantRedaction(t, n, owner, nil, licensing.Redaction{Orders: 1, Complete: true}, false)
}

// TestRedactMany redacts more orders than one request does, with an Idempotency-Key.
func TestRedactMany(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	const all = 2*service.MaxRedact + 5
	orders := make([]licensing.Order, all)
	var group sync.WaitGroup
	for i := range orders {
		group.Go(func() { orders[i] = bought(t, n, owner, buyer) })
	}
	group.Wait()
	for i := range 3 {
		orders[i] = sell(t, n, orders[i])
	}
	for _, want := range []licensing.Redaction{{Orders: service.MaxRedact}, {Orders: 2 * service.MaxRedact}} {
		got, replayed, err := n.Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "r"))
		if err != nil || got.Orders != want.Orders || got.Complete || replayed {
			t.Fatalf("redacted %+v, replayed %v, %v; want %+v", got, replayed, err, want)
		}
	}
	wantRedaction(t, n, owner, nodetest.Once("k", "r"), licensing.Redaction{Orders: all, Licenses: 3, Complete: true},
		false)
	wantForgotten(t, n, orders...)
	later := bought(t, n, owner, buyer)
	for range 2 {
		wantRedaction(t, n, owner, nodetest.Once("k", "r"),
			licensing.Redaction{Orders: all, Licenses: 3, Complete: true}, true)
	}
	if now := shown(t, n, later); !strings.Contains(now, secret) {
		t.Errorf("a replay has redacted an order that was made later:\n%s", now)
	}
	_, _, err := n.Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "another"))
	nodetest.WantError(t, err, licensing.ErrIdempotencyKeyReused)
	wantRedaction(t, n, owner, nodetest.Once("l", "r"), licensing.Redaction{Orders: 1, Complete: true}, false)
	wantRedaction(t, n, owner, nodetest.Once("m", "r"), licensing.Redaction{Complete: true}, false)
	wantRedaction(t, n, owner, nodetest.Once("m", "r"), licensing.Redaction{Complete: true}, true)
}

// between calls a function after orders were listed and before they are redacted.
type between struct {
	store.Store
	listed func()
}

func (b *between) ListOrders(
	ctx context.Context, owner licensing.Owner, email string, page store.Page, keep func(*licensing.Order) bool,
) (store.List[licensing.Order], error) {
	list, err := b.Store.ListOrders(ctx, owner, email, page, keep)
	b.listed()
	return list, err
}

// TestRedactWhilePaid pays an order right after the redaction has found it, and adds metadata to the license: the
// redaction removes that metadata, too, since no later redaction would find it.
func TestRedactWhilePaid(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	other := nodetest.New(t, nodetest.OpenStore(t))
	order := bought(t, other, owner, buyer)
	store := &between{Store: nodetest.OpenStore(t), listed: func() { order = sell(t, other, order) }}
	n := nodetest.New(t, store)
	wantRedaction(t, n, owner, nil, licensing.Redaction{Orders: 1, Licenses: 1, Complete: true}, false)
	wantForgotten(t, other, order)
}

// TestRedactWhileNoted adds the first metadata of a license after the redaction has read the license, and before it
// redacts the license.
func TestRedactWhileNoted(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	other := nodetest.New(t, nodetest.OpenStore(t))
	result, err := other.PayOrder(nodetest.Context(t), bought(t, other, owner, buyer), nodetest.SandboxPayment("p"))
	nodetest.WantError(t, err, nil)
	noted := false
	store := &storetest.Faulty{Store: nodetest.OpenStore(t), AfterLoad: func(read []store.Snapshot) {
		if len(read) == 2 && !noted {
			noted = true
			note(t, other, result.Order())
		}
	}}
	wantRedaction(t, nodetest.New(t, store), owner, nil, licensing.Redaction{Orders: 1, Licenses: 1, Complete: true},
		false)
	if !noted {
		t.Error("no metadata was added meanwhile")
	}
	wantForgotten(t, other, result.Order())
}

// TestRedactedByAnother finds orders that another node redacts first, and does not remove metadata that is added to
// their licenses afterwards.
func TestRedactedByAnother(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	other := nodetest.New(t, nodetest.OpenStore(t))
	order := sell(t, other, bought(t, other, owner, buyer))
	store := &between{Store: nodetest.OpenStore(t), listed: func() {
		wantRedaction(t, other, owner, nil, licensing.Redaction{Orders: 1, Licenses: 1, Complete: true}, false)
		note(t, other, order)
	}}
	n := nodetest.New(t, store)
	wantRedaction(t, n, owner, nil, licensing.Redaction{Complete: true}, false)
	if now := shown(t, n, order); !strings.Contains(now, secret) {
		t.Errorf("the later metadata is gone:\n%s", now)
	}
}

// refunding makes a node, and a paid order whose refund is requested with a reason that names the buyer.
func refunding(t *testing.T) (*service.Service, licensing.Order) {
	t.Helper()
	n, owner := nodetest.New(t, nodetest.OpenStore(t)), nodetest.NewOwner(licensing.Test)
	order := sell(t, n, bought(t, n, owner, buyer))
	_, _, err := n.ChangeOrder(nodetest.Context(t), owner, order.OrderNo, licensing.RequestRefund{Reason: secret}, nil)
	nodetest.WantError(t, err, nil)
	return n, order
}

// TestRedactionOfRefunded refunds an order while it is being redacted: no commit redacts the license without the order.
func TestRedactionOfRefunded(t *testing.T) {
	other, order := refunding(t)
	owner := order.Owner
	commits := 0
	faulty := &storetest.Faulty{Store: nodetest.OpenStore(t), OnCommit: func(c store.Change) storetest.Fault {
		if commits++; commits == 1 {
			_, err := other.RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
			nodetest.WantError(t, err, nil)
		}
		if len(c.Writes) != 2 {
			t.Errorf("commit %d changes %d records", commits, len(c.Writes))
		}
		return storetest.Fault{}
	}}
	n := nodetest.New(t, faulty)
	wantRedaction(t, n, owner, nil, licensing.Redaction{Orders: 1, Licenses: 1, Complete: true}, false)
	wantForgotten(t, other, order)
}

// TestRefundOfRedacted redacts an order while its refund is being recorded: the license must not get the reason that
// the order had before.
func TestRefundOfRedacted(t *testing.T) {
	other, order := refunding(t)
	owner := order.Owner
	loads := 0
	store := &storetest.Faulty{Store: nodetest.OpenStore(t), OnLoad: func([]store.Want) error {
		if loads++; loads == 2 { // the first one tells which license it is
			wantRedaction(t, other, owner, nil, licensing.Redaction{Orders: 1, Licenses: 1, Complete: true}, false)
		}
		return nil
	}}
	result, err := nodetest.New(t, store).RecordRefund(nodetest.Context(t), order, service.MadeRefund{})
	if err != nil || new(result.Order()).Status(other.Now()) != licensing.OrderRefunded || loads < 2 {
		t.Errorf("after %d loads: %+v, %v", loads, result.Order(), err)
	}
	wantForgotten(t, other, order)
}

// TestRedactBreaksOff kills a node at every write of a redaction, before or after the write: no response is wrong, and
// another node continues.
func TestRedactBreaksOff(t *testing.T) {
	const count = 3
	for _, made := range []bool{true, false} {
		for _, say := range []*licensing.Error{licensing.ErrOutcomeUnknown, licensing.ErrUnavailable} {
			for last := range count + 2 { // the first write and the last are the claim's
				if say == licensing.ErrUnavailable && made {
					continue // no store says so
				}
				t.Run(fmt.Sprint(say.Reason, made, last), func(t *testing.T) {
					plain := nodetest.OpenStore(t)
					n, owner := nodetest.New(t, plain), nodetest.NewOwner(licensing.Test)
					var orders []licensing.Order
					for range count {
						orders = append(orders, sell(t, n, bought(t, n, owner, buyer)))
					}
					var writes atomic.Int32
					dying := nodetest.New(t,
						&storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
							switch at := int(writes.Add(1)) - 1; {
							case at < last:
								return storetest.Fault{}
							case at == last:
								return storetest.Fault{Skip: !made, Say: say}
							default:
								return storetest.Fault{Skip: true, Say: say}
							}
						}})
					_, _, err := dying.Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "r"))
					want := say
					if last > 1 {
						want = licensing.ErrOutcomeUnknown // some of it is done
					}
					nodetest.WantError(t, err, want)
					for _, order := range orders {
						text := shown(t, n, order)
						if found := strings.Count(text, secret); found != 0 && found != 3 {
							t.Errorf("an order is redacted in part:\n%s", text)
						}
					}
					got, replayed, err := n.Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "r"))
					claimed := made && last == count+1
					if err != nil || !got.Complete || replayed != claimed || claimed && got.Orders != count {
						t.Errorf("afterwards: %+v, replayed %v, %v", got, replayed, err)
					}
					wantForgotten(t, n, orders...)
				})
			}
		}
	}
}

// TestRedactWhileStoreIsAway loses the store during a redaction, or during many: the response names the redacted
// orders, and says that others remain.
func TestRedactWhileStoreIsAway(t *testing.T) {
	const count = 5
	for landing := range count + 1 {
		plain := nodetest.OpenStore(t)
		n, owner := nodetest.New(t, plain), nodetest.NewOwner(licensing.Test)
		var orders []licensing.Order
		for range count {
			orders = append(orders, bought(t, n, owner, buyer))
		}
		var writes atomic.Int32
		failing := nodetest.New(t, &storetest.Faulty{Store: plain, OnCommit: func(store.Change) storetest.Fault {
			if int(writes.Add(1)) <= landing {
				return storetest.Fault{}
			}
			return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
		}})
		got, _, err := failing.Redact(nodetest.Context(t), owner, named(buyer), nil)
		if landing == 0 {
			nodetest.WantError(t, err, licensing.ErrUnavailable)
		} else if err != nil || got != (licensing.Redaction{Orders: landing, Complete: landing == count}) {
			t.Errorf("when %d of %d writes landed: %+v, %v", landing, count, got, err)
		}
		wantRedaction(t, n, owner, nil, licensing.Redaction{Orders: count - landing, Complete: true}, false)
		wantForgotten(t, n, orders...)
	}
}

// saying is a store that fails each Commit after the first few without making it.
type saying struct {
	store.Store
	first, commits atomic.Int32 // how many land; how many there were
	err            error
}

// Commit implements store.Store.
func (s *saying) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if s.commits.Add(1) > s.first.Load() {
		return store.Outcome{}, s.err
	}
	return s.Store.Commit(ctx, change)
}

// TestRedactInDoubt redacts orders of which one is in doubt. Its error wraps the reason why the store gave up. The
// response must not say that the redaction was certainly not executed.
func TestRedactInDoubt(t *testing.T) {
	doubt := fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, licensing.ErrOverloaded)
	for _, landing := range []int32{0, 1, 2} {
		plain := nodetest.OpenStore(t)
		owner := nodetest.NewOwner(licensing.Test)
		for range 3 {
			bought(t, nodetest.New(t, plain), owner, buyer)
		}
		store := &saying{Store: plain, err: doubt}
		store.first.Store(landing)
		got, _, err := nodetest.New(t, store).Redact(nodetest.Context(t), owner, named(buyer), nil)
		if licensing.ReasonOf(err) != licensing.ReasonOutcomeUnknown {
			t.Errorf("with %d of 3 redacted: %+v, %v", landing, got, err)
		}
	}
}

// TestRedactionNotRemembered redacts all orders, and then fails to store this result with the claim. The answer must
// not say that nothing was changed.
func TestRedactionNotRemembered(t *testing.T) {
	plain := nodetest.OpenStore(t)
	owner := nodetest.NewOwner(licensing.Test)
	bought(t, nodetest.New(t, plain), owner, buyer)
	store := &saying{Store: plain, err: licensing.ErrOverloaded}
	store.first.Store(2) // the claim and the order
	_, _, err := nodetest.New(t, store).Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "r"))
	if licensing.ReasonOf(err) != licensing.ReasonOutcomeUnknown {
		t.Errorf("got %v, want an unknown outcome", err)
	}
}

// TestRedactTogether redacts the same orders in many requests, with one Idempotency-Key and without: each order is
// counted once.
func TestRedactTogether(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	nodes := []*service.Service{nodetest.New(t, nodetest.OpenStore(t)), nodetest.New(t, nodetest.OpenStore(t))}
	const count = 40
	var orders []licensing.Order
	for range count {
		orders = append(orders, bought(t, nodes[0], owner, buyer))
	}
	var counted atomic.Int64
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			got, _, err := nodes[i%2].Redact(nodetest.Context(t), owner, named(buyer), nil)
			nodetest.WantError(t, err, nil)
			counted.Add(int64(got.Orders))
		})
	}
	for i := range 2 {
		group.Go(func() {
			_, _, err := nodes[i].Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "r"))
			nodetest.WantError(t, err, nil)
		})
	}
	group.Wait()
	wantForgotten(t, nodes[0], orders...)
	got, replayed, err := nodes[0].Redact(nodetest.Context(t), owner, named(buyer), nodetest.Once("k", "r"))
	if err != nil || !replayed || !got.Complete || counted.Load()+int64(got.Orders) != count {
		t.Errorf("of %d orders %d were counted, and under the key %+v, replayed %v, %v", count, counted.Load(), got,
			replayed, err)
	}
}

// TestRedactionWaitsAsLists: the page of orders that a redaction reads counts as a page of a list, so that redactions
// don't fill the memory of a node. A redaction whose time is up while it waits has changed nothing.
func TestRedactionWaitsAsLists(t *testing.T) {
	const atOnce = 4 // of one owner
	db := slowLists{Store: nodetest.OpenStore(t), began: make(chan struct{}, 2*atOnce), goOn: make(chan struct{})}
	n := nodetest.New(t, db)
	owner := nodetest.NewOwner(licensing.Test)
	order := bought(t, n, owner, buyer)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			_, err := n.ListOrders(nodetest.Context(t), owner, service.OrderFilter{}, store.Page{Limit: 1})
			nodetest.WantError(t, err, nil)
		})
	}
	for range atOnce {
		<-db.began
	}
	ctx, cancel := context.WithCancel(nodetest.Context(t))
	group.Go(func() {
		_, _, err := n.Redact(ctx, owner, named(buyer), nil)
		nodetest.WantError(t, err, licensing.ErrOverloaded)
	})
	n.AwaitListsWaiting(1)
	cancel()
	n.AwaitListsWaiting(0)
	if !strings.Contains(shown(t, n, order), secret) {
		t.Error("a redaction that was refused has redacted the order")
	}
	group.Go(func() {
		got, _, err := n.Redact(nodetest.Context(t), owner, named(buyer), nil)
		if want := (licensing.Redaction{Orders: 1, Complete: true}); err != nil || got != want {
			t.Errorf("redacted %+v, %v", got, err)
		}
	})
	n.AwaitListsWaiting(1)
	if len(db.began) != 0 {
		t.Error("the redaction reads a page beyond the limit on pages at a time")
	}
	close(db.goOn)
	group.Wait()
	wantForgotten(t, n, order)
	if n.InFlight() != 0 {
		t.Errorf("%d places are still taken", n.InFlight())
	}
}

// slowCommits is a store whose commits of an owner's orders wait until they are let go.
type slowCommits struct {
	store.Store
	owner *licensing.Owner // nil: none
	began chan struct{}
	goOn  chan struct{}
}

func (s *slowCommits) Commit(ctx context.Context, c store.Change) (store.Outcome, error) {
	for _, w := range c.Writes {
		if o := w.Record.Order; s.owner != nil && o != nil && o.Owner == *s.owner {
			s.began <- struct{}{}
			<-s.goOn
		}
	}
	return s.Store.Commit(ctx, c)
}

// TestRedactionsAtOnce: only some redactions of an owner are under way at the same time, and another owner's redaction
// waits for none of them.
func TestRedactionsAtOnce(t *testing.T) {
	const atOnce = 8 // of one owner
	db := &slowCommits{Store: nodetest.OpenStore(t), began: make(chan struct{}, 2*atOnce), goOn: make(chan struct{})}
	n := nodetest.New(t, db)
	greedy, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	redact := func(owner licensing.Owner, buyer string) {
		got, _, err := n.Redact(nodetest.Context(t), owner, named(buyer), nil)
		if want := (licensing.Redaction{Orders: 1, Complete: true}); err != nil || got != want {
			t.Errorf("redacted %+v, %v", got, err)
		}
	}
	var buyers []string
	for i := range atOnce + 1 {
		buyers = append(buyers, fmt.Sprintf("%d-%s", i, buyer))
		bought(t, n, greedy, buyers[i])
	}
	order := bought(t, n, other, buyer)
	db.owner = &greedy
	var group sync.WaitGroup
	for _, buyer := range buyers {
		group.Go(func() { redact(greedy, buyer) })
	}
	for range atOnce {
		<-db.began
	}
	n.AwaitRedactionsWaiting(1)
	redact(other, buyer)
	wantForgotten(t, n, order)
	if len(db.began) != 0 {
		t.Errorf("%d more redactions are under way than allowed", len(db.began))
	}
	close(db.goOn)
	group.Wait()
}
