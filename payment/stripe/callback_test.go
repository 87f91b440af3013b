package stripe_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/internal/fakestripe"
	"licet/payment"
	"licet/payment/stripe"
)

// receiver stores the callbacks that it gets.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	messages []message
	refuses  int // answer so many with 500
}

type message struct{ signature, body string }

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refuses--; r.refuses >= 0 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.messages = append(r.messages, message{request.Header.Get("Stripe-Signature"), string(body)})
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.messages)
}

// objects returns the objects that the callbacks so far name, in order of their arrival.
func (f *fixture) objects(r *receiver) []payment.Object {
	f.Helper()
	f.fake.Delivered()
	var objects []payment.Object
	for _, m := range r.all() {
		if !f.provider.Signed(m.signature) {
			f.Errorf("%q is not in the form", m.signature)
		}
		object, err := f.provider.Callback(m.signature, []byte(m.body))
		if err != nil {
			f.Errorf("%v: %s", err, m.body)
		}
		if object != (payment.Object{}) {
			objects = append(objects, object)
		}
	}
	return objects
}

// TestCallbacks: every callback of interest names an object that Look knows.
func TestCallbacks(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t)
	f.secrets.Webhook = []string{f.fake.AddEndpoint(testKey, r.URL)}
	f.fake.SetSending(fakestripe.Sending{MaxDelay: 10 * time.Millisecond, Double: 500, Tries: 3})
	r.refuses = 2
	order, _ := f.paid(4900, "USD", fakestripe.CardRefundPending)
	declined := f.order(4900, "USD")
	f.begin(&declined)
	_ = f.fake.Pay(declined.Checkout, fakestripe.CardDeclined)
	if _, err := f.provider.Refund(t.Context(), order, refund(order, "ref_1", 1000)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.fake.Dispute(order.Payment); err != nil {
		t.Fatal(err)
	}
	f.fake.Advance(26 * time.Hour)
	kinds := map[payment.ObjectKind]int{}
	for _, object := range f.objects(r) {
		kinds[object.Kind]++
		state := f.look(object.Kind, object.ID)
		if object.Kind == payment.ObjectCharge {
			object.Kind = payment.ObjectPayment // which has the charge
		}
		if state.Object != object {
			t.Errorf("%+v is %+v", object, state)
		}
	}
	if kinds[payment.ObjectCheckout] < 2 || kinds[payment.ObjectPayment] < 1 || kinds[payment.ObjectRefund] < 2 ||
		kinds[payment.ObjectDispute] < 1 || kinds[payment.ObjectCharge] < 1 {
		t.Errorf("callbacks name %v", kinds)
	}
}

// TestSignatures: only the secrets that are valid now sign a callback, over the very bytes of the body, and not long
// ago.
func TestSignatures(t *testing.T) {
	f := newFixture(t)
	old, current, next := "whsec_old0123456789", "whsec_current0123456789", "whsec_next0123456789"
	body := []byte(`{"object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_test_1"}}}`)
	now := time.Now()
	for _, c := range []struct {
		name    string
		secrets []string
		header  string
		ok      bool
	}{
		{"one secret", []string{current}, fakestripe.Sign(now, body, current), true},
		{"while it is rotated, by the old", []string{current, next}, fakestripe.Sign(now, body, current), true},
		{"while it is rotated, by the new", []string{current, next}, fakestripe.Sign(now, body, next), true},
		{"while it is rotated, by both", []string{current}, fakestripe.Sign(now, body, next, current), true},
		{"an old secret", []string{current, next}, fakestripe.Sign(now, body, old), false},
		{"no secret", nil, fakestripe.Sign(now, body, current), false},
		{"another body", []string{current}, fakestripe.Sign(now, append([]byte(" "), body...), current), false},
		{"long ago", []string{current}, fakestripe.Sign(now.Add(-6*time.Minute), body, current), false},
		{"some time ago", []string{current}, fakestripe.Sign(now.Add(-4*time.Minute), body, current), true},
		{"no signature", []string{current}, fmt.Sprintf("t=%d", now.Unix()), false},
		{"empty", []string{current}, "", false},
		{"too long", []string{current}, fakestripe.Sign(now, body, current) + strings.Repeat(",v1=00", 400), false},
	} {
		f.secrets.Webhook = c.secrets
		object, err := f.provider.Callback(c.header, body)
		if ok := err == nil && object.ID == "cs_test_1"; ok != c.ok || !ok && !errors.Is(err, payment.ErrSignature) {
			t.Errorf("%s: %+v, %v", c.name, object, err)
		}
	}
}

// TestOldSignatures: the header alone shows that a signature is too old, so the body is not hashed. A time ahead of the
// node's clock may be right.
func TestOldSignatures(t *testing.T) {
	f := newFixture(t)
	now := time.Now()
	for header, want := range map[string]bool{
		fakestripe.Sign(now.Add(-6*time.Minute), nil, "whsec_x"): false,
		fakestripe.Sign(now.Add(-4*time.Minute), nil, "whsec_x"): true,
		fakestripe.Sign(now.Add(time.Hour), nil, "whsec_x"):      true,
		"t=-9223372036854775808,v1=00":                           false,
		"t=,v1=00":                                               false,
		"t=soon,v1=00":                                           false,
	} {
		if got := f.provider.Signed(header); got != want {
			t.Errorf("%s: %t", header, got)
		}
	}
}

