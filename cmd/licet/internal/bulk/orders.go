package bulk

import (
	"strconv"

	"licet/client"
	"licet/licensing"
)

// OrderColumns returns the columns of an export of orders in order.
func OrderColumns() []string {
	return []string{
		"order_no", "status", "product_id", "buyer_email", "created_at", "paid_at", "refunded_at",
		"currency", "gross", "refunded", "fee", "payment_provider", "reference", "quantity",
	}
}

// exportedOrder returns the row of an order in an export. Amounts are decimal numbers, exact in the currency's digits:
// what the buyer has paid, and what the buyer has got back. No provider tells its fee yet.
func exportedOrder(o *client.Order) []string {
	var gross int64
	if !o.PaidAt.IsZero() {
		gross = o.Amount
	}
	return []string{
		guard(o.OrderNo), guard(o.Status), guard(o.ProductID), guard(o.BuyerEmail),
		stamp(o.CreatedAt), stamp(o.PaidAt), stamp(o.RefundedAt),
		guard(o.Currency), licensing.DecimalAmount(gross, o.Currency),
		licensing.DecimalAmount(o.AmountRefunded, o.Currency), "",
		guard(o.PaymentProvider), guard(o.PaymentReference), strconv.Itoa(max(o.Quantity, 1)),
	}
}
