package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/internal/fakestripe"
)

// atStripe is a service whose test orders are paid through Stripe.
type atStripe struct {
	*process
	t    *testing.T
	fake *fakestripe.Fake
	at   string // the place in the event feed
}

func startAtStripe(t *testing.T, flags ...string) *atStripe {
	t.Helper()
	fake := fakestripe.New(1)
	t.Cleanup(fake.Close)
	fake.AddKey(stripeTestKey)
	dir := secretFiles(t, map[string]string{"key": stripeTestKey, "webhook": stripeSecret})
	secrets := filepath.Join(dir, "webhook")
	p := startProcess(t, t.TempDir(), append(flags, "--stripe-api-base", fake.URL, "--stripe-test-key-file",
		filepath.Join(dir, "key"), "--stripe-test-webhook-secrets-file", secrets)...)
	account := p.want(t, 200, "GET", "/v1/account", "").Data.text("account_id")
	// The address of the service is known only now: the service reads the file again when it changes.
	secret := fake.AddEndpoint(stripeTestKey, p.url+"/v1/callbacks/stripe/"+account+"/test")
	if err := os.WriteFile(secrets, []byte(stripeSecret+"\n"+secret), 0o600); err != nil {
		t.Fatal(err)
	}
	fake.SetSending(fakestripe.Sending{Double: 1000, Tries: 100, Pause: 100 * time.Millisecond})
	at := p.want(t, 200, "GET", "/v1/events?after=now", "").Data.text("next_cursor")
	return &atStripe{p, t, fake, at}
}

// order creates an order, and presses Pay. It returns the order and the id of its checkout at Stripe.
func (s *atStripe) order() (order object, checkout string) {
	s.t.Helper()
	order = s.want(s.t, 201, "POST", "/v1/orders",
		`{"product_id":"editor","amount":4900,"currency":"USD","buyer_email":"ann@example.com"}`).Data
	pressed, err := s.press(s.t.Context(), order.text("pay_url"), "pay")
	to := pressed.header.Get("Location")
	if err != nil || pressed.status != http.StatusSeeOther || !strings.HasPrefix(to, s.fake.URL+"/c/pay/cs_test_") {
		s.t.Fatalf("%v %d %q %s", err, pressed.status, to, pressed.body)
	}
	return order, path.Base(to)
}

