package payment_test

import (
	"testing"

	"licet/node/service"
)

// TestPlanNowWithoutCallbacks: the invoice of a change at once is recorded with the change, although no callback about
// the invoice comes.
func TestPlanNowWithoutCallbacks(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	now := s.plan(o, service.NewPlan{Amount: o.Amount + 2000})
	kept := s.fake.Kept(o.OrderNo)
	if now.Invoices != 1 || kept != o.Amount+now.Invoiced || kept == o.Amount {
		t.Errorf("the buyer has paid %d, and the order has %d invoices of %d", kept, now.Invoices, now.Invoiced)
	}
	s.verify()
}
