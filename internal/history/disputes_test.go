package history

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

const (
	// disputedOrders are the orders of a history whose payments the buyers dispute.
	disputedOrders = 3
	// manyDisputed is how many licenses the last of these orders is for: two transactions change the others.
	manyDisputed = 11
	// rulings is how often the bank changes each dispute.
	rulings = 7
)

// dispute is a dispute at the till. Each ruling of the bank raises the fee, so an answer of the till shows its age.
type dispute struct {
	order, payment string
	invoice        string // that is paid with the payment; empty: none
	second         bool   // the order is paid with another payment
	amount, fee    int64
	outcome        payment.Outcome
}

func (d *dispute) object() payment.Object {
	return payment.Object{Kind: payment.ObjectDispute, ID: "du_" + d.payment}
}

// lookAtDispute returns what the till says about a dispute. The caller holds the lock.
func (b *till) lookAtDispute(object payment.Object) (payment.State, bool) {
	for _, d := range b.disputes {
		if object == d.object() {
			state := payment.State{Object: object, Payment: d.payment, Outcome: d.outcome, Amount: d.amount,
				Currency: "USD", Fee: new(d.fee)}
			if d.invoice != "" || d.second { // else the record of the payment leads to the order
				state.OrderNo, state.Invoice = d.order, d.invoice
			}
			return state, true
		}
	}
	return payment.State{}, false
}

// SuspendOnDispute is true: each open dispute suspends the license.
func (*till) SuspendOnDispute() bool { return true }

// rule changes what has become of the dispute of a payment, which begins with the first call: of a paid checkout, which
// may be a second payment, or of a paid invoice. It returns false if it has changed nothing: the bank takes no money
// that went back.
func (b *till) rule(paid payment.State, second bool, random *rand.Rand) (payment.Object, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, left := b.disputes[paid.Payment], paid.Amount-b.returned[paid.Payment]
	amounts := []int64{40, 40, 100}
	others := []payment.Outcome{payment.OutcomeLost, payment.OutcomeWon, payment.OutcomeWon, payment.OutcomeWon}
	if second || paid.Kind == payment.ObjectInvoice { // a lost dispute does not revoke the license
		amounts, others = []int64{40, 100}, others[:2]
	}
	if d == nil {
		d = &dispute{order: paid.OrderNo, payment: paid.Payment, second: second,
			amount: min(left, amounts[random.IntN(len(amounts))]), outcome: payment.OutcomeOpen}
		if paid.Kind == payment.ObjectInvoice {
			d.invoice = paid.ID
		}
		if left > 0 {
			b.disputes[paid.Payment] = d
		}
		return d.object(), left > 0
	}
	switch d.outcome {
	case payment.OutcomeOpen:
	case payment.OutcomeWon:
		if d.amount > left {
			return d.object(), false
		}
		fallthrough
	default:
		others = []payment.Outcome{payment.OutcomeOpen}
	}
	d.fee, d.outcome = d.fee+1, others[random.IntN(len(others))]
	return d.object(), true
}

// disputed is how much of a payment the bank has taken back for now. The caller holds the lock.
func (b *till) disputed(paid string) int64 {
	if d := b.disputes[paid]; d != nil && d.outcome != payment.OutcomeWon {
		return d.amount
	}
	return 0
}

// paid returns the paid checkout of an order; false: there is none.
func (b *till) paid(orderNo string) (payment.State, bool) {
	for _, s := range b.all() {
		if s.OrderNo == orderNo && s.Outcome == payment.OutcomeDone {
			return s, true
		}
	}
	return payment.State{}, false
}

// dispute makes orders whose buyers pay and then dispute the payment. The bank decides, and changes its mind. Callbacks
// are lost, doubled and late. Meanwhile the shop suspends the last license of two of the orders.
func (r *run) dispute() {
	var group sync.WaitGroup
	for number := range disputedOrders {
		group.Go(func() {
			random := r.random("disputed", uint64(number))
			quantity := 1
			if number == disputedOrders-1 {
				quantity = manyDisputed
			}
			order, made := r.pressed(random, "pro", "disputed", number, 200+number, quantity)
			if !made {
				return
			}
			if quantity > 1 {
				r.mu.Lock()
				r.many[order.OrderNo] = true
				r.mu.Unlock()
			}
			var late sync.WaitGroup
			if number != 1 {
				late.Go(func() { r.suspendSold(order.OrderNo) })
			}
			paid, found := r.till.paid(order.OrderNo)
			for range rulings {
				if !found {
					break
				}
				object, ruled := r.till.rule(paid, false, random)
				if !ruled {
					continue
				}
				called := func(p *process) {
					_, _ = reach(r, p, patience, func(ctx context.Context) error {
						return r.counter(p).Called(ctx, r.owner, object)
					})
				}
				for range random.IntN(3) {
					wait, p := time.Duration(random.IntN(20))*time.Millisecond, r.anyProcess(random)
					late.Go(func() {
						time.Sleep(wait)
						called(p)
					})
				}
				if random.IntN(4) > 0 { // else all callbacks about this ruling are late, or lost
					called(r.anyProcess(random))
				}
			}
			late.Wait()
		})
	}
	group.Wait()
}

// suspendSold suspends the last license of an order, as the shop does, once the order has its licenses.
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
					key := testKeys.OrderKey(&paid, paid.Issued()-1)
					_, err := p.node.Do(ctx, licensing.LicenseRef(key), licensing.SuspendLicense{
						Target: licensing.Target{Key: key}, Reason: "fraud",
					})
					return paid, err
				})
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// movements returns the disputes, and then the refunds. A call of a node that was killed may still be under way.
func (b *till) movements() (list []payment.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, d := range b.disputes {
		list = append(list, d.object())
	}
	for _, made := range b.refunds {
		list = append(list, made.Object)
	}
	return list
}

