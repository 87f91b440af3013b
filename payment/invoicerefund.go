package payment

import (
	"context"
	"errors"

	"licet/licensing"
)

// errNoInvoice makes the provider repeat the callback about a refund.
var errNoInvoice = errors.New("the refunded invoice is not recorded yet")

// recordInvoiceRefund stores what the provider says about a refund of a later invoice of an order's subscription. The
// callback may come before the invoice's own callback.
func (d *Desk) recordInvoiceRefund(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) error {
	named := licensing.Payment{Kind: licensing.KindOfInvoice, Provider: provider.Name(), Reference: state.Invoice}
	invoice, err := d.node.ReadPayment(ctx, order.Owner, named)
	if err == nil && invoice == nil {
		if err = d.findInvoices(ctx, provider, order); err == nil {
			invoice, err = d.node.ReadPayment(ctx, order.Owner, named)
		}
	}
	switch {
	case err != nil:
		return err
	case invoice == nil:
		return providerFailed(errNoInvoice)
	case invoice.Kind != licensing.KindOfInvoice || invoice.OrderNo != order.OrderNo:
		return nil
	}
	refund := licensing.Payment{
		Kind: licensing.KindOfInvoiceRefund, OrderNo: order.OrderNo, Provider: provider.Name(), Reference: state.ID,
		ProviderID: state.ID, Refunds: invoice.Reference, Currency: order.Currency, By: licensing.Provider,
		Amount: Share(state.Amount, max(state.Charged, invoice.Amount), invoice.Amount), ProductID: invoice.ProductID,
	}
	left, taxed := invoice.Amount-invoice.Returned, state.Charged > invoice.Amount
	if taxed && (state.AllBack || refund.Amount > left) {
		refund.Amount = left // the refunds before were rounded
	}
	switch state.Outcome {
	case OutcomeDone:
		refund.PaidAt = state.At
	case OutcomeFailed:
		refund.State = licensing.PaymentFailed
	default:
		refund.State = licensing.PaymentPending
	}
	if state.Outcome == OutcomeFailed {
		recorded, err := d.node.ReadPayment(ctx, order.Owner, refund)
		if err != nil || recorded == nil { // the money has not left the shop
			return err
		}
	}
	err = d.node.RecordInvoiceRefund(ctx, order, refund)
	if errors.Is(err, licensing.ErrRefundMisfit) {
		d.node.ReportMisfit(order, state.ID, err)
		return nil
	}
	return err
}
