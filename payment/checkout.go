package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/internal/fair"
	"licet/licensing"
)

// maxAttempts bounds the attempts to make a checkout that one request of a buyer begins.
const maxAttempts = 3

// errNoCheckout means that the provider has made no checkout in maxAttempts attempts.
var errNoCheckout = errors.New("the payment provider has made no checkout")

// checkouts lets customers pay orders at providers, and records the payments.
type checkouts struct {
	*backend
	refunds *refunds
	returns *returns
	checks  *fair.Places[string] // the turns of callers of Check, by the number of the order
}

// checkout returns the URL of the provider where the customer pays an unpaid order. The URL is empty if the order can't
// be paid any more, or if a payment is under way or complete.
//
// Each attempt has at most one checkout at the provider, and the next attempt begins only after the checkout is over.
// So a customer who presses Pay twice, on two nodes, does not get two checkouts that both take money.
func (c *checkouts) checkout(
	ctx context.Context, provider Provider, order licensing.Order,
) (licensing.Order, string, error) {
	for attempts := 0; ; {
		if order.Status(c.node.Now()) != licensing.OrderUnpaid {
			return order, "", c.endCheckout(ctx, provider, order)
		}
		if !order.CheckoutOpen() || order.Provider != provider.Name() {
			if attempts++; attempts > maxAttempts {
				return licensing.Order{}, "", providerFailed(errNoCheckout)
			}
			var err error
			if order, err = c.startCheckout(ctx, provider, order); err != nil {
				return licensing.Order{}, "", err
			}
			continue
		}
		var redirect string
		var over bool
		var err error
		if order.Checkout == "" {
			order, redirect, over, err = c.beginCheckout(ctx, provider, order)
		} else {
			order, redirect, over, err = c.lookAtCheckout(ctx, provider, order)
		}
		if err != nil || !over {
			return order, redirect, err
		}
	}
}

// startCheckout begins the next attempt to pay an order.
func (c *checkouts) startCheckout(
	ctx context.Context, provider Provider, order licensing.Order,
) (licensing.Order, error) {
	return c.node.ChangeCheckout(ctx, order,
		licensing.StartCheckout{Provider: provider.Name(), After: order.Attempt})
}

// beginCheckout asks the provider for the checkout of the order's attempt. over reports that the order has changed, or
// that the attempt has no checkout in which the customer can pay.
func (c *checkouts) beginCheckout(
	ctx context.Context, provider Provider, order licensing.Order,
) (now licensing.Order, redirect string, over bool, err error) {
	span := startSpan(ctx, operationBegin)
	step, err := provider.Begin(ctx, order)
	endSpan(span, err)
	switch {
	case errors.Is(err, ErrAttemptSpent):
		now, err = c.node.ChangeCheckout(ctx, order, licensing.NoteAnswer{Attempt: order.Attempt, Over: true})
		return now, "", true, err
	case err != nil:
		return licensing.Order{}, "", false, providerFailed(err)
	case step.Payment != "":
		now, err = c.Confirm(ctx, order, licensing.Payment{
			Provider: provider.Name(), Reference: step.Payment, Subscription: step.Subscription,
		})
		return now, "", false, err
	}
	now, err = c.node.ChangeCheckout(ctx, order,
		licensing.NoteCheckout{Attempt: order.Attempt, Checkout: step.Checkout, EndsAt: step.EndsAt})
	over = now.Checkout != step.Checkout || step.Redirect == "" || now.Status(c.node.Now()) != licensing.OrderUnpaid
	return now, step.Redirect, over, err
}

// lookAtCheckout asks the provider about the open checkout of the order, and records the answer. over reports that
// the customer can't pay in this checkout any more, and has not paid.
func (c *checkouts) lookAtCheckout(
	ctx context.Context, provider Provider, order licensing.Order,
) (now licensing.Order, redirect string, over bool, err error) {
	state, err := c.checkoutState(ctx, provider, order)
	switch {
	case err != nil:
		return licensing.Order{}, "", false, err
	case state.Outcome == OutcomeOpen:
		return order, state.URL, false, nil
	}
	now, err = c.record(ctx, provider, order, state)
	return now, "", state.Outcome != OutcomePending && now.PaidAt.IsZero(), err
}

// checkoutState asks the provider about the checkout of the order.
func (c *checkouts) checkoutState(ctx context.Context, provider Provider, order licensing.Order) (State, error) {
	object := Object{Kind: ObjectCheckout, ID: order.Checkout}
	state, err := c.look(ctx, provider, object)
	switch {
	case gone(&order, order.AskFailures, err):
		return State{Object: object, Outcome: OutcomeEnded}, nil
	case err != nil:
		return State{}, lost(object, err)
	}
	return state, nil
}

// record stores what the provider says about a checkout or a payment of an order. Only an answer about the latest
// attempt's checkout says whether this checkout is over: a payment may belong to an earlier attempt.
func (c *checkouts) record(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	if state.Outcome == OutcomeDone {
		var err error
		if problem := fits(order, state); problem != nil {
			err = c.node.RecordUnmatched(ctx, order, licensing.Payment{
				Provider: provider.Name(), Reference: state.Payment, Amount: state.Amount, Currency: state.Currency,
				PaidAt: state.At,
			}, problem)
		} else {
			order, err = c.recordPaid(ctx, provider, order, state)
		}
		if err != nil {
			return licensing.Order{}, err
		}
	}
	if state.Kind != ObjectCheckout || state.ID != order.Checkout || !order.CheckoutOpen() {
		return order, nil
	}
	if state.Outcome == OutcomeFailed { // the buyer could still pay the first invoice of the subscription
		if err := endBegun(ctx, provider, order, state); err != nil {
			return licensing.Order{}, err
		}
	}
	over := state.Outcome != OutcomeOpen && state.Outcome != OutcomePending
	return c.node.ChangeCheckout(ctx, order, licensing.NoteAnswer{Attempt: order.Attempt, Over: over})
}