// balanceDisputes reports all disputes once more after the faults, and then all refunds.
func (r *run) balanceDisputes() {
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	for _, object := range r.till.movements() {
		for {
			err := r.counter(r.slots[0].current()).Called(ctx, r.owner, object)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				r.complain("disputes", "%s can't be recorded in the end: %v", object.ID, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// disputeAt is a write of a dispute's record.
type disputeAt struct {
	revision             int64
	order, id, of, state string
	counted, fee         int64
	answers              int
}

func (m message) dispute(revision int64) disputeAt {
	return disputeAt{revision: revision, order: m.text(1), id: m.text(3), of: m.text(16), state: m.text(10),
		counted: int64(m.varints[18]), fee: int64(m.varints[11]), answers: int(m.varints[17])}
}

// disputed reports whether the buyer of an order has disputed a payment in a way that suspends the license.
func (i *inspection) disputed(orderNo string) bool {
	for _, d := range i.run.till.disputes {
		if d.order == orderNo && !d.second {
			return true
		}
	}
	return false
}

// disputes: no answer about a dispute replaces a newer answer. The order names exactly the disputes that are open. An
// open dispute suspends the licenses, unless it is of a second payment, and the end of the last one ends that, but no
// suspension by the shop.
func (i *inspection) disputes(t *timeline) {
	byOrder, last := map[string][]disputeAt{}, map[string]disputeAt{}
	for _, writes := range t.disputes {
		byOrder[writes[0].order] = append(byOrder[writes[0].order], writes...)
	}
	for number, writes := range byOrder {
		slices.SortFunc(writes, func(a, b disputeAt) int { return int(a.revision - b.revision) })
		suspended, states := t.suspends(i.run, number), t.orders[number]
		var open, holding []string
		for n, w := range writes {
			if before := last[w.id]; w.answers != before.answers+1 || w.fee < before.fee {
				i.add("disputes", "%s: an older answer replaces a newer answer: %+v, then %+v", number, before, w)
			}
			last[w.id] = w
			is := func(id string) bool { return id == w.id }
			open, holding = slices.DeleteFunc(open, is), slices.DeleteFunc(holding, is)
			if w.state == string(licensing.PaymentOpen) {
				if open = append(open, w.id); !t.second(number, w.of) {
					holding = append(holding, w.id)
				}
			}
			later := slices.IndexFunc(states, func(s *orderAt) bool { return s.revision > w.revision })
			if later < 0 {
				later = len(states)
			}
			o := states[later-1]
			if !slices.Equal(slices.Sorted(slices.Values(open)), slices.Sorted(strings.FieldsSeq(o.disputes))) {
				i.add("disputes", "%s has the open disputes %v: %+v", number, open, o)
			}
			for _, s := range states[later-1:] {
				if n+1 < len(writes) && s.revision >= writes[n+1].revision {
					break
				}
				i.suspension(t, number, s, max(s.revision, w.revision), len(holding) > 0, suspended != 0)
			}
		}
		shops := states[len(states)-1].key
		if keys := states[len(states)-1].keys(i.run.owner); len(keys) > 0 {
			shops = keys[len(keys)-1]
		}
		for _, l := range t.licenses[shops.ID()] {
			if suspended != 0 && l.revision > suspended && l.suspended == 0 && l.revoked == 0 {
				i.add("disputes", "the shop has suspended the license of %s, and then it is %s", number, l)
			}
		}
	}
	for _, d := range i.run.till.disputes {
		want := map[payment.Outcome]licensing.PaymentState{payment.OutcomeOpen: licensing.PaymentOpen,
			payment.OutcomeWon: licensing.PaymentWon, payment.OutcomeLost: licensing.PaymentLost}[d.outcome]
		stored := last[d.object().ID]
		if delete(last, d.object().ID); stored.state != string(want) || stored.fee != d.fee || stored.order != d.order {
			i.add("disputes", "the dispute of %s is %+v in the end, and is stored as %+v", d.order, d, stored)
		}
	}
	for _, stored := range last {
		i.add("disputes", "the till has no such dispute: %+v", stored)
	}
}

// suspension: at a revision, the licenses of an order are suspended exactly if an open dispute suspends them, except
// the licenses that must still get a change, and the last license if the shop suspends it.
func (i *inspection) suspension(
	t *timeline, number string, o *orderAt, revision int64, disputed, byShop bool,
) {
	keys := o.keys(i.run.owner)
	for n, key := range keys {
		if n > 0 && o.othersFrom > 0 && n >= o.othersFrom {
			break
		}
		l := t.licenseAt(key.ID(), revision)
		if shops := byShop && n == len(keys)-1; l == nil ||
			l.revoked == 0 && disputed != (l.suspended != 0) && (disputed || !shops) {
			i.add("disputes", "a dispute suspends the licenses of %s: %t, and its license %d is %s: %+v", number,
				disputed, n, l, o)
		}
	}
}

// suspends returns the revision after which the shop has suspended the last license of an order; 0: it has not. If no
// answer says whether it has, suspends returns a revision after all others.
func (t *timeline) suspends(r *run, orderNo string) (after int64) {
	for _, d := range r.deeds {
		switch {
		case d.What != "suspend" || d.Order != orderNo:
		case d.Out.Verdict == accepted:
			return d.After
		case d.Out.Verdict == unknown:
			after = math.MaxInt64
		}
	}
	return after
}

// refundsOf returns the writes of disputes of orders as writes of refunds: a lost dispute counts as a refund. An answer
// that changes nothing is left out: it does not write the order.
func refundsOf(t *timeline) []refundAt {
	var list []refundAt
	for _, writes := range t.disputes {
		if t.further(writes[0].of) {
			continue
		}
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
