package fakestripe

import (
	sdk "github.com/stripe/stripe-go/v86"
)

// charges takes the money of payments, or declines them.
type charges struct {
	*state
	*sender
	*book
	*disputes
}

func (c *charges) decline(intent object, code sdk.ErrorCode, reason string) {
	intent["status"] = string(sdk.PaymentIntentStatusRequiresPaymentMethod)
	intent["last_payment_error"] = object{"type": string(sdk.ErrorTypeCard), "code": string(code),
		"decline_code": reason}
	c.emit("payment_intent.payment_failed", intent)
}

// feeOf is what Stripe keeps of a payment. Stripe counts krónur and shillings in hundredths, of which it keeps whole
// hundreds only.
func feeOf(amount int64, currency string) int64 {
	fee := (amount*29+500)/1000 + 30
	if currency == "isk" || currency == "ugx" {
		fee = (fee + 50) / 100 * 100
	}
	return fee
}

// charge takes the money of a payment intent. The fee is in the ledger at once, and Stripe tells it later.
func (c *charges) charge(intent object, with string) {
	a := c.accounts[intent.text("_account")]
	amount := intent.number("amount")
	charge := c.store(a, "charge", object{
		"amount": amount, "amount_captured": amount, "amount_refunded": int64(0), "currency": intent["currency"],
		"status": "succeeded", "paid": true, "captured": true, "refunded": false, "disputed": false,
		"payment_intent": intent.text("id"), "metadata": intent["metadata"], "balance_transaction": nil,
		"_with": with,
	})
	fee := feeOf(amount, intent.text("currency"))
	intent["status"], intent["latest_charge"] = string(sdk.PaymentIntentStatusSucceeded), charge.text("id")
	intent["amount_received"], intent["last_payment_error"] = amount, nil
	c.enter("charge", intent, charge, amount, fee)
	c.emit("payment_intent.succeeded", intent)
	c.emit("charge.succeeded", charge)
	c.after(captureTakes, func() { c.capture(charge, fee) })
	if with == CardDisputed {
		c.after(disputeTakes, func() { c.dispute(charge) })
	}
}

// capture makes the balance transaction of a charge, as Stripe's asynchronous capture does.
func (c *charges) capture(charge object, fee int64) {
	amount := charge.number("amount")
	balance := c.store(c.accounts[charge.text("_account")], "balance_transaction", object{
		"amount": amount, "fee": fee, "net": amount - fee, "currency": charge["currency"], "type": "charge",
		"source": charge.text("id"), "status": "pending",
	})
	charge["balance_transaction"] = balance.text("id")
	c.emit("charge.updated", charge)
}