// paid creates an order, pays for it with a card, and returns the paid order.
func (s *atStripe) paid(card string) object {
	s.t.Helper()
	order, checkout := s.order()
	if err := s.fake.Pay(checkout, card); err != nil {
		s.t.Fatal(err)
	}
	s.await("order.paid", order)
	return s.want(s.t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data
}

// await waits for an event of an order, and returns the order that the event has.
func (s *atStripe) await(kind string, order object) object {
	s.t.Helper()
	return s.awaitThat(kind, order, func(object) bool { return true })
}

// awaitEvent waits for an event of an order, and returns all data of the event.
func (s *atStripe) awaitEvent(kind string, order object) object {
	s.t.Helper()
	return s.awaitData(kind, order, func(object) bool { return true })
}

// awaitThat waits for an event of an order that has what the caller wants.
func (s *atStripe) awaitThat(kind string, order object, wanted func(object) bool) object {
	s.t.Helper()
	o, _ := s.awaitData(kind, order, wanted)["order"].(map[string]any)
	return o
}

func (s *atStripe) awaitData(kind string, order object, wanted func(object) bool) object {
	s.t.Helper()
	for {
		page := s.want(s.t, 200, "GET", "/v1/events?wait=20&types="+kind+"&cursor="+s.at, "").Data
		s.at = page.text("next_cursor")
		events := page.list("events")
		if len(events) == 0 {
			s.t.Fatalf("no event %s of %s", kind, order.text("order_no"))
		}
		for _, e := range events {
			data, _ := e["data"].(map[string]any)
			if o, _ := data["order"].(map[string]any); o["order_no"] == order["order_no"] && wanted(o) {
				return data
			}
		}
	}
}

// TestStripe: buyers who press Pay go to Stripe and pay there, with the SDK's shapes and over HTTP. Callbacks, each
// sent twice, pay the orders. Amounts that Stripe does not charge are refused.
func TestStripe(t *testing.T) {
	t.Parallel()
	s := startAtStripe(t)
	small := s.want(t, 422, "POST", "/v1/orders", `{"product_id":"editor","amount":49,"currency":"USD"}`)
	if small.Code != 42200 || !strings.Contains(small.body, "the least that Stripe charges in USD") {
		t.Error(small.body)
	}
	order, checkout := s.order()
	if err := s.fake.Pay(checkout, fakestripe.CardDeclined); err == nil {
		t.Error("the declined card pays")
	}
	if err := s.fake.Pay(checkout, fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	s.await("order.paid", order)
	s.fake.Advance(time.Minute) // Stripe captures the money, and knows the fee
	s.fake.Delivered()
	paid := s.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data
	if paid.text("status") != "paid" || paid.text("payment_provider") != "stripe" || paid.text("license_key") == "" {
		t.Errorf("the order is %v", paid)
	}
	list := s.want(t, 200, "GET", "/v1/orders/"+order.text("order_no")+"/payments", "").Data.list("payments")
	if len(list) != 1 || list[0]["fee"] != 172.0 {
		t.Errorf("the payments are %v", list)
	}
	if paid["fee"] != 172.0 || paid["amount_paid"] != paid["amount"] {
		t.Errorf("the order has the fee %v of %v", paid["fee"], paid["amount_paid"])
	}

	// A canceled order has no checkout in which anybody could pay.
	order, checkout = s.order()
	s.want(t, 200, "POST", "/v1/orders/"+order.text("order_no")+"/cancel", "")
	if err := s.fake.Pay(checkout, fakestripe.CardPays); err == nil {
		t.Error("the buyer pays a canceled order")
	}

	// Without the signing secret, nothing changes, and large bodies are refused unread.
	account := s.want(t, 200, "GET", "/v1/account", "").Data.text("account_id")
	wrong := fmt.Sprintf("t=%d,v1=%s", time.Now().Unix(), strings.Repeat("ab", 32))
	for name, c := range map[string]struct {
		path, signature string
		size, status    int
	}{
		"no signature":             {account + "/test", "", 10, 401},
		"a wrong signature":        {account + "/test", wrong, 300 << 10, 401},
		"no form of a signature":   {account + "/test", "sesame", 100 << 10, 413},
		"an old signature":         {account + "/test", "t=1790000000,v1=00", 100 << 10, 413},
		"a body that is too large": {account + "/test", wrong, 600 << 10, 413},
		"another mode":             {account + "/live", wrong, 10, 404},
		"a large one of nobody":    {"acct_none/live", wrong, 100 << 10, 413},
	} {
		head := "POST /v1/callbacks/stripe/" + c.path + " HTTP/1.1\r\nHost: licet\r\nContent-Type: application/json\r\n"
		if c.signature != "" {
			head += "Stripe-Signature: " + c.signature + "\r\n"
		}
		head += fmt.Sprintf("Content-Length: %d\r\n\r\n", c.size)
		if got := s.status(head, c.size, c.status); got != c.status {
			t.Errorf("%s: status %d, want %d", name, got, c.status)
		}
	}
	if log := s.log.String(); strings.Contains(log, "canary") || strings.Contains(log, "ann@example.com") {
		t.Error("the log shows a secret")
	}
}

// TestStripeRefunds: refunds in Stripe's dashboard, a pending refund, and a refund that fails after it was made reach
// the service by callbacks alone.
func TestStripeRefunds(t *testing.T) {
	t.Parallel()
	s := startAtStripe(t)
	check := func(what string, order object, status string, refunded, pending float64) {
		t.Helper()
		now := s.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data
		if now.text("status") != status || now["amount_refunded"] != refunded || now["refund_pending"] != pending {
			t.Errorf("%s: %v", what, now)
		}
	}
	order := s.paid(fakestripe.CardPays)
	id, err := s.fake.RefundInDashboard(order.text("payment_reference"), 900)
	if err != nil {
		t.Fatal(err)
	}
	s.awaitThat("order.refund_updated", order, func(o object) bool { return o["amount_refunded"] == 900.0 })
	check("a part", order, "paid", 900, 0)
	list := s.want(t, 200, "GET", "/v1/orders/"+order.text("order_no")+"/payments", "").Data.list("payments")
	if len(list) != 2 || list[0]["type"] != "refund" || list[0]["reference"] != id || list[0]["status"] != "succeeded" {
		t.Errorf("the payments are %v", list)
	}
	if _, err := s.fake.RefundInDashboard(order.text("payment_reference"), 4000); err != nil {
		t.Fatal(err)
	}
	s.await("order.refunded", order)
	check("the rest", order, "refunded", 4900, 0)

	later, failing := s.paid(fakestripe.CardRefundPending), s.paid(fakestripe.CardRefundFails)
	for _, o := range []object{later, failing} {
		s.want(t, 200, "POST", "/v1/orders/"+o.text("order_no")+"/refund", "")
	}
	check("pending", later, "paid", 0, 4900)
	s.await("order.refunded", failing)
	at := s.at
	s.fake.Advance(25 * time.Hour)
	s.await("order.refunded", later)
	s.at = at // the next event may come first
	check("made later", later, "refunded", 4900, 0)
	s.awaitThat("order.refund_updated", failing, func(o object) bool { return o["amount_refunded"] == 0.0 })
	check("it fails", failing, "refunded", 0, 0)
}

// TestStripeDisputes: a buyer disputes a payment at Stripe, and the bank decides. Callbacks, each sent twice, change
// the order and its license. The license is suspended meanwhile only if the account wants that.
func TestStripeDisputes(t *testing.T) {
	t.Parallel()
	for name, suspends := range map[string]bool{"valid meanwhile": false, "suspended meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAtStripe(t, fmt.Sprint("--stripe-suspend-on-dispute=", suspends))
			for _, won := range []bool{true, false} {
				s.disputed(suspends, won)
			}
		})
	}
}

