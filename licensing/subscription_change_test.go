package licensing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"licet/licensing"
)

// subscribed returns a paid order with a subscription, and its license with two devices.
func subscribed(t *testing.T) (order, license licensing.Record, end time.Time) {
	t.Helper()
	end = noon.AddDate(0, 1, 0)
	order.Order = &licensing.Order{OrderNo: "ord_1", Owner: shop, ProductID: app,
		OrderPayment:      licensing.OrderPayment{Amount: 900, Currency: "USD"},
		OrderSubscription: licensing.OrderSubscription{Interval: licensing.Period{Months: 1}},
		CreatedAt:         noon, ExpiresAt: end}
	must(t, &order, licensing.PayOrder{
		Key: shopKey, Provider: licensing.ProviderStripe, Payment: "pi_0", Terms: licensing.DefaultTerms(),
		Subscription: "sub_1", PaidEnd: end,
	}, noon)
	license.License, order.Issued = order.Issued[0], nil
	license.License.CurrentDevices = 2
	return order, license, end
}

var teamTerms = licensing.Terms{KeyPrefix: "LIC", MaxDevices: 25, Grace: licensing.Period{Days: 7}}

func changePlan(number string, later bool, plan licensing.Plan) licensing.ChangeSubscription {
	return licensing.ChangeSubscription{Change: licensing.SubscriptionChange{
		Kind: licensing.ChangePlan, Number: number, Later: later, Plan: &plan,
	}}
}

// made records that the provider has made the open change, and gives the license what it pays for.
func made(t *testing.T, order, license *licensing.Record, periodEnd time.Time) {
	t.Helper()
	noted := must(t, order, licensing.NoteSubscription{After: order.Order.Answers, ChangeEnded: true, Made: true,
		Status: licensing.SubscriptionActive, From: periodEnd}, noon)
	must(t, license, licensing.ExtendLicense{Plan: noted.Plan}, noon)
}

// paysFor checks what a subscription pays for, and what its license has.
func paysFor(
	t *testing.T, what string, order, license *licensing.Record, product string, amount int64, devices, over int,
) {
	t.Helper()
	p, a := order.Order.Pays()
	if l := license.License; p != product || a != amount || l.ProductID != product || l.MaxDevices != devices ||
		l.AllowedOver != over || !l.ExpiresAt.Equal(order.Order.PaidUntil(order.Order.PaidEnd)) {
		t.Errorf("%s: the subscription pays %d for %q: %+v", what, a, p, l)
	}
}

// TestChangeOfPlan: a change takes effect once the provider has made it, at once or with the first invoice of the next
// period. An open change is not replaced.
func TestChangeOfPlan(t *testing.T) {
	order, license, end := subscribed(t)
	team := licensing.Plan{ProductID: "team", Amount: 3000, Terms: teamTerms}
	must(t, &order, changePlan("chg_1", false, team), noon)
	paysFor(t, "asked", &order, &license, app, 900, 3, 0)
	must(t, &order, changePlan("chg_2", false, team), noon)
	if order.Order.Change.Number != "chg_1" {
		t.Errorf("the same request again: %+v", order.Order.Change)
	}
	for _, c := range []licensing.ChangeSubscription{
		changePlan("chg_3", true, team), changePlan("chg_3", false, licensing.Plan{ProductID: "team", Amount: 1}),
		{Change: licensing.SubscriptionChange{Kind: licensing.ChangeEnd}},
	} {
		if _, err := licensing.Apply(&order, c, noon); !errors.Is(err, licensing.ErrPlanChanging) {
			t.Errorf("%+v while another change is open: %v", c, err)
		}
	}
	made(t, &order, &license, end)
	paysFor(t, "made", &order, &license, "team", 3000, 25, 0)
	if l := license.License; !l.TermsSince().Equal(noon) || l.Grace != teamTerms.Grace || order.Order.ChangeDue() {
		t.Errorf("%+v", l)
	}

	solo := licensing.Plan{ProductID: app, Amount: 500, SetMaximum: true, MaxDevices: 1,
		Terms: licensing.DefaultTerms()}
	must(t, &order, changePlan("chg_4", true, solo), noon)
	made(t, &order, &license, end)
	paysFor(t, "planned", &order, &license, "team", 3000, 25, 0)
	_, err := licensing.Apply(&order, changePlan("chg_5", false, team), noon)
	if !errors.Is(err, licensing.ErrPlanned) {
		t.Errorf("a change at once while another amount is planned: %v", err)
	}
	bill := func(id string, start, end time.Time) {
		t.Helper()
		invoice := licensing.Payment{Reference: id, Amount: 500, PeriodStart: start, PeriodEnd: end}
		if got := order.Order.ProductOf(start); (got == app) != start.Equal(order.Order.PaidEnd) {
			t.Errorf("the invoice %s is for %q", id, got)
		}
		counted := must(t, &order, licensing.CountInvoice{New: true, Invoice: invoice,
			Planned: &licensing.Product{ID: app, Terms: licensing.Terms{KeyPrefix: "LIC", MaxDevices: 2}}}, noon)
		must(t, &license,
			licensing.ExtendLicense{End: order.Order.PaidUntil(invoice.PeriodEnd), Plan: counted.Plan}, noon)
	}
	bill("a proration", time.Time{}, time.Time{})
	bill("a late invoice", end.AddDate(0, -1, 0), end)
	paysFor(t, "other invoices", &order, &license, "team", 3000, 25, 0)
	bill("the next period", end, end.AddDate(0, 1, 0))
	paysFor(t, "renewed", &order, &license, app, 500, 1, 2)
	if order.Order.Next != nil {
		t.Errorf("%+v", order.Order.Next)
	}
}

