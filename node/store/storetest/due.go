package storetest

import (
	"slices"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// longAgo is a time at which only this test's records end.
var longAgo = time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC)

// due returns which of some records are due at a moment, in order. Records of other tests may come between them.
func (f fixture) due(kind licensing.DueKind, at time.Time, limit int, of ...licensing.Ref) []licensing.Ref {
	f.t.Helper()
	return f.dueIn(kind, store.DueSpan{Until: at}, limit, of...)
}

// dueIn returns which of some records are due in a span of time, in order.
func (f fixture) dueIn(kind licensing.DueKind, span store.DueSpan, limit int, of ...licensing.Ref) []licensing.Ref {
	f.t.Helper()
	slots, err := f.store.DueSlots(f.context(), kind, span)
	if err != nil {
		f.t.Fatalf("DueSlots: %v", err)
	}
	var found []licensing.Ref
	for _, slot := range slots {
		for from, more := "", true; more; {
			page, err := f.store.Due(f.context(), kind, slot, span, from, limit)
			if err != nil {
				f.t.Fatalf("Due: %v", err)
			}
			if len(page.Records) > limit {
				f.t.Fatalf("a page of %d records, want up to %d", len(page.Records), limit)
			}
			for _, ref := range page.Records {
				if slices.Contains(of, ref) {
					found = append(found, ref)
				}
			}
			from, more = page.Next, page.Next != ""
		}
	}
	return found
}

// step runs a command on a record and stores the result.
func (f fixture) step(ref licensing.Ref, cmd licensing.Command, now time.Time) {
	f.t.Helper()
	var devices []string
	if id := cmd.DeviceID(); id != "" {
		devices = append(devices, id)
	}
	snapshot := f.load(ref, devices...)
	snapshot.Record.ActsByTime = true
	if _, err := licensing.Apply(&snapshot.Record, cmd, now); err != nil {
		f.t.Fatalf("%T: %v", cmd, err)
	}
	f.mustLand(store.Write{Ref: ref, Token: snapshot.Token, Record: snapshot.Record})
}

