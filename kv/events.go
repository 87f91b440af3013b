package kv

import (
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet"
)

// Events are stored by the changes that they tell of: those of one record that one
// transaction makes are one value, however many commands it folds. It has a key of its own,
//
//	e/<account>/<mode>/<epoch><record><sequence>
//
// or, where one request changes several records of an owner, one with others: see
// encodeBlock. <epoch> is eight bytes, <record> is l and a license's 16 bytes, o and what
// follows ord_ in an order's number, or w and a hash of whose endpoints of webhooks they
// are, and <sequence>, of five bytes, is that of
// the last one. The value has what was changed as it is after the last of them,
// what was otherwise after each, and the site at which the record's events before
// stand: so a record's events are found from the latest back, and every one of them
// through the record.
//
// What the shop has told of a buyer (e-mail, description, metadata) is not in it. It
// never changes but when it is removed, and is read from the record when events are.

const (
	eventsPrefix   = layout + "e/"
	sequenceSize   = 5
	eventOfLicense = 'l'
	eventOfOrder   = 'o'
	// of an owner's endpoints of webhooks
	eventOfWebhooks = 'w'
	eventsOfBlock   = 'b' // of several records
)

// Field numbers of stored events.
const (
	eventsRecord  protowire.Number = 1 // a license's or an order's value, or an endpoint
	eventsOne     protowire.Number = 2 // repeated
	eventsBefore  protowire.Number = 3 // the site of the events before
	eventsAt      protowire.Number = 4 // of the first; most have it in common
	eventType     protowire.Number = 1
	eventAfter    protowire.Number = 2 // milliseconds after the first, zigzag
	eventActor    protowire.Number = 3
	eventActorKey protowire.Number = 4 // instead of 3: an API key's id
	eventCount    protowire.Number = 5 // of devices, plus one, where nothing else differs
	eventRecord   protowire.Number = 6 // where more does
	eventDevice   protowire.Number = 7
)

// storedTypes gives each kind of event its number. A number is never used for
// something else.
var storedTypes = []licet.EventType{
	1: licet.EventOrderCreated, 2: licet.EventOrderPaid, 3: licet.EventOrderExpired, 4: licet.EventOrderCanceled,
	5: licet.EventOrderRefunded, 6: licet.EventLicenseIssued, 7: licet.EventLicenseSuspended,
	8: licet.EventLicenseReinstated, 9: licet.EventLicenseRevoked, 10: licet.EventLicenseRenewed,
	11: licet.EventLicenseUpdated, 12: licet.EventLicenseExpired, 13: licet.EventLicenseActivated,
	14: licet.EventLicenseLimitReached, 15: licet.EventDeviceBound, 16: licet.EventDeviceRemoved,
	17: licet.EventWebhookDisabled,
}

// storedActors are those who are no API keys.
var storedActors = []licet.Actor{1: licet.EndUser, 2: licet.Provider, 3: licet.System}

// encodeEvents writes events of one record.
func encodeEvents(told []licet.Event, before site) []byte {
	last := &told[len(told)-1]
	facts := factsOf(last)
	b := append(make([]byte, 0, 64+len(facts)+64*len(told)), formatVersion)
	b = appendBytes(b, eventsRecord, facts)
	if before.epoch != 0 {
		b = appendBytes(b, eventsBefore, appendSite(nil, before))
	}
	b = appendTime(b, eventsAt, told[0].At)
	for i := range told {
		b = appendBytes(b, eventsOne, encodeEvent(&told[i], last, told[0].At))
	}
	return b
}

func encodeEvent(e, last *licet.Event, first time.Time) []byte {
	b := appendUint(make([]byte, 0, 64), eventType, uint64(slices.Index(storedTypes, e.Type)))
	b = appendUint(b, eventAfter, protowire.EncodeZigZag(e.At.UnixMilli()-first.UnixMilli()))
	if known := slices.Index(storedActors, e.Actor); known > 0 {
		b = appendUint(b, eventActor, uint64(known))
	} else {
		b = appendString(b, eventActorKey, string(e.Actor))
	}
	var created time.Time
	if l := e.License; l != nil {
		created = l.CreatedAt
		as := toldLicense(last.License)
		as.CurrentDevices = l.CurrentDevices
		switch {
		case as != toldLicense(l):
			b = appendBytes(b, eventRecord, factsOf(e))
		case l.CurrentDevices != last.License.CurrentDevices:
			b = appendUint(b, eventCount, uint64(l.CurrentDevices)+1)
		}
	} else if e.Webhook != nil {
		if e != last {
			b = appendBytes(b, eventRecord, factsOf(e))
		}
	} else if toldOrder(e.Order) != toldOrder(last.Order) {
		b = appendBytes(b, eventRecord, factsOf(e))
	}
	if e.Device != nil {
		b = appendBytes(b, eventDevice, appendDevice(nil, e.Device, created))
	}
	return b
}

// factsOf is what an event tells of its license or order, as a value of its key.
func factsOf(e *licet.Event) []byte {
	if e.License != nil {
		stored := storedLicense{license: toldLicense(e.License)}
		return stored.encode()
	}
	if e.Webhook != nil {
		return encodeEndpoint(e.Webhook)
	}
	order := toldOrder(e.Order)
	order.PayToken = e.Order.PayToken
	stored := storedOrder{order: order}
	value, err := stored.encode()
	if err != nil {
		panic(err) // the order's own value was written a moment ago
	}
	return value
}

