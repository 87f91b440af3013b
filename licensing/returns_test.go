package licensing_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// returning are the records of an order with a further payment and its refunds.
type returning struct {
	order, further licensing.Record
	refunds        map[string]*licensing.Record
}

// note records what has become of a refund of the further payment, as one transaction does.
func (r *returning) note(refund licensing.Payment) error {
	if r.refunds[refund.Reference] == nil {
		r.refunds[refund.Reference] = &licensing.Record{}
	}
	record, further, order := *r.refunds[refund.Reference], r.further, r.order
	o := *order.Order
	order.Order = &o
	noted, err := licensing.Apply(&record, licensing.NoteInvoiceRefund{Refund: refund}, noon)
	if err != nil {
		return err
	}
	returned, err := licensing.Apply(&further, licensing.RefundInvoice{Back: noted.Back()}, noon)
	if err != nil {
		return err
	}
	if _, err := licensing.Apply(&order, licensing.CountInvoiceRefund{
		Back: noted.Back(), Invoices: o.Invoices, Refunds: o.InvoiceRefunds, PaidEnd: o.PaidEnd,
		Refund: noted.Refund(), Invoice: returned.Refund(),
	}, noon); err != nil {
		return err
	}
	*r.refunds[refund.Reference], r.further, r.order = record, further, order
	return nil
}

// TestSecondPaymentGoesBack: whatever the provider answers about refunds of a second payment, ours or made at the
// provider, exactly the remainder of the payment is due, under a number that no closed refund has.
func TestSecondPaymentGoesBack(t *testing.T) {
	depth.NotRaced(t)
	rapid.Check(t, func(t *rapid.T) {
		r := &returning{refunds: map[string]*licensing.Record{}}
		r.order = licensing.Record{Order: ordered(func(o *licensing.Order) {
			o.PaidAt, o.Paid, o.Payment, o.Provider = noon, 990, "INV-1", licensing.ProviderOutside
		}).Order}
		second := licensing.Payment{Provider: licensing.ProviderStripe, Reference: "pi_2", Amount: 990, Currency: "EUR"}
		for n := range 2 {
			added := must(t, &r.further, licensing.AddSecond{Payment: second}, noon)
			must(t, &r.order, licensing.CountSecond{New: added.Created, Payment: second}, noon)
			if added.Created != (n == 0) {
				t.Fatal("the second payment counts twice")
			}
		}
		outcomes := []licensing.PaymentState{licensing.PaymentPending, licensing.PaymentDone, licensing.PaymentFailed}
		elsewhere := 0
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			state := rapid.SampledFrom(outcomes).Draw(t, "state")
			switch open := r.order.Order.OpenReturns(); rapid.IntRange(0, 2).Draw(t, "what") {
			case 0: // our refund
				if len(open) == 0 {
					continue
				}
				tried := must(t, &r.order, licensing.TryReturn{Number: open[0].Number}, noon).Return()
				if record := r.refunds[tried.Number]; record != nil && !open[0].Pending {
					t.Fatalf("the number of the closed refund %+v is used again", record.Payment)
				}
				must(t, &r.order, licensing.WithdrawReturn{Return: tried}, noon) // a refusal changes nothing
				refund := tried.Refund(r.order.Order, r.further.Payment)
				refund.State = state
				_ = r.note(refund)
			case 1: // a refund at the provider, of what our pending refund has left there
				left := r.further.Payment.Amount - r.further.Payment.Returned
				if len(open) > 0 && open[0].Pending || left == 0 {
					continue
				}
				elsewhere++
				_ = r.note(licensing.Payment{
					Reference: fmt.Sprint("re_", elsewhere), Refunds: "pi_2", State: state,
					Amount: rapid.Int64Range(1, left).Draw(t, "amount"),
				})
			default: // a refund that was made fails
				for _, record := range r.refunds {
					if record.Payment != nil && record.Payment.State == licensing.PaymentDone {
						refund := *record.Payment
						refund.State = licensing.PaymentFailed
						if err := r.note(refund); err != nil {
							t.Fatal(err)
						}
						break
					}
				}
			}
			o, returned, pending := r.order.Order, int64(0), 0
			for _, record := range r.refunds {
				switch p := record.Payment; {
				case p == nil:
				case p.State == licensing.PaymentDone:
					returned += p.Amount
				case p.State == licensing.PaymentPending && licensing.OwnRefund(p.Reference):
					pending++
					if open, _ := o.OpenReturn(p.Reference); !open.Pending || open.Amount != p.Amount {
						t.Fatalf("the refund %+v is pending, and the order has %+v", p, o.OpenReturns())
					}
				}
			}
			due, sum := o.RefundsDue()
			if o.Returned != returned || r.further.Payment.Returned != returned || sum != 990-returned ||
				due != (sum > 0) || len(o.OpenReturns()) > 1+pending || due != (o.Due().Kind == licensing.DueRefund) {
				t.Fatalf("%d is back, and the order is %+v with %+v", returned, o, o.OpenReturns())
			}
		}
	})
}

