package main

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"licet/client"
	"licet/internal/fakestripe"
	"licet/loadtest/trial"
	"licet/loadtest/trial/trialtest"
)

// TestSmallRun is a run in small: real etcd, real nodes, real kills. Then books are falsified one at a time, each of
// which must be found.
func TestSmallRun(t *testing.T) {
	ctx, cfg, progress := trialtest.Begin(t, parseConfig, "--purchases", "150", "--kills", "3", "--drop", "0",
		"--order-lifetime", "10s") // a busy machine takes seconds from an order to its payment
	s, err := newScene(ctx, cfg, progress)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	if err := s.play(ctx); err != nil {
		t.Fatalf("%v\n%v", err, s.shop.Err())
	}
	read := func() *books {
		t.Helper()
		b, err := s.readBooks(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	s.loseCallbacks(ctx, t, read)
	if err := s.catchUp(ctx); err != nil {
		t.Fatal(err)
	}
	b := read()
	trialtest.Nothing(t, s.report(b).Problems)
	for _, c := range falsehoods {
		false := *b
		c.tell(&false)
		trialtest.Says(t, audit(s.buyers, &false, cfg.suspend), c.want...)
	}
	end := &trial.Report{}
	s.Shut(ctx, end)
	trialtest.Nothing(t, end.Problems)
}

// loseCallbacks lets a buyer pay while all callbacks are lost, and before the service asks Stripe by itself: the audit
// must miss the licenses. Then the buyer comes back.
func (s *scene) loseCallbacks(ctx context.Context, t *testing.T, read func() *books) {
	t.Helper()
	s.fake.SetSending(fakestripe.Sending{Drop: 1000, Hide: 1000})
	b := &buyer{n: len(s.buyers), fate: paysCard, price: prices[0], amount: 4900, quantity: 2}
	s.shop.play(ctx, ctx, b)
	s.buyers = append(s.buyers, b)
	trialtest.Says(t, audit(s.buyers, read(), s.cfg.suspend), b.String()+": 4900 USD are paid, and the order is ",
		b.String()+": 0 licenses can be used, and 2 are paid", "USD paid: ")
	b.comes = true
	s.shop.comeBack(ctx, b)
}

// keptIn returns the place of a charge in a currency that was neither returned nor disputed, and is of no subscription,
// in the ledger of Stripe.
func keptIn(b *books, currency string) int {
	return slices.IndexFunc(b.stripe, func(e fakestripe.Entry) bool {
		returned := slices.ContainsFunc(b.stripe, func(other fakestripe.Entry) bool {
			return other.Kind != "charge" && other.OrderNo == e.OrderNo
		})
		return e.Currency == currency && e.Invoice == "" && !returned
	})
}

// subscribed returns a license whose subscription has renewed without a dispute, in a copy of the licenses.
func (b *books) subscribed() *client.License {
	return b.licenseWith(func(l client.License) bool {
		renewed := slices.ContainsFunc(b.payments[l.OrderNo],
			func(p client.Payment) bool { return p.Type == "invoice" })
		return renewed && b.subscriptions[l.OrderNo] == "active" && b.disputed(l.OrderNo) == ""
	})
}

// goOn makes the subscription active, at Stripe and at the service, of an order whose own payment went back.
func (b *books) goOn(kind string) {
	for _, e := range b.stripe {
		o := b.details[e.OrderNo]
		if e.Kind != kind || o == nil || o.Status != "refunded" || b.subscriptions[e.OrderNo] != "canceled" {
			continue
		}
		b.subscriptions, b.details = maps.Clone(b.subscriptions), maps.Clone(b.details)
		now, subscription := *o, *o.Subscription
		subscription.Status, now.Subscription = "active", &subscription
		b.subscriptions[e.OrderNo], b.details[e.OrderNo] = "active", &now
		return
	}
}

// licenseWith returns the first license of some kind, in a copy of the licenses.
func (b *books) licenseWith(is func(client.License) bool) *client.License {
	b.licenses = slices.Clone(b.licenses)
	return &b.licenses[slices.IndexFunc(b.licenses, is)]
}

// disputed returns the state of the dispute of an order at Stripe; empty: there is none.
func (b *books) disputed(orderNo string) (state string) {
	for _, e := range b.stripe {
		if e.OrderNo == orderNo && e.Kind == "dispute" {
			state = b.disputes[e.Object]
		}
	}
	return state
}

// disputeWith returns the id of a dispute in a state.
func (b *books) disputeWith(state string) string {
	for id, now := range b.disputes {
		if now == state {
			return id
		}
	}
	return ""
}

// falsehoods are what books may say that is wrong, and what the audit must say then.
var falsehoods = []struct {
	tell func(*books)
	want []string
}{
	{func(b *books) { // a cent more at Stripe
		b.stripe = slices.Clone(b.stripe)
		b.stripe[keptIn(b, "USD")].Amount++
	}, []string{" of a price of ", "USD paid: "}},
	{func(b *books) { // a payment at Stripe less
		at := keptIn(b, "USD")
		b.stripe = slices.Delete(slices.Clone(b.stripe), at, at+1)
	}, []string{"nothing is paid, and the order is ", "the payments are [", "], and must be []"}},
	{func(b *books) { // a refund at Stripe less
		at := slices.IndexFunc(b.stripe, func(e fakestripe.Entry) bool { return e.Kind == "refund" })
		b.stripe = slices.Delete(slices.Clone(b.stripe), at, at+1)
	}, []string{" are returned, and amount_refunded is ", "the refunds are of ", " refunded: "}},
	{func(b *books) { // a payment without a purchase
		b.stripe = append(slices.Clone(b.stripe), fakestripe.Entry{OrderNo: "ord_X", Amount: 5, Currency: "USD"})
	}, []string{`Stripe has 5 USD of the order "ord_X", which no buyer made`}},
	{func(b *books) { // a license too many
		extra := b.licenses[0]
		extra.LicenseKey = "EXTRA"
		b.licenses = append(slices.Clone(b.licenses), extra)
	}, []string{" licenses can be used, and ", "license_keys are "}},
	{func(b *books) { // a license twice
		b.licenses = append(slices.Clone(b.licenses), b.licenses[0])
	}, []string{"is listed twice, or no purchase explains it"}},
	{func(b *books) { // a license is lost
		b.licenses = b.licenses[1:]
	}, []string{" licenses can be used, and "}},
	{func(b *books) { // a license expires while its subscription is paid
		b.subscribed().ExpiresAt = time.Now()
	}, []string{"the license expires at ", ", and is paid until "}},
	{func(b *books) { // an invoice has extended its license twice
		l := b.subscribed()
		l.ExpiresAt = l.ExpiresAt.AddDate(0, 1, 0)
	}, []string{"the license ends at ", "which is not 72h0m0s after "}},
	{func(b *books) { // an invoice is lost
		b.payments = maps.Clone(b.payments)
		no := b.subscribed().OrderNo
		b.payments[no] = slices.DeleteFunc(slices.Clone(b.payments[no]), func(p client.Payment) bool {
			return p.Type == "invoice"
		})
	}, []string{"the invoices are map[], and must be map[", " in the payment records, "}},
	{func(b *books) { // a subscription that has ended at Stripe
		b.subscriptions = maps.Clone(b.subscriptions)
		b.subscriptions[b.subscribed().OrderNo] = "canceled"
	}, []string{`the subscription is "canceled" at Stripe`}},
	{func(b *books) { // the license of a disputed payment works
		l := b.licenseWith(func(l client.License) bool { return l.Status == "suspended" })
		l.Status = "not_activated"
	}, []string{"the license is not_activated, and the dispute is du_"}},
	{func(b *books) { // a license is suspended without a dispute
		b.subscribed().Status = "suspended"
	}, []string{"the license is suspended, and the dispute is none"}},
	{func(b *books) { // a bank decides, and no callback says so
		b.disputes = maps.Clone(b.disputes)
		b.disputes[b.disputeWith("lost")] = "won"
	}, []string{" are returned, and amount_refunded is ", ": the shop has ", " refunded: "}},
	{func(b *books) { // a dispute is recorded with another fee
		b.payments = maps.Clone(b.payments)
		for no, payments := range b.payments {
			b.payments[no] = slices.Clone(payments)
			if d := disputeOf(payments); d != nil && d.state == "open" {
				at := slices.IndexFunc(payments, func(p client.Payment) bool { return p.Type == "dispute" })
				b.payments[no][at].Fee = new(d.fee + 1)
			}
		}
	}, []string{": open, of ", ", and must be du_"}},
	{func(b *books) { // the fee of a payment is not known
		b.payments = maps.Clone(b.payments)
		no := b.stripe[keptIn(b, "EUR")].OrderNo
		b.payments[no] = slices.Clone(b.payments[no])
		b.payments[no][0].Fee = nil
	}, []string{"the fee of the payment pi_", " is not known, and must be ", "EUR fees: "}},
	{func(b *books) { // an invoice without a fee
		b.payments = maps.Clone(b.payments)
		no := b.subscribed().OrderNo
		b.payments[no] = slices.Clone(b.payments[no])
		at := slices.IndexFunc(b.payments[no], func(p client.Payment) bool { return p.Type == "invoice" })
		b.payments[no][at].Fee = new(int64(0))
	}, []string{"the fee of the invoice in_", " fees: "}},
	{func(b *books) { // an order counts a fee twice
		b.details = maps.Clone(b.details)
		now := *b.details[b.stripe[keptIn(b, "USD")].OrderNo]
		now.Fee = new(2 * *now.Fee)
		b.details[now.OrderNo] = &now
	}, []string{"Stripe keeps ", ", and fee is "}},
	{func(b *books) { // a fee is missing in the export
		b.export = slices.Clone(b.export)
		at := slices.IndexFunc(b.export, func(r row) bool { return r["fee"] != "" })
		b.export[at] = maps.Clone(b.export[at])
		b.export[at]["fee"] = ""
	}, []string{" fees: "}},
	{func(b *books) { // a second payment is recorded with another amount
		b.payments = maps.Clone(b.payments)
		for no, payments := range b.payments {
			if at := slices.IndexFunc(payments, func(p client.Payment) bool { return p.Type == "second" }); at >= 0 {
				b.payments[no] = slices.Clone(payments)
				b.payments[no][at].Amount++
			}
		}
	}, []string{"the second payments are map[", " paid: "}},
	{func(b *books) { // a lost invoice still extends the license
		b.licenses = slices.Clone(b.licenses)
		for i := range b.licenses {
			if l := &b.licenses[i]; l.Status != "revoked" && l.ProductID == cloudID && b.disputed(l.OrderNo) == "lost" {
				l.ExpiresAt = l.ExpiresAt.AddDate(0, 1, 0)
			}
		}
	}, []string{"which is not 72h0m0s after "}},
	{func(b *books) { // a change of a subscription is lost
		l := b.licenseWith(func(l client.License) bool { return l.ProductID == plusID })
		l.ProductID = cloudID
	}, []string{"the license is for cloud, and must be for cloud-plus"}},
	{func(b *books) { // an invoice of a changed subscription is charged twice
		no := b.licenseWith(func(l client.License) bool { return l.ProductID == plusID }).OrderNo
		b.stripe = slices.Clone(b.stripe)
		again := b.stripe[slices.IndexFunc(b.stripe, func(e fakestripe.Entry) bool {
			return e.OrderNo == no && e.Invoice != ""
		})]
		again.Invoice += "-again"
		b.stripe = append(b.stripe, again)
	}, []string{"the service has promised further invoices of "}},
	{func(b *books) { // subscriptions do not end with their periods
		b.subscriptions = maps.Clone(b.subscriptions)
		for no, status := range b.subscriptions {
			if status == "canceled" {
				b.subscriptions[no] = "active"
			}
		}
	}, []string{`the service has promised that the subscription is canceled, and it is "active" at Stripe`}},
	{func(b *books) { // the subscription of a payment that was refunded goes on, and the service says so
		b.goOn("refund")
	}, []string{"(subscribes, and is refunded)", `the service has promised that the subscription is canceled`}},
	{func(b *books) { // the subscription of a payment that a dispute took back goes on, and the service says so
		b.goOn("dispute")
	}, []string{"(subscribes, and disputes the payment)", `the service has promised that the subscription is canceled`}},
	{func(b *books) { // an order is lost
		b.orders = b.orders[1:]
	}, []string{" is not listed"}},
	{func(b *books) { // a cent more in the report
		report := *b.report
		report.Totals = slices.Clone(report.Totals)
		report.Totals[0].Gross++
		b.report = &report
	}, []string{" in the sales report, "}},
	{func(b *books) { // a row of the export is lost
		at := slices.IndexFunc(b.export, func(r row) bool { return r["paid_at"] != "" })
		b.export = slices.Delete(slices.Clone(b.export), at, at+1)
	}, []string{" in the export"}},
	{func(b *books) { // payments without their records
		b.payments = nil
	}, []string{"the payments are [], and must be [", " in the payment records, "}},
}

func TestPlan(t *testing.T) {
	const buyers = 2_000
	plan, seen, many := newPlan(7, buyers), map[fate]int{}, 0
	for _, b := range plan {
		seen[b.fate]++
		if b.quantity > 32 {
			many++
		}
	}
	for i, f := range fates {
		if int(f.fate) != i || seen[f.fate] < buyers*f.share/200 {
			t.Errorf("%v: %d buyers", f.name, seen[f.fate])
		}
	}
	if len(plan) != buyers || many == 0 {
		t.Errorf("%d buyers, %d of them with many licenses", len(plan), many)
	}
	if !reflect.DeepEqual(plan, newPlan(7, buyers)) || reflect.DeepEqual(plan, newPlan(8, buyers)) {
		t.Error("the same seed makes different plans, or different seeds make the same plan")
	}
}

func TestNumbersOfTheExport(t *testing.T) {
	for text, want := range map[string]int64{"0.85": 85, "49.00": 4900, "0.080": 80, "4900": 4900} {
		if got, err := (row{"gross": text}).number("gross"); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	if _, err := (row{"gross": ""}).number("gross"); err == nil {
		t.Error("an empty cell is a number")
	}
}

func TestUsage(t *testing.T) {
	trialtest.Refuses(t, parseConfig, map[string][]string{
		"from 100":                     {"--purchases", "5"},
		"from 0 to 50":                 {"--purchases", "200", "--kills", "51"},
		"--nodes is 1: it must":        {"--nodes", "1"},
		"--drop is 1001: it must":      {"--drop", "1001"},
		"--order-lifetime is 1m0s: it": {"--order-lifetime", "1m"},
		"unexpected argument":          {"now"},
	})
}
