package licensing

import "time"

// Product sets the terms of the licenses that are issued for it. A change of
// a product touches only licenses issued later.
type Product struct {
	ID        string
	Owner     Owner
	Name      string
	Terms     Terms
	Metadata  string // a compact JSON object, or empty
	CreatedAt time.Time
}

// Terms is what a license is issued with.
type Terms struct {
	KeyPrefix  string
	MaxDevices int    // 0: unlimited
	Validity   Period // zero: perpetual
	// FromActivation tells whether Validity runs from the first activation
	// instead of from issue.
	FromActivation bool
	SelfService    SelfService
}

// SelfService says whether end users may remove devices by themselves.
type SelfService struct {
	Allowed bool
	// RemovalsPerMonth bounds how many they may remove in a calendar month of
	// UTC; 0: any number.
	RemovalsPerMonth int
}

// DefaultTerms are those of a product that nobody has described: three
// devices, perpetual.
func DefaultTerms() Terms { return Terms{KeyPrefix: "LIC", MaxDevices: 3} }

// Issue makes the license that these terms stand for. The key must have been
// minted with the terms' prefix; orderNo is empty for a grant.
func (t Terms) Issue(key LicenseKey, owner Owner, productID, orderNo string, now time.Time) *License {
	l := &License{
		Key:         key,
		Owner:       owner,
		ProductID:   productID,
		OrderNo:     orderNo,
		MaxDevices:  t.MaxDevices,
		SelfService: t.SelfService,
		CreatedAt:   now,
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
