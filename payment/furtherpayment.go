package payment

import (
	"context"
	"errors"

	"licet/licensing"
	"licet/node"
)

// returns sends back further payments of orders: second payments, and later invoices of subscriptions.
type returns struct {
	*backend
}

// isSecond reports whether the provider has taken a payment of an order that is paid with another payment. The invoices
// of an order's own subscription are none.
func isSecond(provider Provider, order *licensing.Order, state State) bool {
	return !order.PaidAt.IsZero() && (order.Payment != state.Payment || order.PaidThrough() != provider.Name()) &&
		(order.Interval.IsZero() || state.Kind == ObjectCheckout && state.Subscription != order.Subscription)
}

// recordSecond stores a second payment of an order, and sends it back. If that fails, the error makes the provider
// repeat the callback, and a sweep tries too; after a refusal only the sweep does. If the buyer has begun a second
// subscription, recordSecond ends it first.
func (r *returns) recordSecond(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) (licensing.Order, error) {
	if err := endBegun(ctx, provider, order, state); err != nil {
		return licensing.Order{}, err
	}
	err := r.node.RecordSecond(ctx, order, licensing.Payment{
		Provider: provider.Name(), Reference: state.Payment, Amount: state.Amount, Currency: state.Currency,
		PaidAt: state.At, Fee: state.Fee,
	})
	if err != nil {
		return licensing.Order{}, err
	}
	if now, err := r.node.Order(ctx, order.Owner, order.OrderNo); err == nil {
		order = now
	}
	var failed error
	for _, open := range order.OpenReturns() {
		if open.Of != state.Payment {
			continue
		}
		now, err := r.sendReturn(ctx, order, open.Number, false)
		switch {
		case err == nil:
			order = now
		case !errors.Is(err, ErrRefused):
			failed = errors.Join(failed, err)
		}
	}
	return order, failed
}

// endBegun ends the subscription that a checkout of an order has begun, if there is one.
func endBegun(ctx context.Context, provider Provider, order licensing.Order, checkout State) error {
	if checkout.Subscription == "" {
		return nil
	}
	order.Subscription = checkout.Subscription
	_, err := provider.Change(ctx, order, Change{End: EndNow})
	if err == nil || errors.Is(err, ErrRefused) || gone(&order, order.AskFailures, err) {
		return nil
	}
	return lost(Object{Kind: ObjectSubscription, ID: order.Subscription}, err)
}

// RefundInvoice refunds an invoice of an order's subscription at the shop's request. It is Refund for an invoice, with
// the same promises. Once all of an invoice has gone back, the period that it paid for is taken back.
func (r *returns) RefundInvoice(
	ctx context.Context, owner licensing.Owner, orderNo, invoice string, request licensing.RequestReturn,
	once *node.Once,
) (order licensing.Order, replayed bool, err error) {
	if err := r.acceptsRefund(ctx, owner, orderNo, request.Amount); err != nil {
		return licensing.Order{}, false, err
	}
	order, number, replayed, err := r.node.RequestReturn(ctx, owner, orderNo, invoice, request, once)
	if err != nil {
		return licensing.Order{}, replayed, err
	}
	open, found := order.OpenReturn(number)
	if !found && replayed {
		refund, err := r.readReturn(ctx, order, number)
		switch {
		case err != nil, refund != nil && refund.State == licensing.PaymentDone:
			return order, err == nil, err
		case request.Amount > 0:
			return licensing.Order{}, false, providerFailed(ErrRefused)
		}
		// The request was withdrawn after the provider failed. A failure is no result to replay.
		if order, _, _, err = r.node.RequestReturn(ctx, owner, orderNo, invoice, request, nil); err != nil {
			return licensing.Order{}, false, err
		}
	}
	for _, other := range order.OpenReturns() {
		if !found && other.Of == invoice {
			open, found = other, true
		}
	}
	if !found {
		return order, replayed, nil
	}
	order, err = r.sendReturn(ctx, order, open.Number, false)
	return order, false, err
}

// readReturn returns the record of the refund of a further payment with our number; nil: there is none.
func (r *returns) readReturn(ctx context.Context, order licensing.Order, number string) (*licensing.Payment, error) {
	return r.node.ReadPayment(ctx, order.Owner,
		licensing.Payment{Kind: licensing.KindOfInvoiceRefund, Reference: number})
}

