package licensing

import (
	"slices"
	"time"
)

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
