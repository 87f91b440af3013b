// Package payment stands between the pay page, the provider that moves the
// money, and the order. A [Provider] says what happens when the buyer presses
// Pay; the [Desk] turns its word into a paid order, and sends money back that
// came for an order that was canceled.
//
// There is one provider today, the [Sandbox], for test mode.
package payment

import (
	"context"
	"fmt"

	"licet"
	"licet/node"
)

// Provider moves money. Implementations must be safe for concurrent use.
type Provider interface {
	// Begin is called when the buyer presses Pay.
	Begin(ctx context.Context, order licet.Order) (Step, error)
	// Refund sends the money of an order's payment back. Sending it twice for
	// the same order moves it once.
	Refund(ctx context.Context, order licet.Order) error
}

// Step is where paying goes on. Exactly one member is set.
type Step struct {
	Payment  string // the provider's reference: the money is here
	Redirect string // the address where the buyer pays; the provider's callback settles it
}

// Desk takes payments for orders. Make it with [NewDesk].
type Desk struct {
	node      *node.Node
	providers map[licet.Mode]Provider
}

// NewDesk makes a desk over a node, with a provider for each mode that can be
// paid in.
func NewDesk(n *node.Node, providers map[licet.Mode]Provider) *Desk {
	return &Desk{node: n, providers: providers}
}

// Pay does what the buyer asked for by pressing Pay. It answers the order as
// it is then, or, where the buyer must go on to the provider, the address. An
// order whose money has come, or has been sent back, is not paid again.
func (d *Desk) Pay(ctx context.Context, order licet.Order) (paid licet.Order, redirect string, err error) {
	if !order.PaidAt.IsZero() && !order.RefundDue {
		return order, "", nil
	}
	provider, configured := d.providers[order.Owner.Mode]
	if !configured {
		return licet.Order{}, "", licet.ErrPaymentNotConfigured
	}
	step, err := provider.Begin(ctx, order)
	if err != nil {
		return licet.Order{}, "", providerFailed(err)
	}
	if step.Redirect != "" {
		return order, step.Redirect, nil
	}
	paid, err = d.Confirm(ctx, order, step.Payment)
	return paid, "", err
}

// Confirm takes the provider's word that an order was paid; however often it
// comes, the order is paid once. Money for a canceled order is sent back
// before this returns; if that fails, the order remembers that it is owed and
// the next word of the provider tries again.
func (d *Desk) Confirm(ctx context.Context, order licet.Order, payment string) (licet.Order, error) {
	result, err := d.node.PayOrder(ctx, order, payment)
	if err != nil || !result.RefundDue {
		return result.Order, err
	}
	provider, configured := d.providers[order.Owner.Mode]
	if !configured {
		return licet.Order{}, licet.ErrPaymentNotConfigured
	}
	if err := provider.Refund(ctx, result.Order); err != nil {
		return licet.Order{}, providerFailed(err)
	}
	result, err = d.node.RecordRefund(ctx, result.Order)
	return result.Order, err
}

// Cancel gives an order up at the buyer's wish.
func (d *Desk) Cancel(ctx context.Context, order licet.Order) (licet.Order, error) {
	result, err := d.node.CancelOrder(ctx, order)
	return result.Order, err
}

func providerFailed(err error) error {
	return fmt.Errorf("%w: %w", &licet.Error{
		Reason:  licet.ReasonProviderFailed,
		Message: "the payment provider did not do it; try again",
	}, err)
}
