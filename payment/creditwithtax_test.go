package payment_test

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/payment"
	"licet/payment/stripe"
)

// TestCreditWithTax: a credit from a change to a lower amount includes tax. Of the next invoice, the record has the
// part of the price that the buyer still pays.
func TestCreditWithTax(t *testing.T) {
	s := atStripe(t, func(c *stripe.Config) { c.AutomaticTax = true })
	o := s.subscribe()
	first := s.fake.Kept(o.OrderNo)
	s.plan(o, service.NewPlan{Amount: 500})
	s.advance(32 * 24 * time.Hour)
	s.calledAboutInvoices()
	due := s.fake.Kept(o.OrderNo) - first // of 600 with tax, less the credit of nearly 480
	if want := payment.Share(500, 600, due); due <= 0 || due > 300 || s.order(o).Invoiced != want {
		t.Errorf("the buyer has paid %d with tax, and recorded is %d, want %d", due, s.order(o).Invoiced, want)
	}
	s.verify()
}

// TestProrationInWholeUnits: the difference of a change in a currency without parts is recorded in whole units.
func TestProrationInWholeUnits(t *testing.T) {
	for currency, parts := range map[string]int64{"ISK": 100, "KWD": 1} {
		t.Run(currency, func(t *testing.T) {
			s := atStripe(t)
			o := s.subscribeIn(currency)
			s.advance(10*24*time.Hour + time.Hour)
			now := s.plan(o, service.NewPlan{Amount: 3000})
			s.calledAboutInvoices()
			charged := s.fake.Kept(o.OrderNo) - o.Amount*parts
			now = s.order(now)
			if off := now.Invoiced*parts - charged; now.Invoiced <= 0 || off < -50 || off > 50 ||
				currency == "KWD" && now.Invoiced%10 != 0 {
				t.Errorf("%s: Stripe has charged %d, and recorded is %d", currency, charged, now.Invoiced)
			}
			if _, pays := now.Pays(); pays != 3000 || now.Change != (licensing.SubscriptionChange{}) {
				t.Errorf("%s: %+v", currency, now)
			}
			s.verify()
		})
	}
}
