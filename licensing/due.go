package licensing

import "time"

// DueKind is a kind of work that a record needs at some time without a request.
type DueKind byte

// The kinds of due work.
const (
	DueLicenseEnd    DueKind = iota + 1 // record the end of a license, see ExpireLicense
	DueOrderEnd                         // record the end of an order, see ExpireOrder
	DueRefund                           // ask the payment provider for a refund, see TryRefund
	DueRollout                          // continue a rollout of a product, see AdvanceRollout
	DueLeases                           // remove lapsed leases of a license, see LapseLeases
	DueTrial                            // forget the trial of a license, see ForgetTrial
	DueLicenseNotice                    // record the next notice of a license, its end, or the end of its grace
	DueCheckout                         // ask the payment provider about a checkout, subscription or disputes
	DueIssue                            // issue the other licenses of a paid order, see IssueLicenses
	DueSandbox                          // ask the sandbox about the subscription of an order
)

// Due is the next work that a record needs, and its time. The zero Due is no work. Due follows from
// the record alone, so a sweep finds the work by time, and reads from the record whether the work was
// done.
type Due struct {
	Kind DueKind
	At   time.Time // the zero time: at once
}

// Due returns the earliest of these: the next notice or the end of the license or of its grace, the first possible end
// of its leases, and when its trial is forgotten.
func (l *License) Due() Due { return l.endDue().or(l.leasesDue()).or(l.trialDue()) }

// or returns the earlier of two works, and the first one of two at a time.
func (d Due) or(other Due) Due {
	if d.Kind == 0 || other.Kind != 0 && other.At.Before(d.At) {
		return other
	}
	return d
}

// endDue returns the end of the license until the end is recorded: as DueLicenseEnd, so that a sweep finds the licenses
// whose notices it has not planned. After that, endDue returns the next notice, the end, or the end of the grace.
func (l *License) endDue() Due {
	switch {
	case l.awaitsGraceEnd():
		return Due{Kind: DueLicenseNotice, At: l.GraceEndsAt()}
	case !l.awaitsEnd():
		return Due{}
	case l.planned():
		return Due{Kind: DueLicenseNotice, At: l.noticeAt(l.Notice.Day)}
	}
	return Due{Kind: DueLicenseEnd, At: l.ExpiresAt}
}

// Due returns when any node may continue the product's rollout, until the rollout has ended.
func (p *Product) Due() Due {
	if !p.Rollout.UnderWay() {
		return Due{}
	}
	return Due{Kind: DueRollout, At: p.Rollout.NextAt}
}

// Due returns the earliest of these: the refunds of the order that are due, the issue of its other licenses until all
// are issued, the end of an unpaid order until the end is recorded, and when a sweep asks about its checkout or
// subscription.
func (o *Order) Due() Due { return o.paymentDue().or(o.returnsDue()) }

// paymentDue is Due without the refunds of further payments.
func (o *Order) paymentDue() (due Due) {
	if o.RefundDue {
		due = Due{Kind: DueRefund, At: o.RefundRetryAt}
	}
	switch {
	case o.Issuing():
		due = due.or(Due{Kind: DueIssue})
	case o.awaitsEnd():
		due = due.or(Due{Kind: DueOrderEnd, At: o.ExpiresAt})
	}
	return due.or(o.checkoutDue())
}

// awaitsEnd reports whether the end of an unpaid order is not recorded yet.
func (o *Order) awaitsEnd() bool {
	return o.PaidAt.IsZero() && o.CanceledAt.IsZero() && o.RefundedAt.IsZero() && o.ExpiredAt.IsZero()
}
