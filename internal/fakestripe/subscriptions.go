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

// subscriptions are the subscriptions of all accounts, with their invoices.
type subscriptions struct {
	*state
	*sender
	*charges
}

// subscribe begins the subscription of a session, whose first invoice the buyer pays now, or in some days.
func (s *subscriptions) subscribe(session object, with string) {
	a := s.accounts[session.text("_account")]
	customer := s.store(a, "customer", object{"email": session["customer_email"]})
	product := s.store(a, "product", object{"name": session["_product"], "active": true})
	price := s.newPrice(a, product.text("id"), session.text("currency"), session.number("amount_subtotal"),
		session.text("_interval"), session.number("_interval_count"))
	now := s.clock()
	subscription := s.store(a, "subscription", object{
		"status": string(sdk.SubscriptionStatusActive), "currency": session["currency"],
		"customer": customer.text("id"), "metadata": session["_subscription_metadata"],
		"cancel_at_period_end": false, "cancel_at": nil, "canceled_at": nil, "ended_at": nil, "_with": with,
		"_tax": session["automatic_tax"].(object).flag("enabled"),
	})
	s.count++
	subscription["items"] = object{"object": "list", "has_more": false, "data": []object{{
		"id": "si_" + subscription.text("id"), "object": "subscription_item", "quantity": int64(1), "price": price,
		"current_period_start": now.Unix(), "current_period_end": advance(now, price).Unix(),
		"subscription": subscription.text("id"),
	}}}
	invoice := s.invoice(subscription, "subscription_create", s.periodLine(subscription))
	if takesDays(with) {
		s.payLater(session, subscription, invoice, with)
	} else {
		s.payInvoice(subscription, invoice, with)
	}
	session["customer"], session["subscription"] = customer.text("id"), subscription.text("id")
	session["invoice"] = invoice.text("id")
	s.emit("customer.subscription.created", subscription)
	s.renewLater(subscription)
}

