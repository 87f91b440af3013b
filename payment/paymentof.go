package payment

import (
	"context"
	"errors"

	"licet/licensing"
)

// errUnpaid makes the provider repeat the callback about a refund or a dispute.
var errUnpaid = errors.New("the payment of the subscription is not recorded yet")

// errNoInvoice makes the provider repeat the callback about a refund.
var errNoInvoice = errors.New("the refunded invoice is not recorded yet")

// payments finds the payment that a refund or a dispute at the provider is of: the callback may come before that of the
// payment.
type payments struct {
	*backend
	checkouts *checkouts
	invoices  *invoices
	returns   *returns
}

// unpaid returns the error for a refund or a dispute of a subscription that is not paid: nil if the order does not
// count the payment, since the payment does not fit the order.
func (p *payments) unpaid(ctx context.Context, provider Provider, order licensing.Order, state State) error {
	unmatched, err := p.node.ReadPayment(ctx, order.Owner, licensing.Payment{
		Kind: licensing.KindOfUnmatched, Provider: provider.Name(), Reference: state.Payment,
	})
	if err != nil || unmatched != nil {
		return err
	}
	return providerFailed(errUnpaid)
}

// paidBefore returns an order after its payment: a callback about a refund may come before the payment is recorded. The
// payment of a subscription says too little: only its checkout or its invoice pays the order.
func (p *payments) paidBefore(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	if !order.PaidAt.IsZero() || state.Payment == "" || !order.Interval.IsZero() {
		return order, nil
	}
	paid, err := p.look(ctx, provider, Object{Kind: ObjectPayment, ID: state.Payment})
	switch {
	case errors.Is(err, ErrUnknownObject):
		return order, nil
	case err != nil:
		return licensing.Order{}, providerFailed(err)
	}
	return p.checkouts.record(ctx, provider, order, paid)
}

// isFurther reports whether a record is that of a further payment of an order; nil is none.
func isFurther(p *licensing.Payment, order *licensing.Order) bool {
	return p != nil && p.OrderNo == order.OrderNo &&
		(p.Kind == licensing.KindOfInvoice || p.Kind == licensing.KindOfSecond)
}

// furtherPayment returns the record of the further payment that a refund or a dispute at the provider is of; nil: it is
// of none of the order. The callback may come before that of the payment.
func (p *payments) furtherPayment(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (*licensing.Payment, error) {
	named := licensing.Payment{Provider: provider.Name(), Reference: state.Payment}
	invoice := order.Subscribed() && state.Invoice != ""
	if invoice {
		named.Reference = state.Invoice
	}
	// Of a refund of our own, the provider may not tell the invoice.
	if open, found := order.OpenReturn(state.Refund); found {
		named.Reference = open.Of
	} else if state.Refund != "" {
		refund, err := p.returns.readReturn(ctx, order, state.Refund)
		if err != nil {
			return nil, err
		}
		if refund != nil {
			named.Reference = refund.Refunds
		}
	}
	further, err := p.node.ReadPayment(ctx, order.Owner, named)
	if invoice && err == nil && further == nil { // a second payment, which has begun a second subscription
		further, err = p.node.ReadPayment(ctx, order.Owner,
			licensing.Payment{Provider: provider.Name(), Reference: state.Payment})
	}
	if err != nil || further != nil {
		return further, err
	}
	if invoice {
		err = p.invoices.findInvoices(ctx, provider, order)
	} else {
		err = p.lookAtSecond(ctx, provider, order, state.Payment)
	}
	if err == nil {
		further, err = p.node.ReadPayment(ctx, order.Owner, named)
	}
	if invoice && err == nil && further == nil {
		err = providerFailed(errNoInvoice)
	}
	return further, err
}

// lookAtSecond asks about a payment of an order that may be a second payment, and records it.
func (p *payments) lookAtSecond(ctx context.Context, provider Provider, order licensing.Order, id string) error {
	state, err := p.look(ctx, provider, Object{Kind: ObjectPayment, ID: id})
	switch {
	case errors.Is(err, ErrUnknownObject):
		return nil
	case err != nil:
		return providerFailed(err)
	}
	_, err = p.checkouts.record(ctx, provider, order, state)
	return err
}
