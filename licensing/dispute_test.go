package licensing_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// disputed are the records of an order and of the dispute of its payment, or of its further payment if there is one.
type disputed struct {
	returning
	dispute *licensing.Payment
}

// rule records what the bank says about the dispute, as one transaction does.
func (d *disputed) rule(t rapid.TB, amount int64, state licensing.PaymentState) {
	note := licensing.NoteDispute{Recorded: d.dispute, Dispute: licensing.Payment{
		Reference: "du_1", Amount: amount, State: state,
	}}
	if d.further.Payment != nil {
		o := d.order.Order
		note.Further = &licensing.FurtherDisputed{
			Payment: *d.further.Payment, Invoices: o.Invoices, Refunds: o.InvoiceRefunds, PaidEnd: o.PaidEnd,
		}
	}
	answer := must(t, &d.order, note, noon).Refund()
	if d.further.Payment != nil {
		must(t, &d.further, note.CountFurther(answer), noon)
	}
	d.dispute = &answer
}

// TestLostDisputeMeetsRefund: a lost dispute ends a refund of the payment that no longer fits, if the provider was not
// asked for it. Once the provider was asked, its answer may be lost: then the refund stays open until the provider
// answers, and what it has taken does not count twice. A refusal lets a sweep count the dispute again.
func TestLostDisputeMeetsRefund(t *testing.T) {
	for _, canceled := range []bool{false, true} {
		begin := func(asked bool) *disputed {
			d := &disputed{}
			d.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
				o.Amount, o.Provider = 100, licensing.ProviderStripe
			}).Order}
			if canceled { // then the payment is to go back
				must(t, &d.order, licensing.CancelOrder{}, noon)
			}
			must(t, &d.order, payment, noon)
			if !canceled {
				must(t, &d.order, licensing.RequestRefund{Number: "ref_1"}, noon)
			}
			if asked {
				must(t, &d.order, licensing.TryRefund{}, noon)
			}
			d.rule(t, 100, licensing.PaymentLost)
			return d
		}
		is := func(what string, d *disputed, refunded int64, due, asks bool) {
			t.Helper()
			o := d.order.Order
			if o.Refunded != refunded || o.RefundDue != due || o.DisputeAskAt.Equal(noon) != asks ||
				o.RefundedAt.IsZero() != (refunded < 100) || o.Refunded+o.Uncounted != refunded+100-d.dispute.Counted {
				t.Errorf("canceled %t, %s: %+v, dispute %+v", canceled, what, o, d.dispute)
			}
		}
		is("not asked for", begin(false), 100, false, false)

		d := begin(true)
		is("the answer is lost", d, 0, true, false)
		number := d.order.Order.RefundNo
		must(t, &d.order, licensing.RefundOrder{Number: number}, noon)
		is("the refund was made", d, 100, false, false)

		d = begin(true)
		must(t, &d.order, licensing.WithdrawRefund{Number: number, Tries: 0}, noon)
		is("a refusal of an earlier try", d, 0, true, false)
		must(t, &d.order, licensing.WithdrawRefund{Number: number, Tries: 1}, noon)
		is("the refund was refused", d, 0, canceled, true)
		d.rule(t, 100, licensing.PaymentLost)
		is("the dispute counts", d, 100, false, false)
	}
}