// testDue takes licenses and an order through the states in which work is due for them. Each is in the index where it
// belongs, once, or not at all.
func testDue(t *testing.T, f fixture) {
	day := func(n int) time.Time { return longAgo.AddDate(0, 0, n) }
	owner := f.owner()
	var licenses []licensing.Ref
	for i := range 5 {
		l := f.licenseOf(owner, 0)
		l.CreatedAt = longAgo
		if i < 4 {
			l.ExpiresAt = day(10 - i) // the later, the earlier it was made
		} else {
			l.Validity = licensing.Period{Days: 20}
		}
		licenses = append(licenses, licensing.LicenseRef(l.Key))
		f.mustLand(store.Write{Ref: licenses[i], Record: licensing.Record{License: l}})
	}
	ends := func(at time.Time, want ...licensing.Ref) {
		t.Helper()
		for _, limit := range []int{1, 2, 100} {
			f.equal("ends", f.due(licensing.DueLicenseEnd, at, limit, licenses...), want)
		}
	}
	a, b, c, d, e := licenses[0], licenses[1], licenses[2], licenses[3], licenses[4]
	key := func(ref licensing.Ref) licensing.Target { return licensing.Target{Key: ref.LicenseID().Key("LIC")} }
	ends(day(7).Add(-time.Millisecond))
	ends(day(7), d)
	ends(day(100), d, c, b, a)
	for span, want := range map[store.DueSpan][]licensing.Ref{
		{Since: day(9), Until: day(9)}: {b}, {Since: day(9)}: {b, a}, {}: {d, c, b, a},
		{Since: day(10).Add(time.Millisecond)}: nil,
	} {
		f.equal("ends in a span", f.dueIn(licensing.DueLicenseEnd, span, 100, licenses...), want)
	}
	f.step(e, licensing.Activate{Target: key(e), Device: "laptop"}, longAgo)
	ends(day(100), d, c, b, a, e)
	f.step(d, licensing.RenewLicense{Target: key(d), ExpiresAt: day(30)}, longAgo)
	f.step(c, licensing.RevokeLicense{Target: key(c)}, longAgo)
	f.step(b, licensing.SuspendLicense{Target: key(b)}, longAgo)
	f.step(a, licensing.Activate{Target: key(a), Device: "laptop"}, longAgo)
	ends(day(100), b, a, e, d)
	f.step(b, licensing.ExpireLicense{Before: day(9)}, day(9))
	f.step(a, licensing.ExpireLicense{Before: day(10)}, day(10))
	ends(day(100), e, d)
	f.step(a, licensing.RenewLicense{Target: key(a), ExpiresAt: day(25)}, day(12))
	ends(day(100), e, a, d)
	soon := func(at time.Time, want ...licensing.Ref) {
		t.Helper()
		f.equal("notices", f.due(licensing.DueLicenseNotice, at, 100, licenses...), want)
	}
	f.step(a, licensing.GiveNotice{Now: day(12), Days: "\x07"}, day(12))
	ends(day(100), e, d)
	soon(day(18).Add(-time.Millisecond))
	soon(day(18), a)
	f.step(a, licensing.GiveNotice{Now: day(18), Days: "\x07"}, day(18))
	f.step(a, licensing.ApplyTerms{Target: key(a), ProductID: "pro", StartedAt: day(18),
		Applies: licensing.RolloutGrace, Terms: licensing.Terms{Grace: licensing.Period{Days: 3}}}, day(18))
	soon(day(24))
	soon(day(25), a)
	f.step(a, licensing.ExpireLicense{Before: day(25)}, day(25))
	soon(day(27))
	soon(day(28), a)
	f.step(a, licensing.ExpireLicense{Before: day(28)}, day(28))
	soon(day(100))
	f.step(a, licensing.RenewLicense{Target: key(a), ExpiresAt: day(35)}, day(28))
	ends(day(100), e, d, a)

	product := licensing.ProductRef(owner, "rolled out")
	rollouts := func(what string, want ...licensing.Ref) {
		t.Helper()
		f.equal(what, f.due(licensing.DueRollout, day(10), 10, product), want)
	}
	f.step(product, licensing.PutProduct{ID: product.ID, Owner: owner, Terms: licensing.DefaultTerms()}, longAgo)
	begin := licensing.BeginRollout{Applies: licensing.RolloutMaxDevices, Lapse: 24 * time.Hour}
	f.step(product, begin, day(1))
	f.equal("a rollout before its time", f.due(licensing.DueRollout, day(2).Add(-time.Millisecond), 10, product),
		[]licensing.Ref(nil))
	rollouts("a rollout", product)
	f.step(product, licensing.AdvanceRollout{StartedAt: day(1), Next: "p1", Lapse: 24 * time.Hour},
		day(9).Add(time.Millisecond))
	rollouts("a rollout that goes on later")
	f.step(product, licensing.AdvanceRollout{StartedAt: day(1), Cursor: "p1", Next: "p2"}, day(9))
	rollouts("a rollout again", product)
	f.step(product, licensing.CancelRollout{}, day(9))
	rollouts("a canceled rollout")
	f.step(product, begin, day(3))
	rollouts("the next rollout", product)
	f.step(product, licensing.DeleteProduct{}, day(4))
	rollouts("the rollout of a product that is gone")

	order := f.order(owner)
	order.CreatedAt, order.ExpiresAt = longAgo, day(1)
	canceled := f.order(owner)
	canceled.CreatedAt, canceled.ExpiresAt = longAgo, day(1)
	paid := licensing.OrderRef(owner, order.OrderNo)
	owed := licensing.OrderRef(owner, canceled.OrderNo)
	f.mustLand(store.Write{Ref: paid, Record: licensing.Record{Order: order}})
	f.mustLand(store.Write{Ref: owed, Record: licensing.Record{Order: canceled}})
	orders := func(kind licensing.DueKind, want ...licensing.Ref) {
		t.Helper()
		f.equal("orders", f.due(kind, day(100), 1, paid, owed), want)
	}
	f.equal("orders that run out later", f.due(licensing.DueOrderEnd, day(1).Add(-time.Millisecond), 10, paid, owed),
		[]licensing.Ref(nil))
	if got := f.due(licensing.DueOrderEnd, day(1), 10, paid, owed); len(got) != 2 {
		t.Errorf("%d orders have run out, want 2", len(got))
	}
	f.step(owed, licensing.CancelOrder{}, longAgo)
	orders(licensing.DueOrderEnd, paid)
	f.step(paid, licensing.ExpireOrder{Before: day(2)}, day(2))
	orders(licensing.DueOrderEnd)
	pay := func(ref licensing.Ref) {
		t.Helper()
		f.step(ref, licensing.PayOrder{Payment: "p",
			Terms: licensing.Terms{KeyPrefix: "LIC", Validity: licensing.Period{Days: 1}},
			Key:   f.key(ref.Owner)}, day(3))
	}
	pay(paid)
	issued := licensing.LicenseRef(f.load(paid).Record.Order.LicenseKey)
	f.equal("the license that was issued", f.due(licensing.DueLicenseEnd, day(4), 10, issued), []licensing.Ref{issued})
	pay(owed)
	orders(licensing.DueRefund, owed)
	f.step(paid, licensing.RequestRefund{}, day(4))
	f.step(owed, licensing.TryRefund{}, day(5))
	orders(licensing.DueRefund, paid, owed)
	f.step(paid, licensing.TryRefund{}, day(6))
	orders(licensing.DueRefund, owed, paid)
	f.step(paid, licensing.WithdrawRefund{Tries: 1}, day(6))
	f.step(owed, licensing.RefundOrder{}, day(6))
	orders(licensing.DueRefund)
}

