package payment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"licet/licensing"
)

// maxQuestions bounds how often one call asks about a subscription whose order others change meanwhile.
const maxQuestions = 10

// errRivals means that other requests changed the record of a subscription between each question to the provider and
// the provider's answer.
var errRivals = errors.New("other requests keep changing the subscription: try again")

// errSubscriptionEnds is the refusal of a change of a subscription that has ended meanwhile.
var errSubscriptionEnds = errors.New("the subscription has ended, or is being ended")

// recordSubscription stores what the provider says about an invoice or about a subscription of an order.
func (d *Desk) recordSubscription(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (now licensing.Order, err error) {
	switch {
	case order.Interval.IsZero() || order.Subscribed() && state.Subscription != order.Subscription:
		return order, nil // of another subscription, which only names the order
	case state.Kind == ObjectInvoice && state.Outcome == OutcomeDone:
		if order.Change.Later { // the provider may have made the change for the period of the invoice
			if _, err := d.askSubscription(ctx, provider, order); err != nil {
				return order, err
			}
		}
		if order.PaidAt.IsZero() {
			if order, err = d.recordFirst(ctx, provider, order, state); err != nil || order.PaidAt.IsZero() {
				return order, err
			}
		}
		if err := d.recordInvoice(ctx, provider, order, state); err != nil {
			return order, err
		}
		if order.Subscribed() && skips(&order, state.PeriodEnd) {
			if err := d.findInvoices(ctx, provider, order); err != nil {
				return order, err
			}
		}
	}
	if !order.Subscribed() {
		return order, nil // the payment of the order will bring the subscription
	}
	_, err = d.askSubscription(ctx, provider, order)
	return order, err
}

// skips reports whether a paid invoice is of a later period than the next one of the order: the callbacks of the
// invoices before it are late, or lost. Months differ by three days.
func skips(order *licensing.Order, periodEnd time.Time) bool {
	return order.Interval.AddTo(order.PaidEnd).AddDate(0, 0, 3).Before(periodEnd)
}

// recordFirst records the payment of an order whose subscription has a paid invoice. The payment is that of the first
// invoice. The invoice at hand may be a later one, if callbacks are lost, so recordFirst asks about the checkout.
func (d *Desk) recordFirst(
	ctx context.Context, provider Provider, order licensing.Order, invoice State,
) (licensing.Order, error) {
	if order.Checkout != "" {
		checkout, err := d.checkoutState(ctx, provider, order)
		if err != nil {
			return order, err
		}
		if checkout.Outcome == OutcomeDone {
			return d.record(ctx, provider, order, checkout)
		}
	}
	return d.record(ctx, provider, order, invoice)
}

// recordInvoice stores a paid invoice. It is a no-op for the invoice that was paid with the payment of the order.
func (d *Desk) recordInvoice(ctx context.Context, provider Provider, order licensing.Order, state State) error {
	if problem := fitsSubscription(order, state); problem != nil {
		return d.node.RecordUnmatched(ctx, order, licensing.Payment{
			Provider: provider.Name(), Reference: state.ID, ProviderID: state.Payment, Amount: state.Amount,
			Currency: state.Currency, PaidAt: state.At,
		}, problem)
	}
	return d.node.RecordInvoice(ctx, order, licensing.Payment{
		OrderNo: order.OrderNo, Provider: provider.Name(), Reference: state.ID, ProviderID: state.Payment,
		Amount: state.Amount, Currency: state.Currency, PaidAt: state.At, PeriodStart: state.PeriodStart,
		PeriodEnd: state.PeriodEnd, Fee: state.Fee,
	})
}

// fitsSubscription returns an error if an invoice at the provider can't be of the order's subscription.
func fitsSubscription(order licensing.Order, state State) error {
	switch {
	case state.OrderNo != order.OrderNo:
		return fmt.Errorf("the invoice is of the order %q", state.OrderNo)
	case state.Live != (order.Owner.Mode == licensing.Live):
		return fmt.Errorf("the invoice is live: %t, but the order is of mode %s", state.Live, order.Owner.Mode)
	case state.Subscription != order.Subscription:
		return fmt.Errorf("the invoice is of the subscription %q", state.Subscription)
	case state.Currency != order.Currency || state.Amount < 0 || state.Amount > licensing.MaxAmount:
		return fmt.Errorf("the invoice is of %d %s, but the order is in %s", state.Amount, state.Currency,
			order.Currency)
	}
	return nil
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
func (d *Desk) askSubscription(
	ctx context.Context, provider Provider, order licensing.Order,
) (refused, err error) {
	if err := d.asks.Enter(ctx, order.OrderNo); err != nil {
		return nil, err
	}
	defer d.asks.Leave(order.OrderNo)
	for range maxQuestions {
		order, err := d.node.Order(ctx, order.Owner, order.OrderNo)
		if err != nil {
			return nil, err
		}
		if order, err = d.node.EndOfRevoked(ctx, order); err != nil {
			return nil, err
		}
		state, refused, err := d.subscriptionState(ctx, provider, order)
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
			if err := d.findInvoices(ctx, provider, order); err != nil {
				return nil, err
			}
		}
		_, noted, err := d.node.NoteSubscription(ctx, order, licensing.NoteSubscription{
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
func (d *Desk) subscriptionState(
	ctx context.Context, provider Provider, order licensing.Order,
) (state State, refused, err error) {
	state, refused, err = d.settleChange(ctx, provider, order)
	if err != nil || state.Outcome != "" {
		return state, refused, err
	}
	object := Object{Kind: ObjectSubscription, ID: order.Subscription}
	state, err = d.look(ctx, provider, object)
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

// findInvoices records the paid invoices of a subscription that have no record, the oldest first.
func (d *Desk) findInvoices(ctx context.Context, provider Provider, order licensing.Order) error {
	ids, err := provider.Invoices(ctx, order)
	if err != nil {
		return providerFailed(err)
	}
	for i := len(ids) - 1; i >= 0; i-- {
		recorded, err := d.node.InvoiceRecorded(ctx, order.Owner, provider.Name(), ids[i])
		if err != nil {
			return err
		}
		if recorded {
			continue
		}
		state, err := d.look(ctx, provider, Object{Kind: ObjectInvoice, ID: ids[i]})
		switch {
		case errors.Is(err, ErrUnknownObject):
		case err != nil:
			return providerFailed(err)
		case state.Outcome == OutcomeDone:
			if err := d.recordInvoice(ctx, provider, order, state); err != nil {
				return err
			}
		}
	}
	return nil
}

// AskSandboxDue asks the sandbox about all subscriptions that renew or end by now. It is a sweep for
// service.Sweeps. Any number of nodes may run it.
func (d *Desk) AskSandboxDue(ctx context.Context) error {
	return d.node.EachSandboxDue(ctx, d.askCheckout)
}

// askSubscriptionDue asks the provider about a subscription about which a sweep must ask.
func (d *Desk) askSubscriptionDue(ctx context.Context, order licensing.Order) error {
	if order.AskAt.IsZero() {
		return nil
	}
	if provider := d.checkoutProvider(order); provider != nil {
		_, err := d.askSubscription(ctx, provider, order)
		if licensing.ReasonOf(err) != licensing.ReasonAccountBudgetReached {
			return err
		}
	}
	// The provider may be set up again, and the budget may have room again.
	_, _, err := d.node.NoteSubscription(ctx, order, licensing.NoteSubscription{})
	return err
}
