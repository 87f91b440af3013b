package service

import (
	"context"

	"licet/licensing"
	"licet/node"
)

// ChangeOrder runs a shop's command on one of its orders.
//
// With once, repeating the request returns the order as it is now, or the refusal of the first
// request, and replayed is true.
func (o *Orders) ChangeOrder(
	ctx context.Context, owner licensing.Owner, orderNo string, cmd licensing.Command, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	run := func(place node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
		if !licensing.ValidOrderNo(orderNo) {
			if _, err := o.engine.LoadWithClaim(ctx, claim); err != nil {
				return licensing.Order{}, claim.Replayed(), err
			}
			return licensing.Order{}, false, licensing.ErrOrderNotFound
		}
		claim.Effect.OrderNo = orderNo
		result, err := place.DoOnce(ctx, licensing.OrderRef(owner, orderNo), cmd, claim)
		if err == nil && claim.Replayed() {
			return o.claimedOrder(ctx, owner, claim.Earlier)
		}
		return result.Order, claim.Replayed(), err
	}
	return idempotent(ctx, o.core, owner, once, nil, run)
}

// CancelOrder cancels an unpaid order at the buyer's request.
func (o *Orders) CancelOrder(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	return o.engine.Do(ctx, ref, licensing.CancelOrder{By: licensing.EndUser})
}

// TryRefund records that the service is about to ask the payment provider for a refund; see
// licensing.TryRefund.
func (o *Orders) TryRefund(ctx context.Context, order licensing.Order, waiting bool) (licensing.Result, error) {
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	result, err := o.engine.Do(ctx, ref, licensing.TryRefund{Waiting: waiting})
	if err == nil && result.RefundDue {
		o.cfg.Metrics.Refunds.WithLabelValues("asked").Inc()
	}
	return result, err
}

// WithdrawRefund records that the payment provider has refused a refund. The order must be as
// TryRefund returned it; see licensing.WithdrawRefund.
func (o *Orders) WithdrawRefund(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	result, err := o.engine.Do(ctx, ref, licensing.WithdrawRefund{Tries: order.RefundTries})
	if err == nil && !result.RefundDue {
		o.cfg.Metrics.Refunds.WithLabelValues("refused").Inc()
	}
	return result, err
}

// RecordRefund records that the payment provider has refunded an order, and revokes the order's license, in one
// transaction. It revokes the other licenses of the order before: so no license survives the refund, and if the node
// dies, the refund is still due, and the next try continues.
func (o *Orders) RecordRefund(ctx context.Context, order licensing.Order) (result licensing.Result, err error) {
	return admitted(ctx, o.core, order.Owner, func(node.Place) (result licensing.Result, err error) {
		defer func() {
			if err == nil {
				o.cfg.Metrics.Refunds.WithLabelValues("made").Inc()
			}
		}()
		ref := licensing.OrderRef(order.Owner, order.OrderNo)
		for revoked := 0; ; {
			result, err = o.recordRefund(ctx, ref, revoked)
			if err != nil || !result.Order.RefundedAt.IsZero() {
				return result, err
			}
			if err := o.revokeOthers(ctx, &result.Order, revoked); err != nil {
				return licensing.Result{}, err
			}
			revoked = result.Order.Issued()
		}
	})
}

// recordRefund records the refund of an order and revokes its first license, unless the order has more licenses than
// are revoked. Then it returns the order as it is.
func (o *Orders) recordRefund(ctx context.Context, ref licensing.Ref, revoked int) (licensing.Result, error) {
	refund := node.Step{Ref: ref, Cmd: licensing.RefundOrder{Revoked: revoked}}
	return o.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		// The order may have been paid since the caller read it.
		now, err := o.readOrder(ctx, ref.Owner, ref.ID)
		if err != nil {
			return licensing.Result{}, err
		}
		if now.LicenseKey.IsZero() {
			if now.CanceledAt.IsZero() {
				// Apply refuses to refund an unpaid order. A swap could find the order paid by then, with a
				// license whose lock this call does not hold.
				return licensing.Apply(&licensing.Record{Order: &now}, refund.Cmd, o.engine.Now())
			}
			return o.engine.SwapTogether(ctx, refund) // a canceled order never gets a license
		}
		if now.RefundedAt.IsZero() && now.LicensesIssued > revoked {
			return licensing.Result{Order: now}, nil
		}
		license := licensing.LicenseRef(now.LicenseKey)
		revoke := node.Step{Ref: license, Then: func(refunded licensing.Result) licensing.Command {
			return licensing.RevokeLicense{
				Target: licensing.Target{Key: now.LicenseKey, By: refunded.Order.RefundBy},
				Reason: refunded.Order.StateReason,
			}
		}}
		return o.engine.WithRecordLock(ctx, license, func(ctx context.Context) (licensing.Result, error) {
			return o.engine.SwapTogether(ctx, refund, revoke)
		})
	})
}
