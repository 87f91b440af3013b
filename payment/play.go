package payment

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
)

// Play is something that a buyer, a bank or the sandbox does about an order of test mode.
type Play string

// The plays.
const (
	PlayPay      Play = "pay"       // the buyer pays, and the payment is complete at once
	PlayCancel   Play = "cancel"    // the buyer cancels the order
	PlayDecline  Play = "decline"   // the bank declines the payment; the buyer may try again
	PlayPayLater Play = "pay_later" // the buyer pays, and the money takes its time: the payment is pending
	PlayComplete Play = "complete"  // the pending payment arrives
	PlayFail     Play = "fail"      // the pending payment or refund fails
	// The buyer pays, and the sandbox reports the payment twice, or only after sandboxLate or PlayComplete.
	PlayCallbackTwice Play = "callback_twice"
	PlayCallbackLate  Play = "callback_late"
	// The bank of the buyer does not take the next refund back. The refund is pending at first, and fails with PlayFail
	// or after sandboxLate.
	PlayRefundFails Play = "refund_fails"
	// The unpaid invoice of the subscription is paid, or else the next one, now; the next invoice is due now, and its
	// payment fails; the subscription ends now.
	PlayInvoicePaid        Play = "invoice_paid"
	PlayInvoiceFailed      Play = "invoice_failed"
	PlayCancelSubscription Play = "cancel_subscription"
)

// PlayNames lists the names of all plays.
func PlayNames() []string {
	return []string{string(PlayPay), string(PlayCancel), string(PlayDecline), string(PlayPayLater),
		string(PlayComplete), string(PlayFail), string(PlayCallbackTwice), string(PlayCallbackLate),
		string(PlayRefundFails), string(PlayInvoicePaid), string(PlayInvoiceFailed), string(PlayCancelSubscription)}
}

// checkoutPlay is what a play makes of a new checkout.
type checkoutPlay struct {
	outcome   licensing.SandboxOutcome
	callbacks int           // how often the sandbox reports the outcome at once
	lasts     time.Duration // until the checkout ends
}

var checkoutPlays = map[Play]checkoutPlay{
	PlayDecline:       {licensing.SandboxFailed, 1, sandboxEnd},
	PlayPayLater:      {licensing.SandboxPending, 1, sandboxEnd},
	PlayCallbackTwice: {licensing.SandboxPaid, 2, sandboxEnd},
	PlayCallbackLate:  {licensing.SandboxLate, 0, sandboxLate},
}

var subscriptionPlays = map[Play]licensing.SubscriptionPlay{
	PlayInvoicePaid:        licensing.PlayInvoicePaid,
	PlayInvoiceFailed:      licensing.PlayInvoiceFailed,
	PlayCancelSubscription: licensing.PlayEndNow,
}

// Play plays something about an order in the sandbox, and returns the order after that. It refuses orders of live mode,
// and orders of other providers. Pay, Cancel and PlayComplete take effect whatever the order's state, as a provider's
// report does; the others begin a checkout of an unpaid order.
//
// Play stores what was played, and then reports it to the desk as a callback does. If the node dies in between, a sweep
// asks the sandbox.
func (d *Desk) Play(ctx context.Context, order licensing.Order, play Play) (licensing.Order, error) {
	if !d.InSandbox(order.Owner) {
		return licensing.Order{}, licensing.ErrNotInSandbox
	}
	switch play {
	case PlayPay:
		paid, _, err := d.Pay(ctx, order)
		return paid, err
	case PlayCancel:
		return d.Cancel(ctx, order)
	case PlayComplete:
		return d.plays.completeInSandbox(ctx, order, licensing.SandboxPaid)
	case PlayRefundFails:
		return d.plays.failNextRefund(ctx, order)
	case PlayFail:
		if order.RefundDue {
			return d.plays.failRefund(ctx, order)
		}
		return d.plays.completeInSandbox(ctx, order, licensing.SandboxFailed)
	}
	if about, known := subscriptionPlays[play]; known {
		return d.plays.playSubscription(ctx, order, about)
	}
	if begins, known := checkoutPlays[play]; known {
		return d.plays.beginInSandbox(ctx, order, begins)
	}
	return licensing.Order{}, errors.New("unknown play " + string(play))
}

// plays plays buyers and banks in the sandbox.
type plays struct {
	*backend
	refunds   *refunds
	callbacks *callbacks
}

// InSandbox reports whether the orders of an owner are paid in the sandbox.
func (p *plays) InSandbox(owner licensing.Owner) bool {
	return owner.Mode == licensing.Test && p.providerNamed(licensing.ProviderSandbox, owner) != nil
}

// Played returns what was played about an order. It asks the store only if something may have been played.
func (p *plays) Played(ctx context.Context, order licensing.Order) (licensing.SandboxOrder, error) {
	if order.Attempt == 0 || !p.InSandbox(order.Owner) {
		return licensing.SandboxOrder{}, nil
	}
	_, played, err := p.node.Sandbox(ctx, order.OrderNo)
	return played, err
}

