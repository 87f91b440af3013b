package licensing

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Status is the state of a license at one moment. It is never stored: it follows from the facts and
// the time.
type Status string

// The license states.
const (
	NotActivated Status = "not_activated"
	Activated    Status = "activated"
	Expired      Status = "expired"
	Revoked      Status = "revoked"
	Suspended    Status = "suspended"
)

// Statuses lists the license states.
func Statuses() []Status { return []Status{NotActivated, Activated, Expired, Revoked, Suspended} }

// License contains the facts of one license, except its devices. A zero time or an empty string means
// that the fact does not apply.
type License struct {
	Key       LicenseKey
	Owner     Owner
	ProductID string
	OrderNo   string // empty for a license granted without an order

	MaxDevices     int // 0: unlimited
	CurrentDevices int
	// AllowedOver is the number of bound devices when MaxDevices was lowered below that number: bound
	// devices stay bound, and no new device can be bound. It is 0 if the number is within MaxDevices.
	AllowedOver int

	// Validity, if set, starts at the first activation, which sets ExpiresAt and clears Validity.
	Validity Period

	CreatedAt   time.Time
	ActivatedAt time.Time // the first activation ever; never cleared
	ExpiresAt   time.Time // zero: no expiry
	// SetEnd is the end that the shop has set last, of a license with an order; see ReturnPeriod. Zero: none.
	SetEnd      time.Time
	SuspendedAt time.Time
	RevokedAt   time.Time
	// StateReason is the shop's reason for the suspension or revocation; empty in any other state, or
	// if the shop gave none.
	StateReason string

	SelfService SelfService  // from the terms when the license was issued
	Lease       LeaseTerms   // from the terms when the license was issued
	Removals    Removals     // by end users, if SelfService limits them
	Reissues    Reissues     // the keys after Key, which the id is made of
	Terms       TermsVersion // of its product, when the license was issued; 0: none
	// InactiveAfter is how long a device must be unseen before an activation of the full license may remove it; zero:
	// no device is removed.
	InactiveAfter Period
	Match         DeviceMatch // which unknown devices are bound devices that have changed
	Changes       Removals    // of devices, if Match allows any
	// OwnEntitlements is the version of the license's own entitlements, which its Metadata contains; 0: none.
	OwnEntitlements TermsVersion
	// EndRecorded is the ExpiresAt that a sweep has recorded as past; zero if the current end is not
	// recorded. A license with a recorded end is expired for every clock, also for a clock that was set back.
	// A renewal clears EndRecorded, and the license ends again.
	EndRecorded time.Time

	Grace Period // from the terms when the license was issued: after ExpiresAt, devices go on; zero: none
	// GraceRecorded is the end of the grace that a sweep has recorded as past; see EndRecorded.
	GraceRecorded time.Time
	Notice        Notice // of the next EventLicenseExpiring

	// LeaseClock is the latest time by which leases were given, renewed or removed, or inactive devices looked for; it
	// never goes back. See leaseClockAt.
	LeaseClock time.Time
	// LeasesUntil is a time before which no lease ends; zero: there are no leases.
	LeasesUntil time.Time
	// SeenFrom is a time before which no bound device was last seen; zero: CreatedAt is one.
	SeenFrom time.Time

	Receipts ReceiptTerms // from the terms when the license was issued
	// ReceiptsUntil is the first day on which no device accepts a receipt of the license any more; 0: no receipt was
	// issued.
	ReceiptsUntil ReceiptDay
	Revocations   RevocationCount // on the latest day on which a device's receipts were voided
	Revision      uint64          // rises with each change that receipts of the license show; 0: no receipt was issued

	Trial TrialName // zero: it was never one, or is not remembered any more
	// UpgradedAt is when an order has made the trial a paid license, or when the subscription has changed the product
	// last; zero: neither has happened.
	UpgradedAt time.Time

	Sequence        uint64    // of its latest event; 0: none
	LimitReportedAt time.Time // the latest EventLicenseLimitReached
}

// Status returns the license's state at now: the first that applies of revoked, suspended, expired,
// activated, not_activated.
func (l *License) Status(now time.Time) Status {
	switch {
	case !l.RevokedAt.IsZero():
		return Revoked
	case !l.SuspendedAt.IsZero():
		return Suspended
	case l.endRecorded(), !l.ExpiresAt.IsZero() && !l.ExpiresAt.After(now):
		return Expired
	case l.CurrentDevices > 0:
		return Activated
	default:
		return NotActivated
	}
}

// endRecorded reports whether a sweep has recorded the current end of the license as past.
func (l *License) endRecorded() bool {
	return !l.ExpiresAt.IsZero() && l.EndRecorded.Equal(l.ExpiresAt)
}

// full reports whether every device slot is taken.
func (l *License) full() bool { return l.MaxDevices != 0 && l.CurrentDevices >= l.MaxDevices }

// Device is one device bound to a license.
type Device struct {
	ID         string
	Name       string
	Named      bool // false: the device never got a name; the API returns null
	BoundAt    time.Time
	LastSeenAt time.Time // updated at coarse steps, see Activate.SeenStep
	LeaseEnd   time.Time // zero: bound until it is removed
	Components Components
}

// DeviceEntry says whether a device is bound to a license, and contains the device if it is.
type DeviceEntry struct {
	Device  Device // only ID is set if Bound is false
	Bound   bool
	Changed bool // differs from the stored entry
}

// Devices contains the entries of the devices that the commands touch, by device id. A device without an
// entry is unknown, which does not mean that it is not bound.
type Devices map[string]*DeviceEntry

// bound reports whether a device is known to be bound.
func (d Devices) bound(device string) bool {
	entry := d[device]
	return entry != nil && entry.Bound
}

// MaxDeviceID is the greatest length of a device id, in Unicode code points.
const MaxDeviceID = 255

// DeviceIDProblem says what is wrong with a device id; empty if nothing is.
func DeviceIDProblem(id string) string {
	switch {
	case !utf8.ValidString(id):
		return "must be UTF-8"
	case id == "" || utf8.RuneCountInString(id) > MaxDeviceID:
		return fmt.Sprintf("must have 1 to %d characters", MaxDeviceID)
	case strings.ContainsFunc(id, unicode.IsControl):
		return "must not contain control characters"
	}
	return ""
}
