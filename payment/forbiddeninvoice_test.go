package payment_test

import (
	"errors"
	"testing"
	"time"

	"licet/licensing"
	"licet/payment"
)

// TestForbiddenInvoice: while the key may not read invoices, Stripe must repeat the callbacks about the refund and the
// dispute of a renewal, and the sweep passes both. Later refunds are found, and so are these once the key may.
func TestForbiddenInvoice(t *testing.T) {
	s := atStripe(t)
	o, other := s.subscribe(), s.sold()
	s.advance(31 * 24 * time.Hour)
	ledger := s.fake.Ledger()
	renewal := ledger[len(ledger)-1].Payment
	s.fake.Forbid(fakeKey, "/v1/invoice_payments")
	refund, err := s.fake.RefundInDashboard(renewal, 100)
	if err != nil {
		t.Fatal(err)
	}
	dispute, err := s.fake.Dispute(o.Payment)
	if err == nil {
		_, err = s.fake.RefundInDashboard(other.Payment, 40)
	}
	if err != nil {
		t.Fatal(err)
	}
	objects := []payment.Object{
		{Kind: payment.ObjectRefund, ID: refund}, {Kind: payment.ObjectDispute, ID: dispute},
	}
	for _, object := range objects {
		err := s.desk.Called(s.ctx, owner, object)
		if licensing.ReasonOf(err) != licensing.ReasonProviderFailed || !errors.Is(err, payment.ErrForbidden) {
			t.Errorf("the callback about %s: %v", object.ID, err)
		}
	}
	s.advance(6 * time.Minute)
	s.sweep([]payment.EventSource{{Owner: owner}}, s.desk, s.other)
	if now := s.order(other); now.Refunded != 40 {
		t.Errorf("the refund of another order is not found: %+v", now)
	}
	if ids := s.again(owner); len(ids) != 0 {
		t.Errorf("the nodes ask again about %v", ids)
	}
	s.fake.Allow(fakeKey, "/v1/invoice_payments")
	for _, object := range objects {
		s.fixtureCalled(object)
	}
	if now := s.order(o); now.Returned != 100 || now.DisputeAskAt.IsZero() {
		t.Errorf("once the key may read invoices: %+v", now)
	}
	s.verify()
}