// Plays returns what can be played about an order besides Pay and Cancel.
func (p *plays) Plays(order licensing.Order) []Play {
	switch {
	case !p.InSandbox(order.Owner) || order.Provider == licensing.ProviderOutside:
		return nil
	case order.CheckoutOpen() && order.Checkout != "":
		return []Play{PlayComplete, PlayFail}
	case order.Status(p.node.Now()) == licensing.OrderUnpaid:
		return []Play{PlayDecline, PlayPayLater, PlayCallbackTwice, PlayCallbackLate}
	case order.CheckRefundable(p.node.Now()) == nil:
		var offered []Play
		if order.Renews() {
			offered = []Play{PlayInvoicePaid, PlayInvoiceFailed, PlayCancelSubscription}
		}
		if len(order.OpenReturns()) == 0 {
			offered = append(offered, PlayRefundFails)
		}
		return offered
	case order.RefundDue && order.CanceledAt.IsZero():
		return []Play{PlayFail}
	}
	return nil
}

// beginInSandbox begins a checkout of an unpaid order, and plays it.
func (p *plays) beginInSandbox(
	ctx context.Context, order licensing.Order, play checkoutPlay,
) (licensing.Order, error) {
	if order.Provider == licensing.ProviderOutside {
		return licensing.Order{}, licensing.ErrPaidOutside
	}
	if err := order.CheckPayable(p.node.Now()); err != nil {
		return licensing.Order{}, err
	}
	if err := p.node.RefuseLicenses(ctx, &order); err != nil {
		return licensing.Order{}, err
	}
	if !order.CheckoutOpen() {
		var err error
		order, err = p.node.ChangeCheckout(ctx, order,
			licensing.StartCheckout{Provider: licensing.ProviderSandbox, After: order.Attempt})
		if err != nil {
			return licensing.Order{}, err
		}
	}
	if err := order.CheckPayable(p.node.Now()); err != nil {
		return licensing.Order{}, err
	}
	if order.Checkout != "" {
		return licensing.Order{}, licensing.ErrPaymentPending
	}
	_, err := p.node.PlayInSandbox(ctx, order, licensing.PlayCheckout{Attempt: order.Attempt, Outcome: play.outcome})
	if err != nil {
		return licensing.Order{}, err
	}
	checkout := checkoutInSandbox(&order)
	order, err = p.node.ChangeCheckout(ctx, order, licensing.NoteCheckout{
		Attempt: order.Attempt, Checkout: checkout.ID, EndsAt: p.node.Now().Add(play.lasts),
	})
	if err != nil {
		return licensing.Order{}, err
	}
	return p.callBack(ctx, order, checkout, play.callbacks)
}

// completeInSandbox plays the end of the pending payment of an order.
func (p *plays) completeInSandbox(
	ctx context.Context, order licensing.Order, outcome licensing.SandboxOutcome,
) (licensing.Order, error) {
	if !order.CheckoutOpen() || order.Checkout == "" {
		return licensing.Order{}, licensing.ErrNothingPending
	}
	_, err := p.node.PlayInSandbox(ctx, order, licensing.PlayCheckout{Attempt: order.Attempt, Outcome: outcome})
	if err != nil {
		return licensing.Order{}, err
	}
	return p.callBack(ctx, order, checkoutInSandbox(&order), 1)
}

// callBack reports an object of the sandbox to the desk so many times, and returns the order after that.
func (p *plays) callBack(
	ctx context.Context, order licensing.Order, object Object, times int,
) (licensing.Order, error) {
	for range times {
		if err := p.callbacks.Called(ctx, order.Owner, object); err != nil {
			return licensing.Order{}, err
		}
	}
	return p.node.Order(ctx, order.Owner, order.OrderNo)
}

// failNextRefund makes the next refund of a paid order fail. It refuses that while any refund of the order is open: the
// sandbox knows one refund that fails.
func (p *plays) failNextRefund(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	if err := order.CheckRefundable(p.node.Now()); err != nil {
		return licensing.Order{}, err
	}
	if len(order.OpenReturns()) > 0 {
		return licensing.Order{}, licensing.ErrRefundUnderWay
	}
	_, err := p.node.PlayInSandbox(ctx, order, licensing.FailNextRefund{})
	return order, err
}

// failRefund makes the pending refund of an order fail at once, and asks the sandbox about the refund.
func (p *plays) failRefund(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	number := order.Refund().Reference
	played, err := p.node.PlayInSandbox(ctx, order, licensing.PlayRefund{Number: number, Ends: p.node.Now()})
	switch {
	case err != nil:
		return licensing.Order{}, err
	case played.RefundNo != number:
		return licensing.Order{}, licensing.ErrNothingPending
	}
	now, err := p.refunds.sendRefund(ctx, order, false)
	if licensing.ReasonOf(err) == licensing.ReasonProviderFailed { // as it was played
		return p.node.Order(ctx, order.Owner, order.OrderNo)
	}
	return now, err
}

// playSubscription plays something about the subscription of an order, and reports the subscription to the desk.
func (p *plays) playSubscription(
	ctx context.Context, order licensing.Order, play licensing.SubscriptionPlay,
) (licensing.Order, error) {
	if !order.Subscribed() {
		return licensing.Order{}, licensing.ErrNoSubscription
	}
	err := Sandbox{Node: p.node}.playSubscription(ctx, order, licensing.PlaySubscription{Play: play})
	if err != nil {
		return licensing.Order{}, err
	}
	return p.callBack(ctx, order, subscriptionInSandbox(order.OrderNo), 1)
}
