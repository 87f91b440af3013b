package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node"
)

// recordTime is what is left of a caller's time, once the provider has answered,
// to record its answer.
const recordTime = time.Second

// Refund sends a paid order's money back at the shop's wish, and revokes its
// license. The wish is stored before the provider is asked, so that a node may die
// at any moment: the same call again, the pay page or a pass of SendRefundsDue on
// any node goes on with it. Until the refund is recorded the order is paid and its
// license good.
//
// Where the provider refuses, the wish is withdrawn. Where it does not answer, or
// not clearly, the money may be on its way, and the wish stays. Either is
// ReasonProviderFailed.
//
// With once it is the same refund, however often it is asked for; replayed tells
// that it was made before.
func (d *Desk) Refund(ctx context.Context, owner licensing.Owner, orderNo string, wish licensing.RequestRefund, once *node.Once) (order licensing.Order, replayed bool, err error) {
	order, replayed, err = d.node.ChangeOrder(ctx, owner, orderNo, wish, once)
	if replayed && err == nil && !order.RefundDue && order.RefundedAt.IsZero() {
		// It was withdrawn: that the provider failed is not what the key stands for.
		replayed = false
		order, _, err = d.node.ChangeOrder(ctx, owner, orderNo, wish, nil)
	}
	if err != nil || !order.RefundDue {
		return order, replayed, err
	}
	order, err = d.sendBack(ctx, order, false)
	return order, false, err
}

// SendRefundsDue tries again to send back what was tried a while ago, or never. It
// is a chore for service.Sweeps; any number of nodes may do it.
func (d *Desk) SendRefundsDue(ctx context.Context) error {
	return d.node.EachRefundDue(ctx, func(ctx context.Context, order licensing.Order) error {
		_, err := d.sendBack(ctx, order, true)
		return err
	})
}

// sendBack sends the money back that is due of an order, of which only the number
// and owner count, and records it. A waiting one leaves alone what somebody has
// tried a moment ago.
func (d *Desk) sendBack(ctx context.Context, order licensing.Order, waiting bool) (licensing.Order, error) {
	provider, configured := d.providers[order.Owner.Mode]
	if !configured {
		return d.sendNothingBack(ctx, order)
	}
	tried, err := d.node.TryRefund(ctx, order, waiting)
	if err != nil {
		return licensing.Order{}, notYet(err)
	}
	if !tried.RefundDue {
		if !waiting && tried.Order.RefundedAt.IsZero() {
			return licensing.Order{}, providerFailed(ErrRefused) // so somebody else was told
		}
		return tried.Order, nil
	}
	if err := ask(ctx, provider, tried.Order); err != nil {
		if errors.Is(err, ErrRefused) {
			if _, failed := d.node.WithdrawRefund(ctx, tried.Order); failed != nil {
				err = errors.Join(err, failed) // then it is asked again, and refuses again
			}
		}
		return licensing.Order{}, providerFailed(err)
	}
	return d.record(ctx, tried.Order)
}

// sendNothingBack does without a provider, as it can where the order was for free.
// Otherwise a wish ends here that no provider has heard of.
func (d *Desk) sendNothingBack(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	order, err := d.node.Order(ctx, order.Owner, order.OrderNo)
	if err != nil || !order.RefundDue {
		return order, notYet(err)
	}
	if order.Amount == 0 {
		return d.record(ctx, order)
	}
	if order.RefundRetryAt.IsZero() {
		if _, err := d.node.WithdrawRefund(ctx, order); err != nil {
			return licensing.Order{}, notYet(err)
		}
	}
	return licensing.Order{}, licensing.ErrPaymentNotConfigured
}

// ask asks the provider, unless the order was for free.
func ask(ctx context.Context, provider Provider, order licensing.Order) error {
	if order.Amount == 0 {
		return nil
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-recordTime))
		defer cancel()
	}
	span := beginTrace(ctx, "refund")
	err := provider.Refund(ctx, order)
	endTrace(span, err)
	return err
}

// record stores that the money has gone back.
func (d *Desk) record(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	result, err := d.node.RecordRefund(ctx, order)
	return result.Order, notYet(err)
}

// notYet is the error of a step of a refund that is due. Where the step was not made
// it is not as if nothing had happened: it will be made yet.
func notYet(err error) error {
	if licensing.NotExecuted(err) {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, errors.New(err.Error()))
	}
	return err
}
