package payment_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/payment"
)

// unpaidSubscription returns an order for a subscription that is not paid.
func (w *fixture) unpaidSubscription() licensing.Order {
	w.t.Helper()
	if _, _, err := w.node.PutProduct(w.ctx, licensing.PutProduct{
		ID: "cloud", Owner: owner, Terms: licensing.DefaultTerms(),
		Billing: licensing.Billing{Interval: licensing.Period{Months: 1}},
	}); err != nil {
		w.t.Fatal(err)
	}
	o, _, err := w.node.CreateOrder(w.ctx, owner, service.NewOrder{ProductID: "cloud", Amount: 100, Currency: "USD"})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// again returns the ids of the objects of an account about which the nodes ask again.
func (w *fixture) again(account licensing.Owner) (ids []string) {
	w.t.Helper()
	read, _, err := w.store.ReadProviderEvents(w.ctx, account)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, a := range read.Again {
		ids = append(ids, a.ID)
	}
	return ids
}

// TestProviderEventsOfOneOwner: the objects of one owner that can't be recorded leave places for those of the other
// owners of a shared account.
func TestProviderEventsOfOneOwner(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	shared := licensing.Owner{Mode: licensing.Test}
	sources := []payment.EventSource{{Owner: shared, Shared: func(licensing.Owner) bool { return true }}}
	well, unpaid := w.paid(), w.unpaidSubscription()
	g.print(g.set(well, "re_well", "", 30, payment.OutcomeDone)) // the last to be read
	for i := range 20 {
		g.print(g.set(unpaid, fmt.Sprint("re_unpaid_", i), "", 30, payment.OutcomeDone))
	}
	w.clock.advance(6 * time.Minute)
	for range 3 {
		w.sweep(sources, desk)
	}
	if w.now(well).Refunded != 30 {
		t.Errorf("the refund of another order is not found: %+v", w.now(well))
	}
	if ids := w.again(shared); len(ids) != 4 {
		t.Errorf("the nodes ask again about %v", ids)
	}
	w.verify()
}

// overloads is a dashboard at which an owner has no places for requests. The reader of events has places of its own.
type overloads struct {
	*gazette
	order string // of the overloaded owner
}

func (g *overloads) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := g.gazette.Look(ctx, object)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil && state.OrderNo == g.order && g.looks[object.ID]%2 == 0 {
		return payment.State{}, licensing.ErrOverloaded
	}
	return state, err
}

// TestProviderEventsOfOverloadedOwner: an owner without places for requests to the provider leaves places for the
// objects of the other owners of a shared account.
func TestProviderEventsOfOverloadedOwner(t *testing.T) {
	w := newFixture(t)
	g := &overloads{gazette: newGazette(w)}
	_, desk := w.open(w.store, g)
	shared := licensing.Owner{Mode: licensing.Test}
	sources := []payment.EventSource{{Owner: shared, Shared: func(licensing.Owner) bool { return true }}}
	well, busy := w.paid(), w.paid()
	g.order = busy.OrderNo
	g.print(g.set(well, "re_well", "", 30, payment.OutcomeDone)) // the last to be read
	for i := range 20 {
		g.print(g.set(busy, fmt.Sprint("re_busy_", i), "", 1, payment.OutcomeDone))
	}
	w.clock.advance(6 * time.Minute)
	for range 3 {
		w.clock.advance(time.Minute)
		_ = desk.AskProviderEvents(w.ctx, sources) // fails while too many objects wait
	}
	if w.now(well).Refunded != 30 {
		t.Errorf("the refund of another order is not found: %+v", w.now(well))
	}
	if ids := w.again(shared); len(ids) != 4 {
		t.Errorf("the nodes ask again about %v", ids)
	}
	g.mu.Lock()
	g.order = ""
	g.mu.Unlock()
	w.sweep(sources, desk)
	if now := w.now(busy); now.Refunded != 4 {
		t.Errorf("of the refunds that wait, %d are recorded", now.Refunded)
	}
	w.verify()
}

