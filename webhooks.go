package licet

import "time"

// Webhooks is where events of an account and mode are sent. All of its endpoints are
// one record, so that their number is bounded exactly, and whether the owner listens
// to activations is changed in one transaction with what it follows from.
type Webhooks struct {
	Owner     Owner
	Endpoints []Endpoint // the oldest first, at most MaxEndpoints
	// Sequence counts the events that were recorded of the record.
	Sequence uint64
}

// MaxEndpoints is how many endpoints an account can have in each mode.
const MaxEndpoints = 16

// Endpoint is one receiver of events.
type Endpoint struct {
	ID          string // we_…
	URL         string
	Description string
	Types       []EventType // which events it gets; nil: all

	// The secret that its messages are signed with is derived, and never stored.
	SecretVersion int    // from 1
	MasterID      string // the master key that the secret is derived from
	Previous      PreviousSecret

	// Since is the position in the owner's feed behind which its events begin.
	Since     string
	CreatedAt time.Time
	// ResetAt is when its URL was changed last, or it was enabled: what failed before
	// that says nothing of it any more.
	ResetAt time.Time

	DisabledAt      time.Time // zero: it is enabled
	DisabledBecause DisableReason
}

// DisableReason says why an endpoint gets nothing.
type DisableReason string

// The reasons. All but the first are the service's own.
const (
	DisabledByUser      DisableReason = "by_user"
	DisabledGone        DisableReason = "gone"         // it has answered 410
	DisabledFailing     DisableReason = "failing"      // it has failed for days, and nothing has come through
	DisabledDeadLetters DisableReason = "dead_letters" // too many messages were given up
)

// Enabled reports whether the endpoint gets events.
func (e *Endpoint) Enabled() bool { return e.DisabledAt.IsZero() }
