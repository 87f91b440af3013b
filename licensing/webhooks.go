package licensing

import (
	"slices"
	"strings"
	"time"
)

// Webhooks holds the webhook endpoints of an owner. All endpoints of an owner are one record. So their
// number is limited exactly, and one transaction changes both the endpoints and whether the owner
// wants events of activations.
type Webhooks struct {
	Owner     Owner
	Endpoints []Endpoint // the oldest first, at most MaxEndpoints
	// Sequence is the number of events recorded for the record.
	Sequence uint64
}

// MaxEndpoints is the maximum number of endpoints of an account in each mode.
const MaxEndpoints = 16

// WebhooksRef names the endpoints of an owner.
func WebhooksRef(owner Owner) Ref { return Ref{Kind: KindWebhooks, Owner: owner} }

// Endpoint is a receiver of events.
type Endpoint struct {
	ID          string // we_…
	URL         string
	Description string
	Types       []EventType // of the events that the endpoint gets; nil: all

	// The service derives the signing secret and never stores it.
	SecretVersion int    // from 1
	MasterID      string // the master key that the secret is derived from
	Previous      PreviousSecret

	// Since is the position in the owner's feed after which its events begin.
	Since     string
	CreatedAt time.Time
	// ResetAt is when the URL was last changed, or the endpoint last enabled: earlier failures no
	// longer count. It only increases.
	ResetAt time.Time

	DisabledAt      time.Time // zero: it is enabled
	DisabledBecause DisableReason
}

// DisableReason says why an endpoint is disabled.
type DisableReason string

// The reasons. All but the first are decisions of the service.
const (
	DisabledByUser      DisableReason = "by_user"
	DisabledGone        DisableReason = "gone"         // the endpoint has answered 410
	DisabledFailing     DisableReason = "failing"      // all deliveries have failed for days
	DisabledDeadLetters DisableReason = "dead_letters" // too many messages were given up
)

// Enabled reports whether the endpoint gets events.
func (e *Endpoint) Enabled() bool { return e.DisabledAt.IsZero() }

// Wants reports whether events of a kind are for the endpoint, if it is enabled.
func (e *Endpoint) Wants(t EventType) bool { return e.Types == nil || slices.Contains(e.Types, t) }

// Clone returns a copy. A command on the copy does not change w.
func (w *Webhooks) Clone() *Webhooks {
	c := *w
	c.Endpoints = slices.Clone(w.Endpoints)
	return &c
}

// Find returns an endpoint by its id; nil if there is none.
func (w *Webhooks) Find(id string) *Endpoint {
	if w == nil {
		return nil
	}
	if i := slices.IndexFunc(w.Endpoints, func(e Endpoint) bool { return e.ID == id }); i >= 0 {
		return &w.Endpoints[i]
	}
	return nil
}

// Listening reports whether an endpoint wants events of activations. Only then are they recorded.
func (w *Webhooks) Listening() bool {
	return w != nil && slices.ContainsFunc(w.Endpoints, func(e Endpoint) bool {
		return e.Enabled() && (e.Types == nil || slices.ContainsFunc(e.Types, EventType.OfActivation))
	})
}

const (
	endpointIDPrefix = "we_"
	maxEndpointID    = 64
)

// NewEndpointID returns the id of an owner's new endpoint: we_, the owner's slot and a ULID, in lower case.
func NewEndpointID(owner Owner, ulid string) string {
	return endpointIDPrefix + strings.ToLower(SlotOf(owner).String()+ulid)
}

// ValidEndpointID reports whether a text can be the id of an endpoint: we_ and more
// of a-z 0-9, up to 64 characters in all.
func ValidEndpointID(id string) bool {
	rest, found := strings.CutPrefix(id, endpointIDPrefix)
	return found && rest != "" && len(id) <= maxEndpointID &&
		strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// checkEventTypes refuses unknown and repeated types. Nil means all types. An empty list is refused,
// since the store would keep it as nil.
func checkEventTypes(types []EventType) error {
	known := EventTypes()
	for i, t := range types {
		if !slices.Contains(known, t) || slices.Contains(types[:i], t) {
			return InvalidField("types", "must be kinds of events, each once")
		}
	}
	if types != nil && len(types) == 0 {
		return InvalidField("types", "must be null, for all kinds of events, or name at least one kind")
	}
	return nil
}
