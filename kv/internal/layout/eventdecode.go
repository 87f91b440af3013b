package layout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// Events contains the events of one record in one transaction.
type Events struct {
	// Events are in order. Placeholders replace events that can't be read.
	Events []licensing.Event
	Before keyspace.Location // of the record's previous events; zero: there are none
	// Torn: the value does not show which events it has. One placeholder stands for all of them.
	Torn bool
	// Adrift: the value does not show where the record's previous events are.
	Adrift bool
}

// Has reports whether an event may be in the value, whose last event is last.
func (s *Events) Has(sequence, last uint64) bool {
	return sequence <= last && (s.Torn || sequence >= s.Events[0].Sequence)
}

// At returns the event with a number, or a placeholder if a torn value may contain that event.
func (s *Events) At(sequence, last uint64) *licensing.Event {
	if !s.Has(sequence, last) {
		return nil
	}
	if s.Torn {
		e := s.Events[0]
		e.Sequence = sequence
		return &e
	}
	return &s.Events[sequence-s.Events[0].Sequence]
}

// PlaceholderFor returns the placeholder of an event.
func PlaceholderFor(sequence uint64, at time.Time) licensing.Event {
	if plausible(at) != nil || at.Year() < 1970 {
		at = time.Time{}
	}
	return licensing.Event{Type: licensing.EventUnreadable, At: at, Sequence: sequence, Actor: licensing.System}
}

// plausible refuses times that no clock had: many clients can't read a page with such a time at all.
func plausible(times ...time.Time) error {
	for _, t := range times {
		if year := t.Year(); year < 1 || year > 9999 {
			return fmt.Errorf("%w: a time in the year %d", ErrMalformed, year)
		}
	}
	return nil
}

// DecodeEvents reads events, given their owner, their record and the number of the last event. An error says why some
// of the events can't be read. The events that are returned with an error are still complete: a placeholder
// replaces each event that can't be read, or all of them if the value is torn.
func DecodeEvents(owner licensing.Owner, record string, last uint64, value []byte) (*Events, error) {
	s := &Events{}
	var facts, before []byte
	var first time.Time
	var events [][]byte
	foreign := checkFormat(value, newestEvents)
	var torn error
	if len(value) > 0 {
		torn = decodeMessage(value[1:], func(f Field) error {
			switch f.Num {
			case eventsRecord:
				facts = f.Bytes
			case eventsBefore:
				before = f.Bytes
			case eventsAt:
				first = f.time()
			case eventsOne:
				events = append(events, f.Bytes)
			}
			return nil
		})
	}
	if len(before) == keyspace.LocationSize {
		s.Before = keyspace.ReadLocation(before)
	} else if before != nil {
		torn = cmp.Or(torn, ErrMalformed)
	}
	if len(events) == 0 || uint64(len(events)) > last {
		torn = cmp.Or(torn, ErrMalformed)
	}
	if torn != nil {
		s.Torn = true
		s.Adrift = s.Before == keyspace.Location{} && last > 1
		s.Events = []licensing.Event{PlaceholderFor(last, first)}
		return s, cmp.Or(foreign, torn)
	}
	base, bad := licensing.Event{}, foreign
	if foreign == nil {
		base, bad = decodeFacts(owner, record, facts)
	}
	s.Events = make([]licensing.Event, len(events))
	var failed error
	for i, message := range events {
		e := &s.Events[i]
		e.Sequence = last - uint64(len(events)-1-i)
		if foreign != nil {
			*e = PlaceholderFor(e.Sequence, first)
		} else if err := decodeEvent(e, message, owner, record, base, bad, first); err != nil {
			failed = cmp.Or(failed, err)
			*e = PlaceholderFor(e.Sequence, e.At)
		}
	}
	return s, cmp.Or(bad, failed)
}

