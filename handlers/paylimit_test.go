package handlers_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"licet/handlers"
	"licet/handlers/limits"
	"licet/licensing"
	"licet/payment"
)

// shopTill is a provider with a checkout of its own that counts the requests to it.
type shopTill struct {
	payment.Sandbox
	requests atomic.Int64
}

func (p *shopTill) Name() licensing.PaymentProvider { return licensing.ProviderStripe }

func (p *shopTill) Begin(_ context.Context, o licensing.Order) (payment.Step, error) {
	p.requests.Add(1)
	return payment.Step{Checkout: "cs_" + o.OrderNo, Redirect: "https://till.example/" + o.OrderNo}, nil
}

func (p *shopTill) Look(_ context.Context, object payment.Object) (payment.State, error) {
	p.requests.Add(1)
	return payment.State{Object: object, OrderNo: object.ID[len("cs_"):], Outcome: payment.OutcomeOpen,
		URL: "https://till.example/" + object.ID[len("cs_"):]}, nil
}

// TestPayPageLimit: a buyer who has the link of an order makes the service ask its payment provider only so often.
// Other orders are not disturbed, and the page stays readable.
func TestPayPageLimit(t *testing.T) {
	t.Parallel()
	till := &shopTill{}
	s := newService(t, limited(limits.Config{PayPage: limits.Rate{Count: 3, Per: time.Minute}})...)
	s.config.Desk = payment.NewDesk(s.node, payment.ForMode(licensing.Test, till))
	s.addr = serve(t, handlers.New(s.config))
	_, path := s.payable("")
	_, other := s.payable("")
	press := func(path string) answer { return s.send("POST", path, "", "action=pay", asForm...) }
	for range 2 {
		if a := press(path); a.status != 303 || a.header.Get("Location")[:21] != "https://till.example/" {
			t.Fatalf("Pay answers %d: %s", a.status, a.body)
		}
	}
	s.send("GET", path, "", "").mustPage(t, 200)
	if n := till.requests.Load(); n != 3 {
		t.Errorf("two presses and a look at the page made %d requests, want 3", n)
	}
	for range 5 {
		if a := press(path).mustPage(t, 429); a.header.Get("Retry-After") == "" {
			t.Errorf("no Retry-After: %v", a.header)
		}
		s.send("POST", path, "", "action=cancel", asForm...).mustPage(t, 429)
		s.send("GET", path, "", "").mustPage(t, 200)
	}
	if n := till.requests.Load(); n != 3 {
		t.Errorf("above the limit, %d requests went to the provider", n-3)
	}
	if a := press(other); a.status != 303 {
		t.Errorf("Pay of another order answers %d", a.status)
	}
	s.clock.advance(20 * time.Second)
	if a := press(path); a.status != 303 {
		t.Errorf("after a while, Pay answers %d", a.status)
	}
}
