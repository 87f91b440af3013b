package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

const (
	// subscriberCount is how many orders of a history start subscriptions.
	subscriberCount = 3
	// subscriptionSteps is how many changes the till makes to each subscription.
	subscriptionSteps = 6
	// billingGrace is the grace of billing of the product "cloud".
	billingGrace = 3 * 24 * time.Hour
)

// subscription is a subscription at the till. Each change moves its cancelAt to a later time, so an answer of the till
// shows its age.
type subscription struct {
	order    string
	begun    bool // the buyer has paid the first period
	status   payment.Outcome
	at, end  time.Time // when it was changed last, as CancelAt, and the end of its period
	first    time.Time // the end of its first period
	invoices []*payment.State
	changes  *amendments // nil: the shop does not change the subscription
}

func (s *subscription) id() string { return "sub_" + s.order }

// cancelAt is when the subscription ends, in milliseconds; 0: it renews.
func (s *subscription) cancelAt() int64 {
	if at := s.state().CancelAt; !at.IsZero() {
		return at.UnixMilli()
	}
	return 0
}

// state is what the till says about the subscription now.
func (s *subscription) state() payment.State {
	state := payment.State{
		Object:  payment.Object{Kind: payment.ObjectSubscription, ID: s.id()},
		OrderNo: s.order, Outcome: s.status, Subscription: s.id(), PeriodEnd: s.end, CancelAt: s.at,
	}
	if s.changes != nil {
		state.CancelAt, state.Changed = s.changes.cancelAt, s.changes.number
	}
	return state
}

// bill adds an invoice of a period; without a period it is a proration.
func (s *subscription) bill(amount int64, outcome payment.Outcome, start, end time.Time) payment.Object {
	id := fmt.Sprint("in_", s.order, "_", len(s.invoices))
	invoice := &payment.State{
		Object: payment.Object{Kind: payment.ObjectInvoice, ID: id}, OrderNo: s.order, Payment: "pi_" + id,
		Outcome: outcome, Amount: amount, Currency: "USD", At: time.Now(), Subscription: s.id(), PeriodStart: start,
		PeriodEnd: end,
	}
	s.invoices = append(s.invoices, invoice)
	return invoice.Object
}

// paidWith returns the id of the invoice that was paid with a payment; empty: there is none.
func (s *subscription) paidWith(paid string) string {
	for _, invoice := range s.invoices {
		if invoice.Payment == paid {
			return invoice.ID
		}
	}
	return ""
}

