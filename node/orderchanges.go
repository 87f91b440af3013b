package node

import (
	"context"

	"licet/licensing"
)

// ChangeOrder runs a command that a shop asks for on one of its orders.
//
// With once it is run once: the same request again answers the order as it is now,
// or the refusal of the first time, and replayed is true.
func (n *Node) ChangeOrder(ctx context.Context, owner licensing.Owner, orderNo string, cmd licensing.Command, once *Once) (order licensing.Order, replayed bool, err error) {
	who, err := n.admission.enterFor(ctx, owner)
	if err != nil {
		return licensing.Order{}, false, err
	}
	defer func() { n.admission.leave(who, err) }()
	c, end, err := n.begin(owner, once, nil)
	if err != nil {
		return licensing.Order{}, false, err
	}
	defer end()
	if !licensing.ValidOrderNo(orderNo) {
		if _, err := n.loadWithClaim(ctx, c); err != nil {
			return licensing.Order{}, c.replayed(), err
		}
		return licensing.Order{}, false, licensing.ErrOrderNotFound
	}
	c.effect.OrderNo = orderNo
	result, err := n.doClaim(ctx, who, licensing.OrderRef(owner, orderNo), cmd, c)
	if err == nil && c.replayed() {
		return n.claimedOrder(ctx, owner, c.earlier)
	}
	return result.Order, c.replayed(), err
}

// CancelOrder gives an unpaid order up, at the buyer's wish.
func (n *Node) CancelOrder(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	return n.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.CancelOrder{By: licensing.EndUser})
}

// TryRefund notes that the provider is about to be asked to send an order's money
// back; see licensing.TryRefund.
func (n *Node) TryRefund(ctx context.Context, order licensing.Order, waiting bool) (licensing.Result, error) {
	result, err := n.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.TryRefund{Waiting: waiting})
	if err == nil && result.RefundDue {
		n.cfg.Metrics.Refunds.WithLabelValues("asked").Inc()
	}
	return result, err
}

// WithdrawRefund notes that the provider has refused to send an order's money
// back. The order must be as TryRefund answered it; see licensing.WithdrawRefund.
func (n *Node) WithdrawRefund(ctx context.Context, order licensing.Order) (licensing.Result, error) {
	result, err := n.Do(ctx, licensing.OrderRef(order.Owner, order.OrderNo), licensing.WithdrawRefund{Tries: order.RefundTries})
	if err == nil && !result.RefundDue {
		n.cfg.Metrics.Refunds.WithLabelValues("refused").Inc()
	}
	return result, err
}

// RecordRefund notes that the provider has sent an order's money back, and revokes
// the order's license, in one transaction.
func (n *Node) RecordRefund(ctx context.Context, order licensing.Order) (result licensing.Result, err error) {
	who, err := n.admission.enterFor(ctx, order.Owner)
	if err != nil {
		return licensing.Result{}, err
	}
	defer func() { n.admission.leave(who, err) }()
	defer func() {
		if err == nil {
			n.cfg.Metrics.Refunds.WithLabelValues("made").Inc()
		}
	}()
	ref := licensing.OrderRef(order.Owner, order.OrderNo)
	refund := step{ref: ref, cmd: licensing.RefundOrder{}}
	return n.hold(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
		// The order may have been paid since the caller saw it.
		now, err := n.readOrder(ctx, ref.Owner, ref.ID)
		if err != nil {
			return licensing.Result{}, err
		}
		if now.LicenseKey == "" {
			if now.CanceledAt.IsZero() {
				// It is not paid, which is refused. If it is by the time of a swap, it has a
				// license, which is not held.
				return licensing.Apply(&licensing.Record{Order: &now}, refund.cmd, n.Now())
			}
			return n.swapTogether(ctx, refund) // and so it never gets one
		}
		license := licensing.LicenseRef(now.LicenseKey)
		revoke := step{ref: license, then: func(refunded licensing.Result) licensing.Command {
			return licensing.RevokeLicense{Target: licensing.Target{Key: now.LicenseKey, By: refunded.Order.RefundBy}, Reason: refunded.Order.StateReason}
		}}
		return n.hold(ctx, license, func(ctx context.Context) (licensing.Result, error) {
			return n.swapTogether(ctx, refund, revoke)
		})
	})
}