// sendReturns tries the open refunds of an order's further payments that no node has tried recently.
func (r *returns) sendReturns(ctx context.Context, order licensing.Order) (err error) {
	for _, open := range order.OpenReturns() {
		_, failed := r.sendReturn(ctx, order, open.Number, true)
		err = errors.Join(err, failed)
	}
	return err
}

// sendReturn sends and records the open refund of a further payment, if it is due; see sendRefund.
func (r *returns) sendReturn(
	ctx context.Context, order licensing.Order, number string, background bool,
) (licensing.Order, error) {
	provider := r.providers.Of(order.Owner)
	if provider == nil && !background {
		return licensing.Order{}, licensing.ErrPaymentNotConfigured
	}
	tried, err := r.node.TryReturn(ctx, order, licensing.TryReturn{Number: number, Waiting: background})
	if err != nil {
		return licensing.Order{}, stillDue(err)
	}
	open, now := tried.Return(), tried.Order()
	if open.Number == "" { // another call has asked, or has recorded what has become of the refund
		if background {
			return now, nil
		}
		refund, err := r.readReturn(ctx, order, number)
		switch {
		case err != nil:
			return licensing.Order{}, stillDue(err)
		case refund == nil || refund.State != licensing.PaymentDone:
			return licensing.Order{}, providerFailed(ErrRefused)
		}
		return now, nil
	}
	if provider == nil {
		return licensing.Order{}, licensing.ErrPaymentNotConfigured
	}
	further, err := r.node.ReadPayment(ctx, order.Owner,
		licensing.Payment{Provider: provider.Name(), Reference: open.Of})
	switch {
	case err != nil:
		return licensing.Order{}, stillDue(err)
	case further == nil: // of a provider that the owner had before
		return licensing.Order{}, licensing.ErrPaymentNotConfigured
	}
	refund := open.Refund(&now, further)
	state, err := requestRefund(ctx, provider, now.AsPaidWith(further, open))
	switch {
	case errors.Is(err, ErrRefused) && !open.Pending && state.ID == "":
		return licensing.Order{}, providerFailed(errors.Join(err, r.node.WithdrawReturn(ctx, order, *further, open)))
	case errors.Is(err, ErrRefused):
		refund.State, refund.ProviderID = licensing.PaymentFailed, state.ID
		return licensing.Order{}, providerFailed(errors.Join(err,
			r.node.RecordInvoiceRefund(ctx, order, further.Kind, refund)))
	case err != nil:
		return licensing.Order{}, lost(Object{Kind: ObjectPayment, ID: further.Reference}, err)
	}
	refund.ProviderID = state.ID
	setOutcome(&refund, state)
	if err := r.node.RecordInvoiceRefund(ctx, order, further.Kind, refund); err != nil {
		return licensing.Order{}, stillDue(err)
	}
	order, err = r.node.Order(ctx, order.Owner, order.OrderNo)
	return order, stillDue(err)
}

// setOutcome sets the outcome of a refund as a provider reports it.
func setOutcome(refund *licensing.Payment, state State) {
	switch state.Outcome {
	case OutcomeDone:
		refund.PaidAt = state.At
	case OutcomeFailed:
		refund.State = licensing.PaymentFailed
	default:
		refund.State = licensing.PaymentPending
	}
}

// acceptsRefund refuses a refund of an amount that the provider of an order can't send back. 0 is all that is left.
func (r *returns) acceptsRefund(ctx context.Context, owner licensing.Owner, orderNo string, amount int64) error {
	if amount == 0 {
		return nil
	}
	order, err := r.node.Order(ctx, owner, orderNo)
	switch {
	case licensing.ReasonOf(err) == licensing.ReasonOrderNotFound:
		return nil // unless the request is repeated, it gets this answer
	case err != nil:
		return err
	}
	provider := r.providerNamed(order.PaidThrough(), owner)
	if provider == nil {
		return nil
	}
	return provider.AcceptsRefund(licensing.Payment{Amount: amount, Currency: order.Currency})
}
