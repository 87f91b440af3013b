package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"licet/licensing"
	"licet/node"
	"licet/node/store"
	"licet/payment"
)

// part is the amount of a refund of a part. An order has at most two such requests, so they leave something of the
// payment, and never revoke its license.
const part = 30

// refundPart sends a part of an order's money back.
func (r *run) refundPart(orderNo string, shop, number int) {
	random := r.random("part", uint64(shop), uint64(number))
	var key *node.Once
	if random.IntN(2) == 0 {
		key = once("part "+fmt.Sprint(number), shop)
	}
	for range 2 { // under its key, the second request is the first one; otherwise it may be refused
		r.transact(random, deed{What: "refund part", Order: orderNo},
			func(ctx context.Context, p *process) (licensing.Order, error) {
				request := licensing.RequestRefund{Amount: part}
				order, _, err := r.desk(p).Refund(ctx, r.owner, orderNo, request, key)
				return order, err
			})
		if key == nil {
			return
		}
	}
}

// refundSums are what an order stores of its refunds.
type refundSums struct {
	paid, refunded, refunding int64
	number                    string
	refunds                   int
	pending                   bool
	ends                      bool // the order ends with the open refund, even if less has gone back by then
}

// updates reports whether a step of a refund leads to these sums that has an event: a refund was made, or the provider
// has taken it, or it has failed, perhaps at once.
func (s *refundSums) updates(before *refundSums) bool {
	return s.refunded != before.refunded || s.pending != before.pending || s.refunds != before.refunds
}

// refundAt is a write of the record of a refund, or of a dispute, which counts as a refund once it is lost.
type refundAt struct {
	revision      int64
	order, number string
	state         string
	amount        int64
	dispute       bool
}

// refunds: at each revision, the records of an order's refunds add up to what the order says; no more goes back than
// was paid, and the order becomes refunded exactly when all is back, or when the refund of all that was left is made,
// even if an earlier refund has failed since. A refund that is made stays made, or fails.
func (i *inspection) refunds(t *timeline) {
	byOrder := map[string][]refundAt{}
	for _, writes := range t.refunds {
		byOrder[writes[0].order] = append(byOrder[writes[0].order], writes...)
	}
	for _, w := range refundsOf(t) {
		byOrder[w.order] = append(byOrder[w.order], w)
	}
	for number, states := range t.orders {
		writes := byOrder[number]
		delete(byOrder, number)
		slices.SortFunc(writes, func(a, b refundAt) int { return int(a.revision - b.revision) })
		records, refunded, last := map[string]refundAt{}, false, refundSums{}
		for _, s := range states {
			for len(writes) > 0 && writes[0].revision <= s.revision {
				w := writes[0]
				writes = writes[1:]
				if w.revision != s.revision {
					i.add("refunds", "a refund of %s was written without its order: %+v", number, w)
				}
				before, stored := records[w.number]
				if stored && !w.dispute && (before.amount != w.amount ||
					before.state == string(licensing.PaymentFailed) ||
					before.state == "" && w.state != string(licensing.PaymentFailed)) {
					i.add("refunds", "a refund of %s has changed: %+v, then %+v", number, before, w)
				}
				records[w.number] = w
			}
			made, open, count := int64(0), int64(0), 0
			for _, w := range records {
				if !w.dispute || w.amount > 0 {
					count++
				}
				switch w.state {
				case "", string(licensing.PaymentLost):
					made += w.amount
				case string(licensing.PaymentPending):
					open += w.amount
				}
			}
			sums := s.sums
			if made != sums.refunded || count != sums.refunds || sums.refunded+sums.refunding > sums.paid ||
				sums.pending && sums.number != "" && open != sums.refunding || !sums.pending && open != 0 {
				i.add("refunds", "%s has the refunds %+v: %+v", number, records, s)
			}
			if sums.ends && !(last.ends && last.number == sums.number) && sums.refunded+sums.refunding != sums.paid {
				i.add("refunds", "a refund of a part ends %s: %+v", number, s)
			}
			end, recorded := records[last.number]
			ended := last.ends && recorded && end.state == "" // the refund that ends the order was made
			if sums.paid > 0 && (sums.refunded == sums.paid || ended) != (s.refunded != 0) && !refunded {
				i.add("refunds", "%s is refunded, or all of its money is back: %+v", number, s)
			}
			refunded, last = s.refunded != 0, sums
		}
		if len(writes) > 0 {
			i.add("refunds", "refunds of %s were written without their order: %+v", number, writes)
		}
	}
	for number, writes := range byOrder {
		i.add("refunds", "there are refunds of the order %s, which is not there: %+v", number, writes)
	}
}

// renumbering asks for each refund under another number each time.
type renumbering struct{ payment.Provider }

func (p renumbering) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	refund.Reference += fmt.Sprint("/", rand.Uint64())
	return p.Provider.Refund(ctx, o, refund)
}

// unnamed takes a failed refund for a refund that the provider has refused to make.
type unnamed struct{ payment.Provider }

func (p unnamed) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	state, err := p.Provider.Refund(ctx, o, refund)
	if err == nil && state.Outcome == payment.OutcomeFailed {
		return payment.State{}, payment.ErrRefused
	}
	return state, err
}

// eachRefund calls edit with the writes of an order and a refund that is made for it.
func eachRefund(writes []store.Write, edit func(order, refund *store.Write)) {
	for i := range writes {
		if p := writes[i].Record.Payment; p != nil && p.Kind == licensing.KindOfRefund &&
			p.State == licensing.PaymentDone && writes[0].Record.Order != nil {
			edit(&writes[0], &writes[i])
		}
	}
}

// forgetRefunded stores no sum of refunds: more can be refunded than was paid.
func forgetRefunded(writes []store.Write) {
	eachRefund(writes, func(order, _ *store.Write) { order.Record.Order.Refunded = 0 })
}

// pendingAgain stores an older answer of the provider.
func pendingAgain(writes []store.Write) {
	eachRefund(writes, func(_, refund *store.Write) {
		older := *refund.Record.Payment
		older.State = licensing.PaymentPending
		refund.Record.Payment = &older
	})
}

// wholeEachTime takes a refund of a part for one of the whole payment.
func wholeEachTime(writes []store.Write) {
	eachRefund(writes, func(order, refund *store.Write) {
		order.Record.Order.RefundedAt = refund.Record.Payment.PaidAt
	})
}
