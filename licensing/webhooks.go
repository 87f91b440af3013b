package licensing

import (
	"slices"
	"strings"
	"time"
)

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

// WebhooksRef names the endpoints of an owner.
func WebhooksRef(owner Owner) Ref { return Ref{Kind: KindWebhooks, Owner: owner} }

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
	// that says nothing of it any more. It only goes forward.
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

// Wants reports whether events of a kind are for the endpoint, if it is enabled.
func (e *Endpoint) Wants(t EventType) bool { return e.Types == nil || slices.Contains(e.Types, t) }

// Clone makes a copy that shares nothing with w that a command would change.
func (w *Webhooks) Clone() *Webhooks {
	c := *w
	c.Endpoints = slices.Clone(w.Endpoints)
	return &c
}

// Find gives an endpoint by its id; nil where there is none.
func (w *Webhooks) Find(id string) *Endpoint {
	if w == nil {
		return nil
	}
	if i := slices.IndexFunc(w.Endpoints, func(e Endpoint) bool { return e.ID == id }); i >= 0 {
		return &w.Endpoints[i]
	}
	return nil
}

// Listening reports whether any endpoint wants to hear of activations: only then are
// events of them recorded.
func (w *Webhooks) Listening() bool {
	return w != nil && slices.ContainsFunc(w.Endpoints, func(e Endpoint) bool {
		return e.Enabled() && (e.Types == nil || slices.ContainsFunc(e.Types, EventType.OfActivation))
	})
}

const (
	endpointIDPrefix = "we_"
	maxEndpointID    = 64
)

// NewEndpointID makes the id of an endpoint out of the text of a ULID.
func NewEndpointID(cell byte, ulid string) string {
	return endpointIDPrefix + string(cell) + strings.ToLower(ulid)
}

// ValidEndpointID reports whether a text can be the id of an endpoint: we_ and more
// of a-z 0-9, up to 64 characters in all.
func ValidEndpointID(id string) bool {
	rest, found := strings.CutPrefix(id, endpointIDPrefix)
	return found && rest != "" && len(id) <= maxEndpointID &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// checkEventTypes refuses what is no choice of kinds of events. Nil is all of them;
// a list without any would be stored as that.
func checkEventTypes(types []EventType) error {
	known := EventTypes()
	for i, t := range types {
		if !slices.Contains(known, t) || slices.Contains(types[:i], t) {
			return invalidField("types", "must be kinds of events, each once")
		}
	}
	if types != nil && len(types) == 0 {
		return invalidField("types", "must be null, for all kinds of events, or have one at least")
	}
	return nil
}
