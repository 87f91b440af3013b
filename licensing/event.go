package licensing

import (
	"slices"
	"strings"
	"time"
)

// EventType names a kind of event. The names are part of the public contract.
type EventType string

// The events of orders and licenses. They are always recorded.
const (
	EventOrderCreated  EventType = "order.created"
	EventOrderPaid     EventType = "order.paid"
	EventOrderExpired  EventType = "order.expired"
	EventOrderCanceled EventType = "order.canceled"
	EventOrderRefunded EventType = "order.refunded"
	// EventOrderRefundUpdated reports a step of a refund that leaves the order paid: a part was refunded, the provider
	// will send the money later, or that has failed.
	EventOrderRefundUpdated EventType = "order.refund_updated"
	// The events of subscriptions: a renewal or another invoice was paid, the payment of an invoice has failed, or
	// something else has changed.
	EventOrderPaymentSucceeded    EventType = "order.payment_succeeded"
	EventOrderPaymentFailed       EventType = "order.payment_failed"
	EventOrderSubscriptionChanged EventType = "order.subscription_changed"
	// EventOrderDisputed reports that a buyer disputes a payment, or how the dispute has ended.
	EventOrderDisputed EventType = "order.disputed"

	EventLicenseIssued     EventType = "license.issued"
	EventLicenseSuspended  EventType = "license.suspended"
	EventLicenseReinstated EventType = "license.reinstated"
	EventLicenseRevoked    EventType = "license.revoked"
	EventLicenseRenewed    EventType = "license.renewed"
	EventLicenseUpdated    EventType = "license.updated"
	EventLicenseExpired    EventType = "license.expired"
	EventLicenseReissued   EventType = "license.reissued"
	EventLicenseExpiring   EventType = "license.expiring"
	EventLicenseUpgraded   EventType = "license.upgraded" // a trial
	EventLicenseDeleted    EventType = "license.deleted"  // a trial that ended long ago; the last event of its license
)

// The events of activations. They are recorded only while an endpoint wants them, see Record.Listening.
const (
	EventLicenseActivated    EventType = "license.activated" // the first device of all
	EventLicenseLimitReached EventType = "license.limit_reached"
	EventDeviceBound         EventType = "device.bound"
	EventDeviceRemoved       EventType = "device.removed"
	EventDeviceLeaseLapsed   EventType = "device.lease_lapsed"
	EventDeviceChanged       EventType = "device.changed" // it has a new id
)

// EventWebhookDisabled reports that the service has disabled a webhook endpoint by itself. It is
// always recorded.
const EventWebhookDisabled EventType = "webhook.disabled"

// EventBudgetWarning reports that an account stores four fifths of what its budget allows ordinary growth to store. It
// is always recorded.
const EventBudgetWarning EventType = "account.budget_warning"

// EventUnreadable is the kind of a placeholder. A placeholder stands in the feed for an event that this build can't
// read, because its stored value is damaged or a newer build wrote it. It is never recorded.
const EventUnreadable EventType = "event.unreadable"

// EventTypes lists the kinds of events that this build knows. A newer build may have recorded others.
func EventTypes() []EventType {
	return append([]EventType{
		EventOrderCreated, EventOrderPaid, EventOrderExpired, EventOrderCanceled, EventOrderRefunded,
		EventOrderRefundUpdated,
		EventOrderPaymentSucceeded, EventOrderPaymentFailed, EventOrderSubscriptionChanged,
		EventOrderDisputed,
		EventLicenseIssued, EventLicenseSuspended, EventLicenseReinstated, EventLicenseRevoked,
		EventLicenseRenewed, EventLicenseUpdated, EventLicenseExpired, EventLicenseReissued,
		EventLicenseExpiring, EventLicenseUpgraded, EventLicenseDeleted,
		EventLicenseActivated, EventLicenseLimitReached, EventDeviceBound, EventDeviceRemoved,
		EventDeviceLeaseLapsed, EventDeviceChanged, EventWebhookDisabled, EventBudgetWarning,
		EventUnreadable,
	}, laterTypes()...)
}

// OfActivation reports whether events of this type are recorded only while an endpoint wants them.
func (t EventType) OfActivation() bool {
	switch t {
	case EventLicenseActivated, EventLicenseLimitReached, EventDeviceBound, EventDeviceRemoved, EventDeviceLeaseLapsed,
		EventDeviceChanged:
		return true
	}
	return false
}

// Actor is the author of a change: the public id of an API key, or one of the constants. Empty stands
// for System.
type Actor string

