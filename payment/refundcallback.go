package payment

import (
	"context"
	"errors"

	"licet/licensing"
)

// errUnpaid makes the provider repeat the callback about a refund or a dispute.
var errUnpaid = errors.New("the payment of the subscription is not recorded yet")

// unpaid returns the error for a refund or a dispute of a subscription that is not paid: nil if the order does not
// count the payment, since the payment does not fit the order.
func (d *Desk) unpaid(ctx context.Context, provider Provider, order licensing.Order, state State) error {
	unmatched, err := d.node.ReadPayment(ctx, order.Owner, licensing.Payment{
		Kind: licensing.KindOfUnmatched, Provider: provider.Name(), Reference: state.Payment,
	})
	if err != nil || unmatched != nil {
		return err
	}
	return providerFailed(errUnpaid)
}

// recordRefundState stores what the provider says about a refund that a callback named: the open refund of the order,
// a refund that has a record and fails after it was made, or a refund that was made at the provider.
func (d *Desk) recordRefundState(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	order, err := d.paidBefore(ctx, provider, order, state)
	if err == nil && order.PaidAt.IsZero() && !order.Interval.IsZero() {
		return order, d.unpaid(ctx, provider, order, state)
	}
	if err != nil || order.PaidAt.IsZero() || order.Currency != state.Currency ||
		state.Live != (order.Owner.Mode == licensing.Live) {
		return order, err
	}
	if order.Payment != state.Payment || order.PaidThrough() != provider.Name() {
		return order, d.recordFurtherRefund(ctx, provider, order, state)
	}
	if order.Refunds == 0 && !order.RefundedAt.IsZero() { // by an older build, without a record
		return order, nil
	}
	for _, number := range []string{state.Refund, state.ID} {
		if now, known, err := d.recordKnownRefund(ctx, order, number, state); known || err != nil {
			return now, err
		}
	}
	if state.Outcome == OutcomeFailed { // the money has not left the shop
		return order, nil
	}
	return d.noteRefund(ctx, provider, order, state, true)
}

// recordKnownRefund stores what the provider says about the open refund of an order, or about a refund that has a
// record; known is false if no such refund has the number.
func (d *Desk) recordKnownRefund(
	ctx context.Context, order licensing.Order, number string, state State,
) (now licensing.Order, known bool, err error) {
	open := order.RefundDue && order.Refund().Reference == number
	switch {
	case number == "":
		return order, false, nil
	case open && state.Outcome != OutcomeFailed:
		now, err = d.finishRefund(ctx, order, state)
		return now, true, err
	case open:
		result, err := d.node.WithdrawRefund(ctx, order, state.ID)
		if err != nil {
			return licensing.Order{}, true, err
		}
		order = result.Order()
	}
	recorded, err := d.node.ReadPayment(ctx, order.Owner, licensing.Payment{
		Kind: licensing.KindOfRefund, Provider: order.PaidThrough(), Reference: number,
	})
	switch {
	case err != nil:
		return licensing.Order{}, open, err
	case recorded == nil || recorded.Kind != licensing.KindOfRefund || recorded.OrderNo != order.OrderNo ||
		recorded.ProviderID != "" && recorded.ProviderID != state.ID:
		return order, open, nil
	case recorded.State == licensing.PaymentDone && state.Outcome == OutcomeFailed:
		// Also if another call has recorded the open refund as made meanwhile.
		err = d.node.TakeBackRefund(ctx, order, *recorded)
	}
	return order, true, err
}

// paidBefore returns an order after its payment: a callback about a refund may come before the payment is recorded. The
// payment of a subscription says too little: only its checkout or its invoice pays the order.
func (d *Desk) paidBefore(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	if !order.PaidAt.IsZero() || state.Payment == "" || !order.Interval.IsZero() {
		return order, nil
	}
	paid, err := d.look(ctx, provider, Object{Kind: ObjectPayment, ID: state.Payment})
	switch {
	case errors.Is(err, ErrUnknownObject):
		return order, nil
	case err != nil:
		return licensing.Order{}, providerFailed(err)
	}
	return d.record(ctx, provider, order, paid)
}

// noteRefund records a refund that was made at the provider, and then asks the provider again: once the refund has a
// record, no later answer is lost. While another refund of the order is open, the provider's answer about the
// other refund decides how much can still go back: so noteRefund asks about the other refund first, if again is set. If
// the other refund stays open, the error makes the provider repeat the callback.
func (d *Desk) noteRefund(
	ctx context.Context, provider Provider, order licensing.Order, state State, again bool,
) (licensing.Order, error) {
	amount := withoutTax(order.Amount, order.Refunds, state, order.PaidAmount()-order.RefundedAmount())
	if amount == 0 { // it has sent back tax only, as all of the price is back, or by rounding
		return order, nil
	}
	noted, err := d.node.NoteRefund(ctx, order, licensing.NoteRefund{ProviderID: state.ID, Amount: amount})
	switch {
	case errors.Is(err, licensing.ErrRefundClosed): // by another call
		return order, nil
	case errors.Is(err, licensing.ErrRefundOpen) && again:
		_, _ = d.sendRefund(ctx, order, false)
		return d.noteRefund(ctx, provider, order, state, false)
	case errors.Is(err, licensing.ErrRefundOpen), errors.Is(err, licensing.ErrRefundMisfit):
		if now, known, _ := d.recordKnownRefund(ctx, order, state.ID, state); known { // by another call meanwhile
			return now, nil
		}
		return licensing.Order{}, providerFailed(err)
	case err != nil:
		return licensing.Order{}, err
	}
	if state, err = d.look(ctx, provider, state.Object); err != nil {
		return licensing.Order{}, providerFailed(err)
	}
	order, _, err = d.recordKnownRefund(ctx, noted.Order(), state.ID, state)
	return order, err
}