// TestRequestReturn: the shop refunds an invoice in parts, one after the other, and no more than was paid with it.
func TestRequestReturn(t *testing.T) {
	order, _, end := subscribed(t)
	o := order.Order
	o.Invoices, o.Invoiced, o.PaidEnd = 1, 500, end
	r := &returning{order: order, refunds: map[string]*licensing.Record{}}
	r.further.Payment = &licensing.Payment{
		Kind: licensing.KindOfInvoice, Reference: "in_1", ProviderID: "pi_1", Amount: 500,
	}
	request := func(number string, amount int64) (licensing.Return, error) {
		result, err := licensing.Apply(&r.order, licensing.RequestReturn{
			By: byKey, Number: number, Amount: amount, Invoice: *r.further.Payment,
			Refunds: r.order.Order.InvoiceRefunds,
		}, noon)
		return result.Return(), err
	}
	refused := func(amount int64, reason licensing.Reason) {
		t.Helper()
		if _, err := request("ref_x", amount); licensing.ReasonOf(err) != reason {
			t.Errorf("a refund of %d: %v", amount, err)
		}
	}
	refused(501, licensing.ReasonInvalidField)
	part, err := request("ref_1", 200)
	if err != nil || part.Amount != 200 || part.By != byKey {
		t.Fatalf("%+v, %v", part, err)
	}
	refused(100, licensing.ReasonInvalidOrderState)
	refused(0, licensing.ReasonInvalidOrderState)
	as := r.order.Order.AsPaidWith(r.further.Payment, part)
	if as.Payment != "pi_1" || as.Refundable() != 300 || as.Refund().Amount != 200 || as.Refund().Reference != "ref_1" {
		t.Errorf("the provider is asked with %+v", as)
	}
	tried := must(t, &r.order, licensing.TryReturn{Number: "ref_1"}, noon).Return()
	again := must(t, &r.order, licensing.TryReturn{Number: "ref_1", Waiting: true}, noon).Return()
	if again.Number != "" {
		t.Errorf("a sweep asks again at once: %+v", again)
	}
	must(t, &r.order, licensing.WithdrawReturn{Return: part}, noon) // a refusal in answer to an earlier try
	if _, open := r.order.Order.OpenReturn("ref_1"); !open {
		t.Error("a late refusal withdraws a later try")
	}
	must(t, &r.order, licensing.WithdrawReturn{Return: tried}, noon)
	if _, open := r.order.Order.OpenReturn("ref_1"); open || r.order.Order.Due().Kind == licensing.DueRefund {
		t.Error("the refused refund is open")
	}
	rest, err := request("ref_2", 0)
	if err != nil || rest.Amount != 500 {
		t.Fatalf("%+v, %v", rest, err)
	}
	if same, err := request("ref_3", 0); err != nil || same.Number != "ref_2" {
		t.Errorf("the same request again: %+v, %v", same, err)
	}
	stale := licensing.RequestReturn{Number: "ref_4", Invoice: *r.further.Payment, Refunds: o.InvoiceRefunds}
	if err := r.note(rest.Refund(r.order.Order, r.further.Payment)); err != nil {
		t.Fatal(err)
	}
	if _, err := licensing.Apply(&r.order, stale, noon); !errors.Is(err, licensing.ErrInvoicesChanged) {
		t.Errorf("an invoice that was read before its refund: %v", err)
	}
	if done, err := request("ref_5", 0); err != nil || done.Number != "" {
		t.Errorf("after the refund: %+v, %v", done, err)
	}
	refused(1, licensing.ReasonInvalidField)
	r.further.Payment = &licensing.Payment{Kind: licensing.KindOfInvoice, Reference: "in_2", Amount: 500}
	many := *r.order.Order
	many.InvoiceRefunds = licensing.MaxInvoiceRefunds
	r.order.Order = &many
	refused(1, licensing.ReasonInvalidOrderState)
	many.InvoiceRefunds, many.Returns = 0, &[]licensing.Return{}
	for n := range 8 { // whatever is open of invoices, there is room for a second payment, and the other way round
		second := licensing.Payment{
			Provider: licensing.ProviderStripe, Reference: fmt.Sprint("pi_second_", n), Amount: 1,
		}
		must(t, &r.order, licensing.CountSecond{New: true, Payment: second}, noon)
		r.further.Payment = &licensing.Payment{
			Kind: licensing.KindOfInvoice, Reference: fmt.Sprint("in_", n), Amount: 9,
		}
		if _, err := request(fmt.Sprint("ref_in_", n), 1); err != nil {
			t.Error(n, err)
		}
	}
	r.further.Payment = &licensing.Payment{Kind: licensing.KindOfInvoice, Reference: "in_9", Amount: 500}
	refused(1, licensing.ReasonInvalidOrderState)
	r.order.Order.Returns = nil
	if due := r.order.Order.Due(); due.Kind == licensing.DueRefund || due.At.Before(noon.Add(-time.Hour)) {
		t.Errorf("due is %+v", due)
	}
}
