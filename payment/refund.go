package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// recordTime is the part of a caller's time that is reserved for recording the provider's result.
const recordTime = time.Second

// refunds sends back the payments of orders.
type refunds struct {
	*backend
	returns *returns
}

// Refund refunds a paid order at the shop's request. If the refund sends back all that was left of the payment when it
// was requested, Refund revokes the order's license. Refund stores the request before it calls the provider. So if the
// node dies at any moment, the pay page, a pass of SendRefundsDue, or the same call again for all that is left or with
// the same once completes the refund on any node. Until the refund is recorded, the order is paid and its license is
// valid.
//
// If the provider refuses, Refund withdraws the request. If the provider does not respond, or not clearly, then
// the money may be on its way, and the request stays. The error is ReasonProviderFailed in both cases. If the provider
// has taken the refund and sends the money later, Refund returns the order with the open refund.
//
// Calls with the same once make one refund. replayed reports that an earlier call has made the refund. A refund of a
// part that has failed stays so for its once.
func (r *refunds) Refund(
	ctx context.Context, owner licensing.Owner, orderNo string, request licensing.RequestRefund, once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	if err := r.returns.acceptsRefund(ctx, owner, orderNo, request.Amount); err != nil {
		return licensing.Order{}, false, err
	}
	order, number, replayed, err := r.node.RequestRefund(ctx, owner, orderNo, request, once)
	if replayed && err == nil && order.RefundedAt.IsZero() && (!order.RefundDue || order.RefundNo != number) {
		named := licensing.Payment{Kind: licensing.KindOfRefund, Reference: number}
		refund, err := r.node.ReadPayment(ctx, owner, named)
		switch {
		case err != nil, refund != nil && refund.State == licensing.PaymentDone:
			return order, err == nil, err
		case request.Amount > 0:
			return licensing.Order{}, false, providerFailed(ErrRefused)
		}
		// The request was withdrawn after the provider failed. A failure is no result to replay.
		replayed = false
		order, _, _, err = r.node.RequestRefund(ctx, owner, orderNo, request, nil)
		if err != nil {
			return licensing.Order{}, false, err
		}
	}
	if err != nil || !order.RefundDue {
		return order, replayed, err
	}
	order, err = r.sendRefund(ctx, order, false)
	return order, false, err
}

// SendRefundsDue tries all refunds that are due and that no node has tried recently. It is a sweep for
// service.Sweeps. Any number of nodes may run it.
func (r *refunds) SendRefundsDue(ctx context.Context) error {
	return r.node.EachRefundDue(ctx, func(ctx context.Context, order licensing.Order) error {
		now, err := r.sendRefund(ctx, order, true)
		if err != nil {
			if now, _ = r.node.Order(ctx, order.Owner, order.OrderNo); now.OrderNo == "" {
				return err
			}
		}
		return errors.Join(err, r.returns.sendReturns(ctx, now))
	})
}

// sendRefund sends and records the refund of an order, if the refund is due. It reads the order again: only the
// number and the owner of order count. If background is set, sendRefund skips a refund that some node has tried
// recently.
func (r *refunds) sendRefund(ctx context.Context, order licensing.Order, background bool) (licensing.Order, error) {
	before, err := r.node.Order(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return licensing.Order{}, stillDue(err)
	}
	provider := r.providers.Of(order.Owner)
	if provider == nil || before.AtProvider() && before.PaidThrough() != provider.Name() {
		return r.refundWithoutProvider(ctx, before, background)
	}
	tried, err := r.node.TryRefund(ctx, order, background)
	if err != nil {
		return licensing.Order{}, stillDue(err)
	}
	now := tried.Order()
	switch {
	case !background && (!tried.RefundDue || now.RefundNo != order.RefundNo):
		return r.closedRefund(ctx, order.Refund(), now)
	case !tried.RefundDue:
		return now, nil
	}
	state, err := requestRefund(ctx, provider, now)
	switch {
	case errors.Is(err, ErrRefused):
		if _, failed := r.node.WithdrawRefund(ctx, now, state.ID); failed != nil {
			err = errors.Join(err, failed) // a later call gets the same refusal
		}
		return licensing.Order{}, providerFailed(err)
	case err != nil:
		return licensing.Order{}, lost(Object{Kind: ObjectPayment, ID: now.Payment}, err)
	}
	return r.finishRefund(ctx, now, state)
}

