package fakestripe

import (
	"slices"

	sdk "github.com/stripe/stripe-go/v86"
)

// disputeFee is what a dispute costs the shop, whatever its end. Stripe returns only the fee for countering a dispute
// that the shop wins, which the fake does not take: https://support.stripe.com/topics/disputes.
const disputeFee = 1500

// disputes are payments that buyers dispute at their banks.
type disputes struct {
	*state
	*sender
	*book
}

// Dispute disputes a payment, as the buyer does at the bank. It returns the dispute's id.
func (d *disputes) Dispute(intentID string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	charge := d.objects[d.objects[intentID].text("latest_charge")]
	if charge == nil || charge.flag("refunded") {
		return "", errNoCharge
	}
	return d.dispute(charge).text("id"), nil
}

// Prevent prevents a dispute, as Stripe does for accounts with dispute prevention. Stripe gives the buyer the money
// back, or blocks the dispute. Prevent returns the id of the dispute.
func (d *disputes) Prevent(intentID string, resolve bool) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	intent := d.objects[intentID]
	charge := d.objects[intent.text("latest_charge")]
	if charge == nil || charge.flag("refunded") {
		return "", errNoCharge
	}
	dispute := d.storeDispute(charge, sdk.DisputeStatusPrevented)
	if resolve {
		d.moveDisputed(intent, dispute, -dispute.number("amount"), 0)
		d.emit("charge.dispute.funds_withdrawn", dispute)
	}
	d.emit("charge.dispute.closed", dispute)
	return dispute.text("id"), nil
}

// Contest sends evidence about a dispute to the bank, as the shop does in Stripe's dashboard. Stripe takes at most
// 150,000 characters.
func (d *disputes) Contest(disputeID, evidence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	dispute := d.objects[disputeID]
	dispute["evidence"] = object{"uncategorized_text": evidence}
	if dispute.text("status") == string(sdk.DisputeStatusNeedsResponse) {
		dispute["status"] = string(sdk.DisputeStatusUnderReview)
	}
	d.emit("charge.dispute.updated", dispute)
}

// DisputeStates returns the states of all disputes, by their ids.
func (d *disputes) DisputeStates() map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	states := map[string]string{}
	for _, id := range d.ids["dispute"] {
		states[id] = d.objects[id].text("status")
	}
	return states
}

func (d *disputes) dispute(charge object) object {
	dispute := d.storeDispute(charge, sdk.DisputeStatusNeedsResponse)
	charge["disputed"] = true
	d.moveDisputed(d.objects[charge.text("payment_intent")], dispute, -dispute.number("amount"), disputeFee)
	d.emit("charge.dispute.created", dispute)
	d.emit("charge.dispute.funds_withdrawn", dispute)
	return dispute
}

func (d *disputes) storeDispute(charge object, status sdk.DisputeStatus) object {
	return d.store(d.accounts[charge.text("_account")], "dispute", object{
		"amount": charge.number("amount") - charge.number("amount_refunded"), "currency": charge["currency"],
		"charge": charge.text("id"), "payment_intent": charge.text("payment_intent"), "status": string(status),
		"reason": string(sdk.DisputeReasonFraudulent),
	})
}

// moveDisputed takes the money of a dispute from the shop, or gives it back, and notes that in the dispute.
func (d *disputes) moveDisputed(intent, dispute object, amount, fee int64) {
	kind := "dispute"
	if amount > 0 {
		kind = "dispute_reversal"
	}
	d.enter(kind, intent, dispute, amount, fee)
	balance := d.store(d.accounts[intent.text("_account")], "balance_transaction", object{
		"amount": amount, "fee": fee, "net": amount - fee, "currency": dispute["currency"], "type": "adjustment",
		"source": dispute.text("id"), "status": "pending",
	})
	moved, _ := dispute["balance_transactions"].([]any)
	dispute["balance_transactions"] = append(slices.Clone(moved), any(balance.clone()))
}

// Decide ends a dispute. Stripe reinstates the money of a dispute that the shop has won after the dispute is closed.
func (d *disputes) Decide(disputeID string, won bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	dispute := d.objects[disputeID]
	intent := d.objects[dispute.text("payment_intent")]
	dispute["status"] = string(sdk.DisputeStatusLost)
	if won {
		dispute["status"] = string(sdk.DisputeStatusWon)
		d.objects[dispute.text("charge")]["disputed"] = false
	}
	d.emit("charge.dispute.closed", dispute)
	if won {
		d.moveDisputed(intent, dispute, dispute.number("amount"), 0)
		d.emit("charge.dispute.funds_reinstated", dispute)
	}
}

// Disputes returns the ids of all disputes, oldest first.
func (d *disputes) Disputes() []string { return d.IDs("dispute") }
