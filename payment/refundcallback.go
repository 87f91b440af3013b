package payment

import (
	"context"
	"errors"

	"licet/licensing"
)

// refundCallbacks records what providers say about refunds: our own, and refunds that were made at the provider.
type refundCallbacks struct {
	*backend
	payments *payments
	refunds  *refunds
}

// recordRefundState stores what the provider says about a refund that a callback named: the open refund of the order,
// a refund that has a record and fails after it was made, or a refund that was made at the provider.
func (r *refundCallbacks) recordRefundState(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	order, err := r.payments.paidBefore(ctx, provider, order, state)
	if err == nil && order.PaidAt.IsZero() && !order.Interval.IsZero() {
		return order, r.payments.unpaid(ctx, provider, order, state)
	}
	if err != nil || order.PaidAt.IsZero() || order.Currency != state.Currency ||
		state.Live != (order.Owner.Mode == licensing.Live) {
		return order, err
	}
	if order.Payment != state.Payment || order.PaidThrough() != provider.Name() {
		return order, r.recordFurtherRefund(ctx, provider, order, state)
	}
	if order.Refunds == 0 && !order.RefundedAt.IsZero() { // by an older build, without a record
		return order, nil
	}
	for _, number := range []string{state.Refund, state.ID} {
		if now, known, err := r.recordKnownRefund(ctx, order, number, state); known || err != nil {
			return now, err
		}
	}
	if state.Outcome == OutcomeFailed { // the money has not left the shop
		return order, nil
	}
	return r.noteRefund(ctx, provider, order, state, true)
}

// recordKnownRefund stores what the provider says about the open refund of an order, or about a refund that has a
// record; known is false if no such refund has the number.
func (r *refundCallbacks) recordKnownRefund(
	ctx context.Context, order licensing.Order, number string, state State,
) (now licensing.Order, known bool, err error) {
	open := order.RefundDue && order.Refund().Reference == number
	switch {
	case number == "":
		return order, false, nil
	case open && state.Outcome != OutcomeFailed:
		now, err = r.refunds.finishRefund(ctx, order, state)
		return now, true, err
	case open:
		result, err := r.node.WithdrawRefund(ctx, order, state.ID)
		if err != nil {
			return licensing.Order{}, true, err
		}
		order = result.Order()
	}
	recorded, err := r.node.ReadPayment(ctx, order.Owner, licensing.Payment{
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
		err = r.node.TakeBackRefund(ctx, order, *recorded)
	}
	return order, true, err
}

// noteRefund records a refund that was made at the provider, and then asks the provider again: once the refund has a
// record, no later answer is lost. While another refund of the order is open, the provider's answer about the
// other refund decides how much can still go back: so noteRefund asks about the other refund first, if again is set. If
// the other refund stays open, the error makes the provider repeat the callback.
func (r *refundCallbacks) noteRefund(
	ctx context.Context, provider Provider, order licensing.Order, state State, again bool,
) (licensing.Order, error) {
	amount := withoutTax(order.Amount, order.Refunds, state, order.PaidAmount()-order.RefundedAmount())
	if amount == 0 { // it has sent back tax only, as all of the price is back, or by rounding
		return order, nil
	}
	noted, err := r.node.NoteRefund(ctx, order, licensing.NoteRefund{ProviderID: state.ID, Amount: amount})
	switch {
	case errors.Is(err, licensing.ErrRefundClosed): // by another call
		return order, nil
	case errors.Is(err, licensing.ErrRefundOpen) && again:
		_, _ = r.refunds.sendRefund(ctx, order, false)
		return r.noteRefund(ctx, provider, order, state, false)
	case errors.Is(err, licensing.ErrRefundOpen), errors.Is(err, licensing.ErrRefundMisfit):
		if now, known, _ := r.recordKnownRefund(ctx, order, state.ID, state); known { // by another call meanwhile
			return now, nil
		}
		return licensing.Order{}, providerFailed(err)
	case err != nil:
		return licensing.Order{}, err
	}
	if state, err = r.look(ctx, provider, state.Object); err != nil {
		return licensing.Order{}, providerFailed(err)
	}
	order, _, err = r.recordKnownRefund(ctx, noted.Order(), state.ID, state)
	return order, err
}
