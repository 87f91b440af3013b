package apidoc

// moneyMembers describes members about payments and refunds, as members does.
func moneyMembers() map[string]string {
	return map[string]string{
		"ProductDescription.billing": "how orders are paid again and again: `interval`, such as `P1M` or `P1Y`, at " +
			"most 3 years, and `grace` between the end of the paid period and that of the license, left out: `P3D`. " +
			"See [Subscriptions](#subscriptions). Left out: `{}`, orders are paid once",
		"Product.billing": "how orders are paid again and again; left out: they are paid once",
		"interval":        "the time between two payments",
		"Billing.grace":   "the time between the end of the paid period and the end of the license",
		"subscription":    "the [subscription](#subscriptions) of the order; left out: there is none yet",
		"Subscription.status": "`past_due`: the latest payment has failed, and the provider tries again; " +
			"`canceled`: it has ended",
		"current_period_end":      "the end of the period that is paid for",
		"cancel_at":               "when the subscription ends, or has ended; null: it renews",
		"Subscription.product_id": "the product that the present period is paid for",
		"Subscription.amount":     "what the present period costs, in the minor unit",
		"planned_change":          "the change that takes effect with the next period; left out: there is none",
		"PlannedChange.amount":    "what each period costs from then on, in the minor unit",
		"PlannedChange.max_devices": "of the license from then on; null: that of the new product, or as it is if the " +
			"product stays",
		"PlannedChange.from":     "the beginning of the first period that it is for",
		"PlanChange.product_id":  "a product with the same interval. Left out: the product stays",
		"PlanChange.amount":      "what each period is to cost, in the minor unit",
		"PlanChange.max_devices": "of the license; 0: unlimited. Left out: that of the new product, or as it is",
		"PlanChange.at": "`now`: the buyer pays the difference for the rest of the period; or `period_end`: from the " +
			"next period on. Left out: `period_end`",
		"SubscriptionEnd.at": "`now`, or `period_end`, the end of the paid period. Left out: `period_end`",
		"Portal.url":         "the provider's page, for the buyer alone, valid for a short time",
		"refund_due":         "true while money is to be refunded and the payment provider has not confirmed it",
		"amount_paid": "what the buyer has paid, with all invoices of the subscription and second payments, " +
			"in the minor unit",
		"amount_refunded": "how much of `amount_paid` has gone back to the buyer by refunds and lost disputes, " +
			"in the minor unit",
		"refund_pending":       "the amount of the refunds that are not confirmed yet, in the minor unit; 0: none",
		"RefundRequest.amount": "how much to refund, in the minor unit. Left out: all that is left of the payment",
		"RefundRequest.invoice": "the `reference` of an [invoice](#list-the-payments-of-an-order) of the order's " +
			"subscription to refund in place of the first payment, without `reason`. Left out: the first payment",
		"refunded_at":            "when the order was refunded, and nothing was left of its payment",
		"Order.payment_provider": "where the order is paid: `sandbox`, `stripe` or `outside`; null: open, or free",
		"Account.payment_provider": "the provider that charges the orders: `sandbox` or `stripe`; null: none, you " +
			"[record your own payments](#record-an-outside-payment)",
		"NewOrder.payment_provider": "`outside`: you [record it](#record-an-outside-payment). " +
			"Left out: at `pay_url`",
		"payment_reference": "the payment's id at its provider, or your `reference`; null: there is none",
		"OrderPayment.type": "`payment` of the order, later `invoice` of its subscription, `second` payment of an " +
			"order that was paid already, `refund` or `dispute`; `unmatched`: a payment of another amount or " +
			"currency than the order's, which changes nothing",
		"OrderPayment.reference": "the id at the payment provider, your `reference`, or our number of a refund " +
			"that the service has made",
		"OrderPayment.payment_provider": "`sandbox`, `stripe` or `outside`",
		"OrderPayment.status": "`succeeded`: the money has moved; of a refund also `pending`: the provider sends the " +
			"money later, and `failed`; of a dispute `open`, `won` or `lost`",
		"EventData.dispute": "the buyer's dispute of the payment at the bank; only of `order.disputed`",
		"Dispute.reference": "the id at the payment provider, as in the order's payments",
		"Dispute.status":    "`open`, `won` or `lost`",
		"Dispute.amount":    "how much of the order's `amount_paid` is disputed",
		"OrderPayment.fee": "what the payment provider keeps; null: not known. Stripe tells it up to an hour after " +
			"the payment, and no event says so",
		"Order.fee": "what the payment provider keeps of all payments and disputes of the order, as far as known; " +
			"null: not known (yet)",
		"OrderPayment.paid_at":     "when the buyer paid, or was refunded; null: the refund is not made",
		"recorded_at":              "when the service recorded it",
		"recorded_by":              "who recorded it: the id of an API key, or `provider`",
		"payments":                 "the payments, the newest first",
		"OutsidePayment.reference": "your name for the payment, new for each payment of your account and mode",
		"OutsidePayment.amount":    "what you have received. Left out: the order's amount, which it must be",
		"OutsidePayment.paid_at":   "when you received it, since 2000; 5 minutes ahead are now. Left out: now",
		"Order.upgrade_of":         "the key of the [trial](#start-a-trial) that the payment upgrades, or null",
	}
}
