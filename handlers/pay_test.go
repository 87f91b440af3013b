package handlers_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/handlers"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/payment"
)

// press presses a button of an order's pay page.
func (s *fixture) press(made answer, action string) {
	s.t.Helper()
	path := strings.TrimPrefix(made.text("pay_url"), publicURL)
	if pressed := s.send("POST", path, "", "action="+action, asForm...); pressed.status != 303 {
		s.t.Fatalf("%s: %d %s", action, pressed.status, pressed.body)
	}
}

var asForm = []string{"Content-Type", "-", "Content-Type", "application/x-www-form-urlencoded"}

// payable makes an order and returns the path of its page.
func (s *fixture) payable(members string) (made answer, path string) {
	s.t.Helper()
	made = s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":4900,"currency":"USD"`+members+`}`).must(s.t, 0)
	return made, strings.TrimPrefix(made.text("pay_url"), publicURL)
}

func (s *fixture) status(made answer) string {
	s.t.Helper()
	return s.send("GET", "/v1/orders/"+made.text("order_no"), keyAll, "").must(s.t, 0).text("status")
}

// mustPage checks what every page carries.
func (a answer) mustPage(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	for name, want := range map[string]string{
		"Content-Type":           "text/html; charset=utf-8",
		"Cache-Control":          "no-store",
		"X-Content-Type-Options": "nosniff",
		"Referrer-Policy":        "same-origin",
		"X-Frame-Options":        "DENY",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a.header.Get("X-Request-Id") == "" || len(a.header.Values("Server")) > 0 {
		t.Errorf("headers: %v", a.header)
	}
	if status != http.StatusSeeOther &&
		!strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("policy: %q", a.header.Get("Content-Security-Policy"))
	}
	return a
}