// decodeFacts decodes the facts of events about their record into an event that has no other content.
func decodeFacts(owner licensing.Owner, record string, facts []byte) (e licensing.Event, err error) {
	id := record[1:]
	switch record[0] {
	case keyspace.EventOfLicense:
		license, ok := keyspace.LicenseIDOf(licensing.SlotOf(owner), id)
		if !ok {
			return e, ErrMalformed
		}
		stored, err := DecodeLicense(license, facts)
		if err != nil {
			return e, err
		}
		if stored.License.Owner != owner {
			return e, ErrMalformed
		}
		e.License = &stored.License
		l := e.License
		return e, plausible(l.CreatedAt, l.ActivatedAt, l.ExpiresAt, l.SuspendedAt, l.RevokedAt)
	case keyspace.EventOfOrder:
		stored, err := DecodeOrder(licensing.OrderRef(owner, keyspace.OrderPrefix+id), facts)
		if err != nil {
			return e, err
		}
		e.Order = &stored.Order
		o := e.Order
		return e, plausible(o.CreatedAt, o.ExpiresAt, o.PaidAt, o.CanceledAt, o.RefundedAt)
	case keyspace.EventOfWebhooks:
		if record != keyspace.WebhooksInEvents(owner) {
			return e, ErrMalformed
		}
		endpoint, _, err := decodeEndpoint(facts)
		if err == nil && endpoint.ID == "" {
			err = ErrMalformed
		}
		if err != nil {
			return e, err
		}
		e.Webhook = &endpoint
		return e, plausible(endpoint.CreatedAt, endpoint.DisabledAt, endpoint.Previous.Until)
	}
	return e, nil // a kind of records that only a newer build knows: there is no more to read
}

// decodeEvent reads one event into e, whose Sequence is set. The caller passes the time of the first event in the
// value, and the facts after the last event, or why they can't be read.
func decodeEvent(
	e *licensing.Event, message []byte, owner licensing.Owner, record string, base licensing.Event, bad error,
	first time.Time,
) error {
	e.At = first
	var facts, device []byte
	var count int
	err := decodeMessage(message, func(f Field) (err error) {
		switch f.Num {
		case eventType:
			if f.varint > 0 && f.varint < uint64(len(eventTypes)) {
				e.Type = eventTypes[f.varint]
			}
		case eventKind:
			e.Type = licensing.EventType(f.string())
		case eventAfter:
			e.At = first.Add(time.Duration(protowire.DecodeZigZag(f.varint)) * time.Millisecond)
		case eventActor:
			if f.varint > 0 && f.varint < uint64(len(eventActors)) {
				e.Actor = eventActors[f.varint]
			}
		case eventActorKey:
			e.Actor = licensing.Actor(f.string())
		case eventCount:
			count = f.int()
		case eventRecord:
			facts = f.Bytes
		case eventDevice:
			device = f.Bytes
		case eventMember:
			e.Members, err = decodeMember(e.Members, f.Bytes)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !e.Type.WellFormed() || e.Actor == "" {
		return fmt.Errorf("%w: no kind of events, or no actor", ErrMalformed)
	}
	if err := plausible(e.At); err != nil {
		return err
	}
	if facts != nil {
		base, bad = decodeFacts(owner, record, facts)
	}
	if bad != nil {
		return bad
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
	case base.Order != nil:
		o := *base.Order
		o.Sequence, e.Order = e.Sequence, &o
	}
	if device != nil {
		d, err := decodeDevice(device, created, "")
		if err != nil {
			return err
		}
		e.Device = &d
		return plausible(d.BoundAt, d.LastSeenAt)
	}
	return nil
}

func decodeMember(members []licensing.EventMember, message []byte) ([]licensing.EventMember, error) {
	var m licensing.EventMember
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case memberOf:
			m.Of = f.string()
		case memberName:
			m.Name = f.string()
		case memberJSON:
			m.JSON = f.string()
		}
		return nil
	})
	if err == nil && (!m.WellFormed() || !json.Valid([]byte(m.JSON))) {
		err = fmt.Errorf("%w: a member of an event", ErrMalformed)
	}
	return append(members, m), err
}
