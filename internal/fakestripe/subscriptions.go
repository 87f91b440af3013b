package fakestripe

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

// retryAfter is when a payment of a renewal that has failed is tried again, counted from the try before.
var retryAfter = []time.Duration{3 * 24 * time.Hour, 5 * 24 * time.Hour}

// subscribe begins the subscription of a session, whose first invoice the buyer pays now, or in some days.
func (f *Fake) subscribe(session object, with string) {
	a := f.accounts[session.text("_account")]
	customer := f.store(a, "customer", object{"email": session["customer_email"]})
	product := f.store(a, "product", object{"name": session["_product"], "active": true})
	price := f.newPrice(a, product.text("id"), session.text("currency"), session.number("amount_subtotal"),
		session.text("_interval"), session.number("_interval_count"))
	now := f.clock()
	subscription := f.store(a, "subscription", object{
		"status": string(sdk.SubscriptionStatusActive), "currency": session["currency"],
		"customer": customer.text("id"), "metadata": session["_subscription_metadata"],
		"cancel_at_period_end": false, "cancel_at": nil, "canceled_at": nil, "ended_at": nil, "_with": with,
		"_tax": session["automatic_tax"].(object).flag("enabled"),
	})
	f.count++
	subscription["items"] = object{"object": "list", "has_more": false, "data": []object{{
		"id": "si_" + subscription.text("id"), "object": "subscription_item", "quantity": int64(1), "price": price,
		"current_period_start": now.Unix(), "current_period_end": advance(now, price).Unix(),
		"subscription": subscription.text("id"),
	}}}
	invoice := f.invoice(subscription, "subscription_create", f.periodLine(subscription))
	if takesDays(with) {
		f.payLater(session, subscription, invoice, with)
	} else {
		f.payInvoice(subscription, invoice, with)
	}
	session["customer"], session["subscription"] = customer.text("id"), subscription.text("id")
	session["invoice"] = invoice.text("id")
	f.emit("customer.subscription.created", subscription)
	f.renewLater(subscription)
}

func (f *Fake) newPrice(a *account, product, currency string, amount int64, interval string, count int64) object {
	return f.store(a, "price", object{
		"currency": currency, "unit_amount": amount, "product": product, "type": "recurring",
		"recurring": object{"interval": interval, "interval_count": count},
	})
}

// advance returns the end of the period that begins at a time.
func advance(from time.Time, price object) time.Time {
	recurring := price["recurring"].(object)
	count := int(recurring.number("interval_count"))
	switch recurring.text("interval") {
	case "day":
		return from.AddDate(0, 0, count)
	case "week":
		return from.AddDate(0, 0, 7*count)
	case "month":
		return from.AddDate(0, count, 0)
	}
	return from.AddDate(count, 0, 0)
}

// itemOf returns the only item of a subscription.
func itemOf(subscription object) object { return subscription["items"].(object)["data"].([]object)[0] }

// line is a line of an invoice.
func (f *Fake) line(subscription object, amount int64, from, to int64, proration bool) object {
	f.count++
	return object{
		"id": "il_" + subscription.text("id"), "object": "line_item", "amount": amount,
		"currency": subscription["currency"], "period": object{"start": from, "end": to},
		"parent": object{"type": "subscription_item_details", "subscription_item_details": object{
			"subscription": subscription.text("id"), "proration": proration,
			"subscription_item": itemOf(subscription).text("id"),
		}},
	}
}

// periodLine is the line of the subscription's present period.
func (f *Fake) periodLine(subscription object) object {
	item := itemOf(subscription)
	return f.line(subscription, item["price"].(object).number("unit_amount"), item.number("current_period_start"),
		item.number("current_period_end"), false)
}