// finishRefund records the outcome of the open refund of an order, which the provider has not refused.
func (r *refunds) finishRefund(ctx context.Context, order licensing.Order, state State) (licensing.Order, error) {
	if state.Outcome == OutcomeDone {
		return r.recordRefund(ctx, order, state)
	}
	result, err := r.node.NotePendingRefund(ctx, order, state.ID)
	return result.Order(), stillDue(err)
}

// closedRefund returns an order whose given refund was open. If another call has recorded that the provider has
// refused the refund, closedRefund returns that error.
func (r *refunds) closedRefund(
	ctx context.Context, open licensing.Payment, order licensing.Order,
) (licensing.Order, error) {
	if order.RefundedAt.IsZero() {
		refund, err := r.node.ReadPayment(ctx, order.Owner, open)
		if err != nil {
			return licensing.Order{}, stillDue(err)
		}
		if refund == nil || refund.State != licensing.PaymentDone {
			return licensing.Order{}, providerFailed(ErrRefused)
		}
	}
	return order, nil
}

// refundWithoutProvider handles a due refund if the owner has no provider, or another provider than the order. If no
// provider has the money, it records the refund. If no provider was asked for the refund, and the order is not
// canceled, it withdraws the request. In other cases a sweep postpones the refund, and in test mode withdraws the
// request after goneAfter tries.
func (r *refunds) refundWithoutProvider(
	ctx context.Context, order licensing.Order, background bool,
) (licensing.Order, error) {
	if !order.RefundDue {
		return order, nil
	}
	if !order.AtProvider() {
		return r.recordRefund(ctx, order, State{})
	}
	withdraw := order.RefundRetryAt.IsZero() && order.CanceledAt.IsZero()
	if !withdraw && background {
		tried, err := r.node.PutOffRefund(ctx, order, true)
		if err != nil || !tried.RefundDue {
			return tried.Order(), stillDue(err)
		}
		order = tried.Order()
		withdraw = order.Owner.Mode == licensing.Test && order.RefundTries >= goneAfter
	}
	if withdraw {
		if _, err := r.node.WithdrawRefund(ctx, order, ""); err != nil {
			return licensing.Order{}, stillDue(err)
		}
	}
	return licensing.Order{}, licensing.ErrPaymentNotConfigured
}

// requestRefund asks the provider for the open refund of an order, unless no provider has the money of the order. It
// only looks at a refund that was made at the provider. If the provider has taken the refund, the outcome is done or
// pending. If the refund has failed, the error is ErrRefused, and the state has its id: a refund that the provider has
// refused to make has none.
func requestRefund(ctx context.Context, provider Provider, order licensing.Order) (State, error) {
	if !order.AtProvider() {
		return State{Outcome: OutcomeDone}, nil
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-recordTime))
		defer cancel()
	}
	span := startSpan(ctx, "refund")
	refund := order.Refund()
	var state State
	var err error
	if licensing.OwnRefund(refund.Reference) {
		state, err = provider.Refund(ctx, order, refund)
	} else {
		state, err = provider.Look(ctx, Object{Kind: ObjectRefund, ID: refund.Reference})
	}
	switch {
	case gone(&order, order.RefundTries, err):
		state, err = State{}, fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil:
		state = State{}
	case state.Outcome == OutcomeFailed:
		err = ErrRefused
	}
	endSpan(span, err)
	return state, err
}

// recordRefund stores that the provider has made the open refund of an order.
func (r *refunds) recordRefund(ctx context.Context, order licensing.Order, state State) (licensing.Order, error) {
	result, err := r.node.RecordRefund(ctx, order, service.MadeRefund{ProviderID: state.ID, At: state.At})
	return result.Order(), stillDue(err)
}

// stillDue returns the error for a failed step of a due refund. If the step was not executed, the error becomes
// ErrOutcomeUnknown: a later try will execute the step.
func stillDue(err error) error {
	if licensing.NotExecuted(err) {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, errors.New(err.Error()))
	}
	return err
}
