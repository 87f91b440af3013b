package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
	"licet/payment"
)

const (
	// returnerCount is how many orders of a history have subscriptions whose invoices go back.
	returnerCount = 2
	// returnSteps is how many requests, renewals and rulings of banks there are of each.
	returnSteps = 16
)

// returner is a shop that refunds invoices of an order's subscription, which the buyer disputes.
type returner struct {
	changer
	late sync.WaitGroup // callbacks
}

// askedReturn is a request to refund an invoice.
type askedReturn struct {
	order, invoice string
	request        licensing.RequestReturn
	once           *node.Once
}

// returnInvoices makes orders that start subscriptions. The shop refunds their invoices, as a whole and in parts, while
// the till renews them, and the buyers dispute the invoices. Callbacks are lost, doubled and late.
func (r *run) returnInvoices() {
	var group sync.WaitGroup
	count := returnerCount
	if r.bug.name != "" {
		count *= 3 // no other clients take time
	}
	for number := range count {
		group.Go(func() {
			random := r.random("returner", uint64(number))
			order, made := r.pressed(random, "cloud", "returner", number, 400+number, 1)
			if !made {
				return
			}
			c := &returner{changer: changer{run: r, order: order.OrderNo, random: random, number: number}}
			if !c.begun() {
				return
			}
			for range returnSteps {
				c.step()
			}
			c.late.Wait()
		})
	}
	group.Wait()
}

// step sends one request, or changes something at the till.
func (c *returner) step() {
	c.steps++
	invoices := c.till.paidInvoices(c.order)
	luck := c.random.IntN(8)
	if len(invoices) == 0 || luck < 2 {
		for _, object := range c.till.step(c.order, c.random) {
			c.called(object)
		}
		return
	}
	switch invoice := invoices[c.random.IntN(len(invoices))]; luck {
	case 2:
		c.refund(askedReturn{c.order, invoice.ID, licensing.RequestReturn{By: "whole"}, nil})
	case 3, 4:
		part := licensing.RequestReturn{Amount: int64(10 + c.steps), By: licensing.Actor(fmt.Sprint("part ", c.steps))}
		c.refund(askedReturn{c.order, invoice.ID, part, once("returner", 1000*(c.number+1)+c.steps)})
	default:
		if object, ruled := c.till.rule(invoice, false, c.random); ruled {
			c.called(object)
		}
	}
}

// called reports an object to nodes, once, twice or never, and perhaps late.
func (c *returner) called(object payment.Object) {
	call := func(p *process) {
		_, _ = reach(c.run, p, patience, func(ctx context.Context) error {
			return c.counter(p).Called(ctx, c.owner, object)
		})
	}
	for range c.random.IntN(3) {
		wait, p := time.Duration(c.random.IntN(10))*time.Millisecond, c.anyProcess(c.random)
		c.late.Go(func() {
			time.Sleep(wait)
			call(p)
		})
	}
	if c.random.IntN(4) > 0 {
		call(c.anyProcess(c.random))
	}
}

// refund sends a request.
func (c *returner) refund(a askedReturn) {
	c.mu.Lock()
	c.askedReturns = append(c.askedReturns, a)
	c.mu.Unlock()
	c.transact(c.random, deed{What: "refund invoice", Order: c.order, Payment: string(a.request.By)},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			order, _, err := c.counter(p).RefundInvoice(ctx, c.owner, a.order, a.invoice, a.request, a.once)
			return order, err
		})
}

// paidInvoices returns the paid invoices of the subscription of an order.
func (b *till) paidInvoices(orderNo string) (list []payment.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.subscriptions[orderNo]; s != nil && s.begun {
		for _, invoice := range s.invoices {
			if invoice.Outcome == payment.OutcomeDone {
				list = append(list, *invoice)
			}
		}
	}
	return list
}

