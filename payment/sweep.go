package payment

import (
	"context"
	"errors"

	"licet/licensing"
)

// AskCheckoutsDue asks the provider about all checkouts about which a sweep must ask by now. It is a sweep for
// service.Sweeps. Any number of nodes may run it.
func (d *Desk) AskCheckoutsDue(ctx context.Context) error {
	return d.node.EachCheckoutDue(ctx, d.askCheckout)
}

// AskSandboxDue asks the sandbox about all subscriptions that renew or end by now. It is a sweep for
// service.Sweeps. Any number of nodes may run it.
func (d *Desk) AskSandboxDue(ctx context.Context) error {
	return d.node.EachSandboxDue(ctx, d.askCheckout)
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