// offerBilling makes the products whose orders start subscriptions.
func (r *run) offerBilling() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	for _, id := range []string{"cloud", otherPlan} {
		put := licensing.PutProduct{ID: id, Owner: r.owner, Terms: licensing.DefaultTerms(),
			Billing: licensing.Billing{Interval: licensing.Period{Months: 1}, Grace: licensing.Period{Days: 3}}}
		err := patiently(ctx, func() error {
			_, _, err := r.maker.node.PutProduct(ctx, put)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// subscribes notes that the checkout of an order starts a subscription. The caller holds the lock.
func (b *till) subscribes(o *licensing.Order) {
	if !o.Interval.IsZero() && b.subscriptions[o.OrderNo] == nil {
		at := o.CreatedAt.Truncate(time.Millisecond).UTC()
		b.subscriptions[o.OrderNo] = &subscription{
			order: o.OrderNo, status: payment.OutcomeDone, at: at, end: at.AddDate(0, 1, 0), first: at.AddDate(0, 1, 0),
			changes: newAmendments(o),
		}
	}
}

// begins begins the subscription of a checkout that a buyer has paid, if there is one. The caller holds the lock.
func (b *till) begins(session *payment.State) {
	if s := b.subscriptions[session.OrderNo]; s != nil {
		s.begun = true
		session.Subscription, session.PeriodEnd = s.id(), s.end
	}
}

// lookAtSubscription returns what the till says about a subscription or an invoice. The caller holds the lock.
func (b *till) lookAtSubscription(object payment.Object) (payment.State, bool) {
	for _, s := range b.subscriptions {
		if object == s.state().Object {
			return s.state(), true
		}
		for _, invoice := range s.invoices {
			if object == invoice.Object {
				return *invoice, true
			}
		}
	}
	return payment.State{}, false
}

// Invoices lists the paid invoices of a subscription, the newest first.
func (b *till) Invoices(_ context.Context, o licensing.Order) (ids []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.luck() == 0 {
		return nil, errBank
	}
	for _, invoice := range slices.Backward(b.subscriptions[o.OrderNo].invoices) {
		if invoice.Outcome == payment.OutcomeDone {
			ids = append(ids, invoice.ID)
		}
	}
	return ids, nil
}

// step changes a subscription: its next period begins and the buyer's card pays or fails, a card that failed pays, the
// buyer pays for a change, or the end of the subscription moves. It returns the objects that changed.
func (b *till) step(orderNo string, random *rand.Rand) []payment.Object {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.subscriptions[orderNo]
	if s == nil || !s.begun {
		return nil
	}
	s.at = s.at.Add(time.Second)
	objects := []payment.Object{s.state().Object}
	bill := func(amount int64, outcome payment.Outcome, start, end time.Time) {
		objects = append(objects, s.bill(amount, outcome, start, end))
	}
	last := len(s.invoices) - 1
	switch luck := random.IntN(6); {
	case s.status == payment.OutcomeFailed && luck > 1:
		s.status, s.invoices[last].Outcome = payment.OutcomeDone, payment.OutcomeDone
		objects = append(objects, s.invoices[last].Object)
	case s.status == payment.OutcomeFailed, luck == 0: // only its end moves
	case luck == 1:
		bill(7, payment.OutcomeDone, time.Time{}, time.Time{}) // a proration
	case luck == 2:
		start := s.end
		s.status, s.end = payment.OutcomeFailed, s.end.AddDate(0, 1, 0)
		bill(100, payment.OutcomeFailed, start, s.end)
	default:
		start := s.end
		s.end = s.end.AddDate(0, 1, 0)
		bill(100, payment.OutcomeDone, start, s.end)
	}
	return objects
}

// subscribe makes orders that start subscriptions, which the till renews. Callbacks are lost, doubled and late.
func (r *run) subscribe() {
	var group sync.WaitGroup
	for number := range subscriberCount {
		group.Go(func() {
			random := r.random("subscriber", uint64(number))
			order, made := r.pressed(random, "cloud", "subscriber", number, 100+number, 1)
			if !made {
				return
			}
			var late sync.WaitGroup
			for range subscriptionSteps {
				for _, object := range r.till.step(order.OrderNo, random) {
					for range random.IntN(4) {
						wait := time.Duration(random.IntN(10)) * time.Millisecond
						p := r.anyProcess(random)
						late.Go(func() {
							time.Sleep(wait)
							_, _ = reach(r, p, patience, func(ctx context.Context) error {
								return r.counter(p).Called(ctx, r.owner, object)
							})
						})
					}
				}
				time.Sleep(time.Duration(random.IntN(5)) * time.Millisecond)
			}
			late.Wait()
		})
	}
	group.Wait()
}

// objects returns the subscriptions that have begun, and their paid invoices.
func (b *till) objects() (list []payment.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.subscriptions {
		if s.begun {
			list = append(list, s.objects()...)
		}
	}
	return list
}

// objects returns the subscription and its paid invoices.
func (s *subscription) objects() (list []payment.Object) {
	for _, invoice := range s.invoices {
		if invoice.Outcome == payment.OutcomeDone {
			list = append(list, invoice.Object)
		}
	}
	return append(list, s.state().Object)
}

// balanceSubscriptions reports all invoices and subscriptions once more, when all is well again.
func (r *run) balanceSubscriptions() {
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	for _, object := range r.till.objects() {
		for {
			err := r.counter(r.slots[0].current()).Called(ctx, r.owner, object)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				r.complain("subscriptions", "%s can't be recorded in the end: %v", object.ID, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// billed is what an order stores of its subscription.
type billed struct {
	id, status    string
	end, cancelAt int64
	invoices      int
	invoiced      int64
	returned      int64     // what has gone back of invoices and second payments
	change        requested // that the till must make
	next, plan    planned   // with the next period, and now
}

func (m message) billed() billed {
	return billed{id: m.text(40), status: m.text(41), end: m.milli(42), cancelAt: m.milli(43),
		invoices: int(m.varints[51]), invoiced: int64(m.varints[52]), returned: int64(m.varints[63]),
		change: m.requested(60), next: m.planned(61), plan: m.planned(62)}
}

// fails and changes report whether an answer about the subscription leads to this state that has an event.
func (s *billed) fails(before *billed) bool {
	failed := string(licensing.SubscriptionPastDue)
	return s.status == failed && before.status != failed
}

func (s *billed) changes(before *billed) bool {
	return before.status != "" && !s.fails(before) && (s.status != before.status || s.cancelAt != before.cancelAt ||
		s.next != before.next || s.plan != before.plan)
}

// invoiceAt is a write of an invoice's record.
type invoiceAt struct {
	revision          int64
	order, id         string
	payment           string // with which it is paid
	amount, periodEnd int64
	returned          int64 // what has gone back
}

func (m message) invoice(revision int64) invoiceAt {
	return invoiceAt{revision, m.text(1), m.text(3), m.text(12), int64(m.varints[4]), m.milli(13),
		int64(m.varints[19])}
}

// subscriptions: each paid invoice has one record, whose revision counts the invoice in its order and extends the
// license; if all of an invoice has gone back, the license ends earlier from that revision on; nothing else moves its
// end. A license does not end before the period that is paid for and the grace after it. No answer about a subscription
// replaces a newer answer.
func (i *inspection) subscriptions(t *timeline) {
	counted := map[string]billed{} // the sums of the records, by order
	byOrder := map[string][]invoiceAt{}
	for _, writes := range t.furthers() { // an order counts second payments as invoices
		byOrder[writes[0].order] = append(byOrder[writes[0].order], writes...)
	}
	for number, states := range t.orders {
		writes, records := byOrder[number], map[string]invoiceAt{}
		slices.SortFunc(writes, func(a, b invoiceAt) int { return int(a.revision - b.revision) })
		var before billed
		first := int64(0)
		for _, s := range states {
			now := s.billed
			if s.paid != 0 && first == 0 {
				first = now.end
			}
			for ; len(writes) > 0 && writes[0].revision <= s.revision; writes = writes[1:] {
				if records[writes[0].id] = writes[0]; writes[0].revision != s.revision {
					i.add("subscriptions", "%s: an invoice was written without its order: %+v", number, writes[0])
				}
			}
			sum := billed{end: first}
			for _, w := range records {
				sum.count(w)
			}
			if now.invoices != sum.invoices || now.invoiced != sum.invoiced || now.end != sum.end ||
				now.returned != sum.returned {
				i.add("subscriptions", "%s has the invoices %+v: %+v", number, sum, s)
			}
			if now.cancelAt < before.cancelAt && !i.changed(number) {
				i.add("subscriptions", "%s: an older answer replaces a newer answer: %+v, then %+v", number, before,
					now)
			}
			if now.id != "" && !s.key.IsZero() {
				if l := t.licenseAt(s.key.ID(), s.revision); l == nil ||
					l.expires != now.end+billingGrace.Milliseconds() {
					i.add("subscriptions", "%s is paid until %d, and its license is %s", number, now.end, l)
				}
			}
			before = now
		}
		counted[number] = before
		if len(writes) > 0 {
			i.add("subscriptions", "%s: invoices were written without their order: %+v", number, writes)
		}
	}
	for number, s := range i.run.till.subscriptions {
		want := billed{end: s.first.UnixMilli()}
		if !s.begun {
			continue
		}
		for _, invoice := range s.invoices {
			if invoice.Outcome == payment.OutcomeDone {
				want.count(invoiceAt{amount: invoice.Amount, periodEnd: max(invoice.PeriodEnd.UnixMilli(), 0),
					returned: i.run.till.gone(invoice.Payment)})
			}
		}
		got := counted[number]
		if got.invoices != want.invoices || got.invoiced != want.invoiced || got.end != want.end ||
			got.returned != want.returned || got.cancelAt != s.cancelAt() {
			i.add("subscriptions", "%s has the subscription %+v, want %+v until %d", number, got, want, s.cancelAt())
		}
	}
}

// licenseAt returns a license as it was at a revision; nil: it was not there.
func (t *timeline) licenseAt(id licensing.LicenseID, revision int64) (at *licenseAt) {
	for _, s := range t.licenses[id] {
		if s.revision <= revision {
			at = s
		}
	}
	return at
}

// count counts an invoice or a second payment.
func (s *billed) count(w invoiceAt) {
	s.invoices++
	s.invoiced += w.amount
	s.returned += w.returned
	if w.returned < w.amount {
		s.end = max(s.end, w.periodEnd)
	}
}

// renewals are the operations on licenses that follow from paid invoices, and from invoices that go back.
func (r *run) renewals(t *timeline) (ops []operation) {
	for _, states := range t.orders {
		for n, s := range states {
			if n == 0 || s.key.IsZero() || s.billed.end == states[n-1].billed.end {
				continue
			}
			end := s.billed.end + billingGrace.Milliseconds()
			ops = append(ops, operation{
				Client: r.newClient(), In: input{Key: s.key, Action: renew, Expires: end},
				Out: output{Verdict: accepted}, Before: s.revision - 1, After: s.revision,
			})
		}
	}
	return ops
}

// eachInvoice calls edit with the writes of an invoice, its order and its license.
func eachInvoice(writes []store.Write, edit func(invoice *licensing.Payment, order *licensing.Order)) {
	if len(writes) < 2 || writes[0].Record.Payment == nil || writes[0].Record.Payment.Kind != licensing.KindOfInvoice {
		return
	}
	for i := range writes {
		if o := writes[i].Record.Order; o != nil {
			edit(writes[0].Record.Payment, o)
		}
	}
}

// countTwice counts an invoice twice.
func countTwice(writes []store.Write) {
	eachInvoice(writes, func(invoice *licensing.Payment, order *licensing.Order) {
		order.Invoices++
		order.Invoiced += invoice.Amount
	})
}

// unextended leaves out the license of an invoice, now and then.
type unextended struct{ store.Store }

func (s unextended) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	eachInvoice(change.Writes, func(*licensing.Payment, *licensing.Order) {
		change.Writes = slices.DeleteFunc(slices.Clone(change.Writes),
			func(w store.Write) bool { return w.Ref.Kind == licensing.KindLicense })
	})
	return s.Store.Commit(ctx, change)
}

// generous says of prorations that they pay for a period.
type generous struct{ payment.Provider }

func (p generous) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := p.Provider.Look(ctx, object)
	if object.Kind == payment.ObjectInvoice && state.PeriodEnd.IsZero() {
		state.PeriodEnd = time.Now().AddDate(10, 0, 0)
	}
	return state, err
}

// delayed is a till that tells some answers about objects of a kind again, although newer answers were told since.
type delayed struct {
	payment.Provider
	told *sync.Map // the first answer about each object, by its id
	kind payment.ObjectKind
}

func (d delayed) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := d.Provider.Look(ctx, object)
	if err != nil || object.Kind != d.kind {
		return state, err
	}
	if first, told := d.told.LoadOrStore(object.ID, state); told && rand.IntN(2) == 0 {
		state = first.(payment.State)
	}
	return state, nil
}
