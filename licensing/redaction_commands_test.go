package licensing_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// TestRedactOrder redacts an order in each of its states: what identifies the
// buyer goes, and nothing else changes, its status and what is due least of all.
func TestRedactOrder(t *testing.T) {
	ago := noon.Add(-time.Minute)
	paid := func(o *licensing.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", shopKey }
	canceled := func(o *licensing.Order) { o.CanceledAt = ago }
	for name, facts := range map[string][]func(*licensing.Order){
		"unpaid":            nil,
		"expired":           {func(o *licensing.Order) { o.ExpiresAt = ago }},
		"expired, recorded": {func(o *licensing.Order) { o.ExpiresAt, o.ExpiredAt = ago, ago }},
		"paid":              {paid},
		"paid late":         {paid, func(o *licensing.Order) { o.ExpiresAt, o.Late = ago, true }},
		"paid, refund due": {paid,
			func(o *licensing.Order) { o.RefundDue, o.RefundTries, o.RefundRetryAt = true, 2, noon }},
		"canceled": {canceled},
		"canceled, refund due": {canceled,
			func(o *licensing.Order) { o.PaidAt, o.Payment, o.RefundDue = ago, "pi_0", true }},
		"refunded": {paid, func(o *licensing.Order) { o.RefundedAt = ago }},
	} {
		t.Run(name, func(t *testing.T) {
			build := func(personal bool) licensing.Record {
				return ordered(func(o *licensing.Order) {
					o.SuccessURL, o.BuyerEmail, o.Metadata = "https://shop.example.com/", "", ""
					if personal {
						o.BuyerEmail, o.Description, o.Metadata, o.StateReason = "Ann@Example.com", "for Ann", `{"crm":7}`, "Ann's cat"
					}
					for _, fact := range facts {
						fact(o)
					}
				})
			}
			r, want := build(true), build(false)
			want.Changed = true
			key := r.Order.LicenseKey
			result := must(t, &r, licensing.RedactOrder{BuyerEmail: "ANN@example.COM", LicenseKey: key,
				LicensesIssued: r.Order.LicensesIssued}, noon)
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("the order (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*want.Order, result.Order()); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
			refuses(t, &r, licensing.RedactOrder{BuyerEmail: "ann@example.com", LicenseKey: key}, noon,
				licensing.ReasonOrderNotFound)
			refuses(t, &r, licensing.RedactOrder{LicenseKey: key}, noon, licensing.ReasonOrderNotFound)
		})
	}
}

// TestRedactOrderOfAnother: redaction leaves the orders of other buyers alone, also orders without buyer data.
func TestRedactOrderOfAnother(t *testing.T) {
	f := func(has, asked string) {
		t.Helper()
		r := ordered(func(o *licensing.Order) { o.BuyerEmail = has })
		refuses(t, &r, licensing.RedactOrder{BuyerEmail: asked}, noon, licensing.ReasonOrderNotFound)
		if r.Changed || r.Order.BuyerEmail != has {
			t.Errorf("%q asked for, %q changed: %+v", asked, has, r.Order)
		}
	}
	f("ann@example.com", "anna@example.com")
	f("ann@example.com", "")
	f("", "ann@example.com")
	f("", "")
}

// TestRedactOrderThatWasPaid does not redact an order without its license.
func TestRedactOrderThatWasPaid(t *testing.T) {
	r := ordered(nil)
	must(t, &r, payment, noon)
	result := must(t, &r, licensing.RedactOrder{BuyerEmail: "ann@example.com"}, noon)
	if r.Changed || result.Order().BuyerEmail == "" || result.Order().LicenseKey != payment.Key {
		t.Errorf("changed %v, %+v", r.Changed, result.Order())
	}
	must(t, &r, licensing.RedactOrder{BuyerEmail: "ann@example.com", LicenseKey: result.Order().LicenseKey,
		Sequence: result.Order().Sequence}, noon)
	if !r.Changed || r.Order.BuyerEmail != "" {
		t.Errorf("changed %v, %+v", r.Changed, r.Order)
	}
}

// TestRedactOrderLate does not redact an order while its licenses must still get its reason, or if they may have got
// the reason since they were redacted.
func TestRedactOrderLate(t *testing.T) {
	r := orderOfMany(8)
	must(t, &r, payMany(8), noon)
	must(t, &r, licensing.RequestRefund{Reason: "Ann's cat"}, noon)
	early := licensing.RedactOrder{BuyerEmail: r.Order.BuyerEmail, LicenseKey: r.Order.LicenseKey,
		Sequence: r.Order.Sequence, LicensesIssued: r.Order.LicensesIssued}
	must(t, &r, licensing.RefundOrder{}, noon)
	late := early
	late.Sequence = r.Order.Sequence
	f := func(redact licensing.RedactOrder, want bool) {
		t.Helper()
		must(t, &r, redact, noon)
		if r.Changed != want || (r.Order.StateReason == "") != want {
			t.Errorf("changed %v, the reason is %q, the licenses get %+v", r.Changed, r.Order.StateReason,
				r.Order.OrderOthers)
		}
	}
	f(early, false)
	f(late, false)
	must(t, &r, licensing.ChangeOthers{Now: r.Order.OrderOthers, To: 8}, noon)
	f(early, false)
	more := late
	more.LicensesIssued++
	f(more, false)
	f(late, true)
}

// TestRedactDisputed: a redaction during a dispute does not keep the end of the dispute from ending the suspension.
func TestRedactDisputed(t *testing.T) {
	r := licensed(nil, "laptop")
	r.Metadata = &licensing.Metadata{Object: `{"crm":7}`}
	must(t, &r, licensing.SuspendForDispute{Target: ours, Begin: true}, noon)
	must(t, &r, licensing.RedactLicense{Target: ours}, noon)
	if r.License.StateReason != licensing.DisputeReason || r.Metadata.Object != "" {
		t.Errorf("redacted: %q, %+v", r.License.StateReason, r.Metadata)
	}
	must(t, &r, licensing.SuspendForDispute{Target: ours, End: true}, noon)
	if got := r.License.Status(noon); got != licensing.Activated {
		t.Errorf("after the dispute, the license is %s", got)
	}
}

// TestRedactLicense redacts a license in each of its states.
func TestRedactLicense(t *testing.T) {
	for name, edit := range map[string]func(*licensing.License){
		"good":      func(*licensing.License) {},
		"suspended": func(l *licensing.License) { l.SuspendedAt = noon },
		"revoked":   func(l *licensing.License) { l.RevokedAt = noon },
		"expired":   func(l *licensing.License) { l.ExpiresAt = noon },
	} {
		t.Run(name, func(t *testing.T) {
			r, want := licensed(edit, "laptop"), licensed(edit, "laptop")
			r.License.StateReason, r.Metadata = "Ann's cat", &licensing.Metadata{Object: `{"crm":7}`}
			want.Metadata, want.Changed = &licensing.Metadata{Changed: true}, true
			result := must(t, &r, licensing.RedactLicense{Target: ours}, noon)
			if diff := cmp.Diff(want, r); diff != "" {
				t.Errorf("the license (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*want.License, result.License); diff != "" {
				t.Errorf("the answer (-want +got):\n%s", diff)
			}
			must(t, &r, licensing.RedactLicense{Target: ours}, noon)
			if r.Changed || r.Metadata.Changed {
				t.Error("redacting it again changes something")
			}
		})
	}
}
