package licet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet"
)

// refundTable has the steps of a refund in the notation of licenseTable. The
// status of an order whose money is on its way back is what it was.
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
refunded              | =       | =        | =           | =        | =
refunded, canceled    | =       | =        | =           | =        | =
`

func TestRefundSteps(t *testing.T) {
	ago := noon.Add(-time.Minute)
	paid := func(o *licet.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey }
	canceled := func(o *licet.Order) { o.CanceledAt = ago }
	owed := func(o *licet.Order) { o.PaidAt, o.Payment, o.RefundDue = ago, "pi_0", true }
	due := func(o *licet.Order) { o.RefundDue = true }
	tried := func(o *licet.Order) { o.RefundTries, o.RefundRetryAt = 2, noon.Add(time.Millisecond) }
	triedLongAgo := func(o *licet.Order) { o.RefundTries, o.RefundRetryAt = 2, noon }
	refunded := func(o *licet.Order) { o.RefundedAt, o.RefundDue = ago, false }
	rows := map[string][]func(*licet.Order){
		"unpaid":               nil,
		"expired":              {func(o *licet.Order) { o.ExpiresAt = noon }},
		"canceled":             {canceled},
		"canceled, due":        {canceled, owed},
		"canceled, tried":      {canceled, owed, tried},
		"paid":                 {paid},
		"paid, due":            {paid, due},
		"paid, tried":          {paid, due, tried},
		"paid, tried long ago": {paid, due, triedLongAgo},
		"refunded":             {paid, refunded},
		"refunded, canceled":   {canceled, owed, refunded},
	}
	columns := map[string]licet.Command{
		"request": licet.RequestRefund{}, "try": licet.TryRefund{}, "try waiting": licet.TryRefund{Waiting: true},
		"withdraw": licet.WithdrawRefund{}, "recorded": licet.RefundOrder{},
	}
	eachCell(t, refundTable, len(rows), len(columns), func(t *testing.T, row, column, want string) {
		r := ordered(func(o *licet.Order) {
			for _, fact := range rows[row] {
				fact(o)
			}
		})
		before := r.Order.Status(noon)
		if !strings.HasPrefix(row, string(before)) {
			t.Fatalf("the case is wrong: it starts %s", before)
		}
		result, err := run(t, &r, columns[column], noon)
		checkCell(t, want, "invalid_order_state", string(before), string(r.Order.Status(noon)), r.Changed, err)
		if err != nil {
			return
		}
		if diff := cmp.Diff(*r.Order, result.Order); diff != "" {
			t.Errorf("the answer is not the order (-stored +answered):\n%s", diff)
		}
		wantDue := r.Order.RefundDue && column != "recorded"
		if strings.HasPrefix(column, "try") {
			wantDue = want != "=" // whoever is told so asks the provider
		}
		if result.RefundDue != wantDue {
			t.Errorf("answered that a refund is due: %v, want %v", result.RefundDue, wantDue)
		}
	})
}

// TestRefundFacts checks every fact of the order after a step.
func TestRefundFacts(t *testing.T) {
	ago := noon.Add(-time.Minute)
	paid := func(o *licet.Order) { o.PaidAt, o.Payment, o.LicenseKey = ago, "pi_0", otherKey }
	wished := func(o *licet.Order) { paid(o); o.RefundDue, o.RefundBy, o.StateReason = true, "key_1", "too slow" }
	tried := func(o *licet.Order) { wished(o); o.RefundTries, o.RefundRetryAt = 3, noon }
	for _, c := range []struct {
		name    string
		before  func(*licet.Order)
		command licet.Command
		change  func(*licet.Order)
	}{
		{"wished for", paid, licet.RequestRefund{By: "key_1", Reason: "too slow"},
			func(o *licet.Order) { o.RefundDue, o.RefundBy, o.StateReason = true, "key_1", "too slow" }},
		{"wished for again keeps who it was and the reason", tried, licet.RequestRefund{By: "key_2", Reason: "other"}, nil},
		{"tried", wished, licet.TryRefund{}, func(o *licet.Order) { o.RefundTries, o.RefundRetryAt = 1, noon.Add(15*time.Second) }},
		{"tried again", tried, licet.TryRefund{}, func(o *licet.Order) { o.RefundTries, o.RefundRetryAt = 4, noon.Add(2*time.Minute) }},
		{"withdrawn before any try", wished, licet.WithdrawRefund{}, func(o *licet.Order) { o.RefundDue, o.RefundBy, o.StateReason = false, "", "" }},
		{"withdrawn after the latest try", tried, licet.WithdrawRefund{Tries: 3},
			func(o *licet.Order) {
				o.RefundDue, o.RefundBy, o.RefundRetryAt, o.StateReason = false, "", time.Time{}, "" // and the tries count on
			}},
		{"withdrawn after another has tried again", tried, licet.WithdrawRefund{Tries: 2}, nil},
		{"made", tried, licet.RefundOrder{}, func(o *licet.Order) {
			o.RefundedAt, o.RefundDue, o.RefundTries, o.RefundRetryAt = noon, false, 0, time.Time{}
		}},
		{"canceled with a reason", nil, licet.CancelOrder{Reason: "changed my mind"},
			func(o *licet.Order) { o.CanceledAt, o.StateReason = noon, "changed my mind" }},
		{"canceled again keeps the reason", func(o *licet.Order) { o.CanceledAt, o.StateReason = ago, "first" }, licet.CancelOrder{Reason: "second"}, nil},
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

// TestRefundPauses double from try to try, and end at an hour.
func TestRefundPauses(t *testing.T) {
	r := ordered(func(o *licet.Order) { o.PaidAt, o.LicenseKey, o.RefundDue = noon, otherKey, true })
	want := 15 * time.Second
	for try := 1; try <= 40; try++ {
		must(t, &r, licet.TryRefund{}, noon)
		if got := r.Order.RefundRetryAt.Sub(noon); got != want || r.Order.RefundTries != try {
			t.Fatalf("after try %d (%d) the pause is %v, want %v", try, r.Order.RefundTries, got, want)
		}
		want = min(2*want, time.Hour)
	}
}

// TestCallbackWhileRefundIsDue tells the caller to go on with the refund.
func TestCallbackWhileRefundIsDue(t *testing.T) {
	r := ordered(func(o *licet.Order) { o.PaidAt, o.LicenseKey, o.RefundDue = noon, otherKey, true })
	if result := must(t, &r, payment, noon); !result.RefundDue || r.Changed || r.Issued != nil {
		t.Errorf("answered %+v, changed %v", result, r.Changed)
	}
}
