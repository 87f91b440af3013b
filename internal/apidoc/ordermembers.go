package apidoc

// orderMembers describes members and parameters of lists of orders, like members.
func orderMembers() map[string]string {
	return map[string]string{
		"canceled_at": "when the order was canceled",
		"refund_due": "true while money is to be refunded and the payment provider has " +
			"not confirmed it",
		"listOrders.status":           "only orders with this status now",
		"listOrders.buyer_email":      "only orders of a buyer, in any case. Percent-encode a `+`",
		"listOrders.product_id":       "only orders of a product",
		"listOrders.payment_provider": "only orders that were paid, or must be paid, at this provider",
		"listOrders.reference": "only the order of the payment with this `reference`, compared exactly; without " +
			"`payment_provider`, of any provider",
		"listOrders.created_from":  "only orders that were created then or later",
		"listOrders.created_to":    "only orders that were created before",
		"listOrders.paid_from":     "only orders that were paid then or later, by `paid_at`",
		"listOrders.paid_to":       "only orders that were paid before",
		"listOrders.refunded_from": "only orders that were refunded then or later",
		"listOrders.refunded_to":   "only orders that were refunded before",
	}
}
