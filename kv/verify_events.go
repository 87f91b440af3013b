package kv

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet"
)

// eventLinks compares the keys of events that are there with those that records and
// later events lead to, in a few bytes: each key is added once where it stands and
// taken off where something leads to it. What is left over is there without anything
// that leads to it, or is led to twice.
type eventLinks struct {
	seed   maphash.Seed
	sum    uint64
	unread bool        // what might lead to some can't be read, which is reported by itself
	owner  licet.Owner // whose events are being read
}

func (l *eventLinks) stands(key string)  { l.sum += maphash.String(l.seed, key) }
func (l *eventLinks) pointed(key string) { l.sum -= maphash.String(l.seed, key) }

// wantEvents asks for the key of events that something leads to, unless it may have
// been swept.
func (v *verification) wantEvents(key string, e epoch, bad func(rule, format string, args ...any), then func(kv *mvccpb.KeyValue)) {
	if e <= v.swept {
		return
	}
	v.links.pointed(key)
	v.want(key, func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.links.stands(key) // it is not to be made up for by another one
			bad("event_missing", "events that it leads to are not there")
			return
		}
		if then != nil {
			then(kv)
		}
	})
}

// checkEvents checks one key of events.
func (v *verification) checkEvents(e entry) {
	owner, rest, ok := ownerOf(e.rest)
	var at dirEntry
	if ok {
		at, ok = readEventsKey([]byte(rest))
	}
	if !ok || at.last == 0 {
		v.report("event", "e/"+v.opaque(e.rest), "key", "the key has not the form of events'")
		return
	}
	name := "e/" + eventID(at.epoch, at.record, at.last)
	bad := func(rule, format string, args ...any) { v.report("event", name, rule, format, args...) }
	if at.epoch > v.epoch {
		bad("epoch", "its epoch %d has not begun: the present one is %d", at.epoch, v.epoch)
	}
	stored, err := decodeEvents(owner, at.record, at.last, []byte(e.value))
	if err != nil {
		v.links.unread = true
		bad("value", "the value can't be read: %v", err)
		return
	}
	if at.epoch <= v.swept {
		return // it is being swept
	}
	v.wantEventOwner(owner)
	v.links.stands(eventsKey(owner, at.epoch, at.record, at.last))
	v.checkTold(stored.events, bad)
	switch first := stored.events[0].Sequence; {
	case first == 1 && stored.before != 0:
		bad("before", "it is the record's first, and says that there are some before")
	case stored.before > at.epoch:
		bad("before", "those before it are of a later epoch, %d", stored.before)
	case first > 1 && stored.before == 0:
		bad("before", "it begins with number %d, and nothing leads to those before", first)
	case first > 1:
		v.wantEvents(eventsKey(owner, stored.before, at.record, first-1), stored.before, bad, followsOn(owner, at.record, &stored.events[0], bad))
	}
}

// wantLicenseEvents asks for a license's latest events, and compares what they tell
// with the license. What activations change is told only while somebody listens.
func (v *verification) wantLicenseEvents(stored *storedLicense, bad func(rule, format string, args ...any)) {
	l := stored.license
	if l.Sequence == 0 {
		return
	}
	record := licenseInEvents(l.Key.ID())
	v.wantEvents(eventsKey(l.Owner, stored.told, record, l.Sequence), stored.told, bad, func(kv *mvccpb.KeyValue) {
		events, err := decodeEvents(l.Owner, record, l.Sequence, kv.Value)
		if err != nil {
			return // it is reported with the events
		}
		told := *events.events[len(events.events)-1].License
		told.CurrentDevices, told.ActivatedAt, told.ExpiresAt, told.Sequence = l.CurrentDevices, l.ActivatedAt, l.ExpiresAt, 0
		if told != toldLicense(&l) {
			bad("event_differs", "its latest event tells something else than it says")
		}
	})
}

func (v *verification) wantOrderEvents(stored *storedOrder, bad func(rule, format string, args ...any)) {
	o := stored.order
	if o.Sequence == 0 {
		return
	}
	record := orderInEvents(o.OrderNo)
	v.wantEvents(eventsKey(o.Owner, stored.told, record, o.Sequence), stored.told, bad, func(kv *mvccpb.KeyValue) {
		events, err := decodeEvents(o.Owner, record, o.Sequence, kv.Value)
		if err != nil {
			return
		}
		told := toldOrder(events.events[len(events.events)-1].Order)
		now := toldOrder(&o)
		told.RefundDue, told.PaidAt = now.RefundDue, paidAt(&o, told.PaidAt)
		if told != now {
			bad("event_differs", "its latest event tells something else than it says")
		}
	})
}

// paidAt is when an order was paid as far as its events tell: money that came for a
// canceled one is told of once it has gone back.
func paidAt(o *licet.Order, told time.Time) time.Time {
	if !o.CanceledAt.IsZero() && o.RefundedAt.IsZero() {
		return o.PaidAt
	}
	return told
}

// checkLinks reports events that nothing leads to, once all families were read.
func (v *verification) checkLinks() {
	if v.links.sum != 0 && !v.links.unread {
		v.report("event", "e/", "unlinked", "there are events that no record and no later event leads to, or that two lead to")
	}
}

// checkEpoch checks the key whose revision is the epoch's number.
func (v *verification) checkEpoch(e entry) {
	if e.rest != "" || len(e.value) > 0 {
		v.report("epoch", "s/epoch"+v.opaque(e.rest), "key", "there is one, and it is empty")
	}
}

func (v *verification) checkSwept(e entry) {
	switch {
	case e.rest != "":
		v.report("swept_events", "s/swept"+v.opaque(e.rest), "key", "there is one, and this is not its name")
	case len(e.value) != epochSize:
		v.report("swept_events", "s/swept", "value", "it has %d bytes, and not %d", len(e.value), epochSize)
	case v.swept >= v.epoch:
		v.report("swept_events", "s/swept", "epoch", "the epoch %d is swept, and the present one is %d", v.swept, v.epoch)
	}
}

// beginEvents reads how far events go, at the revision of the verification.
func (v *verification) beginEvents(epochKV, sweptKV *mvccpb.KeyValue) {
	v.links.seed = maphash.MakeSeed()
	if epochKV != nil {
		v.epoch = epoch(epochKV.ModRevision)
	}
	if sweptKV != nil && len(sweptKV.Value) == epochSize {
		v.swept = epoch(binary.BigEndian.Uint64(sweptKV.Value))
	}
}
