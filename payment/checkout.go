package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
)

// maxAttempts bounds the attempts to make a checkout that one request of a buyer begins.
const maxAttempts = 3

// errNoCheckout means that the provider has made no checkout in maxAttempts attempts.
var errNoCheckout = errors.New("the payment provider has made no checkout")

// checkout returns the URL of the provider where the customer pays an unpaid order. The URL is empty if the order can't
// be paid any more, or if a payment is under way or complete.
//
// Each attempt has at most one checkout at the provider, and the next attempt begins only after the checkout is over.
// So a customer who presses Pay twice, on two nodes, does not get two checkouts that both take money.
func (d *Desk) checkout(
	ctx context.Context, provider Provider, order licensing.Order,
) (licensing.Order, string, error) {
	for attempts := 0; ; {
		if order.Status(d.node.Now()) != licensing.OrderUnpaid {
			return order, "", d.endCheckout(ctx, provider, order)
		}
		if !order.CheckoutOpen() || order.Provider != provider.Name() {
			if attempts++; attempts > maxAttempts {
				return licensing.Order{}, "", providerFailed(errNoCheckout)
			}
			var err error
			if order, err = d.startCheckout(ctx, provider, order); err != nil {
				return licensing.Order{}, "", err
			}
			continue
		}
		var redirect string
		var over bool
		var err error
		if order.Checkout == "" {
			order, redirect, over, err = d.beginCheckout(ctx, provider, order)
		} else {
			order, redirect, over, err = d.lookAtCheckout(ctx, provider, order)
		}
		if err != nil || !over {
			return order, redirect, err
		}
	}
}

// startCheckout begins the next attempt to pay an order.
func (d *Desk) startCheckout(ctx context.Context, provider Provider, order licensing.Order) (licensing.Order, error) {
	return d.node.ChangeCheckout(ctx, order,
		licensing.StartCheckout{Provider: provider.Name(), After: order.Attempt})
}

// beginCheckout asks the provider for the checkout of the order's attempt. over reports that the order has changed, or
// that the attempt has no checkout in which the customer can pay.
func (d *Desk) beginCheckout(
	ctx context.Context, provider Provider, order licensing.Order,
) (now licensing.Order, redirect string, over bool, err error) {
	span := startSpan(ctx, operationBegin)
	step, err := provider.Begin(ctx, order)
	endSpan(span, err)
	switch {
	case errors.Is(err, ErrAttemptSpent):
		now, err = d.node.ChangeCheckout(ctx, order, licensing.NoteAnswer{Attempt: order.Attempt, Over: true})
		return now, "", true, err
	case err != nil:
		return licensing.Order{}, "", false, providerFailed(err)
	case step.Payment != "":
		now, err = d.Confirm(ctx, order, licensing.Payment{
			Provider: provider.Name(), Reference: step.Payment, Subscription: step.Subscription,
		})
		return now, "", false, err
	}
	now, err = d.node.ChangeCheckout(ctx, order,
		licensing.NoteCheckout{Attempt: order.Attempt, Checkout: step.Checkout, EndsAt: step.EndsAt})
	over = now.Checkout != step.Checkout || step.Redirect == "" || now.Status(d.node.Now()) != licensing.OrderUnpaid
	return now, step.Redirect, over, err
}

// lookAtCheckout asks the provider about the open checkout of the order, and records the answer. over reports that
// the customer can't pay in this checkout any more, and has not paid.
func (d *Desk) lookAtCheckout(
	ctx context.Context, provider Provider, order licensing.Order,
) (now licensing.Order, redirect string, over bool, err error) {
	state, err := d.checkoutState(ctx, provider, order)
	switch {
	case err != nil:
		return licensing.Order{}, "", false, err
	case state.Outcome == OutcomeOpen:
		return order, state.URL, false, nil
	}
	now, err = d.record(ctx, provider, order, state)
	return now, "", state.Outcome != OutcomePending && now.PaidAt.IsZero(), err
}

