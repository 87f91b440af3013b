package client_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"licet/client"
	"licet/handlers/limits"
	"licet/internal/servicetest"
)

var quiet = log.New(io.Discard, "", 0)

// TestLostAnswers: if a response is lost, the retry does not execute the request again.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := newWire(2)
	shop := newShop(t, nil, w.option())
	var r client.Response
	const buyer = "lost-answers@example.com"
	order, err := shop.Orders.Create(t.Context(),
		client.NewOrder{ProductID: "editor", Currency: "USD", BuyerEmail: buyer}, client.Record(&r))
	if err != nil || r.Tries != 3 || !r.Replayed {
		t.Fatalf("%+v, %v", r, err)
	}
	list := must[*client.List[client.Order]](t)(shop.Orders.List(t.Context(), client.OrderFilter{BuyerEmail: buyer},
		client.Page{}))
	if len(list.Items) != 1 || list.Items[0].OrderNo != order.OrderNo {
		t.Errorf("there are %d orders", len(list.Items))
	}
	keys := map[string]bool{}
	for i, sent := range w.noted[:3] {
		keys[sent.Header.Get("Idempotency-Key")] = true
		if w.bodies[i] != w.bodies[0] {
			t.Errorf("sent again it was %s", w.bodies[i])
		}
	}
	if len(keys) != 1 {
		t.Errorf("sent under the keys %v", keys)
	}

	license := list.Items[0].LicenseKey
	w.lose = 1
	renewed := must[*client.License](t)(shop.Licenses.Renew(t.Context(), license,
		client.Renewal{ExpiresAt: time.Now().Add(time.Hour)}))
	w.lose = 1
	extended := must[*client.License](t)(shop.Licenses.Renew(t.Context(), license, client.Renewal{Extend: "PT1H"}))
	if extended.ExpiresAt.Sub(renewed.ExpiresAt) != time.Hour {
		t.Errorf("extended by %v", extended.ExpiresAt.Sub(renewed.ExpiresAt))
	}
	w.lose = 1
	if a := must[*client.Activated](t)(shop.Activate(t.Context(),
		client.Activation{LicenseKey: license, DeviceID: "d"})); a.CurrentDevices != 1 {
		t.Errorf("activated %+v", a)
	}
	w.lose = 1
	must[*client.License](t)(shop.Licenses.Update(t.Context(), license, client.LicenseUpdate{MaxDevices: new(9)}))
	w.lose = 1
	d := must[*client.Redaction](t)(shop.Redactions.RedactBuyer(t.Context(), buyer))
	if *d != (client.Redaction{Orders: 1, Licenses: 1, Complete: true}) {
		t.Errorf("redacted %+v", d)
	}
}

// TestLostSecrets: if the response with a secret is lost, the error is ErrSecretLost.
func TestLostSecrets(t *testing.T) {
	t.Parallel()
	w := newWire(1)
	shop := newShop(t, nil, w.option())
	key, err := shop.APIKeys.Create(t.Context(), client.NewKey{Name: "lost", Scopes: []string{"orders"}})
	if !errors.Is(err, client.ErrSecretLost) || key == nil || key.Name != "lost" || key.APIKey != "" ||
		!strings.Contains(err.Error(), key.ID) {
		t.Fatalf("%+v, %v", key, err)
	}
	w.lose = 1
	turned, err := shop.APIKeys.Rotate(t.Context(), key.ID, client.Rotation{})
	if !errors.Is(err, client.ErrSecretLost) || turned == nil || turned.ID != key.ID {
		t.Fatalf("%+v, %v", turned, err)
	}
}

// TestRateLimit: the client waits as long as the service demands, and no longer than RetryFor.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	limited := servicetest.New(t, servicetest.Config{AccountLimit: limits.Rate{Count: 1, Per: time.Second}})
	key, err := limited.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	var waits atomic.Int64
	notice := client.OnRetry(func(err error, wait time.Duration) bool {
		if e := refused(t, err, 42900); wait < e.RetryAfter || e.RetryAfter < time.Second {
			t.Errorf("waits %v of %v", wait, e.RetryAfter)
		}
		waits.Add(1)
		return true
	})
	shop := newClient(t, limited.URL, key.Text, notice)
	for range 3 {
		must[*client.List[client.Order]](t)(shop.Orders.List(t.Context(), client.OrderFilter{}, client.Page{}))
	}
	if waits.Load() == 0 {
		t.Error("it never had to wait")
	}
	for _, option := range []client.Option{
		client.RetryFor(0), client.RetryFor(500 * time.Millisecond), client.OnRetry(func(error,
			time.Duration) bool {
			return false
		}),
	} {
		hasty := newClient(t, limited.URL, key.Text, option)
		var r client.Response
		var err error
		for range 5 { // whatever the bucket has by now
			if _, err = hasty.Orders.List(t.Context(), client.OrderFilter{}, client.Page{},
				client.Record(&r)); err != nil {
				break
			}
		}
		refused(t, err, 42900)
		if r.Tries != 1 {
			t.Errorf("tried %d times", r.Tries)
		}
	}
}

// TestServiceThatComesBack: the client retries while connections are refused, as during the restart of a node.
func TestServiceThatComesBack(t *testing.T) {
	t.Parallel()
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	address := closedPort(t)
	var server *http.Server
	back := client.OnRetry(func(error, time.Duration) bool {
		if server == nil {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				t.Error(err)
				return false
			}
			server = &http.Server{Handler: forwarding(t), ErrorLog: quiet}
			go server.Serve(listener)
		}
		return true
	})
	shop := newClient(t, "http://"+address, key.Text, back)
	must[*client.List[client.Order]](t)(shop.Orders.List(t.Context(), client.OrderFilter{}, client.Page{}))
	if server == nil {
		t.Fatal("it was there at once")
	}
	_ = server.Close()
}

// TestNoPasswordIsSentElsewhere: the client does not follow redirects, which would disclose the API key.
func TestNoPasswordIsSentElsewhere(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visits.Add(1) }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	follows := client.WithHTTPClient(&http.Client{CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return nil
	}})
	for _, options := range [][]client.Option{nil, {follows}} {
		_, err := newClient(t, server.URL, "lk_test_1", options...).Orders.Create(t.Context(), client.NewOrder{})
		if e := refused(t, err, 0); e.Status != http.StatusTemporaryRedirect {
			t.Errorf("%+v", e)
		}
	}
	if visits.Load() != 0 {
		t.Error("it followed")
	}
}

// forwarding forwards requests to the service.
func forwarding(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		on := r.Clone(r.Context())
		on.RequestURI = ""
		on.URL.Scheme, on.URL.Host = "http", strings.TrimPrefix(service.URL, "http://")
		response, err := http.DefaultTransport.RoundTrip(on)
		if err != nil {
			t.Error(err)
			return
		}
		defer response.Body.Close()
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	})
}
