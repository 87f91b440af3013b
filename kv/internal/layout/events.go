package layout

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// The events of one record in one transaction are one value, however many commands the transaction folds. The value
// has a key of its own,
//
//	e/<account>/<mode>/<epoch><record><sequence>
//
// or, if one request changes several records of an owner, a key that they share: see EncodeBlock. <epoch> is eight
// bytes. <record> is l and a license's 16 bytes, o and what follows ord_ in an order's number, or w and a hash of the
// owner of the webhook endpoints. <sequence> is the number of the last event, in five bytes. The value has the record
// as it is after the last event, what was different after each earlier event, and the location of the record's
// previous events. So a reader finds all events of a record from the latest back, beginning at the record.
//
// What the shop has said about a buyer (e-mail, description, metadata) is not in the value. It never changes, except
// that it may be removed, and readers of events take it from the record.
//
// An older build reads what a newer build has written, so three rules hold for builds to come. A new kind of events,
// and a new actor, is stored as text. A new member of an event's data is stored under its name, as the API returns it:
// see licensing.EventMember. And a new format version keeps the fields 2 to 4 of the message: so a build that doesn't
// know the format still knows how many events there are, when the first happened, and where those before them stand.

// Field numbers of stored events.
const (
	eventsRecord  protowire.Number = 1 // a license's or an order's value, or an endpoint
	eventsOne     protowire.Number = 2 // repeated
	eventsBefore  protowire.Number = 3 // the location of the events before
	eventsAt      protowire.Number = 4 // of the first; most have it in common
	eventType     protowire.Number = 1
	eventAfter    protowire.Number = 2 // milliseconds after the first, zigzag
	eventActor    protowire.Number = 3
	eventActorKey protowire.Number = 4 // instead of 3: an API key's id
	eventCount    protowire.Number = 5 // of devices, plus one, where nothing else differs
	eventRecord   protowire.Number = 6 // where more does
	eventDevice   protowire.Number = 7
	eventKind     protowire.Number = 8 // instead of 1: the kind as text
	eventMember   protowire.Number = 9 // repeated
	memberOf      protowire.Number = 1
	memberName    protowire.Number = 2
	memberJSON    protowire.Number = 3
)

// eventTypes gives the oldest kinds of events a number each. No kind joins them: an older build would not know what a
// new number stands for. Every other kind is stored as text, which an older build returns as it is.
var eventTypes = []licensing.EventType{
	1: licensing.EventOrderCreated, 2: licensing.EventOrderPaid, 3: licensing.EventOrderExpired,
	4: licensing.EventOrderCanceled,
	5: licensing.EventOrderRefunded, 6: licensing.EventLicenseIssued, 7: licensing.EventLicenseSuspended,
	8: licensing.EventLicenseReinstated, 9: licensing.EventLicenseRevoked, 10: licensing.EventLicenseRenewed,
	11: licensing.EventLicenseUpdated, 12: licensing.EventLicenseExpired, 13: licensing.EventLicenseActivated,
	14: licensing.EventLicenseLimitReached, 15: licensing.EventDeviceBound, 16: licensing.EventDeviceRemoved,
	17: licensing.EventWebhookDisabled,
}

// eventActors are the oldest actors that are no API keys. Every other actor is stored as text, for the same reason.
var eventActors = []licensing.Actor{1: licensing.EndUser, 2: licensing.Provider, 3: licensing.System}

// EncodeEvents encodes events of one record.
func EncodeEvents(events []licensing.Event, before keyspace.Location) []byte {
	last := &events[len(events)-1]
	facts := factsOf(last)
	b := append(make([]byte, 0, 64+len(facts)+64*len(events)), eventsFormat(last))
	if facts != nil {
		b = appendBytes(b, eventsRecord, facts)
	}
	if before.Epoch != 0 {
		b = appendBytes(b, eventsBefore, keyspace.AppendLocation(nil, before))
	}
	b = appendTime(b, eventsAt, events[0].At)
	for i := range events {
		b = appendBytes(b, eventsOne, encodeEvent(&events[i], last, events[0].At))
	}
	return b
}

