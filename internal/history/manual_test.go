package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// refundAtBank refunds an order at the bank, in whole or in part, as a shop does in the dashboard of its payment
// provider. The bank calls back, at once or later, and twice. Some refunds are pending at first, and some fail after
// they were made.
func (r *run) refundAtBank(orderNo string, shop int) {
	random := r.random("refund at the bank", uint64(shop))
	order, known := r.transact(random, deed{What: "look", Order: orderNo},
		func(ctx context.Context, p *process) (licensing.Order, error) {
			return p.node.Order(ctx, r.owner, orderNo)
		})
	amount := int64(20)
	if random.IntN(2) == 0 {
		amount = order.Amount
	}
	states := [][]payment.Outcome{
		{payment.OutcomeDone}, {payment.OutcomePending, payment.OutcomeDone},
		{payment.OutcomeDone, payment.OutcomeFailed}, {payment.OutcomePending, payment.OutcomeFailed},
	}[random.IntN(4)]
	object, made := r.bank.refundManually(&order, amount, states[0])
	if !known || !made {
		return
	}
	for n, state := range states {
		r.bank.turn(object.ID, state)
		for range random.IntN(3 - n) {
			r.transact(random, deed{What: "refund at the bank", Order: orderNo},
				func(ctx context.Context, p *process) (licensing.Order, error) {
					return licensing.Order{}, r.desk(p).Called(ctx, r.owner, object)
				})
		}
	}
}

// refundManually sends an amount of an order's money back, if the bank has taken it and so much is left.
func (b *bank) refundManually(o *licensing.Order, amount int64, state payment.Outcome) (payment.Object, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken, is := b.taken[o.OrderNo]
	if !is || o.Payment == "" || b.returned[o.OrderNo]+amount > taken.Amount {
		return payment.Object{}, false
	}
	object := payment.Object{Kind: payment.ObjectRefund, ID: "re_" + o.OrderNo}
	b.returned[o.OrderNo] += amount
	b.manual[object.ID] = payment.State{
		Object: object, OrderNo: o.OrderNo, Payment: o.Payment, Outcome: state, Amount: amount, Currency: o.Currency,
	}
	return object, true
}

// turn changes what has become of a refund that was made at the bank.
func (b *bank) turn(id string, to payment.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.manual[id]
	if state.Outcome != payment.OutcomeFailed && to == payment.OutcomeFailed {
		b.returned[state.OrderNo] -= state.Amount
	}
	state.Outcome = to
	b.manual[id] = state
}

// Look tells what has become of a refund that was made at the bank, or that the bank is down.
func (b *bank) Look(_ context.Context, object payment.Object) (payment.State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	state, known := b.manual[object.ID]
	switch {
	case !known:
		return payment.State{}, payment.ErrUnknownObject
	case b.trouble && b.random.IntN(5) == 0:
		return payment.State{}, errBank
	}
	return state, nil
}

// tellManual has the bank report the refund again that was made there for an order, once no refund is pending.
func (r *run) tellManual(ctx context.Context, p *process, orderNo string) error {
	object := payment.Object{Kind: payment.ObjectRefund, ID: "re_" + orderNo}
	r.bank.mu.Lock()
	state, made := r.bank.manual[object.ID]
	r.bank.mu.Unlock()
	if !made {
		return nil
	}
	if state.Outcome == payment.OutcomePending {
		r.bank.turn(object.ID, payment.OutcomeDone)
	}
	d := deed{What: "refund at the bank", Order: orderNo, Before: r.etcd.revision(), Call: time.Since(r.started)}
	err := r.desk(p).Called(ctx, r.owner, object)
	d.Return, d.After, d.Out = time.Since(r.started), r.etcd.revision(), outputOf(err)
	if d.Out.Reason == licensing.ReasonProviderFailed {
		d.Out = output{Verdict: unknown}
	}
	r.noteDeed(d)
	return err
}

// renaming gives a refund that was made at the bank another id in each answer.
type renaming struct{ payment.Provider }

func (p renaming) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	state, err := p.Provider.Look(ctx, object)
	if state.Outcome == payment.OutcomeDone {
		state.ID += fmt.Sprint("_", rand.Uint64())
	}
	return state, err
}

// countFailed leaves a refund in the books that has failed.
func countFailed(writes []store.Write) {
	for i := range writes {
		if p := writes[i].Record.Payment; p != nil && p.Kind == licensing.KindOfRefund &&
			p.State == licensing.PaymentFailed && writes[0].Record.Order != nil {
			writes[0].Record.Order.Refunded += p.Amount
		}
	}
}