// The actors without an API key.
const (
	EndUser  Actor = "end_user"
	Provider Actor = "provider" // the payment provider
	System   Actor = "system"   // the service itself
)

// Event is the report of one change of one record. The transaction that makes the change stores the
// event.
type Event struct {
	Type EventType
	At   time.Time
	// Sequence counts the events of the record, 1, 2, 3, ... without a gap.
	Sequence uint64
	Actor    Actor

	// The changed object right after the change: a license, an order, or a webhook endpoint without the fields
	// that derive its secret. It is never changed afterward.
	License *License
	Order   *Order
	Webhook *Endpoint
	// Device is the device of the event, or nil: as it was when bound or removed. A device that found
	// no free device slot has only its id and name.
	Device *Device
	// Members are members of the event's data without a field in Event, such as members that a newer build recorded.
	Members []EventMember
}

// EventMember is a member of an event's data that has no field in [Event]. Its name and its value are stored as the
// API returns them, so that every build since this one can return a member that only a newer build knows. It must not
// contain personal data: redaction doesn't reach events.
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
	return name != "" && len(name) <= maxEventName &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_"+also) == ""
}

// limitEventStep is the least time between two events that report a license as full.
const limitEventStep = time.Minute

// recordLicense records an event of the record's license, or of the license that the record issues.
func (r *Record) recordLicense(
	l *License, event EventType, by Actor, now time.Time, device *Device, members ...EventMember,
) {
	l.Sequence++
	current := *l
	e := Event{Type: event, At: now, Sequence: l.Sequence, Actor: by, License: &current, Device: device,
		Members: members}
	if l.IsTrial() {
		e.Members = append(e.Members, trialMember)
	}
	r.record(e)
}

// trialMember is in each event of a trial.
var trialMember = EventMember{Of: "license", Name: "trial", JSON: "true"}

// OfTrial reports whether the license of the event was a trial right after the change.
func (e *Event) OfTrial() bool { return slices.Contains(e.Members, trialMember) }

// recordOrder records an event of the record's order.
func (r *Record) recordOrder(event EventType, by Actor, now time.Time, members ...EventMember) {
	r.Order.Sequence++
	current := *r.Order
	r.record(Event{Type: event, At: now, Sequence: current.Sequence, Actor: by, Order: &current, Members: members})
}

// recordEndpoint records an event of one of the record's endpoints.
func (r *Record) recordEndpoint(event EventType, by Actor, now time.Time, endpoint Endpoint) {
	r.Webhooks.Sequence++
	endpoint.SecretVersion, endpoint.MasterID, endpoint.Since = 0, "", ""
	endpoint.Previous.Version, endpoint.Previous.MasterID = 0, ""
	r.record(Event{Type: event, At: now, Sequence: r.Webhooks.Sequence, Actor: by, Webhook: &endpoint})
}

func (r *Record) record(e Event) {
	if e.Actor == "" {
		e.Actor = System
	}
	r.Events = append(r.Events, asLater(e))
	r.Changed = true
}

// recordDevice records an event of a device of the record's license, if an endpoint wants it.
func (r *Record) recordDevice(event EventType, by Actor, now time.Time, device Device, members ...EventMember) {
	if r.Listening {
		onHeap := device       // a copy, so that device escapes to the heap only here
		onHeap.Components = "" // events do not carry them
		r.recordLicense(r.License, event, by, now, &onHeap, members...)
	}
}

// recordLimit records that a device found no free device slot, if an endpoint wants the event and
// limitEventStep has passed since the last such event: thousands of devices may try a full license. If
// the clock is behind the time of the last event, recordLimit records nothing: nodes whose clocks
// differ would otherwise record an event at each turn.
func (r *Record) recordLimit(by Actor, now time.Time, device Device) {
	if l := r.License; r.Listening && now.Sub(l.LimitReportedAt) >= limitEventStep {
		l.LimitReportedAt = now
		onHeap := device
		r.recordLicense(l, EventLicenseLimitReached, by, now, &onHeap)
	}
}

// NewOrder returns the record of a new order, which is not stored yet.
func NewOrder(o *Order, by Actor) Record {
	r := Record{Order: o}
	r.recordOrder(EventOrderCreated, by, o.CreatedAt)
	return r
}

// NewLicense returns the record of a new license without an order, which is not stored yet.
func NewLicense(l *License, metadata *Metadata, by Actor) Record {
	r := Record{License: l, Metadata: metadata}
	r.recordLicense(l, EventLicenseIssued, by, l.CreatedAt, nil)
	return r
}
