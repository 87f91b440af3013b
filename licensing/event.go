package licensing

import (
	"strings"
	"time"
)

// EventType names a kind of event. The names are part of the public contract.
type EventType string

// The events of orders and licenses. They are always recorded.
const (
	EventOrderCreated      EventType = "order.created"
	EventOrderPaid         EventType = "order.paid"
	EventOrderExpired      EventType = "order.expired"
	EventOrderCanceled     EventType = "order.canceled"
	EventOrderRefunded     EventType = "order.refunded"
	EventLicenseIssued     EventType = "license.issued"
	EventLicenseSuspended  EventType = "license.suspended"
	EventLicenseReinstated EventType = "license.reinstated"
	EventLicenseRevoked    EventType = "license.revoked"
	EventLicenseRenewed    EventType = "license.renewed"
	EventLicenseUpdated    EventType = "license.updated"
	EventLicenseExpired    EventType = "license.expired"
)

// The events of activations. They are recorded only while somebody listens, see
// Record.Listening.
const (
	EventLicenseActivated    EventType = "license.activated" // the first device of all
	EventLicenseLimitReached EventType = "license.limit_reached"
	EventDeviceBound         EventType = "device.bound"
	EventDeviceRemoved       EventType = "device.removed"
)

// EventWebhookDisabled tells that the service has disabled an endpoint of webhooks by
// itself. It is always recorded.
const EventWebhookDisabled EventType = "webhook.disabled"

// EventUnreadable is the kind of a placeholder. A placeholder stands in the feed for an event that this build can't
// read, because its stored value is damaged or a newer build wrote it. It is never recorded.
const EventUnreadable EventType = "event.unreadable"

// EventTypes lists the kinds of events that this build knows. A newer build may have recorded others.
func EventTypes() []EventType {
	return append([]EventType{
		EventOrderCreated, EventOrderPaid, EventOrderExpired, EventOrderCanceled, EventOrderRefunded,
		EventLicenseIssued, EventLicenseSuspended, EventLicenseReinstated, EventLicenseRevoked,
		EventLicenseRenewed, EventLicenseUpdated, EventLicenseExpired,
		EventLicenseActivated, EventLicenseLimitReached, EventDeviceBound, EventDeviceRemoved,
		EventWebhookDisabled,
		EventUnreadable,
	}, laterTypes()...)
}

// OfActivation tells whether events of this kind are recorded only while somebody
// listens.
func (t EventType) OfActivation() bool {
	switch t {
	case EventLicenseActivated, EventLicenseLimitReached, EventDeviceBound, EventDeviceRemoved:
		return true
	}
	return false
}

// Actor is who made a change: an API key, by its public id, or one of the
// constants. Empty stands for System.
type Actor string

// Those who make changes without an API key.
const (
	EndUser  Actor = "end_user"
	Provider Actor = "provider" // of payments
	System   Actor = "system"   // the service by itself
)

// Event is one change of one record, as it is told to others. It is stored in the
// transaction that makes the change.
type Event struct {
	Type EventType
	At   time.Time
	// Sequence counts the events of the record, 1, 2, 3, ... without a gap.
	Sequence uint64
	Actor    Actor

	// What was changed, as it was right after it: a license, an order, or an endpoint of
	// webhooks without what its secret follows from. They are not changed any more.
	License *License
	Order   *Order
	Webhook *Endpoint
	// Device is the device that is meant, if one is: as it was bound, as it was
	// when it was removed, or of one that found no slot only its id and name.
	Device *Device
	// Members are further members of the event's data, such as those that a newer build has recorded.
	Members []EventMember
}

// EventMember is a member of an event's data that has no field in [Event]. Its name and its value are stored as the
// API returns them, so that every build since this one can return a member that only a newer build knows. It must not
// hold personal data: redaction doesn't reach events.
type EventMember struct {
	Of   string // the object of the data that the member belongs to, such as license; empty: the data itself
	Name string
	JSON string // the value
}

// maxEventName bounds the names of kinds of events and of members.
const maxEventName = 64

// WellFormed reports whether a text can be the name of a kind of events, of this build or of a newer one.
func (t EventType) WellFormed() bool { return plainName(string(t), ".") }

// WellFormed reports whether a member's names can be those of a member of the data. It does not parse JSON.
func (m *EventMember) WellFormed() bool {
	return plainName(m.Name, "") && (m.Of == "" || plainName(m.Of, ""))
}

func plainName(name, also string) bool {
	return name != "" && len(name) <= maxEventName && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_"+also) == ""
}

// limitEventStep is how often at most it is told that a license is full.
const limitEventStep = time.Minute

// tellLicense records an event of a license that the record holds, or that it
// issues.
func (r *Record) tellLicense(l *License, event EventType, by Actor, now time.Time, device *Device) {
	l.Sequence++
	as := *l
	r.tell(Event{Type: event, At: now, Sequence: l.Sequence, Actor: by, License: &as, Device: device})
}

// tellOrder records an event of the record's order.
func (r *Record) tellOrder(event EventType, by Actor, now time.Time) {
	r.Order.Sequence++
	as := *r.Order
	r.tell(Event{Type: event, At: now, Sequence: as.Sequence, Actor: by, Order: &as})
}

// tellEndpoint records an event of one of the record's endpoints.
func (r *Record) tellEndpoint(event EventType, by Actor, now time.Time, as Endpoint) {
	r.Webhooks.Sequence++
	as.SecretVersion, as.MasterID, as.Previous.Version, as.Previous.MasterID, as.Since = 0, "", 0, "", ""
	r.tell(Event{Type: event, At: now, Sequence: r.Webhooks.Sequence, Actor: by, Webhook: &as})
}

func (r *Record) tell(e Event) {
	if e.Actor == "" {
		e.Actor = System
	}
	r.Events = append(r.Events, asLater(e))
	r.Changed = true
}

// tellDevice records an event of a device of the record's license, if anybody
// listens.
func (r *Record) tellDevice(event EventType, by Actor, now time.Time, device Device) {
	if r.Listening {
		meant := device // so that it goes to the heap only here
		r.tellLicense(r.License, event, by, now, &meant)
	}
}

// tellLimit records that a device found no slot, if anybody listens and has not
// heard of it for a while: a full license may be asked by thousands. A clock that
// runs behind the one by which it was told last tells nothing until it has caught up:
// two that differ would else tell at each turn.
func (r *Record) tellLimit(by Actor, now time.Time, device Device) {
	if l := r.License; r.Listening && now.Sub(l.LimitToldAt) >= limitEventStep {
		l.LimitToldAt = now
		meant := device
		r.tellLicense(l, EventLicenseLimitReached, by, now, &meant)
	}
}

// NewOrder is the record of an order that is about to be made.
func NewOrder(o *Order, by Actor) Record {
	r := Record{Order: o}
	r.tellOrder(EventOrderCreated, by, o.CreatedAt)
	return r
}

// NewLicense is the record of a license that is about to be granted.
func NewLicense(l *License, metadata *Metadata, by Actor) Record {
	r := Record{License: l, Metadata: metadata}
	r.tellLicense(l, EventLicenseIssued, by, l.CreatedAt, nil)
	return r
}
