package kv

import "licet/licensing"

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

// telling is what a change tells of one record. It is put under a key of its own, unless
// the request tells of other records of the owner too: see joinEvents.
type telling struct {
	owner  licensing.Owner
	record string
	last   uint64 // sequence
	events []byte // the key's value
	op     int    // the index in the change's operations of the one that puts it
	joined bool   // it is in a block

	site  []byte // the place for its site in the record's value
	epoch []byte // the place for the epoch in its key
}

// stamp says where the events will stand.
func (t *telling) stamp(at site) {
	at.stamp(t.site)
	at.epoch.stamp(t.epoch)
}

// tellLicense puts events of a license, whose value is given, and which had its
// latest event before at a site.
func (sw *swap) tellLicense(value []byte, told []licensing.Event, before site) {
	l := told[len(told)-1].License
	sw.tell(value, encodeEvents(told, before), l.Owner, licenseInEvents(l.Key.ID()), l.Sequence)
}

func (sw *swap) tellOrder(value []byte, told []licensing.Event, before site) error {
	o := told[len(told)-1].Order
	if !licensing.ValidOrderNo(o.OrderNo) {
		return errMalformed
	}
	sw.tell(value, encodeEvents(told, before), o.Owner, orderInEvents(o.OrderNo), o.Sequence)
	return nil
}

func (sw *swap) tell(value, events []byte, owner licensing.Owner, record string, last uint64) {
	key := []byte(eventsKey(owner, site{}, record, last))
	sw.tellings = append(sw.tellings, telling{
		owner: owner, record: record, last: last, events: events, op: len(sw.then),
		site: stampOf(value), epoch: key[len(eventsOfOwner(owner)):][:epochSize],
	})
	sw.put(key, events)
}
