package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node"
)

// recordTime is the part of a caller's time that is reserved for recording the provider's result.
const recordTime = time.Second

// Refund refunds a paid order at the shop's request, and revokes its license. Refund stores the request before it
// calls the provider. So if the node dies at any moment, the same call again, the pay page or a pass of
// SendRefundsDue completes the refund on any node. Until the refund is recorded, the order is paid and its license
// is valid.
//
// If the provider refuses, Refund withdraws the request. If the provider does not respond, or not clearly, then
// the money may be on its way, and the request stays. The error is ReasonProviderFailed in both cases.
//
// Calls with the same once make one refund. replayed reports that an earlier call has made the refund.
func (d *Desk) Refund(
	ctx context.Context, owner licensing.Owner, orderNo string, request licensing.RequestRefund, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	order, replayed, err = d.node.ChangeOrder(ctx, owner, orderNo, request, once)
	if replayed && err == nil && !order.RefundDue && order.RefundedAt.IsZero() {
		// The request was withdrawn after the provider failed. A failure is no result to replay.
		replayed = false
		order, _, err = d.node.ChangeOrder(ctx, owner, orderNo, request, nil)
	}
	if err != nil || !order.RefundDue {
		return order, replayed, err
	}
	order, err = d.sendRefund(ctx, order, false)
	return order, false, err
}

// SendRefundsDue tries all refunds that are due and that no node has tried recently. It is a sweep for
// service.Sweeps. Any number of nodes may run it.
func (d *Desk) SendRefundsDue(ctx context.Context) error {
	return d.node.EachRefundDue(ctx, func(ctx context.Context, order licensing.Order) error {
		_, err := d.sendRefund(ctx, order, true)
		return err
	})
}

// sendRefund sends and records the refund of an order, if the refund is due. It reads the order again: only the
// number and the owner of order count. If background is set, sendRefund skips a refund that some node has tried
// recently.
func (d *Desk) sendRefund(ctx context.Context, order licensing.Order, background bool) (licensing.Order, error) {
	provider := d.providers.Of(order.Owner)
	if provider == nil {
		return d.refundWithoutProvider(ctx, order)
	}
	tried, err := d.node.TryRefund(ctx, order, background)
	if err != nil {
		return licensing.Order{}, stillDue(err)
	}
	if !tried.RefundDue {
		if !background && tried.Order.RefundedAt.IsZero() {
			return licensing.Order{}, providerFailed(ErrRefused) // by the result of another call
		}
		return tried.Order, nil
	}
	if err := requestRefund(ctx, provider, tried.Order); err != nil {
		if errors.Is(err, ErrRefused) {
			if _, failed := d.node.WithdrawRefund(ctx, tried.Order); failed != nil {
				err = errors.Join(err, failed) // a later call gets the same refusal
			}
		}
		return licensing.Order{}, providerFailed(err)
	}
	return d.recordRefund(ctx, tried.Order)
}

// refundWithoutProvider handles a due refund of an owner without a provider. It records the refund of an order whose
// money no provider has. It withdraws the request for any other refund that no provider was asked for.
func (d *Desk) refundWithoutProvider(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	order, err := d.node.Order(ctx, order.Owner, order.OrderNo)
	if err != nil || !order.RefundDue {
		return order, stillDue(err)
	}
	if !order.Refundable() {
		return d.recordRefund(ctx, order)
	}
	if order.RefundRetryAt.IsZero() {
		if _, err := d.node.WithdrawRefund(ctx, order); err != nil {
			return licensing.Order{}, stillDue(err)
		}
	}
	return licensing.Order{}, licensing.ErrPaymentNotConfigured
}

// errNotDone means that a refund is on its way.
var errNotDone = errors.New("the refund is not complete yet")

// requestRefund asks the provider for a refund, unless no provider has the money of the order.
func requestRefund(ctx context.Context, provider Provider, order licensing.Order) error {
	if !order.Refundable() {
		return nil
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-recordTime))
		defer cancel()
	}
	span := startSpan(ctx, "refund")
	state, err := provider.Refund(ctx, order, licensing.Payment{
		OrderNo: order.OrderNo, Provider: provider.Name(), Reference: order.OrderNo, Amount: order.Amount,
		Currency: order.Currency,
	})
	switch {
	case err != nil:
	case state.Outcome == OutcomeFailed:
		err = ErrRefused
	case state.Outcome != OutcomeDone:
		err = errNotDone
	}
	endSpan(span, err)
	return err
}

// recordRefund stores that the provider has sent the refund.
func (d *Desk) recordRefund(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	result, err := d.node.RecordRefund(ctx, order)
	return result.Order, stillDue(err)
}

// stillDue returns the error for a failed step of a due refund. If the step was not executed, the error becomes
// ErrOutcomeUnknown: a later try will execute the step.
func stillDue(err error) error {
	if licensing.NotExecuted(err) {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, errors.New(err.Error()))
	}
	return err
}