// TestProviderEventsOfFailingProvider: if the provider fails, no object of a shared account is given up, however many
// one owner has.
func TestProviderEventsOfFailingProvider(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	sources := []payment.EventSource{{Owner: licensing.Owner{Mode: licensing.Test},
		Shared: func(licensing.Owner) bool { return true }}}
	var orders []licensing.Order
	for i := range 40 {
		o := w.paid()
		orders = append(orders, o)
		g.print(g.set(o, fmt.Sprint("re_", i), "", 30, payment.OutcomeDone))
	}
	w.clock.advance(6 * time.Minute)
	g.flaky = true // the first look says whose object it is
	for range 3 {
		w.clock.advance(time.Minute)
		_ = desk.AskProviderEvents(w.ctx, sources)
	}
	g.flaky = false
	for range 3 {
		w.sweep(sources, desk)
	}
	for i, o := range orders {
		if now := w.now(o); now.Refunded != 30 {
			t.Errorf("order %d: %d of it is refunded", i, now.Refunded)
		}
	}
	w.verify()
}

// TestProviderEventsWhileProviderFails: while the provider fails, an object waits for another try until the provider no
// longer keeps its event, after 30 days.
func TestProviderEventsWhileProviderFails(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	sources := []payment.EventSource{{Owner: owner}}
	late, never := w.paid(), w.paid()
	g.fails["re_late"], g.fails["re_never"] = errDown, errDown
	g.print(g.set(late, "re_late", "", 30, payment.OutcomeDone))
	g.print(g.set(never, "re_never", "", 30, payment.OutcomeDone))
	w.clock.advance(6 * time.Minute)
	days := func(n int) {
		for range n {
			w.clock.advance(24 * time.Hour)
			for range 15 {
				w.sweep(sources, desk)
			}
		}
	}
	days(4)
	delete(g.fails, "re_late")
	days(25)
	if ids := w.again(owner); w.now(late).Refunded != 30 || !slices.Equal(ids, []string{"re_never"}) {
		t.Errorf("%+v; the nodes ask again about %v", w.now(late), ids)
	}
	days(2)
	if ids := w.again(owner); len(ids) != 0 {
		t.Errorf("after 30 days, the nodes ask again about %v", ids)
	}
	w.verify()
}

// TestProviderEventsOfForbiddenObject: an object that the provider's key may not read keeps no place.
func TestProviderEventsOfForbiddenObject(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	sources := []payment.EventSource{{Owner: owner}}
	well := w.paid()
	g.print(g.set(well, "re_well", "", 30, payment.OutcomeDone))
	for i := range 20 {
		id := fmt.Sprint("du_", i)
		g.fails[id] = fmt.Errorf("read the dispute: %w", payment.ErrForbidden)
		g.print(payment.Object{Kind: payment.ObjectDispute, ID: id})
	}
	w.clock.advance(6 * time.Minute)
	for range 3 {
		w.sweep(sources, desk)
	}
	if ids := w.again(owner); w.now(well).Refunded != 30 || len(ids) != 0 {
		t.Errorf("%+v; the nodes ask again about %v", w.now(well), ids)
	}
}

// TestProviderEventsOfAnotherKey: while the nodes have the key of another account at the provider, they don't miss the
// events of the own account.
func TestProviderEventsOfAnotherKey(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	g.key = "own"
	sources := []payment.EventSource{{Owner: owner}}
	first, second := w.paid(), w.paid()
	g.print(g.set(first, "re_first", "", 30, payment.OutcomeDone))
	w.clock.advance(6 * time.Minute)
	w.sweep(sources, desk)
	if w.now(first).Refunded != 30 {
		t.Errorf("before: %+v", w.now(first))
	}

	g.print(g.set(second, "re_second", "", 40, payment.OutcomeDone))
	own := g.events
	g.events, g.key = nil, "other"
	g.print(payment.Object{Kind: payment.ObjectRefund, ID: "re_foreign"})
	w.clock.advance(time.Hour)
	w.sweep(sources, desk)
	if w.now(second).Refunded != 0 {
		t.Errorf("with the other key: %+v", w.now(second))
	}

	g.events, g.key = own, "own"
	w.sweep(sources, desk)
	if w.now(second).Refunded != 40 {
		t.Errorf("after: %+v", w.now(second))
	}
	g.counted()
	w.sweep(sources, desk)
	if _, looks := g.counted(); looks != 0 {
		t.Errorf("with the same key, %d questions", looks)
	}
}

