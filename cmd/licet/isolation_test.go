package main

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/licensing"
	"licet/licensing/keyring"
)

// startService starts a service inside the test, so that the test can reach
// behind its API. change may alter it before it starts.
func startService(t *testing.T, change ...func(*dev)) *dev {
	t.Helper()
	s := newDev(devConfig{
		config:  config{Listen: "127.0.0.1:0", OrderLifetime: time.Hour, ShutdownTimeout: 10 * time.Second},
		DataDir: t.TempDir(),
	}, zerolog.Nop())
	for _, c := range change {
		c(s)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	if err := s.start(t.Context(), build{}); err != nil {
		t.Fatal(err)
	}
	if err := s.awaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// addKey makes an API key of an owner.
func (s *instance) addKey(t *testing.T, owner licensing.Owner) api {
	t.Helper()
	var entropy [keyring.APIKeyEntropy]byte
	_, _ = rand.Read(entropy[:])
	check, err := s.store.KeyCheck(t.Context(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := check.MintAPIKey(owner, entropy)
	err = s.store.PutAPIKey(t.Context(), licensing.APIKey{
		ID: licensing.NewAPIKeyID(owner, "0"), Hash: keyring.HashAPIKey(text), Owner: owner,
		Scopes: []string{"*"}, SecretVersion: 1, MasterID: "m1", CreatedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return api{url: s.url, key: text, client: newClient()}
}

// TestAccountsSeeNothingOfEachOther asks every route with an id for a record of another account, for a record of the
// other mode of the same account, and for a record that does not exist. The responses must not differ in a byte.
func TestAccountsSeeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	s := startService(t)
	owner := s.addKey(t, licensing.Owner{AccountID: "acct_a", Mode: licensing.Test})
	strangers := map[string]api{
		"another account": s.addKey(t, licensing.Owner{AccountID: "acct_b", Mode: licensing.Test}),
		"the other mode":  s.addKey(t, licensing.Owner{AccountID: "acct_a", Mode: licensing.Live}),
		"both":            s.addKey(t, licensing.Owner{AccountID: "acct_b", Mode: licensing.Live}),
	}

	order := owner.want(t, 201, "POST", "/v1/orders",
		`{"product_id":"editor","amount":0,"currency":"USD","buyer_email":"ada@example.com"}`).Data
	unpaid := owner.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`).Data
	key := owner.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"), "").Data.text("license_key")
	if r, err := owner.activate(t.Context(), key, "laptop"); err != nil || r.status != 200 {
		t.Fatalf("%v %s", err, r.body)
	}
	absentKey, absentOrder := s.absent(t)
	id := owner.want(t, 200, "GET", "/v1/licenses/"+key, "").Data.text("id")
	absentID := s.licenseKeys.Mint("LIC", licensing.Owner{}, [keyring.LicenseKeyEntropy]byte{1}).String()
	event := owner.want(t, 200, "GET", "/v1/licenses/"+key+"/events", "").Data.list("events")[0].text("id")
	absentEvent := event[:len(event)-1] + "G" // of another number
	endpoint := owner.want(t, 201, "POST", "/v1/webhook_endpoints",
		`{"url":"https://shop.example.com/licet","event_types":["order.refunded"]}`).Data.text("id")
	absentEndpoint := licensing.NewEndpointID(licensing.Owner{}, "01ARZ3NDEKTSV4RRFFQ69G5FAV")

	for _, route := range []struct{ method, path, body, there, absent string }{
		{"GET", "/v1/orders/%s", "", order.text("order_no"), absentOrder},
		{"GET", "/v1/orders/%s", "", unpaid.text("order_no"), absentOrder},
		{"POST", "/v1/orders/%s/cancel", "", unpaid.text("order_no"), absentOrder},
		{"PUT", "/v1/orders/%s/sandbox_payment", "", unpaid.text("order_no"), absentOrder},
		{"PUT", "/v1/orders/%s/sandbox", `{"action":"decline"}`, unpaid.text("order_no"), absentOrder},
		{"POST", "/v1/orders/%s/payments", `{"reference":"INV-1"}`, unpaid.text("order_no"), absentOrder},
		{"POST", "/v1/orders/%s/refund", "", order.text("order_no"), absentOrder},
		{"GET", "/v1/licenses/%s", "", key, absentKey},
		{"GET", "/v1/licenses/%s", "", id, absentID},
		{"PATCH", "/v1/licenses/%s", `{"max_devices":1}`, id, absentID},
		{"POST", "/v1/licenses/%s/revoke", "", id, absentID},
		{"DELETE", "/v1/licenses/%s/devices/laptop", "", id, absentID},
		{"GET", "/v1/licenses/%s/devices", "", key, absentKey},
		{"GET", "/v1/licenses/%s/devices?limit=1", "", key, absentKey},
		{"GET", "/v1/licenses/%s/events", "", key, absentKey},
		{"GET", "/v1/orders/%s/events", "", order.text("order_no"), absentOrder},
		{"GET", "/v1/orders/%s/payments", "", order.text("order_no"), absentOrder},
		{"GET", "/v1/events/%s", "", event, absentEvent},
		{"GET", "/v1/webhook_endpoints/%s", "", endpoint, absentEndpoint},
		{"PATCH", "/v1/webhook_endpoints/%s", `{"status":"disabled"}`, endpoint, absentEndpoint},
		{"DELETE", "/v1/webhook_endpoints/%s", "", endpoint, absentEndpoint},
		{"POST", "/v1/webhook_endpoints/%s/rotate", "", endpoint, absentEndpoint},
		{"POST", "/v1/webhook_endpoints/%s/test", "", endpoint, absentEndpoint},
		{"GET", "/v1/webhook_endpoints/%s/deliveries?status=dead", "", endpoint, absentEndpoint},
		{"POST", "/v1/webhook_endpoints/%s/replay", `{"dead":true}`, endpoint, absentEndpoint},
		{"POST", "/v1/webhook_endpoints/%s/replay", `{"event_id":"` + event + `"}`, endpoint, absentEndpoint},
		{"DELETE", "/v1/licenses/%s/devices/laptop", "", key, absentKey},
		{"DELETE", "/v1/licenses/%s/devices/unknown", "", key, absentKey},
		{"POST", "/v1/licenses/activate", `{"license_key":"%s","device_id":"laptop"}`, key, absentKey},
		{"POST", "/v1/licenses/activate", `{"license_key":"%s","device_id":"another"}`, key, absentKey},
	} {
		t.Run(route.method+" "+route.path+" "+route.body, func(t *testing.T) {
			for name, stranger := range strangers {
				theirs := stranger.probe(t, route.method, route.path, route.body, route.there)
				none := stranger.probe(t, route.method, route.path, route.body, route.absent)
				if theirs != none {
					t.Errorf("%s: of another's thing it says\n%s\nof an absent one\n%s", name, theirs, none)
				}
				if !strings.HasPrefix(none, "404 ") || !strings.Contains(none, `"code":4040`) {
					t.Errorf("%s: of an absent thing it says\n%s", name, none)
				}
			}
		})
	}

	for _, path := range []string{
		"/v1/licenses", "/v1/licenses?order_no=" + order.text("order_no"), "/v1/licenses?buyer_email=ada@example.com",
		"/v1/orders", "/v1/orders?buyer_email=ada@example.com", "/v1/products", "/v1/webhook_endpoints",
	} {
		t.Run("GET "+path, func(t *testing.T) {
			plural, _, _ := strings.Cut(strings.TrimPrefix(path, "/v1/"), "?")
			if listed := owner.want(t, 200, "GET", path, "").Data.list(plural); len(listed) == 0 {
				t.Error("the owner sees nothing")
			}
			for name, stranger := range strangers {
				if listed := stranger.want(t, 200, "GET", path, "").Data.list(plural); len(listed) != 0 {
					t.Errorf("%s sees %v", name, listed)
				}
			}
		})
	}
	t.Run("GET /v1/events", func(t *testing.T) {
		if page := owner.want(t, 200, "GET", "/v1/events?wait=25", "").Data; len(page.list("events")) == 0 {
			t.Error("the owner sees nothing")
		}
		for name, stranger := range strangers {
			if page := stranger.want(t, 200, "GET", "/v1/events", "").Data; len(page.list("events")) != 0 {
				t.Errorf("%s sees %v", name, page)
			}
			theirs := stranger.probe(t, "GET", "/v1/events?after=%s", "", event)
			none := stranger.probe(t, "GET", "/v1/events?after=%s", "", absentEvent)
			if theirs != none || !strings.HasPrefix(none, "422 ") {
				t.Errorf("%s: of another's event it says\n%s\nof an absent one\n%s", name, theirs, none)
			}
		}
	})
	t.Run("GET /v1/keys", func(t *testing.T) {
		for name, caller := range strangers {
			listed := caller.want(t, 200, "GET", "/v1/keys", "").Data.list("keys")
			if len(listed) != 1 {
				t.Errorf("%s sees %v", name, listed)
				continue
			}
			owner := licensing.Owner{AccountID: listed[0].text("account_id"),
				Mode: licensing.Mode(listed[0].text("mode"))}
			if listed[0].text("id") != licensing.NewAPIKeyID(owner, "0") {
				t.Errorf("%s sees %v", name, listed)
			}
		}
	})

	t.Run("replay of another's event", func(t *testing.T) {
		for name, stranger := range strangers {
			own := stranger.want(t, 201, "POST", "/v1/webhook_endpoints",
				`{"url":"https://shop.example.com/licet"}`).Data.text("id")
			for _, body := range []string{`{"event_id":"%s"}`, `{"until":"%s"}`} {
				theirs := stranger.probe(t, "POST", "/v1/webhook_endpoints/"+own+"/replay", body, event)
				none := stranger.probe(t, "POST", "/v1/webhook_endpoints/"+own+"/replay", body, absentEvent)
				if theirs != none || !strings.Contains(none, `"code":40406`) {
					t.Errorf("%s: of another's event it says\n%s\nof an absent one\n%s", name, theirs, none)
				}
			}
		}
	})

	t.Run("activation that pins another owner", func(t *testing.T) {
		anyone := api{url: s.url, client: newClient()}
		body := func(pin string) string { return `{"license_key":"%s","device_id":"laptop",` + pin + `}` }
		for _, pin := range []string{`"account_id":"acct_b"`, `"mode":"live"`, `"account_id":"acct_b","mode":"live"`} {
			theirs := anyone.probe(t, "POST", "/v1/licenses/activate", body(pin), key)
			none := anyone.probe(t, "POST", "/v1/licenses/activate", body(pin), absentKey)
			if theirs != none || !strings.Contains(none, `"code":40401`) {
				t.Errorf("%s: of another's license it says\n%s\nof an absent one\n%s", pin, theirs, none)
			}
		}
		right := anyone.probe(t, "POST", "/v1/licenses/activate",
			body(`"account_id":"acct_a","mode":"test","product_id":"editor"`), key)
		if !strings.HasPrefix(right, "200 ") {
			t.Errorf("the right pins are answered\n%s", right)
		}
	})

	t.Run("pay page with a wrong token", func(t *testing.T) {
		anyone := api{url: s.url, client: newClient()}
		token := strings.Repeat("0", 32)
		for _, method := range []string{"GET", "POST"} {
			theirs := anyone.probe(t, method, "/pay/%s/"+token, "", unpaid.text("order_no"))
			none := anyone.probe(t, method, "/pay/%s/"+token, "", absentOrder)
			if theirs != none || !strings.HasPrefix(none, "404 ") {
				t.Errorf("%s: of another's order it says\n%s\nof an absent one\n%s", method, theirs, none)
			}
		}
	})

	t.Run("redaction of another's buyer", func(t *testing.T) {
		for name, stranger := range strangers {
			theirs := stranger.probe(t, "POST", "/v1/redactions", `{"buyer_email":"%s"}`, "ada@example.com")
			absent := stranger.probe(t, "POST", "/v1/redactions", `{"buyer_email":"%s"}`, "eve@example.com")
			if theirs != absent || !strings.HasPrefix(absent, "200 ") {
				t.Errorf("%s: for the buyer of another account:\n%s\nfor an unknown buyer:\n%s", name, theirs, absent)
			}
		}
		if email := owner.want(t, 200, "GET", "/v1/orders/"+order.text("order_no"),
			"").Data.text("buyer_email"); email != "ada@example.com" {
			t.Errorf("the order's buyer is now %q", email)
		}
	})

	// Nothing of all this has changed anything.
	if e := owner.want(t, 200, "GET", "/v1/webhook_endpoints/"+endpoint, "").Data; e.text("status") != "enabled" ||
		e.text("previous_secret_until") != "" {
		t.Errorf("the endpoint is now %v", e)
	}
	license := owner.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
	if devices := license.list("devices"); len(devices) != 1 || devices[0].text("device_id") != "laptop" {
		t.Errorf("the license is now %v", license)
	}
	if status := owner.want(t, 200, "GET", "/v1/orders/"+unpaid.text("order_no"),
		"").Data.text("status"); status != "unpaid" {
		t.Errorf("the order is now %s", status)
	}
}

// absent returns a license key and an order number that are well formed, and
// belong to nothing.
func (s *instance) absent(t *testing.T) (key, orderNo string) {
	t.Helper()
	var entropy [keyring.LicenseKeyEntropy]byte
	_, _ = rand.Read(entropy[:])
	return s.licenseKeys.Text(s.licenseKeys.Mint("LIC", licensing.Owner{}, entropy)),
		licensing.NewOrderNo(licensing.Owner{}, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
}

// probe asks for the thing of an id and returns the whole answer as text, without
// the date. The request has an id, so the id in the answer is the same each time.
func (a api) probe(t *testing.T, method, path, body, id string) string {
	t.Helper()
	contentType := "application/json"
	switch {
	case strings.Contains(body, "%s"):
		body = fmt.Sprintf(body, id)
	case strings.HasPrefix(path, "/pay/") && method == http.MethodPost:
		body, contentType = "action=pay", "application/x-www-form-urlencoded"
	}
	if strings.Contains(path, "%s") {
		path = fmt.Sprintf(path, id)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Request-Id", "the-same-each-time")
	if a.key != "" {
		request.Header.Set("Authorization", "Bearer "+a.key)
	}
	if body != "" {
		request.Header.Set("Content-Type", contentType)
	}
	r, err := a.do(request)
	if err != nil {
		t.Fatal(err)
	}
	r.header.Del("Date")
	text := fmt.Sprintf("%d %s\n", r.status, r.body)
	for _, name := range slices.Sorted(maps.Keys(r.header)) {
		text += fmt.Sprintf("%s: %v\n", name, r.header[name])
	}
	return text
}

// TestLiveModeDemandsProductsAndProvider is what the other mode is stricter in.
func TestLiveModeDemandsProductsAndProvider(t *testing.T) {
	t.Parallel()
	s := startService(t)
	live := s.addKey(t, licensing.Owner{AccountID: "acct_a", Mode: licensing.Live})
	r, err := live.send(t.Context(), "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`)
	if err != nil || r.status != 404 || r.Code != 40404 {
		t.Errorf("an order for an unknown product: %v %s", err, r.body)
	}
}
