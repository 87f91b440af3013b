package stripe

import (
	"context"
	"fmt"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/payment"
)

// expandFee is the path from a payment intent to the fee.
const expandFee = "latest_charge.balance_transaction"

// Look implements [payment.Provider].
func (p *Provider) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	var state payment.State
	var err error
	switch object.Kind {
	case payment.ObjectCheckout:
		state, err = p.lookAtCheckout(ctx, object.ID)
	case payment.ObjectPayment:
		state, err = p.lookAtPayment(ctx, object.ID)
	case payment.ObjectRefund:
		state, err = p.lookAtRefund(ctx, object.ID)
	case payment.ObjectDispute:
		state, err = p.lookAtDispute(ctx, object.ID)
	case payment.ObjectInvoice:
		state, err = p.lookAtInvoice(ctx, object.ID)
	case payment.ObjectCharge:
		state, err = p.lookAtCharge(ctx, object.ID)
	case payment.ObjectSubscription:
		state, err = p.lookAtSubscription(ctx, object.ID)
	default:
		return payment.State{}, payment.ErrUnknownObject
	}
	if causeOf(err) == causeMissing {
		return payment.State{}, payment.ErrUnknownObject
	}
	return state, failed("read the "+string(object.Kind), err)
}

func (p *Provider) lookAtCheckout(ctx context.Context, id string) (payment.State, error) {
	session, err := p.session(ctx, id)
	if err != nil {
		return payment.State{}, err
	}
	state, err := checkoutState(session)
	if err != nil || state.Invoice == "" {
		return state, err
	}
	invoice, err := p.lookAtInvoice(ctx, state.Invoice)
	state.Payment, state.Fee, state.PeriodEnd = invoice.Payment, invoice.Fee, invoice.PeriodEnd
	if state.Outcome == payment.OutcomePending &&
		(invoice.Outcome == payment.OutcomeFailed || invoice.Outcome == payment.OutcomeEnded) {
		state.Outcome = payment.OutcomeFailed // the session stays as it was when the buyer completed it
	}
	return state, err
}

func checkoutState(session *sdk.CheckoutSession) (payment.State, error) {
	state := payment.State{
		Object:  payment.Object{Kind: payment.ObjectCheckout, ID: session.ID},
		OrderNo: session.Metadata[metaOrder],
		Outcome: checkoutOutcome(session),
		Live:    session.Livemode,
		At:      moment(session.Created),
		EndsAt:  moment(session.ExpiresAt),
	}
	if state.Outcome == payment.OutcomeOpen {
		state.URL = session.URL
	}
	if intent := session.PaymentIntent; intent != nil {
		state.Payment = intent.ID
		addCharge(&state, intent)
	}
	if session.Subscription != nil {
		state.Subscription = session.Subscription.ID
	}
	if session.Invoice != nil {
		state.Invoice = session.Invoice.ID
	}
	amount := session.AmountTotal
	if session.AutomaticTax != nil && session.AutomaticTax.Enabled {
		amount = session.AmountSubtotal
	}
	return withAmount(state, amount, session.Currency)
}

func checkoutOutcome(session *sdk.CheckoutSession) payment.Outcome {
	switch session.Status {
	case sdk.CheckoutSessionStatusOpen:
		return payment.OutcomeOpen
	case sdk.CheckoutSessionStatusExpired:
		return payment.OutcomeEnded
	}
	if session.PaymentStatus != sdk.CheckoutSessionPaymentStatusUnpaid {
		return payment.OutcomeDone
	}
	// The buyer has completed the checkout with a method that takes days. Once such a payment has failed, Stripe
	// accepts no other payment in the session.
	if session.PaymentIntent != nil {
		switch session.PaymentIntent.Status {
		case sdk.PaymentIntentStatusRequiresPaymentMethod, sdk.PaymentIntentStatusCanceled:
			return payment.OutcomeFailed
		}
	}
	return payment.OutcomePending
}

func (p *Provider) lookAtPayment(ctx context.Context, id string) (payment.State, error) {
	intent, err := p.intent(ctx, id)
	if err != nil {
		return payment.State{}, err
	}
	state := payment.State{
		Object:  payment.Object{Kind: payment.ObjectPayment, ID: intent.ID},
		OrderNo: intent.Metadata[metaOrder],
		Payment: intent.ID,
		Outcome: paymentOutcome(intent.Status),
		Live:    intent.Livemode,
		At:      moment(intent.Created),
	}
	addCharge(&state, intent)
	if taxed := p.cfg.AutomaticTax || intent.Metadata[metaTax] != ""; taxed && state.OrderNo != "" {
		// The payment intent knows the total only. The setting may have changed since the checkout was made.
		params := &sdk.CheckoutSessionListParams{PaymentIntent: sdk.String(intent.ID)}
		params.Limit = sdk.Int64(1)
		page, err := p.sessions(ctx, params)
		if err != nil {
			return payment.State{}, err
		}
		if len(page.Data) > 0 {
			checkout, err := checkoutState(page.Data[0])
			state.Amount, state.Currency = checkout.Amount, checkout.Currency
			return state, err
		}
	}
	return withAmount(state, intent.Amount, intent.Currency)
}

