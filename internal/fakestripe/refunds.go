package fakestripe

import (
	"errors"

	sdk "github.com/stripe/stripe-go/v86"
)

// refunds are refunds that the shop asks for, over the API or in Stripe's dashboard.
type refunds struct {
	*state
	*sender
	*book
	failing int // how many more refunds fail at once; see FailRefunds
}

func (r *refunds) createRefund(a *account, in input) answer {
	id := in.text("payment_intent")
	intent := r.of(a, "payment_intent", id)
	if intent == nil {
		return missing("payment_intent", id)
	}
	charge := r.objects[intent.text("latest_charge")]
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
	return ok(r.render(r.refund(a, intent, charge, amount, in.texts("metadata")), in))
}

func (r *refunds) refund(a *account, intent, charge object, amount int64, metadata map[string]string) object {
	status, fails := sdk.RefundStatusSucceeded, r.failing > 0
	switch {
	case fails:
		status = sdk.RefundStatusFailed
	case charge.text("_with") == CardRefundPending:
		status = sdk.RefundStatusPending
	}
	refund := r.store(a, "refund", object{
		"amount": amount, "currency": charge["currency"], "charge": charge.text("id"),
		"payment_intent": intent.text("id"), "metadata": metadata, "status": string(status), "reason": nil,
	})
	delete(refund, "livemode") // Stripe's refunds have none
	if fails {
		r.failing--
		refund["failure_reason"] = "lost_or_stolen_card"
		r.emitIn("refund.created", refund, a.live)
		r.emitIn("refund.failed", refund, a.live)
		return refund
	}
	r.addRefunded(charge, amount)
	r.enter("refund", intent, refund, -amount, 0)
	r.emitIn("refund.created", refund, a.live)
	r.emit("charge.refunded", charge)
	switch charge.text("_with") {
	case CardRefundPending:
		r.after(refundTakes, func() {
			refund["status"] = string(sdk.RefundStatusSucceeded)
			r.emitIn("refund.updated", refund, a.live)
		})
	case CardRefundFails:
		r.after(refundTakes, func() {
			refund["status"], refund["failure_reason"] = string(sdk.RefundStatusFailed), "lost_or_stolen_card"
			r.addRefunded(charge, -amount)
			r.enter("refund_failure", intent, refund, amount, 0)
			r.emitIn("refund.failed", refund, a.live)
		})
	}
	return refund
}

func (r *refunds) addRefunded(charge object, amount int64) {
	charge["amount_refunded"] = charge.number("amount_refunded") + amount
	charge["refunded"] = charge.number("amount_refunded") == charge.number("amount")
}

// errNoCharge means that a payment intent has no charge.
var errNoCharge = errors.New("there is no such payment, or it is not paid")

// RefundInDashboard sends an amount of a payment back, as the shop does in Stripe's dashboard. It returns the refund's
// id.
func (r *refunds) RefundInDashboard(intentID string, amount int64) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.catchUp()
	intent := r.objects[intentID]
	charge := r.objects[intent.text("latest_charge")]
	if charge == nil || amount > charge.number("amount")-charge.number("amount_refunded") {
		return "", errNoCharge
	}
	return r.refund(r.accounts[intent.text("_account")], intent, charge, amount, nil).text("id"), nil
}

// FailRefunds makes the next refunds fail at once: they exist, and move no money.
func (r *refunds) FailRefunds(refunds int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failing = refunds
}

// IDs returns the ids of all objects of a type, such as "checkout.session", oldest first.
func (s *state) IDs(kind string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	return append([]string(nil), s.ids[kind]...)
}
