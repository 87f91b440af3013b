package payment

import (
	"context"
	"errors"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node/service"
)

// Desk takes and refunds payments of orders. Make it with [NewDesk]. It is safe for concurrent use.
type Desk struct {
	*backend
	*checkouts
	*subscriptions
	*refunds
	*returns
	*disputes
	*callbacks
	*plays
}

// NewDesk returns a desk for the orders of a node. Orders of an owner without a provider can't be paid.
func NewDesk(n *service.Service, providers Providers) *Desk {
	b := &backend{node: n, providers: providers, asks: fair.NewLocks[string]()}
	invoices := &invoices{b}
	returns := &returns{b}
	refunds := &refunds{b, returns}
	checkouts := &checkouts{b, refunds, returns, fair.NewLocks[string]()}
	subscriptions := &subscriptions{b, checkouts, invoices}
	payments := &payments{b, checkouts, invoices, returns}
	disputes := &disputes{b, payments}
	callbacks := &callbacks{
		backend: b, checkouts: checkouts, subscriptions: subscriptions,
		refundCallbacks: &refundCallbacks{b, payments, refunds}, disputes: disputes,
	}
	return &Desk{
		backend: b, checkouts: checkouts, subscriptions: subscriptions, refunds: refunds, returns: returns,
		disputes: disputes, callbacks: callbacks, plays: &plays{b, refunds, callbacks},
	}
}

// Pay pays an order, when the customer presses Pay. It returns the order after the payment, or the URL of the
// provider where the customer must pay. Pay does not charge again for an order that is paid or refunded. If a
// refund is due that no node has tried recently, Pay tries the refund.
func (d *Desk) Pay(ctx context.Context, order licensing.Order) (paid licensing.Order, redirect string, err error) {
	if order.RefundDue {
		paid, err = d.refunds.sendRefund(ctx, order, true)
		return paid, "", err
	}
	if !order.PaidAt.IsZero() {
		return order, "", nil
	}
	if order.Provider == licensing.ProviderOutside {
		return licensing.Order{}, "", licensing.ErrPaidOutside
	}
	provider := d.providers.Of(order.Owner)
	if provider == nil {
		return licensing.Order{}, "", licensing.ErrPaymentNotConfigured
	}
	if err := d.node.RefuseLicenses(ctx, &order); err != nil {
		return licensing.Order{}, "", err
	}
	if provider.Name() == licensing.ProviderSandbox { // which completes every payment at once
		paid, err = d.plays.completeInSandbox(ctx, order, licensing.SandboxPaid)
		if !errors.Is(err, licensing.ErrNothingPending) {
			return paid, "", err
		}
		paid, _, _, err = d.checkouts.beginCheckout(ctx, provider, order)
		return paid, "", err
	}
	return d.checkouts.checkout(ctx, provider, order)
}

// Cancel cancels an order at the customer's request.
func (d *Desk) Cancel(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	result, err := d.node.CancelOrder(ctx, order)
	d.Canceled(ctx, result.Order())
	return result.Order(), err
}

// Canceled ends the open checkout of a canceled order. If that fails, a sweep tries again.
func (d *Desk) Canceled(ctx context.Context, order licensing.Order) {
	if provider := d.checkoutProvider(order); provider != nil {
		_ = d.checkouts.endCheckout(ctx, provider, order)
	}
}