// TestLostDisputeMeetsReturn is TestLostDisputeMeetsRefund for an invoice and for a second payment, which goes back
// again if the bank reverses a dispute that counted.
func TestLostDisputeMeetsReturn(t *testing.T) {
	for _, kind := range []licensing.PaymentKind{licensing.KindOfInvoice, licensing.KindOfSecond} {
		second := kind == licensing.KindOfSecond
		begin := func(asked bool) *disputed {
			d := &disputed{}
			d.refunds = map[string]*licensing.Record{}
			d.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
				o.PaidAt, o.Paid, o.Payment, o.Provider, o.Amount = noon, 100, "pi_1", licensing.ProviderStripe, 100
				o.Invoices, o.Invoiced = 1, 100
				o.Returns = &[]licensing.Return{{Number: "ref_1", Of: "pi_2", Amount: 100, Second: second}}
			}).Order}
			d.further.Payment = &licensing.Payment{Kind: kind, Reference: "pi_2", Amount: 100}
			if asked {
				must(t, &d.order, licensing.TryReturn{Number: "ref_1"}, noon)
			}
			d.rule(t, 100, licensing.PaymentLost)
			return d
		}
		is := func(what string, d *disputed, returned, open int64, asks bool) {
			t.Helper()
			o := d.order.Order
			if _, due := o.RefundsDue(); due != open || o.Returned != returned ||
				d.further.Payment.Returned != returned || o.DisputeAskAt.Equal(noon) != asks {
				t.Errorf("%s, %s: %+v with %+v, %+v", kind, what, o, o.OpenReturns(), d.further.Payment)
			}
		}
		is("not asked for", begin(false), 100, 0, false)

		d := begin(true)
		is("the answer is lost", d, 0, 100, false)
		open, _ := d.order.Order.OpenReturn("ref_1")
		made := open.Refund(d.order.Order, d.further.Payment)
		if err := d.note(made); err != nil {
			t.Errorf("%s: the refund was made: %v", kind, err)
		}
		is("the refund was made", d, 100, 0, false)
		d.rule(t, 100, licensing.PaymentWon)
		is("the refund was made, and the dispute is won after all", d, 100, 0, false)

		d = begin(true)
		refused := licensing.WithdrawReturn{Return: open, Further: *d.further.Payment}
		must(t, &d.order, licensing.TryReturn{Number: "ref_1"}, noon)
		must(t, &d.order, refused, noon)
		is("a refusal of an earlier try", d, 0, 100, false)
		refused.Return.Tries++
		must(t, &d.order, refused, noon)
		left := int64(0)
		if second {
			left = 100
		}
		is("the refund was refused", d, 0, left, true)
		d.rule(t, 100, licensing.PaymentLost)
		is("the dispute counts", d, 100, 0, true)
		d.rule(t, 100, licensing.PaymentWon)
		is("the dispute is won after all", d, 0, left, true)
	}
}

// TestDisputeTimeStays: the answer about one dispute leaves the time when a sweep counts another one again. A sweep
// that finds none removes the time, unless the order has changed meanwhile.
func TestDisputeTimeStays(t *testing.T) {
	d := &disputed{}
	d.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
		o.PaidAt, o.Paid, o.Payment, o.Provider, o.Amount = noon, 100, "pi_1", licensing.ProviderStripe, 100
		o.Invoices, o.Invoiced, o.DisputeAskAt = 1, 100, noon
	}).Order}
	d.rule(t, 40, licensing.PaymentWon)
	is := func(what string, at time.Time) {
		t.Helper()
		if o := d.order.Order; !o.DisputeAskAt.Equal(at) {
			t.Errorf("%s, a sweep asks at %s, want %s", what, o.DisputeAskAt, at)
		}
	}
	is("another dispute has ended", noon)
	planned := must(t, &d.order, licensing.PlanDisputes{}, noon)
	if !planned.Created {
		t.Fatal("no question is due")
	}
	next := planned.Order().DisputeAskAt
	must(t, &d.order, licensing.EndDisputes{Planned: noon}, noon)
	is("the order has changed meanwhile", next)
	d.order.Order.Disputes = "du_2"
	must(t, &d.order, licensing.EndDisputes{Planned: next}, noon)
	is("a dispute is open", next)
	d.order.Order.Disputes = ""
	must(t, &d.order, licensing.EndDisputes{Planned: next}, noon)
	is("there is none to ask about", time.Time{})
}

// bankAndTill is the truth about a second payment of 100: what the provider has sent back, by the numbers of the
// refunds, and what the bank says of its dispute.
type bankAndTill struct {
	sent   map[string]int64
	amount int64 // of the dispute
	state  licensing.PaymentState
}

// refund sends money back under a number once; false: it refuses.
func (b *bankAndTill) refund(number string, amount int64) bool {
	left := 100 - b.back()
	if b.state == licensing.PaymentOpen || b.state == licensing.PaymentLost {
		left -= b.amount
	}
	if _, sent := b.sent[number]; !sent && amount > left {
		return false
	}
	b.sent[number] = amount
	return true
}

