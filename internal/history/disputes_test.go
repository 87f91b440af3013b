package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

const (
	// disputedOrders are the orders of a history whose payments the buyers dispute.
	disputedOrders = 2
	// rulings is how often the bank changes each dispute.
	rulings = 7
)

// dispute is a dispute at the till. Each ruling of the bank raises the fee, so an answer of the till shows its age.
type dispute struct {
	order, payment string
	amount, fee    int64
	outcome        payment.Outcome
}

func (d *dispute) object() payment.Object {
	return payment.Object{Kind: payment.ObjectDispute, ID: "du_" + d.order}
}

// lookAtDispute returns what the till says about a dispute. The caller holds the lock.
func (b *till) lookAtDispute(object payment.Object) (payment.State, bool) {
	for _, d := range b.disputes {
		if object == d.object() {
			return payment.State{Object: object, Payment: d.payment, Outcome: d.outcome, Amount: d.amount,
				Currency: "USD", Fee: new(d.fee)}, true
		}
	}
	return payment.State{}, false
}

// SuspendOnDispute is true: each open dispute suspends the license.
func (*till) SuspendOnDispute() bool { return true }

// rule changes what has become of the dispute of an order's payment, which begins with the first call. It returns false
// if nobody has paid the order.
func (b *till) rule(orderNo string, random *rand.Rand) (payment.Object, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.disputes[orderNo]
	if d == nil {
		d = &dispute{order: orderNo, amount: []int64{40, 40, 100}[random.IntN(3)], outcome: payment.OutcomeOpen}
		for _, s := range b.sessions {
			if s != nil && s.OrderNo == orderNo && s.Outcome == payment.OutcomeDone {
				d.payment, b.disputes[orderNo] = s.Payment, d
			}
		}
		return d.object(), d.payment != ""
	}
	others := []payment.Outcome{payment.OutcomeLost, payment.OutcomeWon, payment.OutcomeWon, payment.OutcomeWon}
	if d.outcome != payment.OutcomeOpen {
		others = []payment.Outcome{payment.OutcomeOpen}
	}
	d.fee, d.outcome = d.fee+1, others[random.IntN(len(others))]
	return d.object(), true
}

// dispute makes orders whose buyers pay and then dispute the payment. The bank decides, and changes its mind. Callbacks
// are lost, doubled and late. Meanwhile the shop suspends the license of one of the orders.
func (r *run) dispute() {
	var group sync.WaitGroup
	for number := range disputedOrders {
		group.Go(func() {
			random := r.random("disputed", uint64(number))
			order, made := r.order(random, service.NewOrder{
				ProductID: "pro", Amount: 100, Currency: "USD", Description: fmt.Sprint("disputed ", number),
				BuyerEmail: "disputed@example.com", Once: once("disputed", number),
			})
			if !made {
				return
			}
			r.press(order.OrderNo, 200+number, 0)
			var late sync.WaitGroup
			if number == 0 {
				late.Go(func() { r.suspendSold(order.OrderNo) })
			}
			for range rulings {
				object, found := r.till.rule(order.OrderNo, random)
				if !found {
					break
				}
				called := func(p *process) {
					_, _ = reach(r, p, patience, func(ctx context.Context) error {
						return r.counter(p).Called(ctx, r.owner, object)
					})
				}
				for range random.IntN(3) {
					wait, p := time.Duration(random.IntN(20))*time.Millisecond, r.anyone(random)
					late.Go(func() {
						time.Sleep(wait)
						called(p)
					})
				}
				if random.IntN(4) > 0 { // else all callbacks about this ruling are late, or lost
					called(r.anyone(random))
				}
			}
			late.Wait()
		})
	}
	group.Wait()
}

