package stripe

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v86/webhook"

	"licet/payment"
)

// tolerance is how old the signature of a callback may be. Stripe signs each try anew.
const tolerance = 5 * time.Minute

// maxSignature bounds the signature header, which contains one signature for each valid secret.
const maxSignature = 1024

// Events are the types of the events that a webhook endpoint must send. Each names an object to look at.
func Events() []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.name
	}
	return names
}

// events has the events of interest, and the kind of the object that each names.
var events = []struct {
	name string
	kind payment.ObjectKind
}{
	{"checkout.session.completed", payment.ObjectCheckout},
	{"checkout.session.async_payment_succeeded", payment.ObjectCheckout},
	{"checkout.session.async_payment_failed", payment.ObjectCheckout},
	{"checkout.session.expired", payment.ObjectCheckout},
	{"payment_intent.payment_failed", payment.ObjectPayment},
	{"refund.created", payment.ObjectRefund},
	{"refund.updated", payment.ObjectRefund},
	{"refund.failed", payment.ObjectRefund},
	{"charge.dispute.created", payment.ObjectDispute},
	{"charge.dispute.updated", payment.ObjectDispute},
	{"charge.dispute.closed", payment.ObjectDispute},
	{"charge.dispute.funds_withdrawn", payment.ObjectDispute},
	{"charge.dispute.funds_reinstated", payment.ObjectDispute}, // after the dispute is closed
	{"invoice.paid", payment.ObjectInvoice},
	{"invoice.payment_failed", payment.ObjectInvoice},
	{"customer.subscription.updated", payment.ObjectSubscription},
	{"customer.subscription.deleted", payment.ObjectSubscription},
	// Stripe captures a payment after it has succeeded, and then adds the fee to its charge:
	// https://docs.stripe.com/payments/payment-intents/asynchronous-capture
	{"charge.updated", payment.ObjectCharge},
}

// Signed implements [payment.Provider]. Like the SDK, it refuses no time that is ahead of the node's clock.
func (p *Provider) Signed(signature string) bool {
	if len(signature) > maxSignature || !strings.Contains(signature, ",v1=") {
		return false
	}
	first, _, _ := strings.Cut(signature, ",")
	signed, timed := strings.CutPrefix(first, "t=")
	seconds, err := strconv.ParseInt(signed, 10, 64)
	return timed && err == nil && time.Since(moment(seconds)) <= tolerance
}

// Callback implements [payment.Provider]. It takes events of any version of the API, since it reads only ids and the
// metadata of the object.
//
// An event about a subscription without our metadata is of no interest: the subscription is of another program of the
// shop. A shop that sells no subscriptions may have a key that may not read them: Look would fail, and Stripe would
// repeat the callback for days. Stripe copies our metadata to each subscription that our checkouts make.
func (p *Provider) Callback(signature string, body []byte) (payment.Object, error) {
	if !p.Signed(signature) || !p.verified(signature, body) {
		return payment.Object{}, payment.ErrSignature
	}
	var event struct {
		Object string `json:"object"`
		Type   string `json:"type"`
		Data   struct {
			Object struct {
				ID       string         `json:"id"`
				Intent   any            `json:"payment_intent"`
				Metadata map[string]any `json:"metadata"`
			} `json:"object"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		return payment.Object{}, errors.New("the body of the callback is no event of Stripe's")
	}
	if event.Object != "event" {
		return payment.Object{}, nil
	}
	about := event.Data.Object
	object := objectOf(event.Type, about.ID, about.Intent)
	_, ours := about.Metadata[metaOrder]
	if object.Kind == payment.ObjectSubscription && about.Metadata != nil && !ours {
		return payment.Object{}, nil
	}
	return object, nil
}

// objectOf returns the object that an event of a type names, from two members of the object in the event: its id, and
// the payment intent of a charge. It is zero if the event is of no interest.
func objectOf(event string, id, intent any) payment.Object {
	for _, e := range events {
		if e.name != event {
			continue
		}
		if e.kind == payment.ObjectCharge {
			id = intent
		}
		if named, _ := id.(string); named != "" && len(named) <= maxSecret && plain(named) {
			return payment.Object{Kind: e.kind, ID: named}
		}
	}
	return payment.Object{}
}

// verified reports whether one of the secrets has signed the body.
func (p *Provider) verified(signature string, body []byte) bool {
	for _, secret := range p.cfg.Secrets().Webhook {
		if webhook.ValidatePayloadWithTolerance(body, signature, secret, tolerance) == nil {
			return true
		}
	}
	return false
}
