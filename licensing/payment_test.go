package licensing_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// outside is a payment that the shop has received itself.
func outside(reference string) licensing.PayOutside {
	pay := payment
	pay.Provider, pay.Payment, pay.By = licensing.ProviderOutside, reference, byKey
	return licensing.PayOutside{PayOrder: pay}
}

// TestPayOutside: an outside payment pays what a provider's payment pays, and is refused where the money would have to
// go back.
func TestPayOutside(t *testing.T) {
	for name, edits := range orderStates() {
		r := ordered(func(o *licensing.Order) {
			for _, edit := range edits {
				edit(o)
			}
		})
		status := r.Order.Status(noon)
		if status != licensing.OrderUnpaid && status != licensing.OrderExpired {
			refuses(t, &r, outside("INV-1"), noon, licensing.ReasonInvalidOrderState)
			continue
		}
		pay := outside("INV-1")
		pay.PaidAt, pay.Amount = noon.Add(-48*time.Hour), new(int64(990))
		must(t, &r, pay, noon)
		o := r.Order
		if o.Status(noon) != licensing.OrderPaid || !o.PaidAt.Equal(pay.PaidAt) || o.PaidThrough() != "outside" ||
			o.Payment != "INV-1" || o.Paid != 990 || o.PaidAmount() != 990 ||
			o.Late != (status == licensing.OrderExpired) || o.AtProvider() ||
			len(r.Issued) != 1 || !r.Issued[0].CreatedAt.Equal(noon) || r.Events[0].Actor != byKey {
			t.Errorf("%s: the order is %+v, and its license %+v", name, o, r.Issued)
		}
		paid := licensing.Record{Order: o}
		must(t, &paid, outside("INV-1"), noon.Add(time.Hour))
		if paid.Changed {
			t.Errorf("%s: the same payment again changes the order", name)
		}
		refuses(t, &paid, outside("INV-2"), noon, licensing.ReasonInvalidOrderState)
		must(t, &paid, payment, noon) // a provider's payment of a paid order
		if paid.Changed {
			t.Errorf("%s: a provider's payment changes the order", name)
		}
	}
	r := ordered(nil)
	for _, amount := range []int64{989, 991} {
		pay := outside("INV-1")
		pay.Amount = &amount
		refuses(t, &r, pay, noon, licensing.ReasonInvalidField)
	}
	refuses(t, &licensing.Record{}, outside("INV-1"), noon, licensing.ReasonOrderNotFound)
}