// suspendSold suspends the license of an order, as the shop does, once the order has a license.
func (r *run) suspendSold(orderNo string) {
	random := r.random("suspend sold")
	for range 10 {
		paid, done := r.transact(random, deed{What: "look", Order: orderNo},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				return p.node.Order(ctx, r.owner, orderNo)
			})
		switch {
		case !done:
			return
		case !paid.LicenseKey.IsZero():
			r.transact(random, deed{What: "suspend", Order: orderNo},
				func(ctx context.Context, p *process) (licensing.Order, error) {
					_, err := p.node.Do(ctx, licensing.LicenseRef(paid.LicenseKey), licensing.SuspendLicense{
						Target: licensing.Target{Key: paid.LicenseKey}, Reason: "fraud",
					})
					return paid, err
				})
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// balanceDisputes reports all disputes once more, when all is well again.
func (r *run) balanceDisputes() {
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	for _, d := range r.till.disputes {
		for {
			err := r.counter(r.slots[0].current()).Called(ctx, r.owner, d.object())
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				r.complain("disputes", "the dispute of %s can't be recorded in the end: %v", d.order, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// disputeAt is a write of a dispute's record.
type disputeAt struct {
	revision         int64
	order, id, state string
	counted, fee     int64
	answers          int
}

func (m message) dispute(revision int64) disputeAt {
	return disputeAt{revision: revision, order: m.text(1), id: m.text(3), state: m.text(10),
		counted: int64(m.varints[18]), fee: int64(m.varints[11]), answers: int(m.varints[17])}
}

// disputed reports whether the buyer of an order has disputed the payment.
func (i *inspection) disputed(orderNo string) bool { return i.run.till.disputes[orderNo] != nil }

// disputes: no answer about a dispute replaces a newer answer. The order names exactly the disputes that are open. An
// open dispute suspends the license, and its end ends that, but no suspension by the shop.
func (i *inspection) disputes(t *timeline) {
	written := map[string][]disputeAt{}
	for _, writes := range t.disputes {
		written[writes[0].order] = append(written[writes[0].order], writes...)
	}
	for number, d := range i.run.till.disputes {
		suspended := t.suspends(i.run, number)
		states := t.orders[number]
		var before disputeAt
		for _, w := range written[number] {
			if w.answers != before.answers+1 || w.fee < before.fee {
				i.add("disputes", "%s: an older answer replaces a newer answer: %+v, then %+v", number, before, w)
			}
			before = w
			later := slices.IndexFunc(states, func(s *orderAt) bool { return s.revision > w.revision })
			if later < 0 {
				later = len(states)
			}
			o, open := states[later-1], w.state == string(licensing.PaymentOpen)
			if open != (o.disputes != "") {
				i.add("disputes", "%s has the dispute %+v: %+v", number, w, o)
			}
			l := t.licenseAt(o.key.ID(), w.revision)
			if l == nil || l.revoked == 0 && open != (l.suspended != 0) && (open || suspended == 0) {
				i.add("disputes", "%s has the dispute %+v, and its license is %s", number, w, l)
			}
		}
		want := map[payment.Outcome]licensing.PaymentState{payment.OutcomeOpen: licensing.PaymentOpen,
			payment.OutcomeWon: licensing.PaymentWon, payment.OutcomeLost: licensing.PaymentLost}[d.outcome]
		if before.state != string(want) || before.fee != d.fee {
			i.add("disputes", "the dispute of %s is %+v in the end, and is stored as %+v", number, d, before)
		}
		for _, l := range t.licenses[states[len(states)-1].key.ID()] {
			if suspended != 0 && l.revision > suspended && l.suspended == 0 && l.revoked == 0 {
				i.add("disputes", "the shop has suspended the license of %s, and then it is %s", number, l)
			}
		}
	}
	for number, writes := range written {
		if !i.disputed(number) {
			i.add("disputes", "%s has disputes, and nobody disputes its payment: %+v", number, writes)
		}
	}
}

// suspends returns the revision after which the shop has suspended the license of an order; 0: it has not, or no answer
// says so.
func (t *timeline) suspends(r *run, orderNo string) int64 {
	for _, d := range r.deeds {
		if d.What == "suspend" && d.Order == orderNo && d.Out.Verdict == accepted {
			return d.After
		}
	}
	return 0
}

// refundsOf returns the writes of disputes as the writes of refunds, which they count as once they are lost. An answer
// that changes nothing is left out: it does not write the order.
func refundsOf(disputes map[string][]disputeAt) []refundAt {
	var list []refundAt
	for _, writes := range disputes {
		for n, w := range writes {
			if n > 0 && w.state == writes[n-1].state && w.counted == writes[n-1].counted {
				continue
			}
			list = append(list, refundAt{w.revision, w.order, w.id, w.state, w.counted, true})
		}
	}
	return list
}

// eachDispute calls edit with the writes of an answer about a dispute.
func eachDispute(writes []store.Write, edit func(dispute *licensing.Payment)) {
	for i := range writes {
		if p := writes[i].Record.Payment; p != nil && p.Kind == licensing.KindOfDispute {
			edit(p)
		}
	}
}

// unlifted leaves a license alone when a dispute is won.
type unlifted struct{ store.Store }

func (s unlifted) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	eachDispute(change.Writes, func(p *licensing.Payment) {
		if p.State == licensing.PaymentWon {
			change.Writes = slices.DeleteFunc(slices.Clone(change.Writes),
				func(w store.Write) bool { return w.Ref.Kind == licensing.KindLicense })
		}
	})
	return s.Store.Commit(ctx, change)
}

// anyReason takes each suspension for that of a dispute.
func anyReason(snapshot *store.Snapshot) {
	if l := snapshot.Record.License; !l.SuspendedAt.IsZero() {
		l.StateReason = licensing.DisputeReason
	}
}
