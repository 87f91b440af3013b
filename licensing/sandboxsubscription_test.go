package licensing

import (
	"errors"
	"testing"
	"time"
)

// sandboxOrder returns an order whose subscription began at a time.
func sandboxOrder(paid time.Time, interval Period) Order {
	return Order{OrderPayment: OrderPayment{PaidAt: paid}, OrderSubscription: OrderSubscription{Interval: interval}}
}

// TestSandboxSubscription walks through subscriptions of an interval of ten seconds.
func TestSandboxSubscription(t *testing.T) {
	start := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	order := sandboxOrder(start, Period{Clock: 10 * time.Second})
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var r Record
	play := func(seconds int, p SubscriptionPlay) {
		t.Helper()
		if _, err := Apply(&r, PlaySubscription{Order: order, Play: p}, at(seconds)); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	view := func(seconds int, status SandboxSubscriptionStatus, paid, cancelAt int) {
		t.Helper()
		want := SandboxView{Status: status, Paid: paid, PeriodEnd: at(10 * (paid + 1))}
		if cancelAt > 0 {
			want.CancelAt = at(cancelAt)
		}
		played := SandboxSubscription{}
		if r.Sandbox != nil {
			played = r.Sandbox.Subscription
		}
		if got := played.View(&order, at(seconds)); got != want {
			t.Errorf("after %d s: %+v, want %+v", seconds, got, want)
		}
	}
	view(0, SandboxActive, 0, 0)
	view(9, SandboxActive, 0, 0)
	view(10, SandboxActive, 1, 0)
	view(25, SandboxActive, 2, 0)
	view(999, SandboxActive, 99, 0)
	view(1000, SandboxActive, 100, 1010)
	view(1010, SandboxEnded, 100, 1010)
	view(1<<30, SandboxEnded, 100, 1010)

	play(12, PlayInvoicePaid)
	view(12, SandboxActive, 2, 0)
	view(29, SandboxActive, 2, 0)
	view(30, SandboxActive, 3, 0)
	play(31, PlayInvoiceFailed)
	view(31, SandboxPastDue, 3, 0)
	view(45, SandboxPastDue, 3, 0)
	view(50, SandboxEnded, 3, 50) // the end of the period of invoice 4
	play(45, PlayInvoicePaid)
	view(45, SandboxActive, 4, 0)
	view(50, SandboxActive, 5, 0)
	play(55, PlayEndOfPeriod)
	view(55, SandboxActive, 5, 60)
	view(60, SandboxEnded, 5, 60)
	play(56, PlayResume)
	view(60, SandboxActive, 6, 0)
	play(61, PlayEndNow)
	play(99, PlayEndNow)
	view(61, SandboxEnded, 6, 61)
	view(99, SandboxEnded, 6, 61)
	for _, p := range []SubscriptionPlay{PlayInvoicePaid, PlayInvoiceFailed, PlayResume, PlayAmount} {
		if _, err := Apply(&r, PlaySubscription{Order: order, Play: p}, at(100)); !errors.Is(err, ErrNoSubscription) {
			t.Errorf("%s after the end: %v", p, err)
		}
	}

	r = Record{}
	play(1, PlayEndOfPeriod)
	view(1, SandboxActive, 0, 10)
	view(10, SandboxEnded, 0, 10)
	for range MaxSandboxInvoices {
		r.Sandbox.Subscription.Periods = 0
		play(2, PlayInvoicePaid)
	}
	if _, err := Apply(&r, PlaySubscription{Order: order, Play: PlayInvoicePaid}, at(2)); err == nil {
		t.Error("there is no end of invoices")
	}
}

// TestSandboxMonths: the periods of a subscription keep the day of the month.
func TestSandboxMonths(t *testing.T) {
	order := sandboxOrder(time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC), Period{Months: 1})
	for invoice, want := range []string{"2030-02-28", "2030-03-31", "2030-04-30", "2030-05-31"} {
		if got := order.SandboxPeriodEnd(invoice).Format(time.DateOnly); got != want {
			t.Errorf("invoice %d pays until %s, want %s", invoice, got, want)
		}
	}
}

// TestSandboxAmountOnce: a change of the amount is made once for its number, and keeps the beginning of its first
// period.
func TestSandboxAmountOnce(t *testing.T) {
	begin := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	order := sandboxOrder(begin, Period{Clock: 10 * time.Second})
	var r Record
	for _, c := range []struct {
		play PlaySubscription
		at   int
		want SandboxSubscription
	}{
		{PlaySubscription{Amount: 500, Once: "chg_1", Later: true}, 5,
			SandboxSubscription{Amount: 500, Changed: "chg_1", ChangedFrom: at(10)}},
		{PlaySubscription{Amount: 500, Once: "chg_1", Later: true}, 15, // again, in the next period
			SandboxSubscription{Amount: 500, Changed: "chg_1", ChangedFrom: at(10)}},
		{PlaySubscription{Amount: 700, Once: "chg_2", Later: true}, 15,
			SandboxSubscription{Amount: 700, Changed: "chg_2", ChangedFrom: at(20)}},
		{PlaySubscription{Amount: 800, Once: "chg_3"}, 16, SandboxSubscription{Amount: 800, Changed: "chg_3"}},
	} {
		c.play.Order, c.play.Play = order, PlayAmount
		if _, err := Apply(&r, c.play, at(c.at)); err != nil || r.Sandbox.Subscription != c.want {
			t.Errorf("%+v: %+v, %v; want %+v", c.play.Once, r.Sandbox.Subscription, err, c.want)
		}
	}
	r.Sandbox.Subscription.EndedAt = at(17)
	again := PlaySubscription{Order: order, Play: PlayAmount, Amount: 800, Once: "chg_3"}
	if _, err := Apply(&r, again, at(18)); err != nil {
		t.Errorf("again after the end: %v", err)
	}
	again.Once = "chg_4"
	if _, err := Apply(&r, again, at(18)); !errors.Is(err, ErrNoSubscription) {
		t.Errorf("another one after the end: %v", err)
	}
}
