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
	asked, err := d.disputes.askDisputesDue(ctx, order)
	if err != nil || asked && order.AskAt.After(d.node.Now()) {
		return err
	}
	if order.Subscribed() {
		err = d.subscriptions.askSubscriptionDue(ctx, order)
	} else {
		err = d.checkouts.askDue(ctx, order)
	}
	if err != nil {
		_, failed := d.node.ChangeCheckout(ctx, order, licensing.PutOffAsk{Asked: order.AskAt})
		err = errors.Join(err, failed)
	}
	return err
}
