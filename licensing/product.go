package licensing

import (
	"time"
)

// Product contains the terms of the licenses that are issued for it. A change of a product affects only
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
	// Version names the terms that a license does not contain itself, see [VersionedTerms].
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

// PutProduct creates or replaces a product. It replaces everything but CreatedAt and Rollout.
type PutProduct struct {
	ID    string
	Owner Owner
	Name  string
	Terms Terms // without Version, which follows from Entitlements

	Entitlements      Entitlements
	Trial             TrialTerms // without Version, which follows from TrialEntitlements
	TrialEntitlements Entitlements
	Billing           Billing
	Metadata          string
}

// DeviceID is empty: no device is touched.
func (PutProduct) DeviceID() string { return "" }

func (c PutProduct) growth(r *Record, _ time.Time) Growth {
	if r.Product == nil {
		return OrdinaryGrowth
	}
	if len(c.newTerms(r.Product)) > 0 {
		return OrdinaryGrowth // the store keeps the earlier versions, which licenses may have
	}
	// The other terms of all products have about the same size.
	return growthFrom(len(r.Product.Name)+len(r.Product.Metadata), len(c.Name)+len(c.Metadata))
}

func (c PutProduct) apply(r *Record, now time.Time) (Result, error) {
	before := r.Product
	next := &Product{ID: c.ID, Owner: c.Owner, Name: c.Name, Terms: c.Terms, Entitlements: c.Entitlements,
		Trial: c.Trial, TrialEntitlements: c.TrialEntitlements, Billing: c.Billing, Metadata: c.Metadata,
		CreatedAt: now}
	next.Terms.Version, next.Trial.Version = c.Entitlements.Version(), c.TrialEntitlements.Version()
	if before != nil {
		next.CreatedAt, next.Rollout = before.CreatedAt, before.Rollout
	}
	if before == nil || *before != *next {
		r.Product, r.Changed, r.NewTerms = next, true, c.newTerms(before)
	}
	return Result{Product: r.Product, Created: before == nil}, nil
}

// newTerms returns the terms that the product did not have before.
func (c PutProduct) newTerms(before *Product) []VersionedTerms {
	var terms []VersionedTerms
	add := func(e, had Entitlements) {
		if e != "" && (before == nil || e != had) {
			terms = append(terms, VersionedTerms{Entitlements: e})
		}
	}
	if before == nil {
		before = &Product{}
	}
	add(c.Entitlements, before.Entitlements)
	if c.TrialEntitlements != c.Entitlements {
		add(c.TrialEntitlements, before.TrialEntitlements)
	}
	return terms
}

// DeleteProduct deletes a product. Licenses that were issued for the product, and its unpaid orders,
// keep their terms. A rollout of the product ends.
type DeleteProduct struct{}

// DeviceID is empty: no device is touched.
func (DeleteProduct) DeviceID() string { return "" }

func (DeleteProduct) growth(*Record, time.Time) Growth { return NoGrowth }

func (DeleteProduct) apply(r *Record, _ time.Time) (Result, error) {
	if r.Product == nil {
		return Result{}, ErrProductNotFound
	}
	gone := r.Product
	r.Product, r.Changed = nil, true
	return Result{Product: gone}, nil
}
