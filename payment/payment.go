// Package payment stands between the pay page, the provider that moves the
// money, and the order. A [Provider] says what happens when the buyer presses
// Pay; the [Desk] turns its word into a paid order, and sends money back: at the
// shop's wish, or where it came for an order that was canceled.
//
// There is one provider today, the [Sandbox], for test mode.
package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
	"licet/node/service"
)

// Provider moves money. Implementations must be safe for concurrent use. Any call
// may be the second one for the same thing: nobody knows whether the first was
// made by a node that has died since, or by one that has not heard the answer.
type Provider interface {
	// Begin is called when the buyer presses Pay. Beginning twice for the same order
	// leads to one payment. Where the money is there and our answer is that it was
	// not taken note of, the provider says so again: see Desk.Confirm.
	Begin(ctx context.Context, order licensing.Order) (Step, error)
	// Refund sends the money of an order's payment back. Sending it twice for
	// the same order moves it once. It fails with ErrRefused where no call so far
	// has sent it, or will; any other error leaves that open.
	Refund(ctx context.Context, order licensing.Order) error
}

// ErrRefused is a provider's last word on a refund that it does not make.
var ErrRefused = errors.New("the payment provider refuses")

// Step is where paying goes on. Exactly one member is set.
type Step struct {
	Payment  string // the provider's reference: the money is here
	Redirect string // the address where the buyer pays; the provider's callback settles it
}

// Desk takes payments for orders. Make it with [NewDesk].
type Desk struct {
	node      *service.Service
	providers map[licensing.Mode]Provider
}

// NewDesk makes a desk over a node, with a provider for each mode that can be
// paid in.
func NewDesk(n *service.Service, providers map[licensing.Mode]Provider) *Desk {
	return &Desk{node: n, providers: providers}
}

// Pay does what the buyer asked for by pressing Pay. It answers the order as
// it is then, or, where the buyer must go on to the provider, the address. An
// order whose money has come, or has been sent back, is not paid again; where its
// money is to go back, that is tried now.
func (d *Desk) Pay(ctx context.Context, order licensing.Order) (paid licensing.Order, redirect string, err error) {
	if order.RefundDue {
		paid, err = d.sendBack(ctx, order, false)
		return paid, "", err
	}
	if !order.PaidAt.IsZero() {
		return order, "", nil
	}
	provider, configured := d.providers[order.Owner.Mode]
	if !configured {
		return licensing.Order{}, "", licensing.ErrPaymentNotConfigured
	}
	span := beginTrace(ctx, "begin")
	step, err := provider.Begin(ctx, order)
	endTrace(span, err)
	if err != nil {
		return licensing.Order{}, "", providerFailed(err)
	}
	if step.Redirect != "" {
		return order, step.Redirect, nil
	}
	paid, err = d.Confirm(ctx, order, step.Payment)
	return paid, "", err
}

// Confirm takes the provider's word that an order was paid; however often it
// comes, the order is paid once. Money for a canceled order is sent back
// before this returns; if that fails, the order remembers that it is owed, and
// the next word of the provider or a pass of SendRefundsDue tries again.
func (d *Desk) Confirm(ctx context.Context, order licensing.Order, payment string) (licensing.Order, error) {
	result, err := d.node.PayOrder(ctx, order, payment)
	if err != nil || !result.RefundDue {
		return result.Order, err
	}
	return d.sendBack(ctx, result.Order, false)
}

// Cancel gives an order up at the buyer's wish.
func (d *Desk) Cancel(ctx context.Context, order licensing.Order) (licensing.Order, error) {
	result, err := d.node.CancelOrder(ctx, order)
	return result.Order, err
}

func providerFailed(err error) error {
	return fmt.Errorf("%w: %w", &licensing.Error{
		Reason:  licensing.ReasonProviderFailed,
		Message: "the payment provider did not do it; try again",
	}, err)
}