func TestPayPage(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made, path := s.payable(`,"description":"One <b>year</b>"`)
	page := s.send("GET", path, "", "").mustPage(t, 200)
	for _, want := range []string{"$49.00", "editor", "One &lt;b&gt;year", `action="` + path + `"`,
		made.text("order_no")} {
		if !strings.Contains(page.body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	paid := s.send("POST", path, "", "action=pay", asForm...).mustPage(t, 303)
	if to := paid.header.Get("Location"); to != publicURL+path {
		t.Errorf("paid leads to %q", to)
	}
	key := s.send("GET", "/v1/orders/"+made.text("order_no"), keyAll, "").text("license_key")
	if result := s.send("GET", path, "", "").mustPage(t, 200); key == "" || !strings.Contains(result.body, key) {
		t.Errorf("the result lacks the key %q", key)
	}
	if refused := s.send("POST", path, "", "action=cancel", asForm...).mustPage(t, 409); strings.Contains(refused.body,
		key) {
		t.Error("an error page shows the key")
	}
}

// TestPayPageNamesTheProduct shows the name of the product; its id, if the product has no name or is deleted.
func TestPayPageNamesTheProduct(t *testing.T) {
	t.Parallel()
	s := newService(t)
	wants := func(path, product string) {
		t.Helper()
		page := s.send("GET", path, "", "").mustPage(t, 200)
		if !strings.Contains(page.body, `<dd class="product" dir="auto">`+product+`</dd>`) ||
			!strings.Contains(page.body, "<title>[Test] Pay $49.00 for "+product+"</title>") {
			t.Errorf("the page does not name the product %q:\n%s", product, page.body)
		}
	}
	_, path := s.payable("")
	wants(path, "editor")
	s.send("PUT", "/v1/products/editor", keyAll, `{"name":"Aurora <Editor>"}`).must(t, 0)
	wants(path, "Aurora &lt;Editor&gt;")
	s.send("DELETE", "/v1/products/editor", keyAll, "").must(t, 0)
	wants(path, "editor")
}

func TestPayPageLeadsBackToTheShop(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const shop = "https://shop.example.com/thanks?a=1&b=%20"
	made, path := s.payable(`,"success_url":"` + shop + `"`)
	page := s.send("GET", path, "", "").mustPage(t, 200)
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "form-action 'self';") {
		t.Errorf("policy: %q", policy)
	}
	for range 2 { // the second press has the same result
		if to := s.send("POST", path, "", "action=pay", asForm...).mustPage(t,
			303).header.Get("Location"); to != publicURL+path {
			t.Errorf("paid leads to %q", to)
		}
	}
	key := s.send("GET", "/v1/orders/"+made.text("order_no"), keyAll, "").text("license_key")
	result := s.send("GET", path, "", "").mustPage(t, 200)
	if strings.Contains(result.body, key) {
		t.Error("the result shows the license key although the order has a success_url")
	}
	if !strings.Contains(result.body, `href="`+strings.ReplaceAll(shop, "&", "&amp;")+`"`) {
		t.Errorf("the result has no link to %s:\n%s", shop, result.body)
	}
}

func TestPayCanceledAndExpiredOrders(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made, path := s.payable(`,"success_url":"https://shop.example.com/"`)
	s.press(made, "cancel")
	s.press(made, "cancel")
	if got := s.status(made); got != "canceled" {
		t.Fatalf("canceled: %s", got)
	}
	s.send("GET", path, "", "").mustPage(t, 200)
	// A payment for a canceled order is refunded, and the buyer is not sent to the success_url.
	s.press(made, "pay")
	if got := s.status(made); got != "refunded" {
		t.Errorf("paid after cancel: %s", got)
	}
	if result := s.send("GET", path, "", "").mustPage(t, 200); strings.Contains(result.body, "shop.example.com") {
		t.Error("the result of a refunded order leads to the shop")
	}

	late, path := s.payable("")
	s.clock.advance(25 * time.Hour)
	s.send("GET", path, "", "").mustPage(t, 200)
	s.send("POST", path, "", "action=cancel", asForm...).mustPage(t, 409)
	s.press(late, "pay")
	if got := s.status(late); got != "paid" {
		t.Errorf("paid late: %s", got)
	}
}

func TestPayForms(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made, path := s.payable("")
	f := func(status int, body string, headers ...string) {
		t.Helper()
		s.send("POST", path, "", body, headers...).mustPage(t, status)
		if got := s.status(made); got != "unpaid" {
			t.Fatalf("%q %q: the order is %s", body, headers, got)
		}
	}
	with := func(headers ...string) []string { return append(headers, asForm...) }
	f(400, "", asForm...)
	f(400, "action=", asForm...)
	f(400, "action=refund", asForm...)
	f(400, "action=pay&action=pay", asForm...)
	f(400, "action=%zz", asForm...)
	f(415, `{"action":"pay"}`)
	f(415, "action=pay", "Content-Type", "-", "Content-Type", "multipart/form-data; boundary=x")
	f(415, "action=pay", "Content-Type", "-", "Content-Type", "text/plain")
	f(403, "action=pay", with("Origin", "https://evil.example.com")...)
	f(403, "action=pay", with("Origin", "null")...)
	f(403, "action=pay", with("Origin", "http://pay.example.com")...)
	f(403, "action=pay", with("Origin", publicURL+".evil.example.com")...)
	f(403, "action=pay", with("Origin", publicURL+":8443")...)
	f(403, "action=pay", with("Origin", publicURL, "Origin", "https://evil.example.com")...)
	f(403, "action=pay", with("Sec-Fetch-Site", "cross-site")...)
	f(403, "action=pay", with("Sec-Fetch-Site", "same-site")...)
	f(403, "action=pay", with("Sec-Fetch-Site", "cross-site", "Origin", publicURL)...)
	f(403, "action=pay", with("Sec-Fetch-Site", "none", "Origin", "http://localhost:8080")...)
	wrongToken := path[:len(path)-1] + "x"
	missing := s.send("POST", wrongToken, "", "action=pay", asForm...).mustPage(t, 404)
	absent := s.send("POST", "/pay/ord_0000000000000000000000000000/x", "", "action=pay", asForm...).mustPage(t, 404)
	if missing.body != absent.body {
		t.Error("a wrong token and a wrong number have different responses")
	}
	for _, bad := range []string{wrongToken, "/pay/x/y", "/pay/" + made.text("order_no"), "/pay/x/y/z", "/pay/%zz/x"} {
		s.send("GET", bad, "", "").mustPage(t, 404)
	}
	if a := s.send("PUT", path, "", "").mustPage(t, 405); a.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
	s.send("POST", path, "", "action="+strings.Repeat("x", 65<<10), asForm...).mustPage(t, 413)
	s.send("POST", path, "", "action=pay", with("Origin", strings.ToUpper(publicURL))...).mustPage(t, 303)
	// The browser reports that the form is on a page of the same origin, at another address of the service.
	s.send("POST", path, "", "action=pay",
		with("Origin", "http://localhost:8080", "Sec-Fetch-Site", "same-origin")...).mustPage(t, 303)
	if got := s.status(made); got != "paid" {
		t.Errorf("the order is %s", got)
	}
}

func TestPayPageProblems(t *testing.T) {
	t.Parallel()
	s := newService(t)
	_, path := s.payable("")
	for _, c := range []struct {
		all, commit error
		status      int
	}{
		{licensing.ErrUnavailable, nil, 503},
		{licensing.ErrOverloaded, nil, 503},
		{nil, licensing.ErrOutcomeUnknown, 504},
	} {
		s.store.breakWith(c.all, c.commit)
		a := s.send("POST", path, "", "action=pay", asForm...).mustPage(t, c.status)
		if a.header.Get("Retry-After") == "" || !strings.Contains(a.body, a.header.Get("X-Request-Id")) {
			t.Errorf("%d: no Retry-After or no reference: %s", c.status, a.body)
		}
	}
	s.store.breakWith(nil, nil)
	s.store.onRead(func() { panic("an internal detail") })
	if a := s.send("GET", path, "", "").mustPage(t, 500); strings.Contains(a.body, "internal detail") {
		t.Errorf("the panic shows: %s", a.body)
	}
	s.store.onRead(nil)

	live := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}
	order := licensing.Order{OrderNo: "ord_00" + strings.Repeat("0", 26), Owner: live, ProductID: "p",
		OrderPayment: licensing.OrderPayment{Amount: 1, Currency: "USD"},
		PayHash:      keyring.HashPayToken("token"), ExpiresAt: s.clock.Now().Add(time.Hour)}
	s.store.put(licensing.Record{Order: &order}, licensing.OrderRef(live, order.OrderNo))
	s.send("POST", "/pay/"+order.OrderNo+"/token", "", "action=pay", asForm...).mustPage(t, 409)
}

