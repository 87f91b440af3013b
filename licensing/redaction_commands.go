package licensing

import "time"

// A buyer may ask a shop to forget them. What is removed is what the shop has
// written down about the buyer in its own words; what was sold, paid and activated
// stays, so that all else goes on as before. See docs/guides/personal-data.md. It is no event
// of the order or the license: nothing changes that events tell of.

// RedactOrder removes the e-mail address, the description, the metadata and the
// reason from an order of a buyer, in any state. An order that is not the buyer's,
// or is no longer since it was redacted before, is ErrOrderNotFound.
type RedactOrder struct {
	BuyerEmail string // in any case
	// LicenseKey is the order's, empty if it has none: the license is redacted in
	// the same transaction, since nobody finds it by the buyer afterwards. Where the
	// order has got a license meanwhile, nothing is changed; the answer tells which.
	LicenseKey LicenseKey
}

// DeviceID is empty: no device is touched.
func (RedactOrder) DeviceID() string { return "" }

func (c RedactOrder) apply(r *Record, _ time.Time) (Result, error) {
	o, err := existing(r)
	switch {
	case err != nil:
		return Result{}, err
	case o.BuyerEmail == "" || FoldEmail(o.BuyerEmail) != FoldEmail(c.BuyerEmail):
		return Result{}, ErrOrderNotFound
	case o.LicenseKey == c.LicenseKey:
		o.BuyerEmail, o.Description, o.Metadata, o.StateReason, r.Changed = "", "", "", "", true
	}
	return Result{Order: *o}, nil
}

// RedactLicense removes the metadata and the reason from a license, in any state.
type RedactLicense struct{ Target }

// DeviceID is empty: no device is touched.
func (RedactLicense) DeviceID() string { return "" }

func (c RedactLicense) apply(r *Record, _ time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	if r.Metadata.Object != "" {
		r.Metadata.Object, r.Metadata.Changed, r.Changed = "", true, true
	}
	if l.StateReason != "" {
		l.StateReason, r.Changed = "", true
	}
	return Result{License: *l}, nil
}