func (b *bankAndTill) back() (sum int64) {
	for _, amount := range b.sent {
		sum += amount
	}
	return sum
}

// TestRefundInDoubtStaysOpen: a refund whose answer is lost may have been made. It stays open when another refund that
// leaves enough of the payment ends. Otherwise a lost dispute could count in its place.
func TestRefundInDoubtStaysOpen(t *testing.T) {
	d := &disputed{}
	d.refunds = map[string]*licensing.Record{}
	d.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
		o.PaidAt, o.Paid, o.Payment, o.Provider, o.Amount = noon, 100, "pi_1", licensing.ProviderStripe, 100
	}).Order}
	second := licensing.Payment{Provider: licensing.ProviderStripe, Reference: "pi_2", Amount: 100, Currency: "EUR"}
	added := must(t, &d.further, licensing.AddSecond{Payment: second}, noon)
	must(t, &d.order, licensing.CountSecond{New: added.Created, Payment: second}, noon)
	made := func() licensing.Payment {
		open := d.order.Order.OpenReturns()
		last := open[len(open)-1]
		must(t, &d.order, licensing.TryReturn{Number: last.Number}, noon)
		return last.Refund(d.order.Order, d.further.Payment)
	}
	d.rule(t, 40, licensing.PaymentLost)
	inDoubt := made()
	d.rule(t, 40, licensing.PaymentWon)
	if err := d.note(made()); err != nil {
		t.Fatal(err)
	}
	d.rule(t, 40, licensing.PaymentLost)
	if err := d.note(inDoubt); err != nil {
		t.Errorf("the refund of %d was made: %v; %+v", inDoubt.Amount, err, d.order.Order.OpenReturns())
	}
	if o := d.order.Order; o.Returned != 100 || len(o.OpenReturns()) != 0 {
		t.Errorf("%d of 100 went back, and open is %+v", o.Returned, o.OpenReturns())
	}
}