// TestSandboxPayment: the route pays orders of test mode as the pay page does, and never an order of live mode.
func TestSandboxPayment(t *testing.T) {
	t.Parallel()
	pay := func(s *fixture, order answer, key string) answer {
		return s.send("PUT", "/v1/orders/"+order.text("order_no")+"/sandbox_payment", key, "", "Content-Type", "-")
	}
	for from, want := range map[string]string{
		"unpaid": "paid", "expired": "paid", "paid": "paid", "canceled": "refunded", "refunded": "refunded",
	} {
		s := newService(t)
		order := s.bring(from)
		paid := pay(s, order, keyAll).must(t, 0)
		if again := pay(s, order, keyAll).must(t, 0); paid.text("status") != want || again.body != paid.body {
			t.Errorf("%s: paid %s, and again %s", from, paid.body, again.body)
		}
		s.checkLicenseOf(paid)
	}
	s := newService(t)
	unpaid := s.order("5")
	pay(s, unpaid, keyReadOnly).must(t, 40300)
	pay(s, unpaid, keyOther).must(t, 40403)
	pay(s, unpaid, keyLive).must(t, 40403)
	pay(s, unpaid, "").must(t, 40100)

	// A provider of live mode that pays at once must not help.
	s.config.Desk = payment.NewDesk(s.node, payment.ForMode(licensing.Live, payment.Sandbox{}))
	s.addr = serve(t, handlers.New(s.config))
	live := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live}
	order := licensing.Order{OrderNo: "ord_00" + strings.Repeat("0", 26), Owner: live, ProductID: "p",
		OrderPayment: licensing.OrderPayment{Amount: 1, Currency: "USD"},
		CreatedAt:    s.clock.Now(), ExpiresAt: s.clock.Now().Add(time.Hour)}
	s.store.put(licensing.Record{Order: &order}, licensing.OrderRef(live, order.OrderNo))
	path := "/v1/orders/" + order.OrderNo
	s.send("PUT", path+"/sandbox_payment", keyLive, "", "Content-Type", "-").must(t, 40904)
	if now := s.send("GET", path, keyLive, "").must(t, 0); now.text("status") != "unpaid" {
		t.Errorf("the live order is %s", now.body)
	}
}

