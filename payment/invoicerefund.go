package payment

import (
	"context"
	"errors"

	"licet/licensing"
)

// recordFurtherRefund stores what the provider says about a refund of a further payment of an order: our own, or made
// at the provider.
func (r *refundCallbacks) recordFurtherRefund(
	ctx context.Context, provider Provider, order licensing.Order, state State,
) error {
	further, err := r.payments.furtherPayment(ctx, provider, order, state)
	if err != nil || !isFurther(further, &order) {
		return err
	}
	refund := licensing.Payment{
		Kind: licensing.KindOfInvoiceRefund, OrderNo: order.OrderNo, Provider: provider.Name(), Reference: state.ID,
		Refunds: further.Reference, Currency: order.Currency, By: licensing.Provider,
		Amount:    withoutTax(further.Amount, order.InvoiceRefunds, state, further.Amount-further.Returned),
		ProductID: further.ProductID,
	}
	open, own := order.OpenReturn(state.Refund)
	if own {
		refund = open.Refund(&order, further)
	}
	if state.Refund != "" && licensing.OwnRefund(state.Refund) {
		refund.Reference = state.Refund
	}
	refund.ProviderID = state.ID
	setOutcome(&refund, state)
	if state.Outcome == OutcomeFailed && !own {
		recorded, err := r.node.ReadPayment(ctx, order.Owner, refund)
		if err != nil || recorded == nil { // the money has not left the shop
			return err
		}
	}
	if refund.Amount == 0 { // it has sent back tax only, as all of the price is back, or by rounding
		return nil
	}
	err = r.node.RecordInvoiceRefund(ctx, order, further.Kind, refund)
	switch {
	case !errors.Is(err, licensing.ErrRefundMisfit):
	case licensing.OwnRefund(refund.Reference): // the provider has sent money that we wanted to send back
		return providerFailed(err)
	default:
		r.node.ReportMisfit(order, state.ID, err)
		return nil
	}
	return err
}
