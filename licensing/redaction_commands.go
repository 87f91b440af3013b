package licensing

import "time"

// A buyer may ask a shop to delete personal data. A redaction removes the texts that the shop has stored about the
// buyer. The facts of the sale, the payment and the activations stay. See docs/guides/personal-data.md. A redaction
// records no event: it changes nothing that events contain.

// RedactOrder removes the e-mail address, the description, the metadata and the reason from a buyer's
// order, in any state. If the order is another buyer's, or was redacted before, it returns
// ErrOrderNotFound.
type RedactOrder struct {
	BuyerEmail string // letter case does not matter
	// LicenseKey is the order's license key, empty if it has none: the same transaction redacts the
	// license, since no search finds it by the buyer afterward. If the order has another license key
	// by now, nothing is changed, and the result holds the key.
	LicenseKey LicenseKey
}

// DeviceID is empty: no device is touched.
func (RedactOrder) DeviceID() string { return "" }

func (RedactOrder) growth(*Record, time.Time) Growth { return NoGrowth }

func (c RedactOrder) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existingOrder(r)
	switch {
	case err != nil:
		return Result{}, err
	case o.BuyerEmail == "" || FoldEmail(o.BuyerEmail) != FoldEmail(c.BuyerEmail):
		return Result{}, ErrOrderNotFound
	case o.LicenseKey == c.LicenseKey:
		o.BuyerEmail, o.Description, o.Metadata, o.StateReason, r.Changed = "", "", "", "", true
	}
	return Result{order: new(*o)}, nil
}

// RedactLicense removes the metadata, the customer and the reasons from a license, and the components of its devices,
// in any state. It keeps DisputeReason, which tells nothing about the buyer: HoldLicense ends only suspensions for it.
type RedactLicense struct {
	Target
	// Of, if set, demands that the license itself names this customer. If the license names another customer, or was
	// redacted before, the command returns ErrLicenseNotFound.
	Of Customer
}

// DeviceID is empty: no device is touched.
func (RedactLicense) DeviceID() string { return "" }

func (RedactLicense) growth(*Record, time.Time) Growth { return NoGrowth }

func (c RedactLicense) apply(r *Record, _ time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	m := *r.Metadata
	if !m.Has(c.Of) {
		return Result{}, ErrLicenseNotFound
	}
	if m.Object, m.ReissueReason, m.Customer = "", "", (Customer{}); m != *r.Metadata {
		m.Changed, r.Changed = true, true
		*r.Metadata = m
	}
	if l.StateReason != "" && l.StateReason != DisputeReason {
		l.StateReason, r.Changed = "", true
	}
	r.dropComponents()
	return Result{License: *l}, nil
}