// balanceReturns sends the requests to refund invoices once more, when all is well again.
func (r *run) balanceReturns() {
	ctx, cancel := context.WithTimeout(context.Background(), r.endTime())
	defer cancel()
	for _, a := range r.askedReturns {
		for {
			_, _, err := r.counter(r.slots[0].current()).RefundInvoice(ctx, r.owner, a.order, a.invoice, a.request,
				a.once)
			if err == nil || outputOf(err).Verdict == refused &&
				licensing.ReasonOf(err) != licensing.ReasonRequestInProgress {
				break
			}
			if ctx.Err() != nil {
				r.complain("returns", "the refund of %s can't be completed in the end: %v", a.invoice, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// gone is how much of a payment the buyer has back at the till, by refunds and by lost disputes.
func (b *till) gone(paid string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := b.returned[paid]
	if d := b.disputes[paid]; d != nil && d.outcome == payment.OutcomeLost {
		sum += d.amount
	}
	return sum
}

// returnedAt is a write of the record of a refund of a further payment.
type returnedAt struct {
	revision      int64
	order, id, of string
	state, by     string
	amount        int64
}

func (m message) returnedAt(revision int64) returnedAt {
	return returnedAt{revision: revision, order: m.text(1), id: m.text(3), of: m.text(16), state: m.text(10),
		by: m.text(8), amount: int64(m.varints[4])}
}

// returns: at each revision, what has gone back of a further payment is the sum of its refunds and of its lost
// disputes, and no more than was paid. In the end the buyer has as much back at the till, and each request for a part
// has made one refund.
func (i *inspection) returns(t *timeline) {
	made, lost := t.madeReturns(), t.lostDisputes()
	for _, writes := range t.furthers() {
		last := writes[len(writes)-1]
		var revisions []int64
		for _, w := range writes {
			revisions = append(revisions, w.revision)
		}
		for _, one := range slices.Concat(made[last.id], lost[last.id]) {
			revisions = append(revisions, one.revision)
		}
		for _, revision := range revisions {
			now := writes[0]
			for _, w := range writes {
				if w.revision <= revision {
					now = w
				}
			}
			if sum := made.at(last.id, revision) + lost.at(last.id, revision); sum != now.returned ||
				now.returned > now.amount || now.amount != writes[0].amount || now.periodEnd != writes[0].periodEnd {
				i.add("returns", "at revision %d, %d of %+v went back by refunds and disputes", revision, sum, now)
			}
		}
		paid := last.id
		if last.payment != "" {
			paid = last.payment
		}
		if gone := i.run.till.gone(paid); gone != last.returned {
			i.add("returns", "%d of a further payment went back at the till: %+v", gone, last)
		}
	}
	refunded := map[string]int{}
	for _, writes := range t.returned {
		if last := writes[len(writes)-1]; last.state == "" {
			refunded[last.order+last.by]++
		}
	}
	for asked, count := range refunded {
		if count > 1 && strings.Contains(asked, "part ") {
			i.add("returns", "the request %s has made %d refunds", asked, count)
		}
	}
	for _, d := range i.run.deeds {
		if d.What == "refund invoice" && d.Out.Verdict == accepted && strings.HasPrefix(d.Payment, "part ") &&
			refunded[d.Order+d.Payment] == 0 {
			i.add("returns", "%s: the request %s was answered, and has made no refund", d.Order, d.Payment)
		}
	}
}

// amounts are amounts that count from a revision on, by the reference of a payment.
type amounts map[string][]amountAt

type amountAt struct{ revision, change int64 }

// at returns the sum of the amounts of a payment at a revision.
func (a amounts) at(of string, revision int64) (sum int64) {
	for _, one := range a[of] {
		if one.revision <= revision {
			sum += one.change
		}
	}
	return sum
}

// madeReturns returns the refunds of further payments that are made.
func (t *timeline) madeReturns() amounts {
	list := amounts{}
	for _, writes := range t.returned {
		was := int64(0)
		for _, w := range writes {
			now := int64(0)
			if w.state == "" {
				now = w.amount
			}
			list[w.of], was = append(list[w.of], amountAt{w.revision, now - was}), now
		}
	}
	return list
}

// lostDisputes returns what of lost disputes counts as refunded.
func (t *timeline) lostDisputes() amounts {
	list := amounts{}
	for _, writes := range t.disputes {
		was := int64(0)
		for _, w := range writes {
			now := int64(0)
			if w.state == string(licensing.PaymentLost) {
				now = w.counted
			}
			list[w.of], was = append(list[w.of], amountAt{w.revision, now - was}), now
		}
	}
	return list
}

// furthers returns the writes of the records of further payments: of invoices and of second payments.
func (t *timeline) furthers() (list [][]invoiceAt) {
	for _, writes := range t.invoices {
		list = append(list, writes)
	}
	for _, writes := range t.seconds {
		var as []invoiceAt
		for _, w := range writes {
			as = append(as, invoiceAt{revision: w.revision, order: w.order, id: w.id, amount: w.amount,
				returned: w.returned})
		}
		list = append(list, as)
	}
	return list
}

// further reports whether a reference is that of a further payment.
func (t *timeline) further(reference string) bool {
	return slices.ContainsFunc(t.furthers(), func(writes []invoiceAt) bool { return writes[0].id == reference })
}

// takesBack reports whether the record of an invoice of an order was changed in a revision.
func (t *timeline) takesBack(order string, revision int64) bool {
	for _, writes := range t.invoices {
		if writes[0].order == order && slices.ContainsFunc(writes[1:],
			func(w invoiceAt) bool { return w.revision == revision }) {
			return true
		}
	}
	return false
}

// eachReturn calls edit with the index of the write of an invoice or of a second payment of which something has gone
// back.
func eachReturn(writes []store.Write, edit func(at int)) {
	for at := range writes {
		if p := writes[at].Record.Payment; p != nil && p.Returned > 0 &&
			(p.Kind == licensing.KindOfInvoice || p.Kind == licensing.KindOfSecond) {
			edit(at)
		}
	}
}

// eachLoss calls edit with a lost dispute, and with the index of the write of the further payment.
func eachLoss(writes []store.Write, edit func(dispute *licensing.Payment, at int)) {
	eachReturn(writes, func(at int) {
		eachDispute(writes, func(d *licensing.Payment) {
			if d.State == licensing.PaymentLost {
				edit(d, at)
			}
		})
	})
}

// nothingLost takes back nothing of a payment whose dispute is lost.
func nothingLost(writes []store.Write) {
	eachLoss(writes, func(d *licensing.Payment, at int) {
		kept := *writes[at].Record.Payment
		kept.Returned -= d.Counted
		writes[at].Record.Payment = &kept
	})
}

// takenTwice moves the end of a license back twice as a dispute is lost.
func takenTwice(writes []store.Write) {
	eachLoss(writes, func(_ *licensing.Payment, at int) {
		for i := range writes {
			if l := writes[i].Record.License; l != nil && writes[at].Record.Payment.FullyReturned() {
				shorter := *l
				shorter.ExpiresAt = l.ExpiresAt.AddDate(0, -1, 0)
				writes[i].Record.License = &shorter
			}
		}
	})
}

// stillDue keeps the refund of a second payment due whose dispute is lost.
func stillDue(writes []store.Write) {
	eachLoss(writes, func(_ *licensing.Payment, at int) {
		p := writes[at].Record.Payment
		for i := range writes {
			if o := writes[i].Record.Order; o != nil && p.Kind == licensing.KindOfSecond {
				o.Returns = &[]licensing.Return{{Number: "ref_still", Of: p.Reference, Amount: p.Amount, Second: true,
					By: licensing.Provider}}
			}
		}
	})
}

// unshortened leaves the license alone as an invoice goes back.
type unshortened struct{ store.Store }

func (s unshortened) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	writes := change.Writes
	eachReturn(writes, func(at int) {
		if writes[at].Record.Payment.FullyReturned() {
			change.Writes = slices.DeleteFunc(slices.Clone(writes),
				func(w store.Write) bool { return w.Ref.Kind == licensing.KindLicense })
		}
	})
	return s.Store.Commit(ctx, change)
}
