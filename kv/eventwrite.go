package kv

import (
	"licet/kv/internal/layout"
	"licet/licensing"
)

// eventsOf gives those of a record's events that are of one thing: the record
// itself, or the license that it issues.
func eventsOf[T licensing.License | licensing.Order](r *licensing.Record, _ *T) []licensing.Event {
	var of []licensing.Event
	var kind T
	_, ofLicense := any(kind).(licensing.License)
	for _, e := range r.Events {
		if (e.License != nil) == ofLicense {
			of = append(of, e)
		}
	}
	return of
}

// eventWrite is what a change tells of one record. It is put under a key of its own, unless
// the request tells of other records of the owner too: see blocksOf.
type eventWrite struct {
	owner   licensing.Owner
	record  string
	last    uint64 // sequence
	events  []byte // the key's value
	op      int    // the index in the change's operations of the one that puts it
	inBlock bool   // it is in a block

	location []byte // the place for its site in the record's value
	epoch    []byte // the place for the epoch in its key
}

// patchLocation says where the events will stand.
func (t *eventWrite) patchLocation(at layout.Location) {
	at.Patch(t.location)
	at.Epoch.Patch(t.epoch)
}

// writeLicenseEvents puts events of a license, whose value is given, and which had its
// latest event before at a site.
func (sw *swap) writeLicenseEvents(value []byte, told []licensing.Event, before layout.Location) {
	l := told[len(told)-1].License
	sw.writeEvents(value, layout.EncodeEvents(told, before), l.Owner, layout.LicenseInEvents(l.Key.ID()), l.Sequence)
}

func (sw *swap) writeOrderEvents(value []byte, told []licensing.Event, before layout.Location) error {
	o := told[len(told)-1].Order
	if !licensing.ValidOrderNo(o.OrderNo) {
		return layout.ErrMalformed
	}
	sw.writeEvents(value, layout.EncodeEvents(told, before), o.Owner, layout.OrderInEvents(o.OrderNo), o.Sequence)
	return nil
}

func (sw *swap) writeEvents(value, events []byte, owner licensing.Owner, record string, last uint64) {
	key := []byte(layout.EventsKeyOf(owner, layout.Location{}, record, last))
	sw.eventWrites = append(sw.eventWrites, eventWrite{
		owner: owner, record: record, last: last, events: events, op: len(sw.then),
		location: layout.LocationIn(value), epoch: key[len(layout.EventsOf(owner)):][:layout.EpochSize],
	})
	sw.put(key, events)
}
