package bulk

import (
	"strconv"

	"licet/client"
	"licet/licensing/money"
)

// OrderColumns returns the columns of an export of orders in order.
func OrderColumns() []string {
	return []string{
		"order_no", "status", "product_id", "buyer_email", "created_at", "paid_at", "refunded_at",
		"currency", "gross", "refunded", "fee", "payment_provider", "reference", "quantity",
	}
}

// exportedOrder returns the row of an order in an export. Amounts are decimal numbers, exact in the currency's digits:
// what the buyer has paid, and what the buyer has got back, with all invoices of a subscription and
// second payments.
func exportedOrder(o *client.Order) []string {
	fee := ""
	if o.Fee != nil {
		fee = money.Decimal(*o.Fee, o.Currency)
	}
	return []string{
		guard(o.OrderNo), guard(o.Status), guard(o.ProductID), guard(o.BuyerEmail),
		formatTime(o.CreatedAt), formatTime(o.PaidAt), formatTime(o.RefundedAt),
		guard(o.Currency), money.Decimal(o.AmountPaid, o.Currency),
		money.Decimal(o.AmountRefunded, o.Currency), fee,
		guard(o.PaymentProvider), guard(o.PaymentReference), strconv.Itoa(max(o.Quantity, 1)),
	}
}