// TestForeignEvents: a callback about anything else is of no interest, and is no error.
func TestForeignEvents(t *testing.T) {
	f := newFixture(t)
	f.secrets.Webhook = []string{"whsec_current0123456789"}
	for _, body := range []string{
		`{"object":"event","type":"payout.paid","data":{"object":{"id":"po_1"}}}`,
		`{"object":"v2.core.event","type":"checkout.session.completed"}`,
		`{"object":"event","type":"checkout.session.completed","data":{"object":{"id":""}}}`,
		`{"object":"event","type":"checkout.session.completed","data":{"object":{"id":"../../v1/refunds"}}}`,
		`{"object":"event","type":"checkout.session.expired","data":{"object":{"id":"` + strings.Repeat("c", 300) +
			`"}}}`,
		`{"object":"event","type":"charge.updated","data":{"object":{"id":"ch_1","payment_intent":null}}}`,
		`{"object":"event","type":"charge.updated","data":{"object":{"id":"ch_1","payment_intent":{"id":"pi_1"}}}}`,
		`{"object":"event","type":"charge.updated","data":{"object":{"id":"ch_1","payment_intent":"../refunds"}}}`,
		`{}`,
	} {
		signature := fakestripe.Sign(time.Now(), []byte(body), f.secrets.Webhook[0])
		object, err := f.provider.Callback(signature, []byte(body))
		if err != nil || object != (payment.Object{}) {
			t.Errorf("%s: %+v, %v", body, object, err)
		}
	}
	text := []byte("no JSON")
	if _, err := f.provider.Callback(fakestripe.Sign(time.Now(), text, f.secrets.Webhook[0]), text); err == nil {
		t.Error("text is taken for an event")
	}
}

// TestForeignSubscriptions: with a key that may not read subscriptions, no callback about a subscription of another
// program fails, and each callback about a subscription of an order does, as the state may have changed.
func TestForeignSubscriptions(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t)
	f.secrets.Webhook = []string{f.fake.AddEndpoint(testKey, r.URL)}
	order, _ := f.subscribed(1000, monthly, fakestripe.CardPays)
	foreign := f.foreignSubscription()
	f.fake.Forbid(testKey, "/v1/subscriptions")
	for _, id := range []string{order.Subscription, foreign} {
		f.fake.Renew(id)
	}
	ours := 0
	for _, object := range f.objects(r) {
		if object.Kind != payment.ObjectSubscription {
			continue
		}
		ours++
		if _, err := f.provider.Look(t.Context(), object); object.ID != order.Subscription ||
			!errors.Is(err, payment.ErrForbidden) {
			t.Errorf("a callback names %+v, of which Stripe says: %v", object, err)
		}
	}
	if sent := len(f.fake.IDs("event")); ours != 1 || sent == 0 {
		t.Errorf("%d of %d callbacks are about the order's subscription, want 1", ours, sent)
	}
	for about, of := range map[string]string{
		`"id":"sub_1"`: "sub_1", `"id":"sub_1","metadata":null`: "sub_1", `"id":"sub_1","metadata":{"plan":"a"}`: "",
	} {
		body := []byte(`{"object":"event","type":"customer.subscription.deleted","data":{"object":{` + about + `}}}`)
		object, err := f.provider.Callback(fakestripe.Sign(time.Now(), body, f.secrets.Webhook[0]), body)
		if err != nil || object.ID != of {
			t.Errorf("%s: %+v, %v", body, object, err)
		}
	}
}

// foreignSubscription begins a subscription of another program at the account, and returns its id.
func (f *fixture) foreignSubscription() string {
	f.Helper()
	form := url.Values{
		"mode": {"subscription"}, "success_url": {"https://other.example"}, "line_items[0][quantity]": {"1"},
		"expires_at":                                     {strconv.FormatInt(f.fake.Now().Add(time.Hour).Unix(), 10)},
		"line_items[0][price_data][currency]":            {"eur"},
		"line_items[0][price_data][unit_amount]":         {"500"},
		"line_items[0][price_data][product_data][name]":  {"Other"},
		"line_items[0][price_data][recurring][interval]": {"month"},
	}
	request, err := http.NewRequestWithContext(f.Context(), http.MethodPost, f.fake.URL+sessionsPath,
		strings.NewReader(form.Encode()))
	if err != nil {
		f.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Stripe-Version", sdk.APIVersion)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		f.Fatal(err)
	}
	defer response.Body.Close()
	var session struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&session); err != nil || session.ID == "" {
		f.Fatal(response.Status, err)
	}
	if err := f.fake.Pay(session.ID, fakestripe.CardPays); err != nil {
		f.Fatal(err)
	}
	all := f.fake.IDs("subscription")
	return all[len(all)-1]
}

// TestEndpointOfFake: the fake's endpoints sign with both secrets while they are rotated.
func TestEndpointOfFake(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t)
	first := f.fake.AddEndpoint(testKey, r.URL)
	second := f.fake.RollSecrets(testKey)
	for _, secret := range []string{first, second} {
		f.secrets.Webhook = []string{secret}
		f.paid(4900, "USD", fakestripe.CardPays)
		if len(f.objects(r)) == 0 {
			t.Error("no callback came")
		}
	}
	if !slices.Contains(stripe.Events(), "charge.dispute.created") {
		t.Error(stripe.Events())
	}
}