// testTogether swaps an order and its license in one change: both, or neither.
func testTogether(t *testing.T, f fixture) {
	owner := f.owner()
	order := f.order(owner)
	ref := licensing.OrderRef(owner, order.OrderNo)
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{Order: order}})
	key := f.key(owner)
	f.step(ref, licensing.PayOrder{Payment: "p", Terms: licensing.Terms{KeyPrefix: "LIC"}, Key: key}, created)
	license := licensing.LicenseRef(key)
	refund := func() []store.Write {
		t.Helper()
		var writes []store.Write
		for _, s := range []struct {
			ref licensing.Ref
			cmd licensing.Command
		}{{ref, licensing.RefundOrder{}}, {license, licensing.RevokeLicense{Target: licensing.Target{Key: key}}}} {
			snapshot := f.load(s.ref)
			if _, err := licensing.Apply(&snapshot.Record, s.cmd, created); err != nil {
				t.Fatal(err)
			}
			writes = append(writes, store.Write{Ref: s.ref, Token: snapshot.Token, Record: snapshot.Record})
		}
		return writes
	}
	stands := func(refunded, revoked bool) {
		t.Helper()
		o, l := f.load(ref).Record.Order, f.load(license).Record.License
		if o.RefundedAt.IsZero() == refunded || l.RevokedAt.IsZero() == revoked {
			t.Fatalf("refunded at %v, revoked at %v", o.RefundedAt, l.RevokedAt)
		}
	}
	l := f.load(license).Record.License
	for _, rival := range []func(){
		func() { f.activate(l, created, "laptop") },
		func() { f.step(ref, licensing.RequestRefund{}, created) },
	} {
		stale := refund()
		rival()
		if outcome := f.commit(stale...); outcome.Landed {
			t.Fatal("a change landed though one of its two records had changed")
		} else if len(outcome.Rivals) > 0 && len(outcome.Rivals) != 2 {
			t.Errorf("%d rivals", len(outcome.Rivals))
		}
		stands(false, false)
	}
	f.mustLand(refund()...)
	stands(true, true)
}
