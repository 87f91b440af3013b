package licensing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// refundTable has the steps of a refund in the notation of licenseTable. An order keeps its status while a refund is
// due.
const refundTable = `
from                  | request | try      | try waiting | withdraw | recorded
unpaid                | !state  | =        | =           | =        | !state
expired               | !state  | =        | =           | =        | !state
canceled              | !state  | =        | =           | =        | !state
canceled, due         | !state  | canceled | canceled    | =        | refunded
canceled, tried       | !state  | canceled | =           | =        | refunded
paid                  | paid    | =        | =           | =        | refunded
paid, due             | =       | paid     | paid        | paid     | refunded
paid, tried           | =       | paid     | =           | =        | refunded
paid, tried long ago  | =       | paid     | paid        | =        | refunded
paid, tried in a day  | =       | paid     | paid        | =        | refunded
refunded              | =       | =        | =           | =        | =
refunded, canceled    | =       | =        | =           | =        | =
`

func TestRefundSteps(t *testing.T) {
	ago := noon.Add(-time.Minute)
	paid := func(o *licensing.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey }
	canceled := func(o *licensing.Order) { o.CanceledAt = ago }
	owed := func(o *licensing.Order) { o.PaidAt, o.Payment, o.RefundDue = ago, "pi_0", true }
	due := func(o *licensing.Order) { o.RefundDue = true }
	tried := func(o *licensing.Order) { o.RefundTries, o.RefundRetryAt = 2, noon.Add(time.Millisecond) }
	triedLongAgo := func(o *licensing.Order) { o.RefundTries, o.RefundRetryAt = 2, noon }
	triedAhead := func(o *licensing.Order) { // by a clock that was days ahead
		o.RefundTries, o.RefundRetryAt = 2, noon.Add(licensing.RefundRetryMax)
	}
	refunded := func(o *licensing.Order) { o.RefundedAt, o.RefundDue = ago, false }
	rows := map[string][]func(*licensing.Order){
		"unpaid":               nil,
		"expired":              {func(o *licensing.Order) { o.ExpiresAt = noon }},
		"canceled":             {canceled},
		"canceled, due":        {canceled, owed},
		"canceled, tried":      {canceled, owed, tried},
		"paid":                 {paid},
		"paid, due":            {paid, due},
		"paid, tried":          {paid, due, tried},
		"paid, tried long ago": {paid, due, triedLongAgo},
		"paid, tried in a day": {paid, due, triedAhead},
		"refunded":             {paid, refunded},
		"refunded, canceled":   {canceled, owed, refunded},
	}
	columns := map[string]licensing.Command{
		"request": licensing.RequestRefund{}, "try": licensing.TryRefund{},
		"try waiting": licensing.TryRefund{Waiting: true},
		"withdraw":    licensing.WithdrawRefund{}, "recorded": licensing.RefundOrder{},
	}
	eachCell(t, refundTable, len(rows), len(columns), func(t *testing.T, row, column, want string) {
		r := ordered(func(o *licensing.Order) {
			for _, fact := range rows[row] {
				fact(o)
			}
		})
		before := r.Order.Status(noon)
		if !strings.HasPrefix(row, string(before)) {
			t.Fatalf("the row is wrong: its order is %s before the command", before)
		}
		result, err := run(t, &r, columns[column], noon)
		checkCell(t, want, "invalid_order_state", string(before), string(r.Order.Status(noon)), r.Changed, err)
		if err != nil {
			return
		}
		if diff := cmp.Diff(*r.Order, result.Order()); diff != "" {
			t.Errorf("the answer is not the order (-stored +answered):\n%s", diff)
		}
		wantDue := r.Order.RefundDue && column != "recorded"
		if strings.HasPrefix(column, "try") {
			wantDue = want != "=" // the caller then asks the provider
		}
		if result.RefundDue != wantDue {
			t.Errorf("answered that a refund is due: %v, want %v", result.RefundDue, wantDue)
		}
	})
}