// lookAtCharge reads the payment intent of a charge. If the intent has no order, its state is that of the invoice that
// it has paid. It does not ask about the invoice before the fee is known.
func (p *Provider) lookAtCharge(ctx context.Context, id string) (payment.State, error) {
	state, err := p.lookAtPayment(ctx, id)
	if err != nil || state.OrderNo != "" || state.Fee == nil {
		return state, err
	}
	orderNo, invoice, err := p.invoiceOf(ctx, id)
	if err != nil || orderNo == "" {
		return state, err
	}
	return p.lookAtInvoice(ctx, invoice)
}

// intent reads a payment intent with its charge and the fee.
func (r *requests) intent(ctx context.Context, id string) (*sdk.PaymentIntent, error) {
	intent := &sdk.PaymentIntent{}
	return intent, r.get(ctx, sdk.FormatURLPath("/v1/payment_intents/%s", id), &sdk.PaymentIntentRetrieveParams{},
		intent, expandFee)
}

func paymentOutcome(status sdk.PaymentIntentStatus) payment.Outcome {
	switch status {
	case sdk.PaymentIntentStatusSucceeded:
		return payment.OutcomeDone
	case sdk.PaymentIntentStatusProcessing:
		return payment.OutcomePending
	case sdk.PaymentIntentStatusCanceled:
		return payment.OutcomeEnded
	default: // also after a declined card: the buyer may try another card
		return payment.OutcomeOpen
	}
}

func (p *Provider) lookAtRefund(ctx context.Context, id string) (payment.State, error) {
	refund := &sdk.Refund{}
	err := p.get(ctx, sdk.FormatURLPath("/v1/refunds/%s", id), &sdk.RefundRetrieveParams{}, refund,
		"payment_intent", "charge")
	if err != nil {
		return payment.State{}, err
	}
	state, err := p.refundState(refund)
	if err == nil && state.OrderNo == "" && state.Payment != "" {
		state.OrderNo, state.Invoice, err = p.invoiceOf(ctx, state.Payment)
	}
	return state, err
}

// refundState returns the state of a refund. Without the expanded payment intent, the order of a refund that was made
// in Stripe's dashboard is unknown.
func (p *Provider) refundState(refund *sdk.Refund) (payment.State, error) {
	state := payment.State{
		Object:  payment.Object{Kind: payment.ObjectRefund, ID: refund.ID},
		OrderNo: refund.Metadata[metaOrder],
		Refund:  refund.Metadata[metaRefund],
		Outcome: payment.OutcomePending,
		Live:    p.cfg.Live, // an object without a mode of its own: a key sees those of its mode only
		At:      moment(refund.Created),
	}
	switch refund.Status {
	case sdk.RefundStatusSucceeded:
		state.Outcome = payment.OutcomeDone
	case sdk.RefundStatusFailed, sdk.RefundStatusCanceled:
		state.Outcome = payment.OutcomeFailed
	}
	if refund.PaymentIntent != nil {
		state.Payment = refund.PaymentIntent.ID
		if state.OrderNo == "" {
			state.OrderNo = refund.PaymentIntent.Metadata[metaOrder]
		}
	}
	return withAmount(withCharged(state, refund.Charge), refund.Amount, refund.Currency)
}

// withCharged adds the charged amount, with tax, to the state of a refund or a dispute. A charge that was not expanded
// adds nothing.
func withCharged(state payment.State, charge *sdk.Charge) payment.State {
	if charge == nil || charge.Amount == 0 {
		return state
	}
	if charged, err := fromStripe(charge.Amount, currencyCode(charge.Currency)); err == nil {
		state.Charged, state.AllBack = charged, charge.AmountRefunded >= charge.Amount
		state.Smallest = smallest(currencyCode(charge.Currency))
	}
	return state
}

// addCharge adds the fee of the charge of a payment, and when the payment was made. Stripe makes the balance
// transaction, which has the fee, up to an hour after the payment.
func addCharge(state *payment.State, intent *sdk.PaymentIntent) {
	charge := intent.LatestCharge
	if charge == nil || charge.Status != sdk.ChargeStatusSucceeded {
		return
	}
	state.At = moment(charge.Created)
	// The fee is in the currency of the shop's bank account. It is left out if the charge is in another currency.
	if fee := charge.BalanceTransaction; fee != nil && fee.Created != 0 && fee.Currency == charge.Currency {
		if amount, err := fromStripe(fee.Fee, currencyCode(fee.Currency)); err == nil {
			state.Fee = &amount
		}
	}
}

// withAmount returns a state with an amount in our minor units. It fails for an amount that we can't have asked for. An
// object without an order is of another program of the shop: its state names no payment then.
func withAmount(state payment.State, amount int64, currency sdk.Currency) (payment.State, error) {
	var err error
	state.Currency = currencyCode(currency)
	switch state.Amount, err = fromStripe(amount, state.Currency); {
	case err != nil && state.OrderNo == "":
		return payment.State{Object: state.Object, Live: state.Live}, nil
	case err != nil:
		return payment.State{}, fmt.Errorf("the amount %d %s: %w", amount, state.Currency, err)
	}
	return state, nil
}

func currencyCode(currency sdk.Currency) string { return strings.ToUpper(string(currency)) }

func moment(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
