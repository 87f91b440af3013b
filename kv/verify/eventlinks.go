package verify

import (
	"time"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkFacts checks the events of one key: each has the data of its kind, and differs from the event before only in
// what can change.
func (v *eventChecks) checkFacts(events []licensing.Event, bad func(rule, format string, args ...any)) {
	for i := range events {
		e := &events[i]
		if !tellsItsKind(e) {
			bad("kind", "number %d is %s, and lacks the data of this type", e.Sequence, e.Type)
		}
		if i > 0 && contradicts(&events[i-1], e) {
			bad("contradicts", "number %d differs from the event before in a field that never changes", e.Sequence)
		}
	}
}

// followsOn compares the first event of a key with the last one of the key before it.
func followsOn(first *licensing.Event, bad func(rule, format string, args ...any)) func(*layout.Events) {
	return func(before *layout.Events) {
		if contradicts(&before.Events[len(before.Events)-1], first) {
			bad("contradicts", "number %d differs from the event before in a field that never changes",
				first.Sequence)
		}
	}
}

// tellsItsKind reports whether an event has the data that its kind demands.
func tellsItsKind(e *licensing.Event) bool {
	l, o := e.License, e.Order
	is := func(t time.Time) bool { return t.Equal(e.At) }
	ofDevice := false
	var fits bool
	switch e.Type {
	case licensing.EventOrderCreated:
		fits = o != nil && e.Sequence == 1
	case licensing.EventOrderPaid:
		// A payment may be recorded later than it was made. Only a shop may have been paid before the order.
		fits = o != nil && !o.PaidAt.IsZero() && !o.PaidAt.After(e.At) && !o.LicenseKey.IsZero() &&
			(e.Actor != licensing.Provider || !o.PaidAt.Before(o.CreatedAt))
	case licensing.EventOrderExpired:
		fits = o != nil && is(o.ExpiredAt)
	case licensing.EventOrderCanceled:
		fits = o != nil && is(o.CanceledAt)
	case licensing.EventOrderRefunded:
		fits = o != nil && is(o.RefundedAt)
	case licensing.EventOrderPaymentSucceeded, licensing.EventOrderSubscriptionChanged:
		fits = o != nil && o.SubscriptionStatus != ""
	case licensing.EventOrderPaymentFailed:
		fits = o != nil && o.SubscriptionStatus == licensing.SubscriptionPastDue
	case licensing.EventOrderDisputed:
		fits = o != nil && !o.PaidAt.IsZero() && len(e.Members) > 0
	case licensing.EventLicenseIssued:
		fits = l != nil && e.Sequence == 1
	case licensing.EventLicenseSuspended:
		fits = l != nil && is(l.SuspendedAt)
	case licensing.EventLicenseReinstated:
		fits = l != nil && l.SuspendedAt.IsZero()
	case licensing.EventLicenseRevoked:
		fits = l != nil && is(l.RevokedAt)
	case licensing.EventLicenseExpired:
		fits = l != nil && !l.ExpiresAt.IsZero()
	case licensing.EventLicenseRenewed, licensing.EventLicenseUpdated:
		fits = l != nil
	case licensing.EventLicenseUpgraded:
		fits = l != nil && l.OrderNo != ""
	case licensing.EventLicenseDeleted:
		fits = l != nil && l.OrderNo == ""
	case licensing.EventLicenseActivated:
		fits, ofDevice = l != nil && is(l.ActivatedAt), true
	case licensing.EventLicenseLimitReached, licensing.EventDeviceBound, licensing.EventDeviceRemoved,
		licensing.EventDeviceLeaseLapsed, licensing.EventDeviceChanged:
		fits, ofDevice = l != nil, true
	case licensing.EventBudgetWarning:
		fits = l == nil && o == nil && e.Webhook == nil && len(e.Members) > 0
	default:
		return true
	}
	return fits && ofDevice == (e.Device != nil)
}

// contradicts reports whether two consecutive events differ in a value that never changes, or that never changes
// once it is set.
func contradicts(before, e *licensing.Event) bool {
	lost := func(was, is time.Time) bool { return !was.IsZero() && !was.Equal(is) }
	if a, b := before.License, e.License; a != nil && b != nil {
		return a.Key != b.Key || otherProduct(before, e) ||
			a.OrderNo != b.OrderNo && e.Type != licensing.EventLicenseUpgraded || !a.CreatedAt.Equal(b.CreatedAt) ||
			lost(a.ActivatedAt, b.ActivatedAt) || lost(a.RevokedAt, b.RevokedAt)
	}
	if a, b := before.Order, e.Order; a != nil && b != nil {
		return a.ProductID != b.ProductID || a.Amount != b.Amount || a.Currency != b.Currency ||
			!a.CreatedAt.Equal(b.CreatedAt) || !a.ExpiresAt.Equal(b.ExpiresAt) || !a.LicenseKey.IsZero() &&
			a.LicenseKey != b.LicenseKey ||
			lost(a.PaidAt, b.PaidAt) || lost(a.CanceledAt, b.CanceledAt) || lost(a.RefundedAt, b.RefundedAt)
	}
	return false
}

// otherProduct reports whether two consecutive events of a license differ in the product, although no subscription has
// changed it.
func otherProduct(before, e *licensing.Event) bool {
	changes := e.Type == licensing.EventLicenseUpdated && e.License.OrderNo != ""
	return before.License.ProductID != e.License.ProductID && !changes
}
