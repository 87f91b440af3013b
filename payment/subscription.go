package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"licet/licensing"
)

// maxQuestions bounds how often one call asks about a subscription whose order others change meanwhile.
const maxQuestions = 10

// errRivals means that other requests changed the record of a subscription between each question to the provider and
// the provider's answer.
var errRivals = errors.New("other requests keep changing the subscription: try again")

// errSubscriptionEnds is the refusal of a change of a subscription that has ended meanwhile.
var errSubscriptionEnds = errors.New("the subscription has ended, or is being ended")

// subscriptions records what providers say about subscriptions, and changes subscriptions at the shop's request.
type subscriptions struct {
	*backend
	checkouts *checkouts
	invoices  *invoices
}

// recordSubscription stores what the provider says about an invoice or about a subscription of an order.
func (s *subscriptions) recordSubscription(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (now licensing.Order, err error) {
	switch {
	case order.Interval.IsZero() || order.Subscribed() && state.Subscription != order.Subscription:
		// Of another subscription, which only names the order. Its first payment may be a second payment of the order.
		return order, s.recordFee(ctx, provider, order, state.Payment, state.Fee)
	case state.Kind == ObjectInvoice && state.Outcome == OutcomeDone:
		if order.Change.Later { // the provider may have made the change for the period of the invoice
			if _, err := s.askSubscription(ctx, provider, order); err != nil {
				return order, err
			}
		}
		if order.PaidAt.IsZero() {
			if order, err = s.recordFirst(ctx, provider, order, state); err != nil || order.PaidAt.IsZero() {
				return order, err
			}
		}
		if err := s.invoices.recordInvoice(ctx, provider, order, state); err != nil {
			return order, err
		}
		// A renewal. Callbacks about invoices before it may be lost, also those of changes in the provider's dashboard.
		if order.Subscribed() && state.PeriodEnd.After(order.PaidEnd) {
			if err := s.invoices.findInvoices(ctx, provider, order); err != nil {
				return order, err
			}
		}
	}
	if !order.Subscribed() {
		return order, nil // the payment of the order will bring the subscription
	}
	_, err = s.askSubscription(ctx, provider, order)
	return order, err
}

// recordCharge stores the fee of the charge that has paid an invoice. If the invoice has no record, recordCharge
// records what the provider says about the invoice. A recorded invoice needs no question about its subscription: Stripe
// repeats callbacks about charges often.
func (s *subscriptions) recordCharge(
	ctx context.Context, provider Provider, order licensing.Order, invoice State,
) (licensing.Order, error) {
	recorded, err := s.node.ReadPayment(ctx, order.Owner,
		licensing.Payment{Provider: provider.Name(), Reference: invoice.ID})
	switch {
	case err != nil:
		return order, err
	case recorded == nil:
		return s.recordSubscription(ctx, provider, order, invoice)
	case recorded.Fee != nil:
		return order, nil
	}
	return order, s.recordFee(ctx, provider, order, invoice.ID, invoice.Fee)
}

// recordFirst records the payment of an order whose subscription has a paid invoice. The payment is that of the first
// invoice. The invoice at hand may be a later one, if callbacks are lost, so recordFirst asks about the checkout.
func (s *subscriptions) recordFirst(
	ctx context.Context, provider Provider, order licensing.Order, invoice State,
) (licensing.Order, error) {
	if order.Checkout != "" {
		checkout, err := s.checkouts.checkoutState(ctx, provider, order)
		if err != nil {
			return order, err
		}
		if checkout.Outcome == OutcomeDone {
			return s.checkouts.record(ctx, provider, order, checkout)
		}
	}
	return s.checkouts.record(ctx, provider, order, invoice)
}

// askSubscription asks the provider about the subscription of an order, and records the answer. If another answer was
// recorded since the order was read, askSubscription asks again: so an older answer never replaces a newer answer.
//
// The record of a subscription that is not active, that is in a period that is not paid for, or that was changed at
// once lacks invoices perhaps: their callbacks may be lost. Then askSubscription looks for them. A change for the next
// period is recorded before the invoices of that period.
//
// If the shop has requested a change, askSubscription asks for it first. refused is the error of a provider that
// refuses the change; that is recorded too.
//
// Callbacks about one subscription come many at a time. A node asks for one after the other, so that they don't make
// each other ask again.
func (s *subscriptions) askSubscription(
	ctx context.Context, provider Provider, order licensing.Order,
) (refused, err error) {
	leave, err := s.enter(ctx, order.Owner, order.OrderNo)
	if err != nil {
		return nil, err
	}
	defer leave()
	for range maxQuestions {
		order, err := s.node.Order(ctx, order.Owner, order.OrderNo)
		if err != nil {
			return nil, err
		}
		if order, err = s.node.EndOfRevoked(ctx, order); err != nil {
			return nil, err
		}
		state, refused, err := s.subscriptionState(ctx, provider, order)
		if err != nil {
			return nil, err
		}
		status := statusOf(state.Outcome)
		made := order.Change.Kind == licensing.ChangePlan && state.Changed == order.Change.Number
		switch {
		case made:
			refused = nil
		case order.Change.Kind == licensing.ChangePlan && refused == nil:
			refused = errSubscriptionEnds
		}
		planned := made && order.Change.Later
		lacks := status != licensing.SubscriptionActive || state.PeriodEnd.After(order.PaidEnd) || made && !planned
		if lacks && !planned {
			if err := s.invoices.findInvoices(ctx, provider, order); err != nil {
				return nil, err
			}
		}
		_, noted, err := s.node.NoteSubscription(ctx, order, licensing.NoteSubscription{
			Status: status, CancelAt: state.CancelAt, ChangeEnded: true, Refused: refused != nil, Made: made,
			From: cmp.Or(state.ChangedFrom, state.PeriodEnd),
		})
		switch {
		case err != nil:
			return nil, err
		case noted && planned && lacks:
			continue // with the invoices
		case noted:
			return refused, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", licensing.ErrUnavailable, errRivals)
}

// subscriptionState asks the provider about the subscription of an order, and changes or ends the subscription if that
// is due.
func (s *subscriptions) subscriptionState(
	ctx context.Context, provider Provider, order licensing.Order,
) (state State, refused, err error) {
	state, refused, err = s.sendChange(ctx, provider, order)
	if err != nil || state.Outcome != "" {
		return state, refused, err
	}
	object := Object{Kind: ObjectSubscription, ID: order.Subscription}
	state, err = s.look(ctx, provider, object)
	switch {
	case gone(&order, order.AskFailures, err):
		return State{Object: object, Outcome: OutcomeEnded, CancelAt: order.CancelAt}, refused, nil
	case err != nil:
		return State{}, nil, lost(object, err)
	}
	return state, refused, nil
}

func statusOf(outcome Outcome) licensing.SubscriptionStatus {
	switch outcome {
	case OutcomeDone:
		return licensing.SubscriptionActive
	case OutcomeEnded:
		return licensing.SubscriptionCanceled
	}
	return licensing.SubscriptionPastDue
}

// askSubscriptionDue asks the provider about a subscription about which a sweep must ask.
func (s *subscriptions) askSubscriptionDue(ctx context.Context, order licensing.Order) error {
	if order.AskAt.IsZero() {
		return nil
	}
	note := licensing.NoteSubscription{} // once the budget has room again, a sweep records what it lacks
	if provider := s.checkoutProvider(order); provider != nil {
		_, err := s.askSubscription(ctx, provider, order)
		if licensing.ReasonOf(err) != licensing.ReasonAccountBudgetReached {
			return err
		}
	} else {
		if over, err := s.moved(ctx, order); err != nil || !over {
			return err
		}
		note = licensing.NoteSubscription{
			Status: licensing.SubscriptionCanceled, CancelAt: order.CancelAt, ChangeEnded: true, Refused: true,
		}
	}
	_, _, err := s.node.NoteSubscription(ctx, order, note)
	return err
}