// toldLicense is what events tell of a license: not what only the service needs, nor
// what is read from its record.
func toldLicense(l *licet.License) licet.License {
	return licet.License{
		Key: l.Key, Owner: l.Owner, ProductID: l.ProductID, OrderNo: l.OrderNo,
		MaxDevices: l.MaxDevices, CurrentDevices: l.CurrentDevices,
		CreatedAt: l.CreatedAt, ActivatedAt: l.ActivatedAt, ExpiresAt: l.ExpiresAt,
		SuspendedAt: l.SuspendedAt, RevokedAt: l.RevokedAt,
	}
}

func toldOrder(o *licet.Order) licet.Order {
	return licet.Order{
		OrderNo: o.OrderNo, Owner: o.Owner, ProductID: o.ProductID, Amount: o.Amount, Currency: o.Currency,
		CreatedAt: o.CreatedAt, ExpiresAt: o.ExpiresAt, PaidAt: o.PaidAt, CanceledAt: o.CanceledAt,
		RefundedAt: o.RefundedAt, ExpiredAt: o.ExpiredAt, LicenseKey: o.LicenseKey, Late: o.Late, RefundDue: o.RefundDue,
	}
}

// storedEvents is what one transaction has told of one record.
type storedEvents struct {
	events []licet.Event
	before site // of the record's events before; zero: there are none
}

// decodeEvents reads events, given whose they are, of what record, and the number of the
// last.
func decodeEvents(owner licet.Owner, record string, last uint64, value []byte) (*storedEvents, error) {
	s := &storedEvents{}
	var facts, before []byte
	var first time.Time
	var told [][]byte
	err := decodeValue(value, func(f field) error {
		switch f.num {
		case eventsRecord:
			facts = f.bytes
		case eventsBefore:
			before = f.bytes
		case eventsAt:
			first = f.time()
		case eventsOne:
			told = append(told, f.bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(told) == 0 || uint64(len(told)) > last || before != nil && len(before) != siteSize {
		return nil, errMalformed
	}
	if before != nil {
		s.before = readSite(before)
	}
	base, err := decodeFacts(owner, record, facts)
	if err != nil {
		return nil, err
	}
	s.events = make([]licet.Event, len(told))
	for i, message := range told {
		e := &s.events[i]
		e.Sequence = last - uint64(len(told)-1-i)
		if err := decodeEvent(e, message, owner, record, base, first); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// decodeFacts reads what events tell of their record, into an event without more.
func decodeFacts(owner licet.Owner, record string, facts []byte) (e licet.Event, err error) {
	id := record[1:]
	switch record[0] {
	case eventOfLicense:
		if len(id) != idLength {
			return e, errMalformed
		}
		stored, err := decodeLicense(licet.LicenseID([]byte(id)), facts)
		if err != nil {
			return e, err
		}
		if stored.license.Owner != owner {
			return e, errMalformed
		}
		e.License = &stored.license
	case eventOfOrder:
		stored, err := decodeOrder(licet.OrderRef(owner, orderPrefix+id), facts)
		if err != nil {
			return e, err
		}
		e.Order = &stored.order
	case eventOfWebhooks:
		if record != webhooksInEvents(owner) {
			return e, errMalformed
		}
		endpoint, _, err := decodeEndpoint(facts)
		if err == nil && endpoint.ID == "" {
			err = errMalformed
		}
		if err != nil {
			return e, err
		}
		e.Webhook = &endpoint
	default:
		return e, errMalformed
	}
	return e, nil
}

// decodeEvent reads one event into e, whose Sequence is known, given what the last of
// its fellows tells of the record, and when the first happened.
func decodeEvent(e *licet.Event, message []byte, owner licet.Owner, record string, base licet.Event, first time.Time) error {
	var facts, device []byte
	var count int
	err := decodeMessage(message, func(f field) error {
		switch f.num {
		case eventType:
			if f.varint > 0 && f.varint < uint64(len(storedTypes)) {
				e.Type = storedTypes[f.varint]
			}
		case eventAfter:
			e.At = first.Add(time.Duration(protowire.DecodeZigZag(f.varint)) * time.Millisecond)
		case eventActor:
			if f.varint > 0 && f.varint < uint64(len(storedActors)) {
				e.Actor = storedActors[f.varint]
			}
		case eventActorKey:
			e.Actor = licet.Actor(f.string())
		case eventCount:
			count = f.int()
		case eventRecord:
			facts = f.bytes
		case eventDevice:
			device = f.bytes
		}
		return nil
	})
	if err != nil {
		return err
	}
	if e.Type == "" || e.Actor == "" {
		return errMalformed
	}
	if e.At.IsZero() {
		e.At = first
	}
	if facts != nil {
		if base, err = decodeFacts(owner, record, facts); err != nil {
			return err
		}
	}
	var created time.Time
	switch {
	case base.Webhook != nil:
		e.Webhook = base.Webhook
	case base.License != nil:
		l := *base.License
		if count > 0 {
			l.CurrentDevices = count - 1
		}
		l.Sequence, created, e.License = e.Sequence, l.CreatedAt, &l
	default:
		o := *base.Order
		o.Sequence, e.Order = e.Sequence, &o
	}
	if device != nil {
		d, err := decodeDevice(device, created)
		if err != nil {
			return err
		}
		e.Device = &d
	}
	return nil
}