// TestProviderEventsWhileOneHangs: questions about objects that hang leave half of a reading's time for new events.
func TestProviderEventsWhileOneHangs(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	sources := []payment.EventSource{{Owner: owner}}
	for _, id := range []string{"re_down", "re_hangs"} {
		g.fails[id] = errDown
		g.print(payment.Object{Kind: payment.ObjectRefund, ID: id})
	}
	w.clock.advance(6 * time.Minute)
	w.sweep(sources, desk)
	well := w.paid()
	g.print(g.set(well, "re_well", "", 30, payment.OutcomeDone))
	g.hangs = "re_hangs"
	w.clock.advance(6 * time.Minute)
	ctx, cancel := context.WithTimeout(w.ctx, 12*time.Second) // five for the question that hangs
	defer cancel()
	if err := desk.AskProviderEvents(ctx, sources); err != nil {
		t.Error(err)
	}
	ids := w.again(owner) // first the object for which there was no time
	if w.now(well).Refunded != 30 || !slices.Equal(ids, []string{"re_down", "re_hangs"}) {
		t.Errorf("%+v; the nodes ask again about %v", w.now(well), ids)
	}
}

// TestRefundOfUnmatched: the provider repeats the callback about the refund or the dispute of a subscription's first
// payment until the payment has a record, also one of a payment that does not fit the order.
func TestRefundOfUnmatched(t *testing.T) {
	w := newFixture(t)
	c := &court{dashboard: newDashboard(w.bank)}
	_, here := w.open(w.store, c)
	_, there := w.open(w.other, c)
	o := w.unpaidSubscription()
	refund := c.set(o, "re_1", "", 30, payment.OutcomeDone)
	dispute := c.rule(o, 100, payment.OutcomeOpen)
	paid := payment.Object{Kind: payment.ObjectPayment, ID: "bank_" + o.OrderNo}
	c.mu.Lock()
	state := c.refunds[dispute.ID]
	state.OrderNo = o.OrderNo
	c.refunds[dispute.ID] = state
	c.refunds[paid.ID] = payment.State{Object: paid, OrderNo: o.OrderNo, Payment: paid.ID,
		Outcome: payment.OutcomeDone, Amount: 99, Currency: o.Currency}
	c.mu.Unlock()
	for _, object := range []payment.Object{refund, dispute} {
		if err := here.Called(w.ctx, owner, object); licensing.ReasonOf(err) != licensing.ReasonProviderFailed {
			t.Errorf("before the payment has a record, %s: %v", object.ID, err)
		}
	}
	w.called(paid, here, there)
	w.called(refund, here, there)
	w.called(dispute, here, there)
	if now := w.now(o); !now.PaidAt.IsZero() || now.AmountRefunded() != 0 {
		t.Errorf("the order is %+v", now)
	}
	w.verify()
}

// TestProviderEventsOfFailingList: a page that the provider fails to list does not end the reading.
func TestProviderEventsOfFailingList(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	var orders []licensing.Order
	for i := range 20 {
		o := w.paid()
		orders = append(orders, o)
		g.print(g.set(o, fmt.Sprint("re_", i), "", 30, payment.OutcomeDone))
	}
	w.clock.advance(6 * time.Minute)
	g.flaky = true
	w.sweep([]payment.EventSource{{Owner: owner}}, desk)
	for i, o := range orders {
		if now := w.now(o); now.Refunded != 30 {
			t.Errorf("order %d: %d of it is refunded", i, now.Refunded)
		}
	}
}
