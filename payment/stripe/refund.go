package stripe

import (
	"context"
	"fmt"
	"strconv"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/licensing"
	"licet/payment"
)

const refunds = "/v1/refunds"

// maxKeys bounds the idempotency keys of one refund, or of one change of a subscription.
const maxKeys = 5

// Refund implements [payment.Provider]. Our number of the refund names the idempotency key, and stands in the metadata,
// so that the refund is found after the key is forgotten.
//
// Stripe forgets a key after a day. So if an earlier try may have made the refund, Refund looks for it first.
//
// The refund is of a part of the order's price. If Stripe has added tax, toSend adds the same part of the tax.
//
// Stripe repeats an error 500 under the same key for a day. When Stripe repeats it, the request of the key has ended:
// if it has made no refund that Stripe lists, it makes none. Only then Refund takes the next key.
func (p *Provider) Refund(
	ctx context.Context, order licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	if order.RefundTries > 1 {
		found, err := p.findRefund(ctx, order.Payment, refund.Reference)
		switch {
		case err != nil && causeOf(err) != causeMissing:
			return payment.State{}, failed("look for a refund", err)
		case found != nil:
			state, err := p.refundState(found)
			return state, failed("read the refund", err)
		}
	}
	amount, err := p.toSend(ctx, order, refund)
	if err != nil {
		return payment.State{}, err
	}
	for n := 1; ; n++ {
		made := &sdk.Refund{}
		err := p.post(ctx, refunds, refundKey(refund.Reference, n), &sdk.RefundCreateParams{
			PaymentIntent: sdk.String(order.Payment),
			Amount:        sdk.Int64(amount),
			Metadata:      map[string]string{metaOrder: order.OrderNo, metaRefund: refund.Reference},
		}, made)
		cause := causeOf(err)
		switch {
		case cause == causeNone && replayed(made.LastResponse): // as the refund was when it was made
			return p.Look(ctx, payment.Object{Kind: payment.ObjectRefund, ID: made.ID})
		case cause == causeNone:
			state, err := p.refundState(made)
			return state, failed("read the refund", err)
		case cause == causeUnknown, cause == causeLater, cause == causeKey, cause == causeForbidden:
			return payment.State{}, failed("make a refund", err)
		}
		found, searched := p.findRefund(ctx, order.Payment, refund.Reference)
		switch {
		case searched != nil && causeOf(searched) != causeMissing:
			return payment.State{}, failed("look for a refund", searched)
		case found != nil:
			state, err := p.refundState(found)
			return state, failed("read the refund", err)
		case cause == causeSpent && replayedError(err) && n < maxKeys:
			continue
		case cause == causeMissing:
			return payment.State{}, fmt.Errorf("%w: %w", payment.ErrUnknownObject, failed("make a refund", err))
		case cause == causeRefused:
			return payment.State{}, fmt.Errorf("%w: %w", payment.ErrRefused, failed("make a refund", err))
		}
		return payment.State{}, failed("make a refund", err)
	}
}

// AcceptsRefund implements [payment.Provider].
func (p *Provider) AcceptsRefund(refund licensing.Payment) error {
	if smallest := smallest(refund.Currency); refund.Amount%smallest != 0 {
		return licensing.InvalidField("amount", fmt.Sprintf(
			"must be a multiple of %d: Stripe sends back no smaller parts of %s", smallest, refund.Currency))
	}
	return nil
}

// toSend returns how much of a payment to send back for a refund, in Stripe's minor units: the refund's part of the
// price and the same part of the tax. Stripe splits each refund between price and tax in proportion:
// https://docs.stripe.com/tax/invoicing/refunds.
//
// toSend counts from all earlier refunds, so that rounding adds up to nothing. Refunds in Stripe's dashboard were
// rounded the other way; so a refund of all that is left of the price is of all that is left at Stripe, if that is
// nearly the same.
func (p *Provider) toSend(ctx context.Context, order licensing.Order, refund licensing.Payment) (int64, error) {
	amount, err := toStripe(refund.Amount, refund.Currency)
	if err != nil {
		return 0, fmt.Errorf("%w: the amount %w", payment.ErrRefused, err)
	}
	intent, err := p.intent(ctx, order.Payment)
	switch {
	case causeOf(err) == causeMissing:
		return 0, fmt.Errorf("%w: %w", payment.ErrUnknownObject, failed("read the payment", err))
	case err != nil:
		return 0, failed("read the payment", err)
	}
	price, err := toStripe(order.Amount, order.Currency)
	charge := intent.LatestCharge
	if err != nil || charge == nil || charge.Amount <= price {
		return amount, nil // without tax; Stripe refuses the refund of a payment that was not made
	}
	before, err := toStripe(order.RefundedAmount(), order.Currency)
	if err != nil {
		return amount, nil
	}
	smallest := step(order.Currency)
	charged := func(part int64) int64 { return payment.Share(part/smallest, price/smallest, charge.Amount/smallest) }
	amount = (charged(before+amount) - charged(before)) * smallest
	left := charge.Amount - charge.AmountRefunded
	rounded := 2 * smallest * int64(order.Refunds)
	if order.Refundable() == 0 && left-amount <= rounded && amount-left <= rounded {
		amount = left
	}
	if amount <= 0 {
		return 0, fmt.Errorf("%w: nothing is left of the payment", payment.ErrRefused)
	}
	return amount, nil
}

// refundKey returns the nth idempotency key of a refund.
func refundKey(reference string, n int) string {
	if n == 1 {
		return "refund/" + reference
	}
	return "refund/" + reference + "/" + strconv.Itoa(n)
}

// findRefund returns the refund of a payment that has our number; nil if Stripe lists none.
func (p *Provider) findRefund(ctx context.Context, paymentID, reference string) (*sdk.Refund, error) {
	params := &sdk.RefundListParams{PaymentIntent: sdk.String(paymentID)}
	params.Limit = sdk.Int64(findLimit)
	for range findPages {
		page := &sdk.RefundList{}
		if err := p.list(ctx, refunds, params, page); err != nil {
			return nil, err
		}
		for _, refund := range page.Data {
			if refund.Metadata[metaRefund] == reference {
				return refund, nil
			}
		}
		if !page.HasMore || len(page.Data) == 0 {
			break
		}
		params.StartingAfter = sdk.String(page.Data[len(page.Data)-1].ID)
	}
	return nil, nil
}
