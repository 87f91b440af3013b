package payment_test

import (
	"testing"

	"licet/node/service"
)

// TestPlanKeepsTerms: a change that keeps the product stores the product's terms. Another change may be recorded first
// that gives the license another product: then this one gives the product and its terms back, and not a license for any
// number of devices.
func TestPlanKeepsTerms(t *testing.T) {
	s := atStripe(t)
	o := s.subscribe()
	devices := s.license(o).MaxDevices
	now := s.plan(o, service.NewPlan{Amount: 5000, Later: true})
	if now.Next == nil || devices == 0 || now.Next.Terms.MaxDevices != devices {
		t.Errorf("the license is for %d devices, and the planned change has %+v", devices, now.Next)
	}
}
