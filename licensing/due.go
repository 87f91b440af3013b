package licensing

import "time"

// DueKind is what is to happen to a record by itself, without anybody asking.
type DueKind byte

// The kinds of what may be due.
const (
	DueLicenseEnd DueKind = iota + 1 // it is to be recorded that a license's end has come, see ExpireLicense
	DueOrderEnd                      // that an order's has, see ExpireOrder
	DueRefund                        // the provider is to be asked to send an order's money back, see TryRefund
)

// Due is what is to happen to a record next, and from which moment on. The zero
// Due stands for nothing. It follows from the facts alone, so that whoever looks
// after it can find it by time, and knows from the record what has become of it.
type Due struct {
	Kind DueKind
	At   time.Time // the zero time: at once
}

// Due tells what is due of a license: its end, until that is recorded. A license
// that was revoked ends no more.
func (l *License) Due() Due {
	if l.ExpiresAt.IsZero() || !l.RevokedAt.IsZero() || l.EndRecorded.Equal(l.ExpiresAt) {
		return Due{}
	}
	return Due{Kind: DueLicenseEnd, At: l.ExpiresAt}
}

// Due tells what is due of an order: its end, while it is unpaid and until that
// is recorded, or its refund.
func (o *Order) Due() Due {
	switch {
	case o.RefundDue:
		return Due{Kind: DueRefund, At: o.RefundRetryAt}
	case o.PaidAt.IsZero() && o.CanceledAt.IsZero() && o.RefundedAt.IsZero() && o.ExpiredAt.IsZero():
		return Due{Kind: DueOrderEnd, At: o.ExpiresAt}
	default:
		return Due{}
	}
}
