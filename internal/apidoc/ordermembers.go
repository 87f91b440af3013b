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
		"listOrders.refunded_from": "only orders that were refunded as a whole then or later, by `refunded_at`",
		"reportSales.from":         "the beginning of the report",
		"reportSales.to":           "the end of the report, which is not included; at most 366 days later",
		"reportSales.by":           "the length of the periods, in UTC. Left out: `month`",
		"reportSales.product_id":   "only payments and refunds of a product",
		"SalesReport.from":         "the beginning of the report",
		"SalesReport.to":           "the end of the report, not included",
		"by":                       "the length of the periods",
		"SalesReport.product_id":   "the product; null: all",
		"totals":                   "the sums of the whole report, by currency",
		"periods":                  "the sums of the days or months with sales, the earliest first, and by currency",
		"as_of":                    "when the report was read",
		"complete_from": "the time from which on the service counts all payments in reports: it may lack payments " +
			"that were recorded before. null: not known",
		"unreadable":          "how many payments and refunds the service could not read: the sums lack them",
		"period":              "the day or the month, such as `2031-01-31` or `2031-01`",
		"SalesTotal.payments": "how many payments", "SalesPeriod.payments": "how many payments",
		"refunds":             "how many refunds",
		"gross":               "what buyers have paid, in the minor unit of the currency",
		"refunded":            "what went back to buyers, in the minor unit",
		"net":                 "`gross` without `refunded`",
		"SalesTotal.currency": "ISO 4217 code", "SalesPeriod.currency": "ISO 4217 code",
		"SalesReport.revision": "of the store, at which all was read",
		"listOrders.refunded_to": "only orders that were refunded as a whole before. [Reports](#report-sales) also " +
			"have the refunds of a part",
	}
}
