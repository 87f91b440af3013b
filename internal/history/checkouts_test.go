package history

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

const (
	// checkoutOrders are the orders of a history whose buyers pay in checkouts.
	checkoutOrders = 4
	// pressing is how many buyers press Pay of one order at the same time.
	pressing = 3
)

// till is a payment provider with checkouts. It outlives the nodes, makes one checkout for an attempt, however often a
// node asks, and takes money only in an open checkout. Its answers are late now and then.
type till struct {
	payment.Sandbox
	mu       sync.Mutex
	random   *rand.Rand
	trouble  bool
	sessions map[string]*payment.State // by the number of the order and the attempt; nil: the attempt has none for good
	returned map[string]int64          // by payment
	refunds  map[string]payment.State  // by our number
	wrong    []string

	subscriptions map[string]*subscription // by order
	disputes      map[string]*dispute      // by payment
}

func newTill(r *run) *till {
	return &till{random: r.random("till"), trouble: true, sessions: map[string]*payment.State{},
		returned: map[string]int64{}, refunds: map[string]payment.State{}, subscriptions: map[string]*subscription{},
		disputes: map[string]*dispute{}}
}

// Name is a name that no other provider of the run has.
func (*till) Name() licensing.PaymentProvider { return licensing.ProviderStripe }

// luck is a number from 0 to 5; without trouble it is 5. The caller holds the lock.
func (b *till) luck() int {
	if !b.trouble {
		return 5
	}
	return b.random.IntN(6)
}

// Begin makes a checkout or not, and says so or not.
func (b *till) Begin(_ context.Context, o licensing.Order) (payment.Step, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	luck, attempt := b.luck(), fmt.Sprint(o.OrderNo, "/", o.Attempt)
	if luck == 0 {
		return payment.Step{}, errBank
	}
	s, begun := b.sessions[attempt]
	switch {
	case !begun && luck == 1:
		b.sessions[attempt] = nil
	case !begun:
		for other, open := range b.sessions {
			if open != nil && open.OrderNo == o.OrderNo && open.Outcome == payment.OutcomeOpen {
				b.wrong = append(b.wrong, fmt.Sprintf("%s gets a checkout, and that of %s is open", attempt, other))
			}
		}
		s = &payment.State{
			Object: payment.Object{Kind: payment.ObjectCheckout, ID: "cs_" + attempt}, OrderNo: o.OrderNo,
			Outcome: payment.OutcomeOpen, Amount: o.Amount, Currency: o.Currency,
			URL: "https://till.example/" + attempt, EndsAt: o.CreatedAt.Add(time.Hour),
		}
		b.sessions[attempt] = s
		b.subscribes(&o)
	}
	switch {
	case s == nil:
		return payment.Step{}, payment.ErrAttemptSpent
	case luck == 2:
		return payment.Step{}, errBank
	}
	step := payment.Step{Checkout: s.ID, EndsAt: s.EndsAt}
	if s.Outcome == payment.OutcomeOpen {
		step.Redirect = s.URL
	}
	return step, nil
}

// Look says what has become of a checkout or a payment. The answer may arrive after later answers.
func (b *till) Look(_ context.Context, object payment.Object) (payment.State, error) {
	state, delay, err := b.look(object)
	time.Sleep(delay)
	return state, err
}

func (b *till) look(object payment.Object) (payment.State, time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.luck() == 0 {
		return payment.State{}, 0, errBank
	}
	delay := time.Duration(0)
	if b.trouble {
		delay = time.Duration(b.random.IntN(3)) * time.Millisecond
	}
	if state, found := b.lookAtSubscription(object); found {
		return state, 5 * delay, nil
	}
	for _, made := range b.refunds {
		if object == made.Object {
			return made, delay, nil
		}
	}
	if state, found := b.lookAtDispute(object); found {
		return state, 5 * delay, nil
	}
	for _, s := range b.sessions {
		if s != nil && (s.ID == object.ID || object.Kind == payment.ObjectPayment && s.Payment == object.ID) {
			b.tellFee(s)
			state := *s
			state.Object = object
			return state, delay, nil
		}
	}
	return payment.State{}, delay, payment.ErrUnknownObject
}

// End ends the checkout of an order, or not, and says so, or not.
func (b *till) End(_ context.Context, o licensing.Order) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	luck := b.luck()
	if luck == 0 {
		return errBank
	}
	for _, s := range b.sessions {
		if s != nil && s.ID == o.Checkout && s.Outcome == payment.OutcomeOpen {
			s.Outcome = payment.OutcomeEnded
		}
	}
	if luck == 2 {
		return errBank
	}
	return nil
}

