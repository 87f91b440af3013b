package licensing_test

import (
	"errors"
	"testing"
	"time"

	"licet/licensing"
)

// TestInvoiceRefund: a refund of an invoice goes forward only, from pending to done to failed, and counts while it is
// done. The license has the end that the invoices give, and never ends before the end that the shop has set.
func TestInvoiceRefund(t *testing.T) {
	order, license, end := subscribed(t)
	order.Order.Invoices, order.Order.Invoiced, order.Order.PaidEnd = 1, 500, end.AddDate(0, 1, 0)
	license.License.ExpiresAt = order.Order.PaidEnd
	invoice := licensing.Record{Payment: &licensing.Payment{
		Kind: licensing.KindOfInvoice, Reference: "in_1", Amount: 500, PeriodEnd: order.Order.PaidEnd,
	}}
	first := licensing.Payment{Reference: "pi_0", PeriodEnd: end}
	refund := licensing.Record{}
	f := func(state licensing.PaymentState, returned int64, paidEnd, expires time.Time) {
		t.Helper()
		noted := must(t, &refund, licensing.NoteInvoiceRefund{
			Refund: licensing.Payment{Reference: "re_1", Amount: 500, State: state},
		}, noon)
		must(t, &invoice, licensing.RefundInvoice{Back: noted.Back()}, noon)
		from := order.Order.PaidEnd
		must(t, &order, licensing.CountInvoiceRefund{
			Back: noted.Back(), Invoices: 1, Refunds: order.Order.InvoiceRefunds,
			PaidEnd: order.Order.PaidEndOf([]licensing.Payment{first, *invoice.Payment}, ""),
		}, noon)
		must(t, &license, licensing.ReturnPeriod{From: from, To: order.Order.PaidEnd}, noon)
		if o := order.Order; o.Returned != returned || invoice.Payment.Returned != returned ||
			!o.PaidEnd.Equal(paidEnd) || !license.License.ExpiresAt.Equal(expires) {
			t.Errorf("%q: %d has gone back, paid until %s, the license ends at %s", state, o.Returned, o.PaidEnd,
				license.License.ExpiresAt)
		}
	}
	later := order.Order.PaidEnd
	f(licensing.PaymentPending, 0, later, later)
	f(licensing.PaymentDone, 500, end, end)
	for _, state := range []licensing.PaymentState{licensing.PaymentPending, licensing.PaymentDone} {
		_, err := licensing.Apply(&refund, licensing.NoteInvoiceRefund{Refund: licensing.Payment{State: state}}, noon)
		if !errors.Is(err, licensing.ErrRefundClosed) {
			t.Errorf("an older answer, %q: %v", state, err)
		}
	}
	f(licensing.PaymentFailed, 0, later, later)
	_, err := licensing.Apply(&order, licensing.CountInvoiceRefund{Invoices: 2}, noon)
	if !errors.Is(err, licensing.ErrInvoicesChanged) {
		t.Errorf("another invoice meanwhile: %v", err)
	}
	if _, err := licensing.Apply(&invoice, licensing.RefundInvoice{Back: 501}, noon); !errors.Is(err,
		licensing.ErrRefundMisfit) {
		t.Errorf("more than was paid: %v", err)
	}
	must(t, &license, licensing.RenewLicense{Target: licensing.Target{Key: shopKey}, ExpiresAt: end.AddDate(0, 0, 5)},
		noon)
	must(t, &license, licensing.ReturnPeriod{From: end, To: noon}, noon)
	if !license.License.ExpiresAt.Equal(end.AddDate(0, 0, 5)) {
		t.Errorf("the license ends at %s", license.License.ExpiresAt)
	}
}
