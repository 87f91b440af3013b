package licensing_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// naiveRefund is a refund as the naive model knows it.
type naiveRefund struct {
	amount int64
	state  string // open, pending, done, failed; withdrawn: it has left no record
	ends   bool   // it sends back all that was left
}

// naiveRefunds is the naive model of an order's refunds: a list of refunds, whose sums are counted anew each time.
type naiveRefunds struct {
	paid    int64
	refunds []naiveRefund
}

func (n *naiveRefunds) sum(states ...string) (sum int64) {
	for _, r := range n.refunds {
		if slices.Contains(states, r.state) {
			sum += r.amount
		}
	}
	return sum
}

// open returns the refund that is open; nil: there is none.
func (n *naiveRefunds) open() *naiveRefund {
	for i := range n.refunds {
		if r := &n.refunds[i]; r.state == "open" || r.state == "pending" {
			return r
		}
	}
	return nil
}

// TestRefundsAgainstNaiveModel runs requests for whole and partial refunds, refunds that were made at the provider, and
// their results, some of them late or for another refund: never more goes back than was paid, the records add up to the
// amounts of the order, and the order is refunded once nothing is left.
func TestRefundsAgainstNaiveModel(t *testing.T) {
	depth.NotRaced(t)
	rapid.Check(t, func(t *rapid.T) {
		paid := rapid.Int64Range(1, 20).Draw(t, "paid")
		naive := naiveRefunds{paid: paid}
		order := licensing.Record{Order: ordered(func(o *licensing.Order) {
			o.Amount, o.Paid, o.PaidAt, o.Payment, o.LicenseKey = paid, paid, noon, "pi_0", otherKey
		}).Order}
		records, wasRefunded := map[string]*licensing.Record{}, false
		numbers := []string{""}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			before, open := *order.Order, naive.open()
			number := rapid.SampledFrom(numbers).Draw(t, "number")
			if rapid.Bool().Draw(t, "current") {
				number = before.RefundNo
			}
			current := open != nil && number == before.RefundNo
			left := paid - naive.sum("open", "pending", "done")
			var c licensing.Command
			refused := false
			switch kind := rapid.SampledFrom([]string{"whole", "part", "part", "pending", "withdraw", "done", "done",
				"done, but part", "elsewhere", "elsewhere", "returned"}).Draw(t, "kind"); kind {
			case "elsewhere":
				amount := rapid.Int64Range(1, paid+1).Draw(t, "amount")
				note := licensing.NoteRefund{ProviderID: fmt.Sprint("re_", step), Amount: amount}
				if c = note; open != nil || amount > left {
					refused = true
				} else {
					naive.refunds = append(naive.refunds, naiveRefund{amount, "pending", amount == left})
					numbers = append(numbers, note.ProviderID)
				}
			case "returned":
				of := slices.IndexFunc(naive.refunds, func(r naiveRefund) bool { return r.state == "done" })
				if of < 0 {
					continue
				}
				amount := naive.refunds[of].amount
				for _, r := range records {
					if r.Payment.State == licensing.PaymentDone && r.Payment.Amount == amount {
						c = licensing.TakeBackRefund{Refund: *r.Payment}
					}
				}
				naive.refunds[of].state = "failed"
			case "whole", "part":
				amount := left
				request := licensing.RequestRefund{By: "key_1", Number: fmt.Sprint("ref_", step)}
				if kind == "part" {
					amount = rapid.Int64Range(1, paid+1).Draw(t, "amount")
					request.Amount = amount
				}
				c = request
				switch {
				case kind == "whole" && left == 0 && open != nil:
					open.ends = true
				case kind == "whole" && (left == 0 || open != nil && open.ends && !wasRefunded):
				case open != nil, amount > left:
					refused = true
				default:
					naive.refunds = append(naive.refunds, naiveRefund{amount, "open", amount == left})
					numbers = append(numbers, request.Number)
				}
			case "pending":
				if c = (licensing.NotePendingRefund{Number: number, ProviderID: "re_" + number}); current {
					open.state = "pending"
				}
			case "withdraw":
				c = licensing.WithdrawRefund{Number: number, Tries: before.RefundTries}
				if current {
					open.state = map[string]string{"open": "withdrawn", "pending": "failed"}[open.state]
				}
			default:
				c = licensing.RefundOrder{Number: number, ProviderID: "re_" + number, Partial: kind != "done"}
				switch {
				case open == nil && number == "":
					continue // an older build's refund
				case !current:
					refused = true
				case kind == "done" || left > 0 && !open.ends || wasRefunded:
					open.state = "done"
					wasRefunded = wasRefunded || open.ends
				}
			}
			result, err := run(t, &order, c, noon)
			if (err != nil) != refused {
				t.Fatalf("%+v answers %v, want a refusal: %v", c, err, refused)
			}
			if result.Refund().Reference != "" {
				ref := new(result.Refund()).Ref(order.Order.Owner)
				if records[ref.ID] == nil {
					records[ref.ID] = &licensing.Record{}
				}
				must(t, records[ref.ID], licensing.PutRefund{Refund: result.Refund()}, noon)
			}
			o := order.Order
			kept := naive.sum("open", "pending")
			if o.RefundedAmount() != naive.sum("done") || o.OpenRefund() != kept ||
				o.RefundDue != (naive.open() != nil) ||
				o.Refundable() != paid-naive.sum("done")-kept || o.Refundable() < 0 {
				t.Fatalf("after %+v of %+v the order is %+v", c, naive, o)
			}
			wasRefunded = wasRefunded || naive.sum("done") == paid
			if o.RefundedAt.IsZero() == wasRefunded {
				t.Fatalf("%d of %d were refunded, at %v", naive.sum("done"), paid, o.RefundedAt)
			}
			sums := map[licensing.PaymentState]int64{}
			for _, r := range records {
				sums[r.Payment.State] += r.Payment.Amount
			}
			if sums[licensing.PaymentDone] != naive.sum("done") ||
				sums[licensing.PaymentPending] != naive.sum("pending") ||
				sums[licensing.PaymentFailed] != naive.sum("failed") || len(records) != o.Refunds {
				t.Fatalf("the %d records have %v, of %+v: %+v", len(records), sums, naive, o)
			}
		}
	})
}

