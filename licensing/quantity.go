package licensing

import "time"

// MaxQuantity is the greatest number of licenses of one order, and of one grant.
const MaxQuantity = 1000

// SizeOfLicenses returns about how much the licenses of an order take, which is more than most take.
func SizeOfLicenses(n int) Size { return Size{Bytes: 512 * int64(n), Keys: 3 * int64(n)} }

// KeySeed is what the keys of many licenses derive from, together with the id key of the store. So a node that
// continues the issue of these licenses makes the same keys.
type KeySeed [32]byte

// Licenses returns how many licenses the order is for.
func (o *Order) Licenses() int { return max(o.Quantity, 1) }

// Issued returns how many licenses the order has.
func (o *Order) Issued() int {
	switch {
	case o.LicenseKey.IsZero():
		return 0
	case o.Quantity > 1:
		return o.LicensesIssued
	}
	return 1
}

// Issuing reports whether the order is paid, and some of its licenses are still to be issued; see IssueLicenses. A
// refund that is due stops the issue.
func (o *Order) Issuing() bool {
	return !o.LicenseKey.IsZero() && o.RefundedAt.IsZero() && !o.RefundDue && o.LicensesIssued < o.Quantity
}

// IssueLicenses issues the next licenses of a paid order. It is a no-op if the order has other licenses than From says,
// since another node was first, or if the issue was stopped: so it may be repeated. It is also a no-op if an earlier
// command in the same transaction has issued licenses: a transaction has room for only some.
type IssueLicenses struct {
	From int          // how many licenses the order has
	Keys []LicenseKey // of the next licenses, see keyring.LicenseKeys.OrderKey
}

// DeviceID is empty: no device is touched.
func (IssueLicenses) DeviceID() string { return "" }

func (IssueLicenses) growth(*Record, time.Time) Growth { return RequiredGrowth }

func (c IssueLicenses) apply(r *Record, now time.Time) (Result, error) {
	o, err := existingOrder(r)
	if err != nil {
		return Result{}, err
	}
	if o.Issuing() && o.LicensesIssued == c.From && len(r.Issued) == 0 {
		keys := c.Keys[:min(len(c.Keys), o.Quantity-o.LicensesIssued)]
		o.LicensesIssued += len(keys)
		r.issue(o.Terms, System, now, keys...)
	}
	return Result{order: new(*o)}, nil
}

// issue issues licenses of the record's order.
func (r *Record) issue(terms Terms, by Actor, now time.Time, keys ...LicenseKey) {
	o := r.Order
	for _, key := range keys {
		l := terms.Issue(key, o.Owner, o.ProductID, o.OrderNo, now)
		if !o.PaidEnd.IsZero() {
			l.Validity, l.ExpiresAt = Period{}, o.PaidUntil(o.PaidEnd)
		}
		r.Issued = append(r.Issued, l)
		r.recordLicense(l, EventLicenseIssued, by, now, nil)
	}
}