// TestChangeOfPlanRefused: a change that the provider refuses, and a subscription that ends, leave nothing.
func TestChangeOfPlanRefused(t *testing.T) {
	order, license, end := subscribed(t)
	must(t, &order, changePlan("chg_1", false, licensing.Plan{ProductID: "team", Amount: 3000, Terms: teamTerms}), noon)
	must(t, &order, licensing.NoteSubscription{After: 1, Status: licensing.SubscriptionActive, ChangeEnded: true}, noon)
	paysFor(t, "refused", &order, &license, app, 900, 3, 0)
	later := licensing.Plan{ProductID: app, Amount: 700}
	must(t, &order, changePlan("chg_2", true, later), noon)
	made(t, &order, &license, end)
	if order.Order.Next == nil || order.Order.Next.Amount != 700 {
		t.Errorf("planned: %+v", order.Order.Next)
	}
	later.Amount = 900
	must(t, &order, changePlan("chg_3", true, later), noon)
	made(t, &order, &license, end)
	if order.Order.Next != nil {
		t.Errorf("taken back: %+v", order.Order.Next)
	}
	later.Amount = 800
	must(t, &order, changePlan("chg_4", true, later), noon)
	made(t, &order, &license, end)
	must(t, &order, licensing.NoteSubscription{
		After: order.Order.Answers, Status: licensing.SubscriptionCanceled,
	}, noon)
	if order.Order.Next != nil || order.Order.Plan != nil || order.Order.ChangeDue() {
		t.Errorf("ended: %+v", order.Order)
	}
}

// TestOpenChangeStays: another request does not replace an open one, and the same request keeps its number. Of refused
// changes the order keeps the numbers of the last eight.
func TestOpenChangeStays(t *testing.T) {
	order, _, _ := subscribed(t)
	ask := func(kind licensing.ChangeKind, number string) error {
		_, err := licensing.Apply(&order, licensing.ChangeSubscription{
			Change: licensing.SubscriptionChange{Kind: kind, Number: number}}, noon)
		return err
	}
	for i := range 10 {
		number := fmt.Sprint("chg_", i)
		if err := ask(licensing.ChangeEnd, number); err != nil {
			t.Fatal(err)
		}
		if err := ask(licensing.ChangeEnd, "chg_x"); err != nil || order.Order.Change.Number != number {
			t.Errorf("the same request again: %v, %+v", err, order.Order.Change)
		}
		if err := ask(licensing.ChangeResume, "chg_x"); !errors.Is(err, licensing.ErrPlanChanging) {
			t.Errorf("another request: %v", err)
		}
		must(t, &order, licensing.NoteSubscription{After: order.Order.Answers, Status: licensing.SubscriptionActive,
			ChangeEnded: true, Refused: true}, noon)
		if !order.Order.RefusedChange(number) || order.Order.ChangeDue() {
			t.Errorf("%s is refused: %+v", number, order.Order)
		}
	}
	if o := order.Order; o.RefusedChange("chg_1") || !o.RefusedChange("chg_2") || o.RefusedChange("chg") {
		t.Errorf("refused are %q", o.RefusedChanges)
	}
}
