package kv

import (
	"encoding/binary"
	"slices"

	"licet"
)

// eventsOf gives those of a record's events that are of one thing: the record
// itself, or the license that it issues.
func eventsOf[T licet.License | licet.Order](r *licet.Record, _ *T) []licet.Event {
	var of []licet.Event
	var kind T
	_, ofLicense := any(kind).(licet.License)
	for _, e := range r.Events {
		if (e.License != nil) == ofLicense {
			of = append(of, e)
		}
	}
	return of
}

// eventsKey is where events of a record stand up to a sequence number. The epoch is
// written when they are sent.
func eventsKey(owner licet.Owner, e epoch, record string, last uint64) string {
	b := append(make([]byte, 0, 96), eventsOfOwner(owner)...)
	b = appendEpoch(b, e)
	b = append(b, record...)
	return string(appendSequence(b, last))
}

func eventsOfOwner(owner licet.Owner) string { return eventsPrefix + ownerPath(owner) }

func appendSequence(b []byte, n uint64) []byte {
	var eight [8]byte
	binary.BigEndian.PutUint64(eight[:], n)
	return append(b, eight[8-sequenceSize:]...)
}

func licenseInEvents(id licet.LicenseID) string { return string(eventOfLicense) + string(id[:]) }
func orderInEvents(orderNo string) string       { return string(eventOfOrder) + orderNo[len(orderPrefix):] }

// tellLicense puts events of a license, whose value is given, and which had its
// latest event before in an epoch.
func (sw *swap) tellLicense(value []byte, told []licet.Event, before epoch) {
	l := told[len(told)-1].License
	sw.tell(value, encodeEvents(told, before), l.Owner, licenseInEvents(l.Key.ID()), l.Sequence)
}

func (sw *swap) tellOrder(value []byte, told []licet.Event, before epoch) error {
	o := told[len(told)-1].Order
	if !licet.ValidOrderNo(o.OrderNo) {
		return errMalformed
	}
	sw.tell(value, encodeEvents(told, before), o.Owner, orderInEvents(o.OrderNo), o.Sequence)
	return nil
}

func (sw *swap) tell(value, events []byte, owner licet.Owner, record string, last uint64) {
	key := []byte(eventsKey(owner, 0, record, last))
	sw.put(key, events)
	if !slices.Contains(sw.told, owner) {
		sw.told = append(sw.told, owner)
	}
	sw.stamps = append(sw.stamps, stampOf(value), key[len(eventsOfOwner(owner)):][:epochSize])
}