// TestRefundFacts checks every fact of the order after a step.
func TestRefundFacts(t *testing.T) {
	ago := noon.Add(-time.Minute)
	paid := func(o *licensing.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey }
	wished := func(o *licensing.Order) { paid(o); o.RefundDue, o.RefundBy, o.StateReason = true, "key_1", "too slow" }
	tried := func(o *licensing.Order) { wished(o); o.RefundTries, o.RefundRetryAt = 3, noon }
	for _, c := range []struct {
		name    string
		before  func(*licensing.Order)
		command licensing.Command
		change  func(*licensing.Order)
	}{
		{"wished for", paid, licensing.RequestRefund{By: "key_1", Reason: "too slow"},
			func(o *licensing.Order) { o.RefundDue, o.RefundBy, o.StateReason = true, "key_1", "too slow" }},
		{"wished for again keeps who it was and the reason", tried,
			licensing.RequestRefund{By: "key_2", Reason: "other"}, nil},
		{"tried", wished, licensing.TryRefund{},
			func(o *licensing.Order) { o.RefundTries, o.RefundRetryAt = 1, noon.Add(15*time.Second) }},
		{"tried again", tried, licensing.TryRefund{},
			func(o *licensing.Order) { o.RefundTries, o.RefundRetryAt = 4, noon.Add(2*time.Minute) }},
		{"withdrawn before any try", wished, licensing.WithdrawRefund{},
			func(o *licensing.Order) { o.RefundDue, o.RefundBy, o.StateReason = false, "", "" }},
		{"withdrawn after the latest try", tried, licensing.WithdrawRefund{Tries: 3},
			func(o *licensing.Order) {
				// RefundTries stays
				o.RefundDue, o.RefundBy, o.RefundRetryAt, o.StateReason = false, "", time.Time{}, ""
			}},
		{"withdrawn after another has tried again", tried, licensing.WithdrawRefund{Tries: 2}, nil},
		{"failed before it was taken", func(o *licensing.Order) { tried(o); o.RefundNo, o.Refunding = "ref_1", 990 },
			licensing.WithdrawRefund{Number: "ref_1", Tries: 3, Failed: "re_1"}, func(o *licensing.Order) {
				o.RefundDue, o.RefundBy, o.RefundRetryAt, o.StateReason = false, "", time.Time{}, ""
				o.RefundNo, o.Refunding, o.Refunds = "", 0, 1
			}},
		{"made", tried, licensing.RefundOrder{}, func(o *licensing.Order) {
			o.RefundedAt, o.RefundDue, o.RefundTries, o.RefundRetryAt = noon, false, 0, time.Time{}
			o.Refunded, o.Refunds = 990, 1
		}},
		{"canceled with a reason", nil, licensing.CancelOrder{Reason: "changed my mind"},
			func(o *licensing.Order) { o.CanceledAt, o.StateReason = noon, "changed my mind" }},
		{"canceled again keeps the reason", func(o *licensing.Order) { o.CanceledAt, o.StateReason = ago, "first" },
			licensing.CancelOrder{Reason: "second"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ordered(c.before)
			want := *r.Order
			if c.change != nil {
				c.change(&want)
			}
			must(t, &r, c.command, noon)
			want.Sequence = r.Order.Sequence // see TestOrderEvents
			if diff := cmp.Diff(want, *r.Order); diff != "" {
				t.Errorf("the order (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRefundPauses: the pause doubles from try to try, up to an hour.
func TestRefundPauses(t *testing.T) {
	r := ordered(func(o *licensing.Order) { o.PaidAt, o.LicenseKey, o.RefundDue = noon, otherKey, true })
	want := 15 * time.Second
	for try := 1; try <= 40; try++ {
		must(t, &r, licensing.TryRefund{}, noon)
		if got := r.Order.RefundRetryAt.Sub(noon); got != want || r.Order.RefundTries != try {
			t.Fatalf("after try %d (%d) the pause is %v, want %v", try, r.Order.RefundTries, got, want)
		}
		want = min(2*want, time.Hour)
	}
}

// TestCallbackWhileRefundIsDue: a payment that is reported again tells the caller to go on with the refund.
func TestCallbackWhileRefundIsDue(t *testing.T) {
	r := ordered(func(o *licensing.Order) { o.PaidAt, o.LicenseKey, o.RefundDue = noon, otherKey, true })
	if result := must(t, &r, payment, noon); !result.RefundDue || r.Changed || r.Issued != nil {
		t.Errorf("answered %+v, changed %v", result, r.Changed)
	}
}
