package node

import (
	"context"
	"errors"

	"licet"
)

// ChangeOrder runs a command that a shop asks for on one of its orders.
//
// With once it is run once: the same request again answers the order as it is now,
// or the refusal of the first time, and replayed is true.
func (n *Node) ChangeOrder(ctx context.Context, owner licet.Owner, orderNo string, cmd licet.Command, once *Once) (order licet.Order, replayed bool, err error) {
	if err := n.admission.enter(ctx); err != nil {
		return licet.Order{}, false, err
	}
	defer func() { n.admission.leave(err) }()
	ref := licet.OrderRef(owner, orderNo)
	if once == nil {
		if !licet.ValidOrderNo(orderNo) {
			return licet.Order{}, false, licet.ErrOrderNotFound
		}
		result, err := n.do(ctx, ref, cmd)
		return result.Order, false, err
	}
	end, err := n.begin(owner, once)
	if err != nil {
		return licet.Order{}, false, err
	}
	defer end()
	for range createTries {
		c, err := n.recallClaim(ctx, owner, once)
		switch {
		case err != nil:
			return licet.Order{}, false, err
		case c.claim != nil:
			return n.claimedOrder(ctx, owner, c.claim)
		case !licet.ValidOrderNo(orderNo):
			return licet.Order{}, false, licet.ErrOrderNotFound
		}
		result, err := n.hold(ctx, ref, func(ctx context.Context) (licet.Result, error) {
			return n.changeOnce(ctx, ref, cmd, c)
		})
		if !errors.Is(err, errClaimLost) {
			return result.Order, false, err
		}
	}
	return licet.Order{}, false, licet.ErrUnavailable
}

// changeOnce runs a command on an order that is held, and stores what comes of it
// along with the claim that remembers it. Where another one has changed the order
// or made the claim meanwhile, it answers errClaimLost.
func (n *Node) changeOnce(ctx context.Context, ref licet.Ref, cmd licet.Command, c *creation) (licet.Result, error) {
	loaded, err := n.cfg.Store.Load(ctx, Want{Ref: ref})
	if err != nil {
		return licet.Result{}, err
	}
	answer, writes, err := n.applySteps([]step{{ref, cmd}}, loaded)
	var refusal *licet.Error
	switch {
	case errors.As(err, &refusal) && refusal.Reason == licet.ReasonInvalidOrderState:
		return licet.Result{}, n.refuse(ctx, c, refusal)
	case err != nil:
		return licet.Result{}, err
	}
	outcome, err := n.cfg.Store.Commit(ctx, n.claimed(c, licet.Claim{OrderNo: ref.ID}, writes...))
	if err == nil && !outcome.Landed {
		err = errClaimLost
	}
	return answer, err
}

// CancelOrder gives an unpaid order up.
func (n *Node) CancelOrder(ctx context.Context, order licet.Order) (licet.Result, error) {
	return n.Do(ctx, licet.OrderRef(order.Owner, order.OrderNo), licet.CancelOrder{})
}

// TryRefund notes that the provider is about to be asked to send an order's money
// back; see licet.TryRefund.
func (n *Node) TryRefund(ctx context.Context, order licet.Order, waiting bool) (licet.Result, error) {
	return n.Do(ctx, licet.OrderRef(order.Owner, order.OrderNo), licet.TryRefund{Waiting: waiting})
}

// WithdrawRefund notes that the provider has refused to send an order's money
// back. The order must be as TryRefund answered it; see licet.WithdrawRefund.
func (n *Node) WithdrawRefund(ctx context.Context, order licet.Order) (licet.Result, error) {
	return n.Do(ctx, licet.OrderRef(order.Owner, order.OrderNo), licet.WithdrawRefund{Tries: order.RefundTries})
}

// RecordRefund notes that the provider has sent an order's money back, and revokes
// the order's license, in one transaction.
func (n *Node) RecordRefund(ctx context.Context, order licet.Order) (result licet.Result, err error) {
	if err := n.admission.enter(ctx); err != nil {
		return licet.Result{}, err
	}
	defer func() { n.admission.leave(err) }()
	ref := licet.OrderRef(order.Owner, order.OrderNo)
	refund := step{ref, licet.RefundOrder{}}
	return n.hold(ctx, ref, func(ctx context.Context) (licet.Result, error) {
		// The order may have been paid since the caller saw it.
		now, err := n.readOrder(ctx, ref.Owner, ref.ID)
		if err != nil {
			return licet.Result{}, err
		}
		if now.LicenseKey == "" {
			return n.swapTogether(ctx, refund)
		}
		license := licet.LicenseRef(now.LicenseKey)
		revoke := step{license, licet.RevokeLicense{Target: licet.Target{Key: now.LicenseKey}, Reason: now.StateReason}}
		return n.hold(ctx, license, func(ctx context.Context) (licet.Result, error) {
			return n.swapTogether(ctx, refund, revoke)
		})
	})
}
