package licensing

import "time"

// Product holds the terms of the licenses that are issued for it. A change of a product affects only
// licenses that are issued later, until a rollout applies the terms to earlier licenses.
type Product struct {
	ID    string
	Owner Owner
	Name  string
	Terms Terms
	// Entitlements of the licenses. Terms.Version names them.
	Entitlements Entitlements
	Trial        TrialTerms
	// TrialEntitlements of trials. Trial.Version names them.
	TrialEntitlements Entitlements
	Billing           Billing
	Metadata          string // a compact JSON object, or empty
	CreatedAt         time.Time
	Rollout           Rollout // the latest rollout of its terms
}

// Terms are the settings of a new license.
type Terms struct {
	KeyPrefix  string
	MaxDevices int    // 0: unlimited
	Validity   Period // zero: perpetual
	// FromActivation reports whether Validity starts at the first activation, and not at issue.
	FromActivation bool
	SelfService    SelfService
	Lease          LeaseTerms
	InactiveAfter  Period      // see License; only without leases
	Match          DeviceMatch // only without leases
	Grace          Period      // after the end of a license; zero: none
	Receipts       ReceiptTerms
	// Version names the terms that a license does not hold itself, see [VersionedTerms].
	Version TermsVersion
}

// SelfService says whether end users may remove devices themselves.
type SelfService struct {
	Allowed bool
	// RemovalsPerMonth limits the removals in a calendar month of UTC; 0: unlimited.
	RemovalsPerMonth int
}

// DefaultTerms returns the terms of a product without a description: three devices, perpetual.
func DefaultTerms() Terms { return Terms{KeyPrefix: "LIC", MaxDevices: 3} }

// Issue returns a new license with these terms. The key must have the terms' prefix. orderNo is empty
// for a grant.
func (t Terms) Issue(key LicenseKey, owner Owner, productID, orderNo string, now time.Time) *License {
	l := &License{
		Key:         key,
		Owner:       owner,
		ProductID:   productID,
		OrderNo:     orderNo,
		MaxDevices:  t.MaxDevices,
		SelfService: t.SelfService,
		Lease:       t.Lease,
		Grace:       t.Grace,
		Terms:       t.Version,
		CreatedAt:   now,

		InactiveAfter: t.InactiveAfter,
		Match:         t.Match,
		Receipts:      t.Receipts,
	}
	switch {
	case t.Validity.IsZero():
	case t.FromActivation:
		l.Validity = t.Validity
	default:
		l.ExpiresAt = t.Validity.AddTo(now)
	}
	return l
}