// Refund sends money back, or not, and says so, or not. It refuses to send more than is left.
func (b *till) Refund(ctx context.Context, o licensing.Order, refund licensing.Payment) (payment.State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	luck := b.luck()
	if luck == 0 {
		return payment.State{}, errBank
	}
	made, known := b.refunds[refund.Reference]
	if !known {
		if refund.Amount > o.Amount-b.returned[o.Payment]-b.disputed(o.Payment) {
			return payment.State{}, payment.ErrRefused
		}
		var err error
		if made, err = b.Sandbox.Refund(ctx, o, refund); err != nil {
			return payment.State{}, err
		}
		if s := b.subscriptions[o.OrderNo]; s != nil {
			made.Invoice = s.paidWith(o.Payment)
		}
		b.refunds[refund.Reference] = made
		b.returned[o.Payment] += refund.Amount
	}
	if luck == 2 {
		return payment.State{}, errBank
	}
	return made, nil
}

// pay is what a buyer does at the URL of a checkout: pay, or let it expire. It returns the state after that.
func (b *till) pay(url string, pays bool) payment.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		if s == nil || s.URL != url {
			continue
		}
		switch {
		case s.Outcome != payment.OutcomeOpen:
		case pays:
			s.Outcome, s.Payment, s.At = payment.OutcomeDone, "pi_"+s.ID, time.Now()
			b.begins(s)
		default:
			s.Outcome = payment.OutcomeEnded
		}
		return *s
	}
	b.wrong = append(b.wrong, fmt.Sprintf("a buyer was sent to %q, where no checkout is", url))
	return payment.State{}
}

// all returns the checkouts as they are now.
func (b *till) all() (states []payment.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		if s != nil {
			states = append(states, *s)
		}
	}
	return states
}

// back returns how much of a payment has gone back. A call of a node that was killed may still be under way.
func (b *till) back(payment string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.returned[payment]
}

// mistakes returns what nodes and buyers have done wrong.
func (b *till) mistakes() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.wrong)
}

// counter is the desk of a process for orders that are paid in checkouts.
func (r *run) counter(p *process) *payment.Desk {
	var provider payment.Provider = r.till
	if r.bug.till != nil {
		provider = r.bug.till(r.till)
	}
	return payment.NewDesk(p.node, payment.ForMode(licensing.Test, provider))
}

// checkOut makes orders whose buyers pay in checkouts: several press Pay at the same time, pay or let the checkout
// expire, and press Pay again. Some orders are canceled or paid outside meanwhile. Callbacks are lost, doubled and
// late.
func (r *run) checkOut() {
	var group sync.WaitGroup
	count := checkoutOrders
	if r.bug.name != "" {
		count *= 2 // no other clients take time
	}
	for number := range count {
		group.Go(func() {
			random := r.random("checkout", uint64(number))
			order, made := r.order(random, service.NewOrder{
				ProductID: "pro", Amount: 100, Currency: "USD", Description: fmt.Sprint("checkout ", number),
				BuyerEmail: "checkout@example.com", Once: once("checkout", number),
			})
			if !made {
				return
			}
			var pressed sync.WaitGroup
			recorded := make(chan struct{}) // by the shop, as paid outside
			for buyer := range pressing {
				pressed.Go(func() { r.press(order.OrderNo, number, buyer, recorded) })
			}
			if random.IntN(2) == 0 {
				pressed.Go(func() {
					random := r.random("checkout canceler", uint64(number))
					r.transact(random, deed{What: "cancel", Order: order.OrderNo},
						func(ctx context.Context, p *process) (licensing.Order, error) {
							return r.counter(p).Cancel(ctx, order)
						})
				})
			}
			if paidMeanwhile(number) {
				pressed.Go(func() {
					defer close(recorded)
					r.recordMeanwhile(order.OrderNo, number)
				})
			}
			pressed.Wait()
		})
	}
	group.Wait()
}

// pressed makes an order whose one buyer presses Pay; false: no order was made. checkout is the number of the buyer's
// checkout, which no other order has. The order is for quantity licenses.
func (r *run) pressed(
	random *rand.Rand, product, buyer string, number, checkout, quantity int,
) (licensing.Order, bool) {
	order, made := r.order(random, service.NewOrder{
		ProductID: product, Amount: 100, Currency: "USD", Description: fmt.Sprint(buyer, " ", number),
		BuyerEmail: buyer + "@example.com", Once: once(buyer, number), Quantity: quantity,
	})
	if made {
		r.press(order.OrderNo, checkout, 0, nil)
	}
	return order, made
}

// press is what one buyer of an order does: press Pay, and at the checkout pay or let it expire. Some buyers pay only
// when the shop has recorded an outside payment.
func (r *run) press(orderNo string, number, buyer int, recorded <-chan struct{}) {
	random := r.random("press", uint64(number), uint64(buyer))
	for range 3 {
		var page atomic.Pointer[string] // of the checkout; a try whose node was killed may still write it
		_, done := r.transact(random, deed{What: "press", Order: orderNo},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				order, err := p.node.Order(ctx, r.owner, orderNo)
				if err != nil {
					return licensing.Order{}, err
				}
				order, url, err := r.counter(p).Pay(ctx, order)
				if url != "" {
					page.Store(&url)
				}
				return order, err
			})
		url := page.Load()
		if !done || url == nil {
			return
		}
		if paidMeanwhile(number) && random.IntN(2) == 0 {
			<-recorded
		}
		state := r.till.pay(*url, random.IntN(3) > 0)
		if state.Outcome == payment.OutcomeDone && paidMeanwhile(number) && random.IntN(3) > 0 {
			r.disputeSecond(random, state)
		}
		for range random.IntN(3) {
			object := state.Object
			if state.Payment != "" && random.IntN(2) == 0 {
				object = payment.Object{Kind: payment.ObjectPayment, ID: state.Payment}
			}
			p := r.anyProcess(random)
			_, _ = reach(r, p, patience, func(ctx context.Context) error {
				return r.counter(p).Called(ctx, r.owner, object)
			})
		}
	}
}