// TestRefundLimits: a request for more than the rest is refused, and each request after MaxRefunds.
func TestRefundLimits(t *testing.T) {
	r := ordered(func(o *licensing.Order) {
		o.Amount, o.Paid, o.PaidAt, o.Payment, o.LicenseKey = 500, 500, noon, "pi_0", otherKey
	})
	f := func(amount int64, want string) {
		t.Helper()
		request := licensing.RequestRefund{Number: fmt.Sprint("ref_", r.Order.Sequence), Amount: amount}
		_, err := run(t, &r, request, noon)
		got := fmt.Sprint(err)
		if is := new(licensing.Error); errors.As(err, &is) && len(is.Fields) > 0 {
			got = is.Fields[0].Field + " " + is.Fields[0].Problem
		}
		if got != want {
			t.Errorf("a refund of %d is refused with %q, want %q", amount, got, want)
		}
	}
	f(501, "amount must be at most 500, which is left of the payment of 500")
	f(1, "<nil>")
	waits := "a refund of 1, in minor units, is not confirmed yet, and 499 is left besides: repeat the request once " +
		"refund_pending is 0"
	f(1, waits)
	f(0, waits)
	must(t, &r, licensing.RefundOrder{Number: r.Order.RefundNo, Partial: true}, noon)
	f(500, "amount must be at most 499, which is left of the payment of 500")
	for r.Order.Refunds < licensing.MaxRefunds {
		f(1, "<nil>")
		must(t, &r, licensing.RefundOrder{Number: r.Order.RefundNo, Partial: true}, noon)
	}
	f(0, "an order can have 100 refunds: refund the rest, 400 in minor units, at the payment provider")
}

// TestRefundKnown: a refund that was made at the provider has one record, and no state of a refund goes back.
func TestRefundKnown(t *testing.T) {
	states := []licensing.PaymentState{licensing.PaymentPending, licensing.PaymentDone, licensing.PaymentFailed}
	for i, before := range states {
		for j, after := range states {
			r := licensing.Record{Payment: &licensing.Payment{Kind: licensing.KindOfRefund, State: before}}
			refund := licensing.Payment{Kind: licensing.KindOfRefund, Reference: "re_1", State: after}
			if _, err := run(t, &r, licensing.PutRefund{Refund: refund}, noon); errors.Is(err,
				licensing.ErrRefundClosed) == (j > i) {
				t.Errorf("%q after %q: %v", after, before, err)
			}
		}
	}
	order := licensing.NewOrderNo(shop, strings.Repeat("0", 26))
	for text, own := range map[string]bool{"": true, "ref_1": true, "re_1": false, order: true} {
		if licensing.OwnRefund(text) != own {
			t.Errorf("%q is a number of ours: %v", text, !own)
		}
	}
}