func encodeEvent(e, last *licensing.Event, first time.Time) []byte {
	b := make([]byte, 0, 64)
	if known := slices.Index(eventTypes, e.Type); known > 0 {
		b = appendUint(b, eventType, uint64(known))
	} else {
		b = appendString(b, eventKind, string(e.Type))
	}
	b = appendUint(b, eventAfter, protowire.EncodeZigZag(e.At.UnixMilli()-first.UnixMilli()))
	if known := slices.Index(eventActors, e.Actor); known > 0 {
		b = appendUint(b, eventActor, uint64(known))
	} else {
		b = appendString(b, eventActorKey, string(e.Actor))
	}
	var created time.Time
	if l := e.License; l != nil {
		created = l.CreatedAt
		as := EventLicense(last.License)
		as.CurrentDevices = l.CurrentDevices
		switch {
		case as != EventLicense(l):
			b = appendBytes(b, eventRecord, factsOf(e))
		case l.CurrentDevices != last.License.CurrentDevices:
			b = appendUint(b, eventCount, uint64(l.CurrentDevices)+1)
		}
	} else if e.Webhook != nil {
		if e != last {
			b = appendBytes(b, eventRecord, factsOf(e))
		}
	} else if e.Order != nil && EventOrder(e.Order) != EventOrder(last.Order) {
		b = appendBytes(b, eventRecord, factsOf(e))
	}
	if e.Device != nil {
		b = appendBytes(b, eventDevice, appendDevice(nil, e.Device, created))
	}
	for i := range e.Members {
		m := &e.Members[i]
		member := appendString(appendString(nil, memberOf, m.Of), memberName, m.Name)
		b = appendBytes(b, eventMember, appendString(member, memberJSON, m.JSON))
	}
	return b
}

// factsOf returns what an event stores of its license or order, encoded as in the value of the record's key; nil for an
// event of usage.
func factsOf(e *licensing.Event) []byte {
	if e.License != nil {
		stored := License{License: EventLicense(e.License)}
		return stored.Encode()
	}
	if e.Webhook != nil {
		return encodeEndpoint(e.Webhook, nil)
	}
	if e.Order == nil {
		return nil
	}
	stored := Order{Order: EventOrder(e.Order)}
	return stored.Encode()
}

// EventLicense returns what an event stores of a license, without what only the service needs, and without what is read
// from the license's record.
func EventLicense(l *licensing.License) licensing.License {
	return licensing.License{
		Key: l.Key, Owner: l.Owner, ProductID: l.ProductID, OrderNo: l.OrderNo,
		MaxDevices: l.MaxDevices, CurrentDevices: l.CurrentDevices,
		CreatedAt: l.CreatedAt, ActivatedAt: l.ActivatedAt, ExpiresAt: l.ExpiresAt,
		SuspendedAt: l.SuspendedAt, RevokedAt: l.RevokedAt, Grace: l.Grace,
	}
}

// EventOrder returns what an event stores of an order, without what only the service needs.
func EventOrder(o *licensing.Order) licensing.Order {
	return licensing.Order{
		OrderNo: o.OrderNo, Owner: o.Owner, ProductID: o.ProductID,
		CreatedAt: o.CreatedAt, ExpiresAt: o.ExpiresAt, CanceledAt: o.CanceledAt, ExpiredAt: o.ExpiredAt,
		LicenseKey: o.LicenseKey, Late: o.Late, Quantity: o.Quantity, LicensesIssued: o.LicensesIssued,
		OrderPayment: licensing.OrderPayment{
			Amount: o.Amount, Currency: o.Currency, PaidAt: o.PaidAt, RefundedAt: o.RefundedAt, Fee: o.Fee,
			RefundDue: o.RefundDue, Refunded: o.Refunded, Refunds: o.Refunds, RefundNo: o.RefundNo,
			Refunding: o.Refunding, Invoiced: o.Invoiced, Returned: o.Returned,
		},
		OrderReturns: o.OrderReturns,
		OrderSubscription: licensing.OrderSubscription{
			SubscriptionStatus: o.SubscriptionStatus, PaidEnd: o.PaidEnd, CancelAt: o.CancelAt,
			Plan: o.Plan, Next: withoutTerms(o.Next),
		},
	}
}

func withoutTerms(plan *licensing.Plan) *licensing.Plan {
	if plan == nil {
		return nil
	}
	shown := *plan
	shown.Terms = licensing.Terms{}
	return &shown
}