// recordPaid stores a payment that fits its order. If the payment has a record without the fee, recordPaid stores the
// fee.
func (c *checkouts) recordPaid(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	order, err := c.Confirm(ctx, order, licensing.Payment{
		Provider: provider.Name(), Reference: state.Payment, PaidAt: state.At, Fee: state.Fee,
		Subscription: state.Subscription, PeriodEnd: state.PeriodEnd,
	})
	if err == nil && isSecond(provider, &order, state) {
		order, err = c.returns.recordSecond(ctx, provider, order, state)
	}
	if err == nil {
		err = c.recordFee(ctx, provider, order, state.Payment, state.Fee)
	}
	return order, err
}

// fits returns an error if a payment at the provider is not the payment that the order asks for.
func fits(order licensing.Order, state State) error {
	switch {
	case state.OrderNo != order.OrderNo:
		return fmt.Errorf("the payment is of the order %q", state.OrderNo)
	case state.Live != (order.Owner.Mode == licensing.Live):
		return fmt.Errorf("the payment is live: %t, but the order is of mode %s", state.Live, order.Owner.Mode)
	case state.Amount != order.Amount || state.Currency != order.Currency:
		return fmt.Errorf("the payment is of %d %s, but the order of %d %s", state.Amount, state.Currency,
			order.Amount, order.Currency)
	case state.Payment == "":
		return errors.New("the payment has no reference")
	}
	return nil
}

// endCheckout ends the open checkout of an order that can't be paid any more. If a payment was faster, it is recorded:
// the payment of a canceled order is refunded.
func (c *checkouts) endCheckout(ctx context.Context, provider Provider, order licensing.Order) error {
	if !order.CheckoutOpen() || order.Checkout == "" {
		return nil
	}
	span := startSpan(ctx, operationEnd)
	err := provider.End(ctx, order)
	endSpan(span, err)
	if err != nil {
		return providerFailed(err)
	}
	_, _, _, err = c.lookAtCheckout(ctx, provider, order)
	return err
}

// Check asks the provider what has become of the open checkout of an order, such as when the customer comes back from
// there, and records the answer. It returns the order as it is then, and whether a payment is on its way. If another
// call asks about the same order, or if the provider does not answer, Check returns the order as it was: a callback or
// a sweep brings the answer.
func (c *checkouts) Check(ctx context.Context, order licensing.Order) (now licensing.Order, pending bool) {
	provider := c.checkoutProvider(order)
	if provider == nil || !order.CheckoutOpen() || order.Checkout == "" || !c.checks.TryEnter(order.OrderNo) {
		return order, false
	}
	defer c.checks.Leave(order.OrderNo)
	now, redirect, over, err := c.lookAtCheckout(ctx, provider, order)
	if err != nil {
		return order, false
	}
	return now, redirect == "" && !over && now.PaidAt.IsZero()
}

// Confirm marks an order as paid when the provider reports the payment. The provider and its reference of the payment
// must be set. Repeated reports pay the order once. Confirm refunds a payment for a canceled order before it returns.
// If that fails, the order keeps the refund as due, and the provider's next report or a pass of SendRefundsDue tries
// again.
func (c *checkouts) Confirm(
	ctx context.Context, order licensing.Order, payment licensing.Payment,
) (licensing.Order, error) {
	result, err := c.node.PayOrder(ctx, order, payment)
	if err != nil || !result.RefundDue {
		return result.Order(), err
	}
	return c.refunds.sendRefund(ctx, result.Order(), false)
}

// askDue asks the provider about the open checkout of an order, as it was read before.
func (c *checkouts) askDue(ctx context.Context, order licensing.Order) (err error) {
	if !order.CheckoutOpen() {
		return nil
	}
	provider := c.checkoutProvider(order)
	note := licensing.NoteAnswer{Attempt: order.Attempt}
	switch {
	case order.Checkout == "" && order.Status(c.node.Now()) == licensing.OrderUnpaid:
		// A node has died after it began the attempt. The customer has not seen the URL of a checkout: at the next
		// press of Pay, the provider is asked under the same number.
	case order.Checkout == "":
		note.Over = true
	case provider == nil:
		if note.Over, err = c.moved(ctx, order); err != nil || !note.Over {
			return err
		}
	case order.Status(c.node.Now()) != licensing.OrderUnpaid:
		if err := c.endCheckout(ctx, provider, order); err != nil {
			return err
		}
		if order, err = c.node.Order(ctx, order.Owner, order.OrderNo); err != nil || !order.CheckoutOpen() {
			return err
		}
	default:
		state, err := c.checkoutState(ctx, provider, order)
		if err != nil {
			return err
		}
		_, err = c.record(ctx, provider, order, state)
		return err
	}
	_, err = c.node.ChangeCheckout(ctx, order, note)
	return err
}