// Fifty payments at once make one license.
func TestFiftyPayments(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made, path := s.payable("")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if a := s.send("POST", path, "", "action=pay", asForm...); a.status != 303 {
				t.Errorf("status %d: %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if got := s.status(made); got != "paid" {
		t.Errorf("the order is %s", got)
	}
	if n := s.store.count(licensing.KindLicense); n != 1 {
		t.Errorf("%d licenses", n)
	}
}

func (s *memStore) count(kind licensing.Kind) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref := range s.records {
		if ref.Kind == kind {
			n++
		}
	}
	return n
}

// TestPayPagePlays: the pay page of test mode has a button for each play that fits the order, and says what was played.
func TestPayPagePlays(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made, path := s.payable("")
	shows := func(parts ...string) {
		t.Helper()
		page := s.send("GET", path, "", "").mustPage(t, 200)
		for _, play := range payment.PlayNames() {
			button, want := `<button name="action" value="`+play+`">`, false
			for _, part := range parts {
				want = want || part == play
			}
			if strings.Contains(page.body, button) != want && play != "cancel" {
				t.Errorf("the page has a button for %s: %t", play, !want)
			}
		}
		if declined := strings.Contains(page.body, "declined"); declined != (parts != nil && parts[0] == "again") {
			t.Errorf("the page says that the payment was declined: %t", declined)
		}
	}
	begins := []string{"decline", "pay_later", "callback_twice", "callback_late"}
	shows(begins...)
	s.press(made, "decline")
	shows(append([]string{"again"}, begins...)...)
	s.press(made, "pay_later")
	shows("complete", "fail")
	s.send("POST", path, "", "action=decline", asForm...).mustPage(t, 409)
	s.press(made, "fail")
	s.press(made, "callback_late")
	shows("complete", "fail")
	if got := s.status(made); got != "unpaid" {
		t.Errorf("before the callback: %s", got)
	}
	s.press(made, "complete")
	shows("refund_fails")
	if got := s.status(made); got != "paid" {
		t.Errorf("after the callback: %s", got)
	}
	s.send("POST", path, "", "action=fail", asForm...).mustPage(t, 409)

	sandbox := "/v1/orders/" + made.text("order_no") + "/sandbox"
	s.send("PUT", sandbox, keyAll, `{"action":"decline"}`).must(t, 40902)
	s.send("PUT", sandbox, keyAll, `{"action":"pay"}`).must(t, 0)
	s.send("PUT", sandbox, keyAll, `{}`).must(t, 42200)
	s.send("PUT", sandbox, keyAll, `{"action":"steal"}`).must(t, 42200)
	s.send("PUT", sandbox, keyOther, `{"action":"pay"}`).must(t, 40403)
	s.send("PUT", sandbox, keyReadOnly, `{"action":"pay"}`).must(t, 40300)
}