// checkoutState asks the provider about the checkout of the order.
func (d *Desk) checkoutState(ctx context.Context, provider Provider, order licensing.Order) (State, error) {
	object := Object{Kind: ObjectCheckout, ID: order.Checkout}
	state, err := d.look(ctx, provider, object)
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
func (d *Desk) record(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	if state.Outcome == OutcomeDone {
		var err error
		if problem := fits(order, state); problem != nil {
			err = d.node.RecordUnmatched(ctx, order, licensing.Payment{
				Provider: provider.Name(), Reference: state.Payment, Amount: state.Amount, Currency: state.Currency,
				PaidAt: state.At,
			}, problem)
		} else if order, err = d.Confirm(ctx, order, licensing.Payment{
			Provider: provider.Name(), Reference: state.Payment, PaidAt: state.At, Fee: state.Fee,
			Subscription: state.Subscription, PeriodEnd: state.PeriodEnd,
		}); err == nil && isSecond(provider, &order, state) {
			order, err = d.recordSecond(ctx, provider, order, state)
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
	return d.node.ChangeCheckout(ctx, order, licensing.NoteAnswer{Attempt: order.Attempt, Over: over})
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
func (d *Desk) endCheckout(ctx context.Context, provider Provider, order licensing.Order) error {
	if !order.CheckoutOpen() || order.Checkout == "" {
		return nil
	}
	span := startSpan(ctx, operationEnd)
	err := provider.End(ctx, order)
	endSpan(span, err)
	if err != nil {
		return providerFailed(err)
	}
	_, _, _, err = d.lookAtCheckout(ctx, provider, order)
	return err
}

// Check asks the provider what has become of the open checkout of an order, such as when the customer comes back from
// there, and records the answer. It returns the order as it is then, and whether a payment is on its way. If another
// call asks about the same order, or if the provider does not answer, Check returns the order as it was: a callback or
// a sweep brings the answer.
func (d *Desk) Check(ctx context.Context, order licensing.Order) (now licensing.Order, pending bool) {
	provider := d.checkoutProvider(order)
	if provider == nil || !order.CheckoutOpen() || order.Checkout == "" || !d.checks.TryEnter(order.OrderNo) {
		return order, false
	}
	defer d.checks.Leave(order.OrderNo)
	now, redirect, over, err := d.lookAtCheckout(ctx, provider, order)
	if err != nil {
		return order, false
	}
	return now, redirect == "" && !over && now.PaidAt.IsZero()
}

// checkoutProvider returns the provider that has the checkout of an order; nil if the owner has that provider no more.
// An order that was paid outside meanwhile does not name the provider of its checkout.
func (d *Desk) checkoutProvider(order licensing.Order) Provider {
	provider := d.providers.Of(order.Owner)
	if provider == nil || order.Provider != provider.Name() && order.Provider != licensing.ProviderOutside {
		return nil
	}
	return provider
}

// AskCheckoutsDue asks the provider about all checkouts about which a sweep must ask by now. It is a sweep for
// service.Sweeps. Any number of nodes may run it.
func (d *Desk) AskCheckoutsDue(ctx context.Context) error {
	return d.node.EachCheckoutDue(ctx, d.askCheckout)
}

// askCheckout asks the provider about the checkout or the subscription of an order, and about its open disputes if that
// is due. It reads the order again: only the number and the owner of order count.
//
// askCheckout puts off a question that fails. Otherwise the question would stay the next work of the order, and no
// sweep would find the order's refunds.
func (d *Desk) askCheckout(ctx context.Context, order licensing.Order) error {
	order, err := d.node.Order(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return err
	}
	asked, err := d.askDisputesDue(ctx, order)
	if err != nil || asked && order.AskAt.After(d.node.Now()) {
		return err
	}
	if err = d.askDue(ctx, order); err != nil {
		_, failed := d.node.ChangeCheckout(ctx, order, licensing.PutOffAsk{Asked: order.AskAt})
		err = errors.Join(err, failed)
	}
	return err
}

// askDue asks the provider about the checkout or the subscription of an order, as it was read before.
func (d *Desk) askDue(ctx context.Context, order licensing.Order) (err error) {
	switch {
	case order.Subscribed():
		return d.askSubscriptionDue(ctx, order)
	case !order.CheckoutOpen():
		return nil
	}
	provider := d.checkoutProvider(order)
	note := licensing.NoteAnswer{Attempt: order.Attempt}
	switch {
	case provider == nil:
		// The operator may set the provider up again; until then the service can't ask the provider.
	case order.Checkout == "" && order.Status(d.node.Now()) == licensing.OrderUnpaid:
		// A node has died after it began the attempt. The customer has not seen the URL of a checkout: at the next
		// press of Pay, the provider is asked under the same number.
	case order.Checkout == "":
		note.Over = true
	case order.Status(d.node.Now()) != licensing.OrderUnpaid:
		if err := d.endCheckout(ctx, provider, order); err != nil {
			return err
		}
		if order, err = d.node.Order(ctx, order.Owner, order.OrderNo); err != nil || !order.CheckoutOpen() {
			return err
		}
	default:
		state, err := d.checkoutState(ctx, provider, order)
		if err != nil {
			return err
		}
		_, err = d.record(ctx, provider, order, state)
		return err
	}
	_, err = d.node.ChangeCheckout(ctx, order, note)
	return err
}

// look asks the provider about an object.
func (d *Desk) look(ctx context.Context, provider Provider, object Object) (State, error) {
	span := startSpan(ctx, operationLook)
	state, err := provider.Look(ctx, object)
	endSpan(span, err)
	return state, err
}