// invoice makes an open invoice of a subscription. An invoice of less than nothing is a credit, which the next invoices
// use up, as the balance of a customer does at Stripe.
func (f *Fake) invoice(subscription object, reason string, lines ...object) object {
	subtotal := int64(0)
	for _, line := range lines {
		subtotal += line.number("amount")
	}
	total := subtotal
	if subscription.flag("_tax") {
		total += total * taxPercent / 100
	}
	due := max(total-subscription.number("_credit"), 0)
	subscription["_credit"] = subscription.number("_credit") - total + due
	return f.store(f.accounts[subscription.text("_account")], "invoice", object{
		"status": string(sdk.InvoiceStatusOpen), "currency": subscription["currency"],
		"customer": subscription["customer"], "billing_reason": reason, "attempt_count": int64(0), "attempted": false,
		"subtotal": subtotal, "total": total, "amount_due": due, "amount_paid": int64(0),
		"automatic_tax": object{"enabled": subscription.flag("_tax")},
		"parent": object{"type": "subscription_details", "subscription_details": object{
			"subscription": subscription.text("id"), "metadata": subscription["metadata"],
		}},
		"_subscription":      subscription.text("id"),
		"lines":              object{"object": "list", "has_more": false, "data": lines},
		"status_transitions": object{"paid_at": nil}, "_payments": []object{},
	})
}

// payInvoice tries to pay an open invoice, and reports whether that succeeds.
func (f *Fake) payInvoice(subscription, invoice object, with string) bool {
	intent := f.intentOfInvoice(subscription, invoice)
	invoice["attempt_count"], invoice["attempted"] = invoice.number("attempt_count")+1, true
	if with == CardDeclined || with == CardNoFunds || with == CardAuthentication {
		f.decline(intent, sdk.ErrorCodeCardDeclined, "generic_decline")
		f.emit("invoice.payment_failed", invoice)
		return false
	}
	if intent.number("amount") > 0 {
		f.charge(intent, with)
		payments := invoice["_payments"].([]object)
		payments[len(payments)-1]["status"] = "paid"
	}
	invoice["status"], invoice["amount_paid"] = string(sdk.InvoiceStatusPaid), invoice["amount_due"]
	invoice["status_transitions"] = object{"paid_at": f.clock().Unix()}
	f.emit("invoice.paid", invoice)
	return true
}

// intentOfInvoice returns the payment intent of an invoice. Its ledger entries name the subscription's order.
func (f *Fake) intentOfInvoice(subscription, invoice object) object {
	if id := invoice.text("_intent"); id != "" {
		return f.objects[id]
	}
	intent := f.store(f.accounts[subscription.text("_account")], "payment_intent", object{
		"amount": invoice["amount_due"], "amount_received": int64(0), "currency": invoice["currency"],
		"status":        string(sdk.PaymentIntentStatusRequiresPaymentMethod),
		"latest_charge": nil, "last_payment_error": nil, "_order": subscription["metadata"],
		"_invoice": invoice.text("id"), "_until": paidUntil(invoice),
	})
	invoice["_intent"] = intent.text("id")
	if intent.number("amount") > 0 {
		invoice["_payments"] = append(invoice["_payments"].([]object), object{
			"id": "inpay_" + intent.text("id"), "object": "invoice_payment", "status": "open", "is_default": true,
			"payment": object{"type": "payment_intent", "payment_intent": intent.text("id")},
		})
	}
	return intent
}

// paidUntil returns the end of the period that an invoice pays for, in seconds of Unix time; 0 for prorations.
func paidUntil(invoice object) (until int64) {
	for _, line := range invoice["lines"].(object)["data"].([]object) {
		if !line["parent"].(object)["subscription_item_details"].(object).flag("proration") {
			until = max(until, line["period"].(object).number("end"))
		}
	}
	return until
}

// invoicePayments lists the payments of invoices with a payment intent.
func (f *Fake) invoicePayments(a *account, path string, in input) answer {
	id, data := in.text("payment[payment_intent]"), []object{}
	switch {
	case in.text("payment[type]") != "payment_intent" || id == "":
		return badParameter("payment", "The fake lists the payments of invoices by payment intent only")
	case f.of(a, "payment_intent", id) == nil:
		return missing("payment_intent", id)
	}
	if invoice := f.of(a, "invoice", f.objects[id].text("_invoice")); invoice != nil {
		for _, paid := range invoice["_payments"].([]object) {
			if paid["payment"].(object).text("payment_intent") == id {
				shown := paid.clone()
				if shown["invoice"] = invoice.text("id"); slices.Contains(in.list("expand"), "data.invoice") {
					shown["invoice"] = f.render(invoice, nil)
				}
				data = append(data, shown)
			}
		}
	}
	return ok(object{"object": "list", "url": path, "has_more": false, "data": data})
}