// stopFaults stops the faults, and decides the open disputes of second payments: no refund of these is possible before.
func (b *till) stopFaults() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = false
	for _, paid := range slices.Sorted(maps.Keys(b.disputes)) {
		if d := b.disputes[paid]; d.second && d.outcome == payment.OutcomeOpen {
			d.fee++
			d.outcome = []payment.Outcome{payment.OutcomeLost, payment.OutcomeWon}[b.random.IntN(2)]
		}
	}
}

// balanceCheckouts has all checkouts asked about, when all is well again.
func (r *run) balanceCheckouts() {
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	for _, s := range r.till.all() {
		for {
			p := r.slots[0].current()
			err := r.counter(p).Called(ctx, r.owner, s.Object)
			if d := r.till.disputes[s.Payment]; err == nil && d != nil { // on which the refund depends
				err = r.counter(p).Called(ctx, r.owner, d.object())
			}
			if err == nil && s.Outcome != payment.OutcomeDone {
				break
			}
			if err == nil {
				var order licensing.Order
				if order, err = p.node.Order(ctx, r.owner, s.OrderNo); err == nil {
					second := func(r licensing.Return) bool { return r.Second }
					if !order.RefundDue && !slices.ContainsFunc(order.OpenReturns(), second) {
						break
					}
				}
			}
			if ctx.Err() != nil {
				r.complain("checkouts", "%s can't be completed in the end: %v", s.ID, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// checkouts: an order has one open checkout at a time, and at most one of them is paid. Either the order is paid with
// that payment, or it is a second payment. No other order is paid through the till. The money of an order is back
// exactly if the order says so.
func (i *inspection) checkouts(t *timeline) {
	b := i.run.till
	for _, wrong := range b.mistakes() {
		i.add("checkouts", "%s", wrong)
	}
	paidIn := map[string]string{}
	for _, s := range b.all() {
		if s.Outcome != payment.OutcomeDone {
			continue
		}
		if other, twice := paidIn[s.OrderNo]; twice {
			i.add("checkouts", "%s was paid in %s and in %s", s.OrderNo, other, s.ID)
		}
		paidIn[s.OrderNo] = s.ID
		states := t.orders[s.OrderNo]
		if last := states[len(states)-1]; (last.payment == s.Payment) == t.second(s.OrderNo, s.Payment) ||
			last.paid == 0 && last.refunded == 0 {
			i.add("checkouts", "%s was paid in %s, and is stored as %+v", s.OrderNo, s.ID, last)
		}
	}
	for number, states := range t.orders {
		before := states[0]
		if states[len(states)-1].provider != i.run.till.Name() {
			continue
		}
		for _, s := range states {
			if s.attempt != before.attempt && s.attempt != before.attempt+1 ||
				s.attempt == before.attempt && before.checkout != "" && s.checkout != before.checkout {
				i.add("checkouts", "%s goes on with another checkout: %+v, then %+v", number, before, s)
			}
			before = s
		}
		if before.paid != 0 && paidIn[number] == "" {
			i.add("checkouts", "%s was paid in no checkout: %+v", number, before)
		}
		returned := b.back(before.payment)
		if (returned != 0) != (before.refunded != 0) && !i.disputed(number) || returned != 0 && returned != 100 {
			i.add("checkouts", "%d of the money of %s went back: %+v", returned, number, before)
		}
	}
}

// overlooking does not see the open checkouts of orders.
type overlooking struct{ store.Store }

func (o overlooking) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	snapshots, err := o.Store.Load(ctx, wants...)
	for i := range snapshots {
		overlook(&snapshots[i])
	}
	return snapshots, err
}

func (o overlooking) Recall(want store.Want) (store.Snapshot, []string, bool) {
	snapshot, unsure, ok := o.Store.Recall(want)
	overlook(&snapshot)
	return snapshot, unsure, ok
}

func overlook(s *store.Snapshot) {
	if o := s.Record.Order; o != nil && o.Checkout != "" {
		o.AskAt = time.Time{}
	}
}

// unbelieved says of paid checkouts that they have expired.
type unbelieved struct{ payment.Provider }

func (u unbelieved) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := u.Provider.Look(ctx, object)
	if state.Outcome == payment.OutcomeDone {
		state.Outcome = payment.OutcomeEnded
	}
	return state, err
}
