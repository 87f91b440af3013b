package licensing

import (
	"slices"
	"strings"
	"time"
)

// Webhooks contains the webhook endpoints of an owner. All endpoints of an owner are one record. So their
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

// CreateEndpoint creates an endpoint. If the owner has an endpoint with the same id, the command
// returns it and changes nothing: the command may be repeated.
type CreateEndpoint struct {
	Owner    Owner
	Endpoint Endpoint // without its times, which the command sets
	By       Actor
}

// DeviceID is empty: no device is touched.
func (CreateEndpoint) DeviceID() string { return "" }

func (CreateEndpoint) growth(*Record, time.Time) Growth { return OrdinaryGrowth }

func (c CreateEndpoint) apply(r *Record, now time.Time) (Result, error) {
	if err := checkEventTypes(c.Endpoint.Types); err != nil {
		return Result{}, err
	}
	if there := r.Webhooks.Find(c.Endpoint.ID); there != nil {
		return Result{Endpoint: there}, nil
	}
	next := &Webhooks{Owner: c.Owner}
	if r.Webhooks != nil {
		next = r.Webhooks.Clone()
	}
	if len(next.Endpoints) >= MaxEndpoints {
		return Result{}, tooManyEndpoints()
	}
	made := c.Endpoint
	made.Types = slices.Clone(made.Types)
	made.CreatedAt, made.ResetAt, made.DisabledAt, made.DisabledBecause = now, now, time.Time{}, ""
	next.Endpoints = append(next.Endpoints, made)
	r.Webhooks, r.Changed = next, true
	return Result{Endpoint: &made}, nil
}

// UpdateEndpoint changes an endpoint. A nil field stays as it is.
type UpdateEndpoint struct {
	ID               string
	URL, Description *string
	Types            *[]EventType // pointer to nil: all
	Enabled          *bool
	By               Actor
}

// DeviceID is empty: no device is touched.
func (UpdateEndpoint) DeviceID() string { return "" }

func (c UpdateEndpoint) growth(r *Record, now time.Time) Growth {
	before := r.Webhooks.Find(c.ID)
	if before == nil || c.URL == nil && c.Description == nil && c.Types == nil {
		return NoGrowth
	}
	next := *before
	c.change(&next, now)
	return growthFrom(before.size(), next.size())
}

// size returns about how many bytes the changeable parts of an endpoint take.
func (e *Endpoint) size() int {
	size := len(e.URL) + len(e.Description)
	for _, kind := range e.Types {
		size += len(kind)
	}
	return size
}

func (c UpdateEndpoint) apply(r *Record, now time.Time) (Result, error) {
	if c.Types != nil {
		if err := checkEventTypes(*c.Types); err != nil {
			return Result{}, err
		}
	}
	endpoint, _, err := r.changeEndpoint(c.ID, func(e *Endpoint) bool { return c.change(e, now) })
	return Result{Endpoint: endpoint}, err
}

// change changes an endpoint, and reports whether anything has changed.
func (c UpdateEndpoint) change(e *Endpoint, now time.Time) (changed bool) {
	if c.URL != nil && *c.URL != e.URL {
		e.URL, changed = *c.URL, true
		e.reset(now)
	}
	if c.Description != nil && *c.Description != e.Description {
		e.Description, changed = *c.Description, true
	}
	if c.Types != nil && !slices.Equal(*c.Types, e.Types) {
		e.Types, changed = slices.Clone(*c.Types), true
	}
	if c.Enabled != nil && *c.Enabled != e.Enabled() {
		changed = true
		if *c.Enabled {
			e.DisabledAt, e.DisabledBecause = time.Time{}, ""
			e.reset(now)
		} else {
			e.DisabledAt, e.DisabledBecause = now, DisabledByUser
		}
	}
	return changed
}

// reset records that earlier failures no longer count. ResetAt always increases, whatever the clock
// says, so that a node that has read the earlier endpoint sees a different time.
func (e *Endpoint) reset(now time.Time) {
	if !now.After(e.ResetAt) {
		now = e.ResetAt.Add(time.Millisecond)
	}
	e.ResetAt = now
}

// DeleteEndpoint deletes an endpoint, and with it the records of its deliveries.
type DeleteEndpoint struct {
	ID string
	By Actor
}

// DeviceID is empty: no device is touched.
func (DeleteEndpoint) DeviceID() string { return "" }

func (DeleteEndpoint) growth(*Record, time.Time) Growth { return NoGrowth }

func (c DeleteEndpoint) apply(r *Record, _ time.Time) (Result, error) {
	gone := r.Webhooks.Find(c.ID)
	if gone == nil {
		return Result{}, ErrWebhookNotFound
	}
	next := r.Webhooks.Clone()
	next.Endpoints = slices.DeleteFunc(next.Endpoints, func(e Endpoint) bool { return e.ID == c.ID })
	r.Webhooks, r.Changed = next, true
	return Result{Endpoint: gone}, nil
}

// RotateEndpointSecret gives an endpoint a new secret, derived from a master key. The previous secret
// also signs until the overlap has passed. At most two secrets are valid: a rotation drops the secret
// before the previous one.
type RotateEndpointSecret struct {
	ID       string
	MasterID string
	Overlap  time.Duration
	By       Actor
}

// DeviceID is empty: no device is touched.
func (RotateEndpointSecret) DeviceID() string { return "" }

func (RotateEndpointSecret) growth(*Record, time.Time) Growth { return NoGrowth }

func (c RotateEndpointSecret) apply(r *Record, now time.Time) (Result, error) {
	endpoint, _, err := r.changeEndpoint(c.ID, func(e *Endpoint) bool {
		before := PreviousSecret{Version: e.SecretVersion, MasterID: e.MasterID, Until: now.Add(c.Overlap)}
		e.Previous = PreviousSecret{}
		if c.Overlap > 0 {
			e.Previous = before
		}
		e.SecretVersion++
		e.MasterID = c.MasterID
		return true
	})
	return Result{Endpoint: endpoint}, err
}

// DisableEndpoint disables an endpoint on behalf of the service, because deliveries fail, and records
// an event. If the endpoint is disabled, or was changed or enabled since ResetAt was read, the command
// is a no-op.
type DisableEndpoint struct {
	ID      string
	ResetAt time.Time // the endpoint's, as read
	Because DisableReason
}

// DeviceID is empty: no device is touched.
func (DisableEndpoint) DeviceID() string { return "" }

func (DisableEndpoint) growth(*Record, time.Time) Growth { return NoGrowth }

func (c DisableEndpoint) apply(r *Record, now time.Time) (Result, error) {
	endpoint, disabled, err := r.changeEndpoint(c.ID, func(e *Endpoint) bool {
		if !e.Enabled() || !e.ResetAt.Equal(c.ResetAt) {
			return false
		}
		e.DisabledAt, e.DisabledBecause = now, c.Because
		return true
	})
	if disabled {
		r.recordEndpoint(EventWebhookDisabled, System, now, *endpoint)
	}
	return Result{Endpoint: endpoint}, err
}

// changeEndpoint calls change on a copy of an endpoint, so that the stored record stays unchanged.
func (r *Record) changeEndpoint(id string, change func(*Endpoint) bool) (_ *Endpoint, changed bool, _ error) {
	if r.Webhooks.Find(id) == nil {
		return nil, false, ErrWebhookNotFound
	}
	next := r.Webhooks.Clone()
	endpoint := next.Find(id)
	if changed = change(endpoint); changed {
		r.Webhooks, r.Changed = next, true
	}
	return endpoint, changed, nil
}