// TestRefundedKeepsReason: a refunded order keeps the reason of the refund, if the refund fails later, and the provider
// refuses or makes another.
func TestRefundedKeepsReason(t *testing.T) {
	for _, again := range []string{"", "again"} {
		r := ordered(func(o *licensing.Order) { o.Amount, o.Currency = 500, "USD" })
		f := func(what string, c licensing.Command) licensing.Result {
			t.Helper()
			result := must(t, &r, c, noon)
			if o := r.Order; !o.RefundedAt.IsZero() && (o.StateReason != "too late" || o.RefundBy == "") {
				t.Errorf("%s: the reason is %q, requested by %q", what, o.StateReason, o.RefundBy)
			}
			return result
		}
		f("paid", payment)
		f("requested", licensing.RequestRefund{By: "key_1", Reason: "too late", Number: "ref_1"})
		made := f("made", licensing.RefundOrder{Number: "ref_1"}).Refund()
		made.State = licensing.PaymentDone
		f("failed", licensing.TakeBackRefund{Refund: made})
		for _, number := range []string{"ref_2", "ref_3"} {
			f("requested again", licensing.RequestRefund{By: "key_2", Reason: again, Number: number})
			if r.Order.RefundNo != number {
				t.Fatalf("no refund is open: %+v", r.Order)
			}
			if number == "ref_2" {
				f("refused", licensing.WithdrawRefund{Number: number})
			}
		}
		f("made again", licensing.RefundOrder{Number: "ref_3"})
	}
}

// TestRefundOfCanceledElsewhere: the rest of the money of a canceled order stays due, after the refund of a part in
// the provider's dashboard, and after a refund there that fails.
func TestRefundOfCanceledElsewhere(t *testing.T) {
	r := ordered(func(o *licensing.Order) { o.Amount, o.Currency = 500, "USD" })
	must(t, &r, licensing.CancelOrder{}, noon)
	must(t, &r, licensing.PayOrder{Payment: "pi_0", Provider: licensing.ProviderStripe}, noon)
	f := func(what string, c licensing.Command, due bool, open, refunded int64) {
		t.Helper()
		must(t, &r, c, noon)
		if o := r.Order; o.RefundDue != due || o.OpenRefund() != open || o.RefundedAmount() != refunded ||
			o.RefundBy != licensing.Provider || o.RefundedAt.IsZero() != (refunded < 500) {
			t.Errorf("%s: %+v", what, o)
		}
	}
	f("tried", licensing.TryRefund{}, true, 500, 0)
	f("a part elsewhere", licensing.NoteRefund{ProviderID: "re_1", Amount: 200}, true, 200, 0)
	f("our refusal, late", licensing.WithdrawRefund{Tries: 1}, true, 200, 0)
	f("made", licensing.RefundOrder{Number: "re_1"}, true, 300, 200)
	f("another part", licensing.NoteRefund{ProviderID: "re_2", Amount: 200}, true, 200, 200)
	f("fails", licensing.WithdrawRefund{Number: "re_2"}, true, 300, 200)
	f("the rest", licensing.RefundOrder{Number: r.Order.RefundNo}, false, 0, 500)
	if r.Order.Refunds != 3 {
		t.Errorf("%d refunds, want 3", r.Order.Refunds)
	}
}

// TestRefundOfCanceledFails: if the provider takes a refund of a canceled order, and the refund fails later, the money
// is due again under a number of its own, after a pause, up to MaxRefunds times.
func TestRefundOfCanceledFails(t *testing.T) {
	depth.NotRaced(t)
	r := ordered(func(o *licensing.Order) { o.Amount, o.Currency = 500, "USD" })
	must(t, &r, licensing.CancelOrder{Reason: "too late"}, noon)
	must(t, &r, licensing.PayOrder{Payment: "pi_0", Provider: licensing.ProviderStripe}, noon)
	o, numbers := r.Order, map[string]bool{}
	for n := 1; n <= licensing.MaxRefunds; n++ {
		number := o.RefundNo
		if numbers[number] || !licensing.OwnRefund(number) {
			t.Fatalf("refund %d has the number %q", n, number)
		}
		numbers[number] = true
		must(t, &r, licensing.TryRefund{}, noon)
		must(t, &r, licensing.NotePendingRefund{Number: number, ProviderID: fmt.Sprint("re_", n)}, noon)
		if n == licensing.MaxRefunds {
			break
		}
		failed := must(t, &r, licensing.WithdrawRefund{Number: number, Tries: n}, noon).Refund()
		if failed.State != licensing.PaymentFailed || failed.Amount != 500 || !o.RefundDue || o.RefundPending ||
			o.OpenRefund() != 500 || o.Refunds != n || o.StateReason != "too late" || !o.RefundRetryAt.After(noon) {
			t.Fatalf("refund %d fails: %+v, %+v", n, failed, o)
		}
	}
	before := *o
	must(t, &r, licensing.WithdrawRefund{Number: o.RefundNo, Tries: o.RefundTries}, noon)
	if diff := cmp.Diff(before, *o); diff != "" {
		t.Errorf("the last refund fails (-before +after):\n%s", diff)
	}
	must(t, &r, licensing.RefundOrder{Number: o.RefundNo}, noon)
	if o.RefundedAt.IsZero() || o.RefundDue || o.Refunds != licensing.MaxRefunds {
		t.Errorf("the order is refunded: %+v", o)
	}
}
