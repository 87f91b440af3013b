package payment

import (
	"context"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// Sandbox is the provider of test mode. Pay succeeds at once, and no money moves. All other outcomes are played: see
// [Desk.Play]. What was played is stored with the orders, so that all nodes see it.
type Sandbox struct {
	// Node reads what was played. It must be set before the first checkout is played. Nil: nothing was played.
	Node *service.Service
}

// sandboxID begins the ids of the sandbox's payments, which continue with the number of the order, and of its
// checkouts, which also have a hyphen and the number of the attempt.
const sandboxID = "sandbox_"

func checkoutInSandbox(order *licensing.Order) Object {
	return Object{Kind: ObjectCheckout, ID: sandboxID + order.OrderNo + "-" + strconv.Itoa(order.Attempt)}
}

// When a checkout in the sandbox ends, from its beginning.
const (
	// sandboxEnd is when a pending payment fails by itself, so that no sweep asks about it forever.
	sandboxEnd = 24 * time.Hour
	// sandboxLate is when the sandbox says by itself that the buyer has paid, if the callback comes late, and that a
	// refund has failed.
	sandboxLate = 30 * time.Second
)

// Name implements Provider.
func (Sandbox) Name() licensing.PaymentProvider { return licensing.ProviderSandbox }

// Accepts accepts every order.
func (Sandbox) Accepts(licensing.Order) error { return nil }

// AcceptsRefund accepts every refund.
func (Sandbox) AcceptsRefund(licensing.Payment) error { return nil }

// SuspendOnDispute is false: payments of the sandbox have no disputes.
func (Sandbox) SuspendOnDispute() bool { return false }

// Begin completes the payment at once.
func (Sandbox) Begin(_ context.Context, order licensing.Order) (Step, error) {
	step := Step{Payment: sandboxID + order.OrderNo}
	if !order.Interval.IsZero() {
		step.Subscription = subscriptionInSandbox(order.OrderNo).ID
	}
	return step, nil
}

// Look returns what was played in a checkout, or what has become of a subscription or an invoice.
func (s Sandbox) Look(ctx context.Context, object Object) (State, error) {
	orderNo, rest, found := strings.Cut(strings.TrimPrefix(object.ID, sandboxID), "-")
	if s.Node == nil || !found {
		return State{}, ErrUnknownObject
	}
	order, played, err := s.Node.Sandbox(ctx, orderNo)
	switch {
	case licensing.ReasonOf(err) == licensing.ReasonOrderNotFound:
		return State{}, ErrUnknownObject
	case err != nil:
		return State{}, err
	case object.Kind == ObjectInvoice, object.Kind == ObjectSubscription:
		return lookAtSubscription(object, rest, order, played.Subscription, s.Node.Now())
	case object.Kind == ObjectCheckout && played.Attempt > 0:
		return s.lookAtCheckout(object, rest, order, played), nil
	}
	return State{}, ErrUnknownObject
}

// lookAtCheckout returns what was played in the checkout of an attempt.
func (s Sandbox) lookAtCheckout(
	object Object, attempt string, order licensing.Order, played licensing.SandboxOrder,
) State {
	state := State{Object: object, OrderNo: order.OrderNo, Outcome: OutcomeEnded, Amount: order.Amount,
		Currency: order.Currency, At: played.PaidAt, EndsAt: order.CheckoutEnds}
	if attempt == strconv.Itoa(played.Attempt) {
		state.Outcome = outcomeInSandbox(played.Outcome, !order.CheckoutEnds.After(s.Node.Now()))
	}
	if state.Outcome == OutcomeDone {
		state.Payment = sandboxID + order.OrderNo
		if !order.Interval.IsZero() {
			state.Subscription = subscriptionInSandbox(order.OrderNo).ID
			state.PeriodEnd = order.Interval.AddTo(state.At)
		}
	}
	return state
}

// outcomeInSandbox returns the outcome of a checkout, which may have ended.
func outcomeInSandbox(played licensing.SandboxOutcome, ended bool) Outcome {
	switch {
	case played == licensing.SandboxPaid, played == licensing.SandboxLate && ended:
		return OutcomeDone
	case played == licensing.SandboxFailed, ended:
		return OutcomeFailed
	}
	return OutcomePending
}

// End is a no-op: a pending payment can't be stopped.
func (Sandbox) End(context.Context, licensing.Order) error { return nil }

// Refund completes the refund at once, unless PlayRefundFails was played before. It moves no money.
func (s Sandbox) Refund(ctx context.Context, order licensing.Order, refund licensing.Payment) (State, error) {
	outcome, err := s.refundOutcome(ctx, order, refund.Reference)
	return State{
		Object: Object{Kind: ObjectRefund, ID: sandboxID + refund.Reference}, OrderNo: order.OrderNo,
		Refund: refund.Reference, Payment: order.Payment, Outcome: outcome, Amount: refund.Amount,
		Currency: refund.Currency,
	}, err
}

// refundOutcome returns the outcome of a refund with one of the service's numbers. A refund is pending before it fails.
func (s Sandbox) refundOutcome(ctx context.Context, order licensing.Order, number string) (Outcome, error) {
	if s.Node == nil {
		return OutcomeDone, nil
	}
	_, played, err := s.Node.Sandbox(ctx, order.OrderNo)
	if err == nil && played.RefundFails {
		played, err = s.Node.PlayInSandbox(ctx, order,
			licensing.PlayRefund{Number: number, Ends: s.Node.Now().Add(sandboxLate)})
	}
	switch {
	case err != nil:
		return "", err
	case played.RefundNo != number:
		return OutcomeDone, nil
	case played.RefundEnds.After(s.Node.Now()):
		return OutcomePending, nil
	}
	return OutcomeFailed, nil
}

// Events returns none: nothing is refunded or disputed at the sandbox, and no callback is lost for good.
func (Sandbox) Events(context.Context, time.Time, string) (EventPage, error) { return EventPage{}, nil }

// Portal refuses: the buyers of the sandbox have no cards.
func (Sandbox) Portal(context.Context, licensing.Order) (string, error) { return "", ErrRefused }

// Signed is false: the sandbox sends no callbacks.
func (Sandbox) Signed(string) bool { return false }

// Callback refuses every callback.
func (Sandbox) Callback(string, []byte) (Object, error) { return Object{}, ErrSignature }