// disputed pays an order whose payment the buyer disputes, with an end.
func (s *atStripe) disputed(suspends, won bool) {
	s.t.Helper()
	order := s.paid(fakestripe.CardPays)
	at := "/v1/orders/" + order.text("order_no")
	check := func(status, license string, refunded float64, event func() object) {
		s.t.Helper()
		if of := event()["dispute"].(map[string]any); of["status"] != status || of["amount"] != 4900.0 {
			s.t.Errorf("the event has %v, want %s", of, status)
		}
		order := s.want(s.t, 200, "GET", at, "").Data
		list := s.want(s.t, 200, "GET", at+"/payments", "").Data.list("payments")
		dispute := list[0]
		if list[1]["type"] == "dispute" {
			dispute = list[1]
		}
		if len(list) != 2 || dispute["type"] != "dispute" || dispute["status"] != status || dispute["fee"] != 1500.0 {
			s.t.Errorf("the payments are %v, want a dispute that is %s", list, status)
		}
		key := s.want(s.t, 200, "GET", "/v1/licenses/"+order.text("license_key"), "").Data
		if order["amount_refunded"] != refunded || key.text("status") != license {
			s.t.Errorf("%s: the order is %v, and the license %v", status, order, key)
		}
	}
	id, err := s.fake.Dispute(s.want(s.t, 200, "GET", at, "").Data.text("payment_reference"))
	if err != nil {
		s.t.Fatal(err)
	}
	next := func() object { return s.awaitEvent("order.disputed", order) }
	meanwhile := "not_activated"
	if suspends {
		meanwhile = "suspended"
	}
	check("open", meanwhile, 0, next)
	s.fake.Decide(id, won)
	if won {
		check("won", "not_activated", 0, next)
		return
	}
	check("lost", "revoked", 4900, next)
	if now := s.want(s.t, 200, "GET", at, "").Data; now.text("status") != "refunded" {
		s.t.Errorf("the order is %v", now)
	}
}

// status sends the head of a request and its body, unless the head alone is refused. It returns the status.
func (s *atStripe) status(head string, body, want int) int {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	if want != http.StatusRequestEntityTooLarge {
		head += strings.Repeat(" ", body)
	}
	if _, err := io.WriteString(conn, head); err != nil {
		s.t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}
