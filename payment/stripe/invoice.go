package stripe

import (
	"context"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/licensing"
	"licet/payment"
)

// lookAtInvoice reads an invoice of a subscription, its payment and the fee. Other invoices have no order.
func (p *Provider) lookAtInvoice(ctx context.Context, id string) (payment.State, error) {
	invoice := &sdk.Invoice{}
	path := sdk.FormatURLPath("/v1/invoices/%s", id)
	if err := p.get(ctx, path, &sdk.InvoiceRetrieveParams{}, invoice, "payments"); err != nil {
		return payment.State{}, err
	}
	state := payment.State{
		Object:  payment.Object{Kind: payment.ObjectInvoice, ID: invoice.ID},
		Outcome: invoiceOutcome(invoice),
		Live:    invoice.Livemode,
		At:      moment(invoice.Created),
	}
	if parent := invoice.Parent; parent != nil && parent.SubscriptionDetails != nil {
		state.OrderNo = parent.SubscriptionDetails.Metadata[metaOrder]
		if parent.SubscriptionDetails.Subscription != nil {
			state.Subscription = parent.SubscriptionDetails.Subscription.ID
		}
	}
	var err error
	if state.PeriodStart, state.PeriodEnd, err = p.paidPeriod(ctx, invoice); err != nil {
		return payment.State{}, err
	}
	if intent := paidBy(invoice); intent != "" {
		if err := p.addPayment(ctx, &state, intent); err != nil {
			return payment.State{}, err
		}
	}
	if paid := invoice.StatusTransitions; paid != nil && paid.PaidAt != 0 {
		state.At = moment(paid.PaidAt)
	}
	return withAmount(state, chargedBy(invoice), invoice.Currency)
}

// chargedBy returns what the buyer pays of an invoice, without tax. A change to a lower amount in the middle of a
// period is an invoice of less than nothing: a credit, which the next invoices use up. A credit includes tax, so what
// is due has the same part of tax as the total. A part of a price may have more digits than Stripe charges.
func chargedBy(invoice *sdk.Invoice) int64 {
	amount := max(invoice.AmountDue, 0)
	if invoice.AutomaticTax != nil && invoice.AutomaticTax.Enabled {
		amount = payment.Share(invoice.Subtotal, invoice.Total, amount)
	}
	smallest := step(currencyCode(invoice.Currency))
	return (amount + smallest/2) / smallest * smallest
}

// invoiceOf returns the order and the id of the invoice that a payment intent has paid. Both are empty if the intent
// has paid no invoice of an order's subscription. Stripe makes the payment intents of invoices, without our metadata.
func (p *Provider) invoiceOf(ctx context.Context, intent string) (orderNo, invoice string, err error) {
	params := &sdk.InvoicePaymentListParams{Payment: &sdk.InvoicePaymentListPaymentParams{
		Type: sdk.String("payment_intent"), PaymentIntent: sdk.String(intent),
	}}
	params.Limit = sdk.Int64(1)
	params.AddExpand("data.invoice")
	page := &sdk.InvoicePaymentList{}
	if err := p.list(ctx, "/v1/invoice_payments", params, page); err != nil || len(page.Data) == 0 {
		return "", "", err
	}
	paid := page.Data[0].Invoice
	if paid == nil || paid.Parent == nil || paid.Parent.SubscriptionDetails == nil {
		return "", "", nil
	}
	return paid.Parent.SubscriptionDetails.Metadata[metaOrder], paid.ID, nil
}

func invoiceOutcome(invoice *sdk.Invoice) payment.Outcome {
	switch invoice.Status {
	case sdk.InvoiceStatusPaid:
		return payment.OutcomeDone
	case sdk.InvoiceStatusVoid:
		return payment.OutcomeEnded
	case sdk.InvoiceStatusUncollectible:
		return payment.OutcomeFailed
	}
	if invoice.AttemptCount > 0 {
		return payment.OutcomeFailed
	}
	return payment.OutcomeOpen
}

// paidBy returns the payment intent of an invoice: the intent that paid the invoice, or else the latest.
func paidBy(invoice *sdk.Invoice) (intent string) {
	if invoice.Payments == nil {
		return ""
	}
	for _, paid := range invoice.Payments.Data {
		if paid.Payment == nil || paid.Payment.PaymentIntent == nil {
			continue
		}
		intent = paid.Payment.PaymentIntent.ID
		if paid.Status == "paid" {
			return intent
		}
	}
	return intent
}

// addPayment adds the payment of an invoice and its fee. A payment that takes days counts as an attempt of the invoice
// at once.
func (p *Provider) addPayment(ctx context.Context, state *payment.State, id string) error {
	intent, err := p.intent(ctx, id)
	if err != nil {
		return err
	}
	state.Payment = intent.ID
	if state.Outcome == payment.OutcomeFailed && intent.Status == sdk.PaymentIntentStatusProcessing {
		state.Outcome = payment.OutcomePending
	}
	addCharge(state, intent)
	return nil
}

// paidPeriod returns the period that an invoice pays for: that of the subscription's line. Prorations pay for a part of
// a period that another invoice has paid for, so they don't count. The times are zero if the invoice has no such line.
func (p *Provider) paidPeriod(ctx context.Context, invoice *sdk.Invoice) (start, end time.Time, err error) {
	lines := invoice.Lines
	for range findPages {
		if lines == nil {
			break
		}
		for _, line := range lines.Data {
			of := line.Parent
			if of == nil || of.SubscriptionItemDetails == nil || of.SubscriptionItemDetails.Proration ||
				line.Period == nil {
				continue
			}
			if until := moment(line.Period.End); until.After(end) {
				start, end = moment(line.Period.Start), until
			}
		}
		if !lines.HasMore || len(lines.Data) == 0 {
			break
		}
		params := &sdk.InvoiceListLinesParams{}
		params.Limit = sdk.Int64(findLimit)
		params.StartingAfter = sdk.String(lines.Data[len(lines.Data)-1].ID)
		next := &sdk.InvoiceLineItemList{}
		if err := p.list(ctx, sdk.FormatURLPath("/v1/invoices/%s/lines", invoice.ID), params, next); err != nil {
			return time.Time{}, time.Time{}, err
		}
		lines = next
	}
	return start, end, nil
}

// Invoices implements [payment.Provider].
func (p *Provider) Invoices(ctx context.Context, order licensing.Order) (ids []string, err error) {
	params := &sdk.InvoiceListParams{
		Subscription: sdk.String(order.Subscription), Status: sdk.String(sdk.InvoiceStatusPaid),
	}
	params.Limit = sdk.Int64(findLimit)
	for range findPages {
		page := &sdk.InvoiceList{}
		if err := p.list(ctx, "/v1/invoices", params, page); err != nil {
			return nil, failed("list the invoices", err)
		}
		for _, invoice := range page.Data {
			ids = append(ids, invoice.ID)
		}
		if !page.HasMore || len(page.Data) == 0 {
			break
		}
		params.StartingAfter = sdk.String(page.Data[len(page.Data)-1].ID)
	}
	return ids, nil
}
