package licensing

import "time"

// Status is what a license is at one moment. It is never stored: it follows
// from the facts and the time.
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

// License holds the facts of one license, all but its devices. Zero times and
// empty strings stand for "not so".
type License struct {
	Key       LicenseKey
	Owner     Owner
	ProductID string
	OrderNo   string // empty for a license granted without an order

	MaxDevices     int // 0: unlimited
	CurrentDevices int
	// AllowedOver is the count of devices that were bound when MaxDevices was
	// lowered below it: nobody is thrown out, nobody new gets in. 0 where the
	// count is within MaxDevices.
	AllowedOver int

	// Validity, where set, starts to run at the first activation, which turns
	// it into ExpiresAt and clears it.
	Validity Period

	CreatedAt   time.Time
	ActivatedAt time.Time // the first activation ever; it stays
	ExpiresAt   time.Time // zero: no expiry
	SuspendedAt time.Time
	RevokedAt   time.Time
	// StateReason is why it was suspended or revoked, in the shop's words; empty
	// in any other state, and where no reason was given.
	StateReason string

	SelfService SelfService // as the terms were when the license was issued
	Removals    Removals    // by end users, where SelfService bounds them
	// EndRecorded is the ExpiresAt of which a sweep has recorded that it has come.
	// No status depends on it; one that is renewed ends again.
	EndRecorded time.Time

	Sequence    uint64    // of its latest event; 0: there was none
	LimitToldAt time.Time // the latest EventLicenseLimitReached
}

// Status computes the license's state at now: the first that matches of
// revoked, suspended, expired, activated, not_activated.
func (l *License) Status(now time.Time) Status {
	switch {
	case !l.RevokedAt.IsZero():
		return Revoked
	case !l.SuspendedAt.IsZero():
		return Suspended
	case !l.ExpiresAt.IsZero() && !l.ExpiresAt.After(now):
		return Expired
	case l.CurrentDevices > 0:
		return Activated
	default:
		return NotActivated
	}
}

// Device is one device bound to a license.
type Device struct {
	ID         string
	Name       string
	Named      bool // false: no name was ever given, which answers null
	BoundAt    time.Time
	LastSeenAt time.Time // kept at a coarse step, see Activate.SeenStep
}

// DeviceEntry is what is known of one device of a license: its entry, or that
// it is not bound.
type DeviceEntry struct {
	Device  Device // only ID is set where Bound is false
	Bound   bool
	Changed bool // differs from what is stored
}

// Devices holds the entries of the devices that a fold of commands touches,
// by device id. What is not in it is unknown, not absent.
type Devices map[string]*DeviceEntry