// renewLater renews a subscription at the end of its period.
func (f *Fake) renewLater(subscription object) {
	end := time.Unix(itemOf(subscription).number("current_period_end"), 0)
	f.at(end, func() { f.renew(subscription, end) })
}

func (f *Fake) renew(subscription object, at time.Time) {
	item := itemOf(subscription)
	if item.number("current_period_end") != at.Unix() || subscription["ended_at"] != nil ||
		subscription.text("status") == string(sdk.SubscriptionStatusIncomplete) {
		return
	}
	if subscription.flag("cancel_at_period_end") {
		f.endSubscription(subscription)
		return
	}
	item["current_period_start"] = at.Unix()
	item["current_period_end"] = advance(at, item["price"].(object)).Unix()
	invoice := f.invoice(subscription, "subscription_cycle", f.periodLine(subscription))
	subscription["latest_invoice"] = invoice.text("id")
	f.collect(subscription, invoice, 0)
	f.renewLater(subscription)
}

// Renew ends the period of a subscription now, as a test clock of Stripe's does for one customer: the next invoice is
// due. The callback about the subscription is always sent: by the clock of the service, the period goes on, so the
// service does not ask.
func (f *Fake) Renew(subscriptionID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	f.renewing = true
	defer func() { f.renewing = false }()
	subscription := f.objects[subscriptionID]
	f.renew(subscription, time.Unix(itemOf(subscription).number("current_period_end"), 0))
}

// Subscriptions returns the states of all subscriptions, by the numbers of their orders.
func (f *Fake) Subscriptions() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	states := map[string]string{}
	for id, o := range f.objects {
		if metadata, is := o["metadata"].(map[string]string); is && strings.HasPrefix(id, "sub_") {
			states[metadata["order_no"]] = o.text("status")
		}
	}
	return states
}

// collect tries to pay the invoice of a renewal, and tries again later. After the last try the subscription ends.
func (f *Fake) collect(subscription, invoice object, try int) {
	if invoice.text("status") != string(sdk.InvoiceStatusOpen) || subscription["ended_at"] != nil {
		return
	}
	switch {
	case f.payInvoice(subscription, invoice, subscription.text("_with")):
		subscription["status"] = string(sdk.SubscriptionStatusActive)
	case try < len(retryAfter):
		subscription["status"] = string(sdk.SubscriptionStatusPastDue)
		f.after(retryAfter[try], func() { f.collect(subscription, invoice, try+1) })
	default:
		invoice["status"] = string(sdk.InvoiceStatusUncollectible)
		f.endSubscription(subscription)
		return
	}
	f.emit("customer.subscription.updated", subscription)
}

func (f *Fake) endSubscription(subscription object) {
	now := f.clock().Unix()
	subscription["status"], subscription["ended_at"] = string(sdk.SubscriptionStatusCanceled), now
	subscription["canceled_at"] = now
	f.emit("customer.subscription.deleted", subscription)
}

// SetCard changes the card of a subscription, as the buyer does on Stripe's page.
func (f *Fake) SetCard(subscriptionID, card string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.catchUp()
	f.objects[subscriptionID]["_with"] = card
}

func (f *Fake) cancelSubscription(a *account, id string, in input) answer {
	subscription := f.of(a, "subscription", id)
	if subscription == nil || subscription["ended_at"] != nil {
		return missing("subscription", id)
	}
	if f.expireIncomplete(subscription); subscription["ended_at"] == nil {
		f.endSubscription(subscription)
	}
	return ok(f.render(subscription, in))
}

