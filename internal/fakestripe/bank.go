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
func (f *Fake) payLater(session, subscription, invoice object, with string) {
	intent := f.intentOfInvoice(subscription, invoice)
	intent["status"] = string(sdk.PaymentIntentStatusProcessing)
	invoice["attempt_count"], invoice["attempted"] = int64(1), true
	subscription["status"] = string(sdk.SubscriptionStatusIncomplete)
	f.after(bankTakes, func() {
		switch {
		case subscription["ended_at"] != nil:
		case with == BankPays:
			f.payInvoice(subscription, invoice, with)
			subscription["status"] = string(sdk.SubscriptionStatusActive)
			session["payment_status"] = "paid"
			f.emit("customer.subscription.updated", subscription)
			f.emit("checkout.session.async_payment_succeeded", session)
		default:
			intent["status"] = string(sdk.PaymentIntentStatusRequiresPaymentMethod)
			f.emit("payment_intent.payment_failed", intent)
			f.emit("invoice.payment_failed", invoice)
			f.emit("checkout.session.async_payment_failed", session)
			f.after(incompleteLives, func() { f.expireIncomplete(subscription) })
		}
	})
}

// expireIncomplete ends a subscription whose first invoice was never paid, and makes the invoice void.
func (f *Fake) expireIncomplete(subscription object) {
	if subscription.text("status") != string(sdk.SubscriptionStatusIncomplete) {
		return
	}
	subscription["status"] = string(sdk.SubscriptionStatusIncompleteExpired)
	subscription["ended_at"] = f.clock().Unix()
	for _, id := range f.ids["invoice"] {
		invoice := f.objects[id]
		if invoice.text("_subscription") == subscription.text("id") && invoice.text("status") == "open" {
			invoice["status"] = string(sdk.InvoiceStatusVoid)
			f.objects[invoice.text("_intent")]["status"] = string(sdk.PaymentIntentStatusCanceled)
		}
	}
	f.emit("customer.subscription.updated", subscription)
}
