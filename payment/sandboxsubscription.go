package payment

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
)

// What the ids of a subscription and of its invoices have behind the number of the order.
const (
	sandboxSubscription = "sub"
	sandboxInvoice      = "i" // and the number of the invoice
)

// subscriptionInSandbox names the subscription of an order.
func subscriptionInSandbox(orderNo string) Object {
	return Object{Kind: ObjectSubscription, ID: sandboxID + orderNo + "-" + sandboxSubscription}
}

// lookAtSubscription returns the state of a subscription, or of one of its invoices. rest is what the id has behind the
// number of the order.
func lookAtSubscription(
	object Object, rest string, order licensing.Order, played licensing.SandboxSubscription, now time.Time,
) (State, error) {
	if order.PaidAt.IsZero() || order.Interval.IsZero() {
		return State{}, ErrUnknownObject
	}
	view := played.View(&order, now)
	state := State{Object: object, OrderNo: order.OrderNo, Amount: cmp.Or(played.Amount, order.Amount),
		Currency: order.Currency, Subscription: subscriptionInSandbox(order.OrderNo).ID}
	if object.Kind == ObjectSubscription {
		state.PeriodEnd, state.CancelAt = view.PeriodEnd, view.CancelAt
		state.Changed, state.ChangedFrom = played.Changed, played.ChangedFrom
		state.Outcome = map[licensing.SandboxSubscriptionStatus]Outcome{licensing.SandboxActive: OutcomeDone,
			licensing.SandboxPastDue: OutcomeFailed, licensing.SandboxEnded: OutcomeEnded}[view.Status]
		return state, nil
	}
	digits, is := strings.CutPrefix(rest, sandboxInvoice)
	invoice, err := strconv.Atoi(digits)
	if !is || err != nil || invoice < 1 || invoice > view.Paid && invoice != played.Unpaid {
		return State{}, ErrUnknownObject
	}
	state.Payment, state.PeriodEnd, state.Outcome = object.ID, order.SandboxPeriodEnd(invoice), OutcomeDone
	state.PeriodStart = order.SandboxPeriodEnd(invoice - 1)
	if state.PeriodStart.Before(now) {
		state.At = state.PeriodStart
	}
	if invoice == played.Unpaid {
		state.Outcome = OutcomeFailed
	}
	return state, nil
}

// Invoices implements Provider.
func (s Sandbox) Invoices(ctx context.Context, order licensing.Order) (ids []string, err error) {
	if s.Node == nil {
		return nil, nil
	}
	order, played, err := s.Node.Sandbox(ctx, order.OrderNo)
	if err != nil || order.PaidAt.IsZero() || order.Interval.IsZero() {
		return nil, err
	}
	for n := played.Subscription.View(&order, s.Node.Now()).Paid; n > 0; n-- {
		ids = append(ids, sandboxID+order.OrderNo+"-"+sandboxInvoice+strconv.Itoa(n))
	}
	return ids, nil
}

// Change implements Provider. There are no prorations: another amount is that of the next invoices.
func (s Sandbox) Change(ctx context.Context, order licensing.Order, change Change) (State, error) {
	if s.Node == nil {
		return State{}, ErrRefused
	}
	play := licensing.PlaySubscription{Play: licensing.PlayAmount, Amount: change.Amount, Once: change.Once,
		Later: !change.Prorate}
	switch {
	case change.End == EndNow:
		play.Play = licensing.PlayEndNow
	case change.End == EndOfPeriod:
		play.Play = licensing.PlayEndOfPeriod
	case change.Resume:
		play.Play = licensing.PlayResume
	}
	if err := s.playSubscription(ctx, order, play); err != nil {
		if licensing.ReasonOf(err) == licensing.ReasonInvalidOrderState {
			err = ErrRefused
		}
		return State{}, err
	}
	return s.Look(ctx, subscriptionInSandbox(order.OrderNo))
}

// playSubscription plays something about the subscription of an order.
func (s Sandbox) playSubscription(
	ctx context.Context, order licensing.Order, play licensing.PlaySubscription,
) (err error) {
	if play.Order, _, err = s.Node.Sandbox(ctx, order.OrderNo); err != nil {
		return err
	}
	if play.Order.PaidAt.IsZero() || play.Order.Interval.IsZero() {
		return licensing.ErrNoSubscription
	}
	_, err = s.Node.PlayInSandbox(ctx, order, play)
	return err
}
