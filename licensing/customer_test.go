package licensing_test

import (
	"testing"

	"licet/licensing"
)

// TestCustomer sets, changes, removes and redacts the customer of a license.
func TestCustomer(t *testing.T) {
	ada, bob := "Ada@example.com", "bob@example.com"
	reference, none := "C-1", ""
	r := licensed(func(l *licensing.License) { l.OrderNo = "" })
	r.Metadata = &licensing.Metadata{Object: `{"a":1}`}
	for _, c := range []struct {
		name    string
		command licensing.UpdateLicense
		want    licensing.Customer
		growth  licensing.Growth
	}{
		{"set", licensing.UpdateLicense{BuyerEmail: &ada, CustomerReference: &reference},
			licensing.Customer{BuyerEmail: ada, Reference: reference}, licensing.OrdinaryGrowth},
		{"set again", licensing.UpdateLicense{BuyerEmail: &ada},
			licensing.Customer{BuyerEmail: ada, Reference: reference}, licensing.NoGrowth},
		{"change", licensing.UpdateLicense{BuyerEmail: &bob}, licensing.Customer{BuyerEmail: bob, Reference: reference},
			licensing.Replacement},
		{"remove", licensing.UpdateLicense{BuyerEmail: &none}, licensing.Customer{Reference: reference},
			licensing.Replacement},
		{"other changes", licensing.UpdateLicense{Metadata: `{"a":2}`}, licensing.Customer{Reference: reference},
			licensing.Replacement},
		{"set the buyer again", licensing.UpdateLicense{BuyerEmail: &ada},
			licensing.Customer{BuyerEmail: ada, Reference: reference}, licensing.OrdinaryGrowth},
	} {
		c.command.Target, r.Metadata.Changed, r.Events = ours, false, nil
		if got := licensing.GrowthOf(c.command, &r, noon); got != c.growth {
			t.Errorf("%s: growth %d, want %d", c.name, got, c.growth)
		}
		must(t, &r, c.command, noon)
		changes := c.growth != licensing.NoGrowth
		if r.Metadata.Customer != c.want || r.Metadata.Changed != changes || len(r.Events) > 0 != changes {
			t.Errorf("%s: %+v, events %v", c.name, r.Metadata, r.Events)
		}
	}
	refuses(t, &r, licensing.RedactLicense{Target: ours, Of: licensing.Customer{BuyerEmail: bob}}, noon,
		licensing.ReasonLicenseNotFound)
	must(t, &r, licensing.RedactLicense{Target: ours, Of: licensing.Customer{BuyerEmail: "ADA@example.com"}}, noon)
	if *r.Metadata != (licensing.Metadata{Changed: true}) {
		t.Errorf("after the redaction: %+v", r.Metadata)
	}
	refuses(t, &r, licensing.RedactLicense{Target: ours, Of: licensing.Customer{BuyerEmail: ada}}, noon,
		licensing.ReasonLicenseNotFound)
}

// TestCustomerOfOrder sets the customer of a license whose order names the buyer.
func TestCustomerOfOrder(t *testing.T) {
	address, reference, none := "ada@example.com", "C-1", ""
	r := licensed(func(l *licensing.License) { l.OrderNo = "ord_1" })
	r.Metadata = &licensing.Metadata{}
	refuses(t, &r, licensing.UpdateLicense{Target: ours, BuyerEmail: &address, CustomerReference: &reference}, noon,
		licensing.ReasonInvalidField)
	must(t, &r, licensing.UpdateLicense{Target: ours, BuyerEmail: &none, CustomerReference: &reference}, noon)
	if r.Metadata.Customer != (licensing.Customer{Reference: reference}) {
		t.Errorf("the customer is %+v", r.Metadata.Customer)
	}
	must(t, &r, licensing.RedactLicense{Target: ours}, noon)
	if r.Metadata.Customer != (licensing.Customer{}) {
		t.Errorf("the customer after the redaction of the order is %+v", r.Metadata.Customer)
	}
}