// TestSecondPaymentDisputed: whatever answers are lost, and whatever the bank decides meanwhile, even about money that
// went back already, each refund that the provider has made is recorded, and in the end the buyer has the second
// payment back by the books. No lost dispute that may count is forgotten.
func TestSecondPaymentDisputed(t *testing.T) {
	depth.NotRaced(t)
	rapid.Check(t, func(t *rapid.T) {
		truth := &bankAndTill{sent: map[string]int64{}, amount: rapid.SampledFrom([]int64{40, 100}).Draw(t, "disputed")}
		d := &disputed{}
		d.refunds = map[string]*licensing.Record{}
		d.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
			o.PaidAt, o.Paid, o.Payment, o.Provider, o.Amount = noon, 100, "pi_1", licensing.ProviderOutside, 100
		}).Order}
		second := licensing.Payment{Provider: licensing.ProviderStripe, Reference: "pi_2", Amount: 100, Currency: "EUR"}
		added := must(t, &d.further, licensing.AddSecond{Payment: second}, noon)
		must(t, &d.order, licensing.CountSecond{New: added.Created, Payment: second}, noon)
		record := func(number string) {
			made := licensing.Payment{Reference: number, Refunds: "pi_2", Amount: truth.sent[number]}
			if stored := d.refunds[number]; stored != nil && stored.Payment != nil {
				return
			}
			if err := d.note(made); err != nil {
				t.Fatalf("the refund %s of %d was made, and can't be recorded: %v; %+v with %+v", number, made.Amount,
					err, d.order.Order, d.order.Order.OpenReturns())
			}
		}
		try := func(open licensing.Return, answers bool) {
			tried := must(t, &d.order, licensing.TryReturn{Number: open.Number}, noon).Return()
			switch made := truth.refund(tried.Number, tried.Amount); {
			case !answers:
			case made:
				record(tried.Number)
			default:
				must(t, &d.order, licensing.WithdrawReturn{Return: tried, Further: *d.further.Payment}, noon)
			}
		}
		check := func() {
			o, returned, counted := d.order.Order, int64(0), int64(0)
			for number, refund := range d.refunds {
				if refund.Payment != nil {
					returned += truth.sent[number]
				}
			}
			if d.dispute != nil && d.dispute.State == licensing.PaymentLost {
				counted = d.dispute.Counted
				if d.further.Payment.Uncounted != d.dispute.CountsLess() {
					t.Fatalf("of %+v less counts than %+v has", d.dispute, d.further.Payment)
				}
			}
			_, due := o.RefundsDue()
			if back := returned + counted; o.Returned != back || d.further.Payment.Returned != back || due != 100-back {
				t.Fatalf("%d went back by refunds and %d by a dispute: %+v with %+v", returned, counted, o,
					o.OpenReturns())
			}
			payments := []licensing.Payment{*d.further.Payment}
			if d.dispute != nil && o.DisputeAskAt.IsZero() && o.Recounts(d.dispute, payments) {
				t.Fatalf("no sweep counts %+v again: %+v with %+v", d.dispute, o, o.OpenReturns())
			}
		}
		states := []licensing.PaymentState{licensing.PaymentOpen, licensing.PaymentLost, licensing.PaymentWon}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch open := d.order.Order.OpenReturns(); rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				if len(open) > 0 {
					try(rapid.SampledFrom(open).Draw(t, "refund"), rapid.Bool().Draw(t, "answers"))
				}
			case 2:
				if made := slices.Sorted(maps.Keys(truth.sent)); len(made) > 0 { // a callback
					record(rapid.SampledFrom(made).Draw(t, "made"))
				}
			default:
				truth.state = rapid.SampledFrom(states).Draw(t, "state")
				d.rule(t, truth.amount, truth.state)
			}
			check()
		}
		if truth.state == licensing.PaymentOpen {
			truth.state = rapid.SampledFrom(states[1:]).Draw(t, "end")
		}
		for range 4 { // what sweeps do
			for _, open := range d.order.Order.OpenReturns() {
				if _, still := d.order.Order.OpenReturn(open.Number); still {
					try(open, true)
				}
			}
			if truth.state != "" {
				d.rule(t, truth.amount, truth.state)
			}
			check()
		}
		for number := range truth.sent {
			record(number)
		}
		check()
		if o := d.order.Order; o.Returned != 100 || len(o.OpenReturns()) != 0 {
			t.Fatalf("the second payment is not back: %+v with %+v", o, o.OpenReturns())
		}
	})
}

// TestRefundAfterDispute: the end of a dispute makes an open refund of the payment due at once that the provider was
// asked for before, as its answer may be another one now.
func TestRefundAfterDispute(t *testing.T) {
	for _, ends := range []licensing.PaymentState{licensing.PaymentWon, licensing.PaymentLost} {
		for _, second := range []bool{false, true} {
			d := &disputed{}
			d.refunds = map[string]*licensing.Record{}
			d.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
				o.PaidAt, o.Paid, o.Payment, o.Provider, o.Amount = noon, 100, "pi_1", licensing.ProviderStripe, 100
				o.LicenseKey = otherKey
			}).Order}
			var request, try licensing.Command = licensing.RequestRefund{Number: "ref_1"}, licensing.TryRefund{}
			if second {
				d.further.Payment = &licensing.Payment{Kind: licensing.KindOfSecond, Provider: licensing.ProviderStripe,
					Reference: "pi_2", Amount: 100}
				request = licensing.CountSecond{New: true, Payment: *d.further.Payment}
				try = licensing.TryReturn{Number: licensing.RefundNumber("pi_2")}
			}
			must(t, &d.order, request, noon)
			for range 4 {
				must(t, &d.order, try, noon)
			}
			retries := func() time.Time {
				if returns := d.order.Order.OpenReturns(); second {
					return returns[0].RetryAt
				}
				return d.order.Order.RefundRetryAt
			}
			if d.rule(t, 100, licensing.PaymentOpen); !retries().After(noon) {
				t.Errorf("second %t, an open dispute: the provider is asked again at %v", second, retries())
			}
			if d.rule(t, 100, ends); !retries().Equal(noon) {
				t.Errorf("second %t, %s: the provider is asked again at %v", second, ends, retries())
			}
		}
	}
}
