package history

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// secondRulings is how often the bank changes the dispute of a second payment.
const secondRulings = 3

// paidMeanwhile reports whether the shop records an outside payment of an order whose buyers pay in checkouts.
func paidMeanwhile(number int) bool { return 0 < number && number < 2*checkoutOrders }

// disputeSecond has a buyer dispute a payment in a checkout if the order is paid with another payment already. The bank
// decides, and changes its mind. Some callbacks are lost.
func (r *run) disputeSecond(random *rand.Rand, paid payment.State) {
	order, looked := r.transact(random, deed{What: "look", Order: paid.OrderNo},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			return p.node.Order(ctx, r.owner, paid.OrderNo)
		})
	if !looked || order.PaidAt.IsZero() || order.Payment == paid.Payment {
		return
	}
	for range secondRulings {
		object, ruled := r.till.rule(paid, true, random)
		if p := r.anyProcess(random); ruled && random.IntN(3) > 0 {
			_, _ = reach(r, p, patience, func(ctx context.Context) error {
				return r.counter(p).Called(ctx, r.owner, object)
			})
		}
	}
}

// recordMeanwhile records an outside payment of an order, soon after a buyer has begun a checkout or has paid in one.
// If no node has learned of the buyer's payment by then, it is a second payment.
func (r *run) recordMeanwhile(orderNo string, number int) {
	outcome := payment.OutcomeOpen
	if r.random("meanwhile", uint64(number)).IntN(4) == 0 {
		outcome = payment.OutcomeDone
	}
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		if slices.ContainsFunc(r.till.all(),
			func(s payment.State) bool { return s.OrderNo == orderNo && s.Outcome == outcome }) {
			break
		}
	}
	r.record(orderNo, "meanwhile "+orderNo, number, 0)
}

// secondAt is a write of a second payment's record.
type secondAt struct {
	revision         int64
	order, id        string
	amount, returned int64
	fee              int64 // 0: not known
}

// openReturns returns what an order says is to go back of second payments, by payment.
func (m message) openReturns() map[string]int64 {
	open := map[string]int64{}
	for _, b := range m.bytes[56] {
		if r, err := parse(b); err == nil && r.varints[5] != 0 {
			open[r.text(2)] += int64(r.varints[3])
		}
	}
	return open
}

// seconds: at each revision, exactly the remainder of an order's second payments is due to go back. In the end all of
// it is back, once.
func (i *inspection) seconds(t *timeline) {
	byOrder := map[string][]secondAt{}
	for _, writes := range t.seconds {
		byOrder[writes[0].order] = append(byOrder[writes[0].order], writes...)
	}
	for number, writes := range byOrder {
		slices.SortFunc(writes, func(a, b secondAt) int { return int(a.revision - b.revision) })
		left := map[string]int64{}
		for _, s := range t.orders[number] {
			for ; len(writes) > 0 && writes[0].revision <= s.revision; writes = writes[1:] {
				w := writes[0]
				if left[w.id] = w.amount - w.returned; left[w.id] == 0 {
					delete(left, w.id)
				}
				if w.revision != s.revision || w.returned < 0 || w.returned > w.amount {
					i.add("seconds", "a second payment of %s was written as %+v: %+v", number, w, s)
				}
			}
			if !maps.Equal(left, s.returns) {
				i.add("seconds", "%v is left of the second payments of %s: %+v", left, number, s)
			}
		}
		if len(left) > 0 || len(writes) > 0 {
			i.add("seconds", "%v of the second payments of %s is not back, and %+v was written without it", left,
				number, writes)
		}
	}
	for _, writes := range t.seconds {
		if w, gone := writes[0], i.run.till.gone(writes[0].id); gone != w.amount {
			i.add("seconds", "%d of the second payment %+v went back", gone, w)
		}
	}
}

// second reports whether a payment is a second payment of an order.
func (t *timeline) second(number, id string) bool {
	for _, writes := range t.seconds {
		if writes[0].order == number && writes[0].id == id {
			return true
		}
	}
	return false
}

// renumberingSeconds asks for each refund of a second payment under another number each time.
type renumberingSeconds struct{ payment.Provider }

func (p renumberingSeconds) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	if strings.HasPrefix(refund.Reference, licensing.RefundNumber("pi_")) {
		return renumbering(p).Refund(ctx, o, refund)
	}
	return p.Provider.Refund(ctx, o, refund)
}

// keptSeconds stores second payments, and not that they must go back.
func keptSeconds(writes []store.Write) {
	for i := range writes {
		if p := writes[i].Record.Payment; p != nil && p.Kind == licensing.KindOfSecond && p.Returned == 0 {
			for j := range writes {
				if o := writes[j].Record.Order; o != nil {
					o.Returns = nil
				}
			}
		}
	}
}
