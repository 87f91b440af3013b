package payment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"licet/licensing"
)

// invoices records the paid invoices of subscriptions.
type invoices struct {
	*backend
}

// recordInvoice stores a paid invoice, or the fee of an invoice whose record lacks it. The invoice that was paid with
// the payment of the order has no record of its own: then the fee is that of the payment.
func (i *invoices) recordInvoice(ctx context.Context, provider Provider, order licensing.Order, state State) error {
	if problem := fitsSubscription(order, state); problem != nil {
		return i.node.RecordUnmatched(ctx, order, licensing.Payment{
			Provider: provider.Name(), Reference: state.ID, ProviderID: state.Payment, Amount: state.Amount,
			Currency: state.Currency, PaidAt: state.At,
		}, problem)
	}
	if state.Payment == order.Payment {
		return i.recordFee(ctx, provider, order, state.Payment, state.Fee)
	}
	err := i.node.RecordInvoice(ctx, order, licensing.Payment{
		OrderNo: order.OrderNo, Provider: provider.Name(), Reference: state.ID, ProviderID: state.Payment,
		Amount: state.Amount, Currency: state.Currency, PaidAt: state.At, PeriodStart: state.PeriodStart,
		PeriodEnd: state.PeriodEnd, Fee: state.Fee,
	})
	if err != nil {
		return err
	}
	return i.recordFee(ctx, provider, order, state.ID, state.Fee)
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

// findInvoices records the paid invoices of a subscription that have no record, the oldest first.
func (i *invoices) findInvoices(ctx context.Context, provider Provider, order licensing.Order) error {
	ids, err := provider.Invoices(ctx, order)
	if err != nil {
		return providerFailed(err)
	}
	for _, id := range slices.Backward(ids) {
		recorded, err := i.node.InvoiceRecorded(ctx, order.Owner, provider.Name(), id)
		if err != nil {
			return err
		}
		if recorded {
			continue
		}
		state, err := i.look(ctx, provider, Object{Kind: ObjectInvoice, ID: id})
		switch {
		case errors.Is(err, ErrUnknownObject):
		case err != nil:
			return providerFailed(err)
		case state.Outcome == OutcomeDone:
			if err := i.recordInvoice(ctx, provider, order, state); err != nil {
				return err
			}
		}
	}
	return nil
}
