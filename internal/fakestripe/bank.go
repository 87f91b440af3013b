package fakestripe

import (
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

// incompleteLives is how long a subscription whose first payment has failed can still be paid.
const incompleteLives = 23 * time.Hour

// takesDays reports whether a payment with an account takes days.
func takesDays(with string) bool { return with == BankPays || with == BankFails }

// payLater begins to pay the first invoice of a session's subscription from a bank account. Until then, the
// subscription is incomplete. If the payment fails, it stays so for a while, and then expires.
func (s *subscriptions) payLater(session, subscription, invoice object, with string) {
	intent := s.intentOfInvoice(subscription, invoice)
	intent["status"] = string(sdk.PaymentIntentStatusProcessing)
	invoice["attempt_count"], invoice["attempted"] = int64(1), true
	subscription["status"] = string(sdk.SubscriptionStatusIncomplete)
	s.after(bankTakes, func() {
		switch {
		case subscription["ended_at"] != nil:
		case with == BankPays:
			s.payInvoice(subscription, invoice, with)
			subscription["status"] = string(sdk.SubscriptionStatusActive)
			session["payment_status"] = "paid"
			s.emit("customer.subscription.updated", subscription)
			s.emit("checkout.session.async_payment_succeeded", session)
		default:
			intent["status"] = string(sdk.PaymentIntentStatusRequiresPaymentMethod)
			s.emit("payment_intent.payment_failed", intent)
			s.emit("invoice.payment_failed", invoice)
			s.emit("checkout.session.async_payment_failed", session)
			s.after(incompleteLives, func() { s.expireIncomplete(subscription) })
		}
	})
}

// expireIncomplete ends a subscription whose first invoice was never paid, and makes the invoice void.
func (s *subscriptions) expireIncomplete(subscription object) {
	if subscription.text("status") != string(sdk.SubscriptionStatusIncomplete) {
		return
	}
	subscription["status"] = string(sdk.SubscriptionStatusIncompleteExpired)
	subscription["ended_at"] = s.clock().Unix()
	for _, id := range s.ids["invoice"] {
		invoice := s.objects[id]
		if invoice.text("_subscription") == subscription.text("id") && invoice.text("status") == "open" {
			invoice["status"] = string(sdk.InvoiceStatusVoid)
			s.objects[invoice.text("_intent")]["status"] = string(sdk.PaymentIntentStatusCanceled)
		}
	}
	s.emit("customer.subscription.updated", subscription)
}
