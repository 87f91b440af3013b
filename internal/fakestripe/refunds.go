package fakestripe

import (
	"errors"
	"slices"

	sdk "github.com/stripe/stripe-go/v86"
)

func (f *Fake) createRefund(a *account, in input) answer {
	id := in.text("payment_intent")
	intent := f.of(a, "payment_intent", id)
	if intent == nil {
		return missing("payment_intent", id)
	}
	charge := f.objects[intent.text("latest_charge")]
	if charge == nil {
		return refusal("", "This PaymentIntent ("+id+") does not have a successful charge to refund.")
	}
	left := charge.number("amount") - charge.number("amount_refunded")
	amount := in.number("amount")
	if in.text("amount") == "" {
		amount = left
	}
	switch {
	case charge.flag("disputed"):
		return refusal(sdk.ErrorCodeChargeDisputed, "Charge has been charged back; cannot issue a refund.")
	case left == 0:
		return refusal(sdk.ErrorCodeChargeAlreadyRefunded, "Charge has already been refunded.")
	case amount > left || amount < 1:
		return refusal("", "Refund amount is greater than unrefunded amount on charge")
	}
	return ok(f.render(f.refund(a, intent, charge, amount, in.texts("metadata")), in))
}

func (f *Fake) refund(a *account, intent, charge object, amount int64, metadata map[string]string) object {
	status := sdk.RefundStatusSucceeded
	if charge.text("_with") == CardRefundPending {
		status = sdk.RefundStatusPending
	}
	refund := f.store(a, "refund", object{
		"amount": amount, "currency": charge["currency"], "charge": charge.text("id"),
		"payment_intent": intent.text("id"), "metadata": metadata, "status": string(status), "reason": nil,
	})
	delete(refund, "livemode") // Stripe's refunds have none
	f.addRefunded(charge, amount)
	f.enter("refund", intent, refund, -amount, 0)
	f.emitIn("refund.created", refund, a.live)
	f.emit("charge.refunded", charge)
	switch charge.text("_with") {
	case CardRefundPending:
		f.after(refundTakes, func() {
			refund["status"] = string(sdk.RefundStatusSucceeded)
			f.emitIn("refund.updated", refund, a.live)
		})
	case CardRefundFails:
		f.after(refundTakes, func() {
			refund["status"], refund["failure_reason"] = string(sdk.RefundStatusFailed), "lost_or_stolen_card"
			f.addRefunded(charge, -amount)
			f.enter("refund_failure", intent, refund, amount, 0)
			f.emitIn("refund.failed", refund, a.live)
		})
	}
	return refund
}

func (f *Fake) addRefunded(charge object, amount int64) {
	charge["amount_refunded"] = charge.number("amount_refunded") + amount
	charge["refunded"] = charge.number("amount_refunded") == charge.number("amount")
}

// errNoCharge means that a payment intent has no charge.
var errNoCharge = errors.New("there is no such payment, or it is not paid")

// RefundInDashboard sends an amount of a payment back, as the shop does in Stripe's dashboard. It returns the refund's
// id.
func (f *Fake) RefundInDashboard(intentID string, amount int64) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	intent := f.objects[intentID]
	charge := f.objects[intent.text("latest_charge")]
	if charge == nil || amount > charge.number("amount")-charge.number("amount_refunded") {
		return "", errNoCharge
	}
	return f.refund(f.accounts[intent.text("_account")], intent, charge, amount, nil).text("id"), nil
}

// disputeFee is what a dispute costs the shop, whatever its end.
const disputeFee = 1500

// Dispute disputes a payment, as the buyer does at the bank. It returns the dispute's id.
func (f *Fake) Dispute(intentID string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	charge := f.objects[f.objects[intentID].text("latest_charge")]
	if charge == nil {
		return "", errNoCharge
	}
	return f.dispute(charge).text("id"), nil
}

func (f *Fake) dispute(charge object) object {
	a, intent := f.accounts[charge.text("_account")], f.objects[charge.text("payment_intent")]
	amount := charge.number("amount") - charge.number("amount_refunded")
	dispute := f.store(a, "dispute", object{
		"amount": amount, "currency": charge["currency"], "charge": charge.text("id"),
		"payment_intent": intent.text("id"), "status": string(sdk.DisputeStatusNeedsResponse),
		"reason": string(sdk.DisputeReasonFraudulent),
	})
	charge["disputed"] = true
	f.moveDisputed(intent, dispute, -amount, disputeFee)
	f.emit("charge.dispute.created", dispute)
	f.emit("charge.dispute.funds_withdrawn", dispute)
	return dispute
}

// moveDisputed takes the money of a dispute from the shop, or gives it back, and notes that in the dispute.
func (f *Fake) moveDisputed(intent, dispute object, amount, fee int64) {
	kind := "dispute"
	if amount > 0 {
		kind = "dispute_reversal"
	}
	f.enter(kind, intent, dispute, amount, fee)
	balance := f.store(f.accounts[intent.text("_account")], "balance_transaction", object{
		"amount": amount, "fee": fee, "net": amount - fee, "currency": dispute["currency"], "type": "adjustment",
		"source": dispute.text("id"), "status": "pending",
	})
	moved, _ := dispute["balance_transactions"].([]any)
	dispute["balance_transactions"] = append(slices.Clone(moved), any(balance.clone()))
}

// Decide ends a dispute.
func (f *Fake) Decide(disputeID string, won bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	dispute := f.objects[disputeID]
	intent := f.objects[dispute.text("payment_intent")]
	dispute["status"] = string(sdk.DisputeStatusLost)
	if won {
		dispute["status"] = string(sdk.DisputeStatusWon)
		f.objects[dispute.text("charge")]["disputed"] = false
		f.moveDisputed(intent, dispute, dispute.number("amount"), 0)
		f.emit("charge.dispute.funds_reinstated", dispute)
	}
	f.emit("charge.dispute.closed", dispute)
}

// Disputes returns the ids of all disputes, oldest first.
func (f *Fake) Disputes() []string { return f.IDs("dispute") }

// IDs returns the ids of all objects of a type, such as "checkout.session", oldest first.
func (f *Fake) IDs(kind string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	return append([]string(nil), f.ids[kind]...)
}
