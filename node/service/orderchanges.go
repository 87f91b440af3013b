package service

import (
	"context"

	"licet/licensing"
	"licet/node"
)

// ChangeOrder runs a command that a shop asks for on one of its orders.
//
// With once it is run once: the same request again answers the order as it is now,
// or the refusal of the first time, and replayed is true.
func (o *Orders) ChangeOrder(ctx context.Context, owner licensing.Owner, orderNo string, cmd licensing.Command, once *node.Once) (order licensing.Order, replayed bool, err error) {
	return idempotent(ctx, o.core, owner, once, nil, func(place node.Place, claim *node.Claim) (order licensing.Order, replayed bool, err error) {
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
	})
}

// CancelOrder gives an unpaid order up, at the buyer's wish.
func (o *Orders) CancelOrder(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	return o.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.CancelOrder{By: licensing.EndUser})
}

// TryRefund notes that the provider is about to be asked to send an order's money
// back; see licensing.TryRefund.
func (o *Orders) TryRefund(ctx context.Context, order licensing.Order, waiting bool) (licensing.Result, error) {
	result, err := o.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.TryRefund{Waiting: waiting})
	if err == nil && result.RefundDue {
		o.cfg.Metrics.Refunds.WithLabelValues("asked").Inc()
	}
	return result, err
}

// WithdrawRefund notes that the provider has refused to send an order's money
// back. The order must be as TryRefund answered it; see licensing.WithdrawRefund.
func (o *Orders) WithdrawRefund(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	result, err := o.engine.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.WithdrawRefund{Tries: order.RefundTries})
	if err == nil && !result.RefundDue {
		o.cfg.Metrics.Refunds.WithLabelValues("refused").Inc()
	}
	return result, err
}

// RecordRefund notes that the provider has sent an order's money back, and revokes
// the order's license, in one transaction.
func (o *Orders) RecordRefund(ctx context.Context, order licensing.Order) (result licensing.Result, err error) {
	return admitted(ctx, o.core, order.Owner, func(node.Place) (result licensing.Result, err error) {
		defer func() {
			if err == nil {
				o.cfg.Metrics.Refunds.WithLabelValues("made").Inc()
			}
		}()
		ref := licensing.OrderRef(order.Owner, order.OrderNo)
		refund := node.Step{Ref: ref, Cmd: licensing.RefundOrder{}}
		return o.engine.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
			// The order may have been paid since the caller saw it.
			now, err := o.readOrder(ctx, ref.Owner, ref.ID)
			if err != nil {
				return licensing.Result{}, err
			}
			if now.LicenseKey == "" {
				if now.CanceledAt.IsZero() {
					// It is not paid, which is refused. If it is by the time of a swap, it has a
					// license, which is not held.
					return licensing.Apply(&licensing.Record{Order: &now}, refund.Cmd, o.engine.Now())
				}
				return o.engine.SwapTogether(ctx, refund) // and so it never gets one
			}
			license := licensing.LicenseRef(now.LicenseKey)
			revoke := node.Step{Ref: license, Then: func(refunded licensing.Result) licensing.Command {
				return licensing.RevokeLicense{Target: licensing.Target{Key: now.LicenseKey, By: refunded.Order.RefundBy}, Reason: refunded.Order.StateReason}
			}}
			return o.engine.WithRecordLock(ctx, license, func(ctx context.Context) (licensing.Result, error) {
				return o.engine.SwapTogether(ctx, refund, revoke)
			})
		})
	})
}