func (f *Fake) updateSubscription(a *account, id string, in input) answer {
	subscription := f.of(a, "subscription", id)
	switch {
	case subscription == nil:
		return missing("subscription", id)
	case subscription["ended_at"] != nil:
		return refusal("", "A canceled subscription can only update its cancellation_details and metadata.")
	}
	if value := in.text("cancel_at_period_end"); value != "" {
		subscription["cancel_at_period_end"], subscription["cancel_at"] = value == "true", nil
		if value == "true" {
			subscription["cancel_at"] = itemOf(subscription).number("current_period_end")
		}
	}
	if in.text("items[0][id]") != "" {
		if a := f.changePrice(a, subscription, in); a.status != http.StatusOK {
			return a
		}
	}
	metadata := maps.Clone(subscription["metadata"].(map[string]string)) // invoices keep what they had
	maps.Copy(metadata, in.texts("metadata"))
	subscription["metadata"] = metadata
	f.emit("customer.subscription.updated", subscription)
	return ok(f.render(subscription, in))
}

// changePrice gives the item of a subscription another price. If that is asked for, it invoices the rest of the period:
// what the buyer has paid too much comes back, and the new price for the rest of the period is due. The period stays.
func (f *Fake) changePrice(a *account, subscription object, in input) answer {
	const data = "items[0][price_data]"
	item := itemOf(subscription)
	before := item["price"].(object)
	amount := in.number(data + "[unit_amount]")
	switch {
	case in.text("items[0][id]") != item.text("id"):
		return badParameter("items[0][id]", "No such subscription item")
	case f.of(a, "product", in.text(data+"[product]")) == nil:
		return missing("product", in.text(data+"[product]"))
	case in.text(data+"[currency]") != subscription.text("currency"):
		return badParameter(data+"[currency]", "The currency can't change")
	}
	price := f.newPrice(a, in.text(data+"[product]"), in.text(data+"[currency]"), amount,
		in.text(data+"[recurring][interval]"), in.number(data+"[recurring][interval_count]"))
	same := price["recurring"].(object)
	switch was := before["recurring"].(object); {
	case same.text("interval") != was.text("interval"), same.number("interval_count") != was.number("interval_count"):
		return badParameter(data+"[recurring]", "The fake does not move the anchor of the billing cycle")
	case in.text("proration_behavior") == "":
		return badParameter("proration_behavior", "The fake makes no prorations for the next invoice")
	}
	if in.text("proration_behavior") == "always_invoice" && amount != before.number("unit_amount") {
		from, to, now := item.number("current_period_start"), item.number("current_period_end"), f.clock().Unix()
		part := func(amount int64) object {
			return f.line(subscription, amount*(to-now)/max(to-from, 1), now, to, true)
		}
		credit := subscription["_credit"]
		invoice := f.invoice(subscription, "subscription_update", part(-before.number("unit_amount")), part(amount))
		if !f.payInvoice(subscription, invoice, subscription.text("_with")) {
			invoice["status"], subscription["_credit"] = string(sdk.InvoiceStatusVoid), credit
			return refuse(http.StatusPaymentRequired, sdk.ErrorTypeCard, sdk.ErrorCodeCardDeclined,
				"Your card was declined.", "")
		}
	}
	item["price"] = price
	return answer{status: http.StatusOK}
}

func (f *Fake) createPortal(a *account, in input) answer {
	customer := f.of(a, "customer", in.text("customer"))
	if customer == nil {
		return missing("customer", in.text("customer"))
	}
	page := f.store(a, "billing_portal.session", object{
		"customer": customer.text("id"), "return_url": orNil(in.text("return_url")),
	})
	page["url"] = f.URL + "/p/session/" + page.text("id")
	return ok(f.render(page, in))
}

// errNoSubscription means that a session has no subscription.
var errNoSubscription = errors.New("there is no such subscription")

// SubscriptionOf returns the id of the subscription of a session.
func (f *Fake) SubscriptionOf(sessionID string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := f.objects[sessionID].text("subscription"); id != "" {
		return id, nil
	}
	return "", errNoSubscription
}