// TestAddPayment: a payment has one record, of one order.
func TestAddPayment(t *testing.T) {
	order := ordered(nil)
	must(t, &order, outside("INV-1"), noon)
	var r licensing.Record
	add := licensing.AddPayment{Order: *order.Order, Provider: "outside", Payment: "INV-1", By: byKey}
	must(t, &r, add, noon)
	want := &licensing.Payment{OrderNo: "ord_1", Provider: "outside", Reference: "INV-1", Amount: 990, Currency: "EUR",
		PaidAt: noon, RecordedAt: noon, By: byKey, ProductID: "app"}
	if diff := cmp.Diff(want, r.Payment); diff != "" || !r.Changed {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := licensing.Record{Payment: r.Payment}
	must(t, &again, add, noon.Add(time.Hour))
	if again.Changed {
		t.Error("the same payment changes its record")
	}
	other := add
	other.Order.OrderNo = "ord_2"
	refuses(t, &again, other, noon, licensing.ReasonInvalidField)
	for _, unlike := range []licensing.AddPayment{
		{Order: add.Order, Provider: "outside", Payment: "INV-2"},
		{Order: add.Order, Provider: "stripe", Payment: "INV-1"},
	} {
		var none licensing.Record
		if must(t, &none, unlike, noon); none.Payment != nil {
			t.Errorf("a payment that has not paid its order has the record %+v", none.Payment)
		}
	}
	ref := licensing.PaymentRef(shop, "outside", "INV-1")
	if ref == licensing.PaymentRef(shop, "outside", "INV-2") || ref == licensing.PaymentRef(shop, "stripe", "INV-1") {
		t.Error("two payments have one name")
	}
}

// TestFees: an order has the sum of the fees that are known, once for each payment, invoice and dispute.
func TestFees(t *testing.T) {
	r := ordered(func(o *licensing.Order) { o.Interval = licensing.Period{Months: 1} })
	fee := func(want *int64) {
		t.Helper()
		if diff := cmp.Diff(want, r.Order.Fee); diff != "" {
			t.Errorf("the fee (-want +got):\n%s", diff)
		}
	}
	pay := payment
	pay.Subscription, pay.Fee = "sub_1", new(int64(30))
	must(t, &r, pay, noon)
	must(t, &r, pay, noon)
	fee(new(int64(30)))
	invoice := licensing.Payment{Amount: 990, Fee: new(int64(31)), PeriodEnd: noon.AddDate(0, 2, 0)}
	must(t, &r, licensing.CountInvoice{New: true, Invoice: invoice}, noon)
	must(t, &r, licensing.CountInvoice{Invoice: invoice}, noon)
	fee(new(int64(61)))
	if o := r.Order; o.AmountPaid() != 990+990 || o.AmountRefunded() != 0 {
		t.Errorf("%d is paid, and %d refunded", o.AmountPaid(), o.AmountRefunded())
	}
	dispute := licensing.NoteDispute{Dispute: licensing.Payment{
		Reference: "du_1", Amount: 990, State: licensing.PaymentOpen, Fee: new(int64(1500)),
	}}
	recorded := must(t, &r, dispute, noon).Refund()
	fee(new(int64(1561)))
	dispute.Recorded, dispute.Dispute.Fee = &recorded, nil // an answer that does not tell the fee
	recorded = must(t, &r, dispute, noon).Refund()
	fee(new(int64(1561)))
	dispute.Recorded, dispute.Dispute.Fee = &recorded, new(int64(0)) // given back with a won dispute
	dispute.Dispute.State = licensing.PaymentWon
	must(t, &r, dispute, noon)
	fee(new(int64(61)))
}

// TestLateFee: the fee of a payment that has none is stored and counted once. A known fee stays.
func TestLateFee(t *testing.T) {
	order := ordered(nil)
	must(t, &order, payment, noon)
	number := order.Order.OrderNo
	for _, c := range []struct {
		name   string
		record *licensing.Payment
		added  bool
	}{
		{"a payment", &licensing.Payment{OrderNo: number}, true},
		{"an invoice", &licensing.Payment{OrderNo: number, Kind: licensing.KindOfInvoice}, true},
		{"a second payment", &licensing.Payment{OrderNo: number, Kind: licensing.KindOfSecond}, true},
		{"a known fee", &licensing.Payment{OrderNo: number, Fee: new(int64(30))}, false},
		{"a known fee of nothing", &licensing.Payment{OrderNo: number, Fee: new(int64(0))}, false},
		{"no record", nil, false},
		{"of another order", &licensing.Payment{OrderNo: "ord_2"}, false},
		{"a dispute", &licensing.Payment{OrderNo: number, Kind: licensing.KindOfDispute}, false},
		{"a refund", &licensing.Payment{OrderNo: number, Kind: licensing.KindOfRefund}, false},
		{"a payment that does not fit", &licensing.Payment{OrderNo: number, Kind: licensing.KindOfUnmatched}, false},
	} {
		paid, o := licensing.Record{Payment: c.record}, licensing.Record{Order: new(*order.Order)}
		for try, added := range []bool{c.added, false} {
			was := paid.Payment
			result := must(t, &paid, licensing.AddFee{OrderNo: number, Fee: 172}, noon)
			must(t, &o, licensing.CountFee{New: result.Created, Fee: 172}, noon)
			if result.Created != added || added != (paid.Payment != was) {
				t.Errorf("%s, try %d: added %t, %+v", c.name, try, result.Created, paid.Payment)
			}
		}
		var want *int64
		if c.added {
			want = new(int64(172))
			if diff := cmp.Diff(want, paid.Payment.Fee); diff != "" {
				t.Errorf("%s: the fee of the record (-want +got):\n%s", c.name, diff)
			}
		}
		if diff := cmp.Diff(want, o.Order.Fee); diff != "" {
			t.Errorf("%s: the fee of the order (-want +got):\n%s", c.name, diff)
		}
	}
}
