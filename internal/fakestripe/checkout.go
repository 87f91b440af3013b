package fakestripe

import (
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

const (
	payPath = "/c/pay/"

	minLife = 30 * time.Minute
	maxLife = 24 * time.Hour

	taxPercent = 20 // of automatic tax, on top of the price
)

// item is the parameter of the only line item.
const item = "line_items[0][price_data]"

func (f *Fake) createSession(a *account, in input) answer {
	now := f.clock()
	ends := time.Unix(in.number("expires_at"), 0)
	amount, currency := in.number(item+"[unit_amount]"), in.text(item+"[currency]")
	switch {
	case in.text("mode") != "payment" && in.text("mode") != "subscription":
		return badParameter("mode", "the fake knows payments and subscriptions only")
	case (in.text("mode") == "subscription") != (in.text(item+"[recurring][interval]") != ""):
		return badParameter(item, "You must provide at least one recurring price in `subscription` mode")
	case in.text("mode") == "subscription" && len(in.texts("payment_intent_data[metadata]")) > 0:
		return badParameter("payment_intent_data", "You can not pass `payment_intent_data` in `subscription` mode.")
	case in.text("success_url") == "":
		return badParameter("success_url", "Missing required param: success_url.")
	case in.text(item+"[product_data][name]") == "":
		return badParameter(item+"[product_data][name]", "Missing required param: name.")
	case in.number("line_items[0][quantity]") < 1:
		return badParameter("line_items[0][quantity]", "Invalid positive integer")
	case currency == "" || currency != strings.ToLower(currency):
		return badParameter(item+"[currency]", "Invalid currency: "+currency)
	case ends.Before(now.Add(minLife - time.Second)):
		return badParameter("expires_at", "The `expires_at` timestamp must be at least 30 minutes from creation.")
	case ends.After(now.Add(maxLife)):
		return badParameter("expires_at", "The `expires_at` timestamp must be less than 24 hours from creation.")
	}
	if problem := chargeable(amount, upper(currency)); problem != "" {
		return badParameter(item+"[unit_amount]", problem)
	}
	subtotal := amount * in.number("line_items[0][quantity]")
	total, taxed := subtotal, in.text("automatic_tax[enabled]") == "true"
	if taxed {
		total += subtotal * taxPercent / 100
	}
	session := f.store(a, "checkout.session", object{
		"mode": in.text("mode"), "status": "open", "payment_status": "unpaid", "currency": currency,
		"amount_subtotal": subtotal, "amount_total": total, "automatic_tax": object{"enabled": taxed},
		"expires_at": ends.Unix(), "client_reference_id": in.text("client_reference_id"),
		"customer_email": orNil(in.text("customer_email")), "metadata": in.texts("metadata"),
		"success_url": in.text("success_url"), "cancel_url": in.text("cancel_url"), "payment_intent": nil,
		"_payment_metadata": in.texts("payment_intent_data[metadata]"), "subscription": nil, "invoice": nil,
		"_subscription_metadata": in.texts("subscription_data[metadata]"),
		"_product":               in.text(item + "[product_data][name]"),
		"_interval":              in.text(item + "[recurring][interval]"),
		"_interval_count":        max(in.number(item+"[recurring][interval_count]"), 1),
	})
	session["url"] = f.URL + payPath + session.text("id")
	f.at(ends, func() {
		if session.text("status") == "open" {
			f.expireOne(session)
		}
	})
	return ok(f.render(session, in))
}

// chargeable returns what is wrong with an amount.
func chargeable(amount int64, currency string) string {
	step := int64(1)
	switch currency {
	case "ISK", "UGX":
		step = 100
	case "BHD", "JOD", "KWD", "OMR", "TND":
		step = 10
	}
	least := map[string]int64{"USD": 50, "EUR": 50, "JPY": 50, "HUF": 17500}[currency]
	switch {
	case amount%step != 0:
		return "Invalid amount: the last digits must be 0"
	case amount < max(least, 1):
		return "The Checkout Session's total amount due must add up to at least the minimum"
	case amount > 999_999_999_999:
		return "amount too large"
	}
	return ""
}

func (f *Fake) expireSession(a *account, id string, in input) answer {
	session := f.of(a, "checkout.session", id)
	switch {
	case session == nil:
		return missing("checkout.session", id)
	case session.text("status") != "open":
		return refusal("", `Only Checkout Sessions with a status in ["open"] can be expired.`)
	}
	f.expireOne(session)
	return ok(f.render(session, in))
}

func (f *Fake) expireOne(session object) {
	session["status"], session["url"] = "expired", nil
	f.emit("checkout.session.expired", session)
}

// complete ends a session in which the buyer has paid, or has begun to pay with a method that takes days.
func (f *Fake) complete(session object, paid bool) {
	session["status"], session["url"] = "complete", nil
	if paid {
		session["payment_status"] = "paid"
	}
	f.emit("checkout.session.completed", session)
}

// intentOf returns the payment intent of a session. Stripe makes it when the buyer first tries to pay.
func (f *Fake) intentOf(session object) object {
	if id := session.text("payment_intent"); id != "" {
		return f.objects[id]
	}
	intent := f.store(f.accounts[session.text("_account")], "payment_intent", object{
		"amount": session["amount_total"], "amount_received": int64(0), "currency": session["currency"],
		"status": string(sdk.PaymentIntentStatusRequiresPaymentMethod), "metadata": session["_payment_metadata"],
		"latest_charge": nil, "last_payment_error": nil, "_session": session.text("id"),
	})
	session["payment_intent"] = intent.text("id")
	return intent
}

// PaymentOf returns the id of the payment intent of a session; empty if the buyer has not tried to pay. For a
// subscription that is the payment intent of the first invoice.
func (f *Fake) PaymentOf(sessionID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	session := f.objects[sessionID]
	if invoice := f.objects[session.text("invoice")]; invoice != nil {
		return invoice.text("_intent")
	}
	return session.text("payment_intent")
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func upper(currency string) string { return strings.ToUpper(currency) }
