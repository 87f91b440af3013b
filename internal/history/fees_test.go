package history

import (
	"context"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// tellFee lets the till tell the fee of a payment from some answer on. The caller holds the lock.
func (b *till) tellFee(s *payment.State) {
	if s.Outcome == payment.OutcomeDone && s.Fee == nil && b.luck() > 2 {
		s.Fee = new(1 + b.random.Int64N(9))
	}
}

// fees: the fee of a payment is stored with its record or later, and then stays. At each revision, an order has the sum
// of the known fees of its payments and disputes. In the end the fees of all payments at the till are known.
func (i *inspection) fees(t *timeline) {
	sums, last := amounts{}, map[string]int64{} // by the number of the order, and by the reference of the payment
	for _, writes := range t.payments {
		for _, w := range writes {
			i.fee(sums, last, w)
		}
	}
	for _, writes := range t.seconds {
		for _, w := range writes {
			i.fee(sums, last, paymentAt{w.revision, w.order, w.id, w.fee})
		}
	}
	for _, writes := range t.disputes {
		was := int64(0)
		for _, w := range writes {
			sums[w.order], was = append(sums[w.order], amountAt{w.revision, w.fee - was}), w.fee
		}
	}
	for number, states := range t.orders {
		for _, s := range states {
			if want := sums.at(number, s.revision); s.fee != want {
				i.add("fees", "the fees of %s are %d by its payments: %+v", number, want, s)
			}
		}
	}
	for _, s := range i.run.till.all() {
		if s.Outcome == payment.OutcomeDone && (s.Fee == nil || last[s.Payment] != *s.Fee) {
			i.add("fees", "the fee of %s is stored as %d: %+v", s.Payment, last[s.Payment], s)
		}
	}
}

// fee notes the write of a payment.
func (i *inspection) fee(sums amounts, last map[string]int64, w paymentAt) {
	was := last[w.id]
	if was != 0 && w.fee != was {
		i.add("fees", "the fee of %s was %d: %+v", w.id, was, w)
	}
	sums[w.order], last[w.id] = append(sums[w.order], amountAt{w.revision, w.fee - was}), w.fee
}

// uncountedFee stores the fees of payments, and not in their orders.
func uncountedFee(writes []store.Write) {
	for i := range writes {
		if p := writes[i].Record.Payment; p != nil && p.Kind == licensing.KindOfPayment && p.Fee != nil {
			for j := range writes {
				if o := writes[j].Record.Order; o != nil {
					o.Fee = nil
				}
			}
		}
	}
}

// feeless tells no fees.
type feeless struct{ payment.Provider }

func (p feeless) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := p.Provider.Look(ctx, object)
	state.Fee = nil
	return state, err
}
