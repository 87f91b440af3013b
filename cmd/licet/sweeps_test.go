package main

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// TestSweepsRun starts a whole service: due work is done without a request.
func TestSweepsRun(t *testing.T) {
	t.Parallel()
	s := startService(t, func(d *dev) {
		d.instance.cfg.TestOrders = time.Second
		d.sweepEvery, d.expiryMargin = 20*time.Millisecond, time.Millisecond
	})
	owner := licensing.Owner{AccountID: "acct_a", Mode: licensing.Test}
	shop := s.addKey(t, owner)
	created := shop.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":5,"currency":"USD"}`).Data
	ref := licensing.OrderRef(owner, created.text("order_no"))
	stored := func() (*licensing.Order, store.Token) {
		t.Helper()
		loaded, err := s.store.Load(t.Context(), store.Want{Ref: ref})
		if err != nil {
			t.Fatal(err)
		}
		return loaded[0].Record.Order, loaded[0].Token
	}
	await := func(what string, done func(*licensing.Order) bool) {
		t.Helper()
		for giveUp := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if o, _ := stored(); done(o) {
				return
			} else if time.Now().After(giveUp) {
				t.Fatalf("%s: %+v", what, o)
			}
		}
	}
	order := func() object { return shop.want(t, 200, "GET", "/v1/orders/"+ref.ID, "").Data }

	await("the end is not recorded", func(o *licensing.Order) bool { return !o.ExpiredAt.IsZero() })
	if got := order(); got.text("status") != "expired" || got["pay_url"] != nil {
		t.Errorf("it is %v", got)
	}
	if r, err := shop.pay(t.Context(), ref.ID); err != nil || r.Code != 0 {
		t.Fatalf("%v %s", err, r.body)
	}
	if got := order(); got.text("status") != "paid" || got["late"] != true {
		t.Errorf("it is %v", got)
	}
	// As a node leaves it that dies before it asks the provider.
	o, token := stored()
	record := licensing.Record{Order: o}
	if _, err := licensing.Apply(&record, licensing.RequestRefund{}, time.Now()); err != nil {
		t.Fatal(err)
	}
	outcome, err := s.store.Commit(t.Context(),
		store.Change{Writes: []store.Write{{Ref: ref, Token: token, Record: record}}})
	if err != nil || !outcome.Landed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	await("the refund does not go on", func(o *licensing.Order) bool { return !o.RefundedAt.IsZero() })
	if r, err := shop.activate(t.Context(), order().text("license_key"), "laptop"); err != nil || r.status != 403 {
		t.Errorf("%v %s", err, r.body)
	}
}