func (s *subscriptions) newPrice(
	a *account, product, currency string, amount int64, interval string, count int64,
) object {
	return s.store(a, "price", object{
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
func (s *subscriptions) line(subscription object, amount int64, from, to int64, proration bool) object {
	s.count++
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
func (s *subscriptions) periodLine(subscription object) object {
	item := itemOf(subscription)
	return s.line(subscription, item["price"].(object).number("unit_amount"), item.number("current_period_start"),
		item.number("current_period_end"), false)
}

// invoice makes an open invoice of a subscription. An invoice of less than nothing is a credit, which the next invoices
// use up, as the balance of a customer does at Stripe.
func (s *subscriptions) invoice(subscription object, reason string, lines ...object) object {
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
	return s.store(s.accounts[subscription.text("_account")], "invoice", object{
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
func (s *subscriptions) payInvoice(subscription, invoice object, with string) bool {
	intent := s.intentOfInvoice(subscription, invoice)
	invoice["attempt_count"], invoice["attempted"] = invoice.number("attempt_count")+1, true
	if with == CardDeclined || with == CardNoFunds || with == CardAuthentication {
		s.decline(intent, sdk.ErrorCodeCardDeclined, "generic_decline")
		s.emit("invoice.payment_failed", invoice)
		return false
	}
	if intent.number("amount") > 0 {
		s.charge(intent, with)
		payments := invoice["_payments"].([]object)
		payments[len(payments)-1]["status"] = "paid"
	}
	invoice["status"], invoice["amount_paid"] = string(sdk.InvoiceStatusPaid), invoice["amount_due"]
	invoice["status_transitions"] = object{"paid_at": s.clock().Unix()}
	s.emit("invoice.paid", invoice)
	return true
}

// intentOfInvoice returns the payment intent of an invoice. Its ledger entries name the subscription's order.
func (s *subscriptions) intentOfInvoice(subscription, invoice object) object {
	if id := invoice.text("_intent"); id != "" {
		return s.objects[id]
	}
	intent := s.store(s.accounts[subscription.text("_account")], "payment_intent", object{
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
func (s *subscriptions) invoicePayments(a *account, path string, in input) answer {
	id, data := in.text("payment[payment_intent]"), []object{}
	switch {
	case in.text("payment[type]") != "payment_intent" || id == "":
		return badParameter("payment", "The fake lists the payments of invoices by payment intent only")
	case s.of(a, "payment_intent", id) == nil:
		return missing("payment_intent", id)
	}
	if invoice := s.of(a, "invoice", s.objects[id].text("_invoice")); invoice != nil {
		for _, paid := range invoice["_payments"].([]object) {
			if paid["payment"].(object).text("payment_intent") == id {
				shown := paid.clone()
				if shown["invoice"] = invoice.text("id"); slices.Contains(in.list("expand"), "data.invoice") {
					shown["invoice"] = s.render(invoice, nil)
				}
				data = append(data, shown)
			}
		}
	}
	return ok(object{"object": "list", "url": path, "has_more": false, "data": data})
}

// renewLater renews a subscription at the end of its period.
func (s *subscriptions) renewLater(subscription object) {
	end := time.Unix(itemOf(subscription).number("current_period_end"), 0)
	s.at(end, func() { s.renew(subscription, end) })
}

func (s *subscriptions) renew(subscription object, at time.Time) {
	item := itemOf(subscription)
	if item.number("current_period_end") != at.Unix() || subscription["ended_at"] != nil ||
		subscription.text("status") == string(sdk.SubscriptionStatusIncomplete) {
		return
	}
	if subscription.flag("cancel_at_period_end") {
		s.endSubscription(subscription)
		return
	}
	item["current_period_start"] = at.Unix()
	item["current_period_end"] = advance(at, item["price"].(object)).Unix()
	invoice := s.invoice(subscription, "subscription_cycle", s.periodLine(subscription))
	subscription["latest_invoice"] = invoice.text("id")
	s.collect(subscription, invoice, 0)
	s.renewLater(subscription)
}

// Renew ends the period of a subscription now, as a test clock of Stripe's does for one customer: the next invoice is
// due. The callback about the subscription is always sent: by the clock of the service, the period goes on, so the
// service does not ask.
func (s *subscriptions) Renew(subscriptionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	s.renewing = true
	defer func() { s.renewing = false }()
	subscription := s.objects[subscriptionID]
	s.renew(subscription, time.Unix(itemOf(subscription).number("current_period_end"), 0))
}

// Subscriptions returns the states of all subscriptions, by the numbers of their orders.
func (s *subscriptions) Subscriptions() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	states := map[string]string{}
	for id, o := range s.objects {
		if metadata, is := o["metadata"].(map[string]string); is && strings.HasPrefix(id, "sub_") {
			states[metadata["order_no"]] = o.text("status")
		}
	}
	return states
}

// collect tries to pay the invoice of a renewal, and tries again later. After the last try the subscription ends.
func (s *subscriptions) collect(subscription, invoice object, try int) {
	if invoice.text("status") != string(sdk.InvoiceStatusOpen) || subscription["ended_at"] != nil {
		return
	}
	switch {
	case s.payInvoice(subscription, invoice, subscription.text("_with")):
		subscription["status"] = string(sdk.SubscriptionStatusActive)
	case try < len(retryAfter):
		subscription["status"] = string(sdk.SubscriptionStatusPastDue)
		s.after(retryAfter[try], func() { s.collect(subscription, invoice, try+1) })
	default:
		invoice["status"] = string(sdk.InvoiceStatusUncollectible)
		s.endSubscription(subscription)
		return
	}
	s.emit("customer.subscription.updated", subscription)
}

func (s *subscriptions) endSubscription(subscription object) {
	now := s.clock().Unix()
	subscription["status"], subscription["ended_at"] = string(sdk.SubscriptionStatusCanceled), now
	subscription["canceled_at"] = now
	s.emit("customer.subscription.deleted", subscription)
}

// SetCard changes the card of a subscription, as the buyer does on Stripe's page.
func (s *subscriptions) SetCard(subscriptionID, card string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	s.objects[subscriptionID]["_with"] = card
}

func (s *subscriptions) cancelSubscription(a *account, id string, in input) answer {
	subscription := s.of(a, "subscription", id)
	if subscription == nil || subscription["ended_at"] != nil {
		return missing("subscription", id)
	}
	if s.expireIncomplete(subscription); subscription["ended_at"] == nil {
		s.endSubscription(subscription)
	}
	return ok(s.render(subscription, in))
}

func (s *subscriptions) updateSubscription(a *account, id string, in input) answer {
	subscription := s.of(a, "subscription", id)
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
		if a := s.changePrice(a, subscription, in); a.status != http.StatusOK {
			return a
		}
	}
	metadata := maps.Clone(subscription["metadata"].(map[string]string)) // invoices keep what they had
	maps.Copy(metadata, in.texts("metadata"))
	subscription["metadata"] = metadata
	s.emit("customer.subscription.updated", subscription)
	return ok(s.render(subscription, in))
}

// changePrice gives the item of a subscription another price. If that is asked for, it invoices the rest of the period:
// what the buyer has paid too much comes back, and the new price for the rest of the period is due. The period stays.
func (s *subscriptions) changePrice(a *account, subscription object, in input) answer {
	const data = "items[0][price_data]"
	item := itemOf(subscription)
	before := item["price"].(object)
	amount := in.number(data + "[unit_amount]")
	switch {
	case in.text("items[0][id]") != item.text("id"):
		return badParameter("items[0][id]", "No such subscription item")
	case s.of(a, "product", in.text(data+"[product]")) == nil:
		return missing("product", in.text(data+"[product]"))
	case in.text(data+"[currency]") != subscription.text("currency"):
		return badParameter(data+"[currency]", "The currency can't change")
	}
	price := s.newPrice(a, in.text(data+"[product]"), in.text(data+"[currency]"), amount,
		in.text(data+"[recurring][interval]"), in.number(data+"[recurring][interval_count]"))
	same := price["recurring"].(object)
	switch was := before["recurring"].(object); {
	case same.text("interval") != was.text("interval"), same.number("interval_count") != was.number("interval_count"):
		return badParameter(data+"[recurring]", "The fake does not move the anchor of the billing cycle")
	case in.text("proration_behavior") == "":
		return badParameter("proration_behavior", "The fake makes no prorations for the next invoice")
	}
	if in.text("proration_behavior") == "always_invoice" && amount != before.number("unit_amount") {
		from, to, now := item.number("current_period_start"), item.number("current_period_end"), s.clock().Unix()
		part := func(amount int64) object {
			return s.line(subscription, amount*(to-now)/max(to-from, 1), now, to, true)
		}
		credit := subscription["_credit"]
		invoice := s.invoice(subscription, "subscription_update", part(-before.number("unit_amount")), part(amount))
		if !s.payInvoice(subscription, invoice, subscription.text("_with")) {
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
func (s *subscriptions) SubscriptionOf(sessionID string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id := s.objects[sessionID].text("subscription"); id != "" {
		return id, nil
	}
	return "", errNoSubscription
}
