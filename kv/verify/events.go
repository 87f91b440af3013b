package verify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// eventChecks checks events and what is kept of their owners: ledgers, marks and trimmed epochs.
type eventChecks struct {
	*reading
	epoch        keyspace.Epoch                     // the current epoch
	trimmedEpoch keyspace.Epoch                     // the last trimmed epoch
	cuts         map[licensing.Owner]keyspace.Epoch // see readCuts
	links        eventLinks
}

// eventLinks compares the stored events with the events that records and later events refer to, in a few bytes: it
// adds the location of each change's events, and subtracts each reference. A remainder shows events without a
// reference, or with two.
type eventLinks struct {
	seed   maphash.Seed
	sum    uint64
	unread bool            // a value that may refer to events can't be read, which its own check reports
	owner  licensing.Owner // whose events are being read
}

// runAt says where events of a record are, up to a sequence number.
type runAt struct {
	owner licensing.Owner
	keyspace.Location
	record string
	last   uint64
}

func (a *runAt) key() string { return keyspace.EventsKeyOf(a.owner, a.Location, a.record, a.last) }

// link returns the text that stands for the events. Events of two records in one block have different texts.
func (a *runAt) link() string {
	apart := *a
	apart.Block = 0
	return string(binary.BigEndian.AppendUint32([]byte(apart.key()), uint32(a.Block)))
}

func (l *eventLinks) stands(a runAt)  { l.sum += maphash.String(l.seed, a.link()) }
func (l *eventLinks) pointed(a runAt) { l.sum -= maphash.String(l.seed, a.link()) }

// wantEvents demands the events that a value refers to, unless they may have been swept. The check of their own key
// reports events that can't be read.
func (v *eventChecks) wantEvents(at runAt, bad func(rule, format string, args ...any), then func(*layout.Events)) {
	if at.Epoch <= v.trimmedEpochOf(at.owner) {
		return
	}
	v.links.pointed(at)
	v.want(at.key(), func(kv *mvccpb.KeyValue) {
		var stored *layout.Events
		if kv != nil {
			var err error
			if stored, err = layout.DecodeEventsAt(at.owner, at.Location, at.record, at.last, kv.Value); err != nil &&
				!errors.Is(err, layout.ErrNotInBlock) {
				return
			}
		}
		if stored == nil {
			v.links.stands(at) // it is not to be made up for by another one
			bad("event_missing", "the events that it names do not exist")
			return
		}
		if then != nil {
			then(stored)
		}
	})
}

// checkEvents checks one key of events.
func (v *eventChecks) checkEvents(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	var at keyspace.EventsKey
	if ok {
		at, ok = keyspace.ReadEventsKey([]byte(rest))
	}
	if !ok || at.Block == 0 && at.Last == 0 {
		v.report("event", "e/"+Opaque(e.rest), "key", "the key is not in the form of events'")
		return
	}
	name := keyspace.NameOfEvents(owner, &at)
	bad := func(rule, format string, args ...any) { v.report("event", name, rule, format, args...) }
	if at.Epoch > v.epoch {
		bad("epoch", "its epoch %d has not begun: the present one is %d", at.Epoch, v.epoch)
	}
	runs, err := layout.DecodeRuns(&at, e.value)
	if err != nil {
		v.links.unread = true
		bad("value", "the value can't be read: %v", err)
	}
	if len(runs) > layout.BlockRuns {
		bad("runs", "it has events of %d records, and a block has those of %d at most", len(runs), layout.BlockRuns)
	}
	if at.Epoch > v.trimmedEpochOf(owner) {
		v.wantEventOwner(owner) // else it is being swept
	}
	for i := range runs {
		if runs[i].Bad != nil {
			continue
		}
		v.checkRun(runAt{owner, at.Location, runs[i].Record, runs[i].Last}, runs[i].Value)
	}
}

// checkRun checks the events of one record in a key.
func (v *eventChecks) checkRun(at runAt, value []byte) {
	name := "e/" + keyspace.EventID(at.owner, at.Location, at.record, at.last)
	bad := func(rule, format string, args ...any) { v.report("event", name, rule, format, args...) }
	stored, err := layout.DecodeEvents(at.owner, at.record, at.last, value)
	if err != nil {
		v.links.unread = true
		bad("value", "the value can't be read: %v", err)
		return
	}
	if at.Epoch <= v.trimmedEpochOf(at.owner) {
		return
	}
	if !knownRecord(at.record) {
		v.links.unread = true // a record of a kind that this build does not know refers to them
		return
	}
	v.links.stands(at)
	v.checkFacts(stored.Events, bad)
	if stored.Events[len(stored.Events)-1].Type == licensing.EventLicenseDeleted {
		v.links.pointed(at) // its license is gone, or else points to it too
	}
	switch first := stored.Events[0].Sequence; {
	case first == 1 && stored.Before.Epoch != 0:
		bad("before", "it is the record's first event, and says that there are events before")
	case stored.Before.Epoch > at.Epoch:
		bad("before", "the events before it are of a later epoch, %d", stored.Before.Epoch)
	case first > 1 && stored.Before.Epoch == 0:
		bad("before", "it begins with number %d, and does not say where the events before are", first)
	case first > 1:
		v.wantEvents(runAt{at.owner, stored.Before, at.record, first - 1}, bad, followsOn(&stored.Events[0], bad))
	}
}

// knownRecord reports whether this build knows the kind of record that events belong to.
func knownRecord(record string) bool {
	switch record[0] {
	case keyspace.EventOfLicense, keyspace.EventOfOrder, keyspace.EventOfWebhooks, keyspace.EventOfUsage:
		return true
	}
	return false
}

// wantLicenseEvents looks up a license's latest events and compares them with the license. Activations have events
// only while the owner listens.
func (v *eventChecks) wantLicenseEvents(stored *layout.License, bad func(rule, format string, args ...any)) {
	l := stored.License
	if l.Sequence == 0 {
		return
	}
	v.wantEvents(runAt{l.Owner, stored.LastEvent, keyspace.LicenseInEvents(l.Key.ID()), l.Sequence}, bad,
		func(events *layout.Events) {
			recorded := *events.Events[len(events.Events)-1].License
			recorded.CurrentDevices, recorded.ActivatedAt = l.CurrentDevices, l.ActivatedAt
			recorded.ExpiresAt, recorded.Sequence = l.ExpiresAt, 0
			if recorded != layout.EventLicense(&l) {
				bad("event_differs", "its latest event shows other fields than it has")
			}
		})
}

func (v *eventChecks) wantOrderEvents(stored *layout.Order, bad func(rule, format string, args ...any)) {
	o := stored.Order
	if o.Sequence == 0 {
		return
	}
	v.wantEvents(runAt{o.Owner, stored.LastEvent, keyspace.OrderInEvents(o.OrderNo), o.Sequence}, bad,
		func(events *layout.Events) {
			shown := layout.Order{Order: layout.EventOrder(events.Events[len(events.Events)-1].Order)}
			has := layout.Order{Order: layout.EventOrder(&o)}
			recorded, now := &shown.Order, &has.Order
			recorded.RefundDue, recorded.PaidAt = now.RefundDue, paidAt(&o, recorded.PaidAt)
			// The licenses that follow the payment have events of their own.
			recorded.LicensesIssued = max(recorded.LicensesIssued, now.LicensesIssued)
			recorded.RefundNo, recorded.Refunding = now.RefundNo, now.Refunding
			recorded.Returns = now.Returns
			recorded.Fee = now.Fee // fees change without an event
			if !bytes.Equal(shown.Encode(), has.Encode()) {
				bad("event_differs", "its latest event shows other fields than it has")
			}
		})
}

// paidAt returns when an order was paid, as far as its events show: a payment of a canceled order has an event only
// after its refund.
func paidAt(o *licensing.Order, recorded time.Time) time.Time {
	if !o.CanceledAt.IsZero() && o.RefundedAt.IsZero() {
		return o.PaidAt
	}
	return recorded
}

// checkLinks reports events that no value refers to, once all families were read.
func (v *eventChecks) checkLinks() {
	if v.links.sum != 0 && !v.links.unread {
		v.report("event", "e/", "unlinked",
			"there are events that no record and no later event leads to, or that two lead to")
	}
}

// checkEpoch checks the key whose revision is the epoch's number.
func (v *eventChecks) checkEpoch(e entry) {
	if e.rest != "" || len(e.value) > 0 {
		v.report("epoch", "cell/epoch"+Opaque(e.rest), "key", "there is one, and it is empty")
	}
}

func (v *eventChecks) checkTrimmed(e entry) {
	switch {
	case e.rest != "":
		v.report("swept_events", "cell/swept"+Opaque(e.rest), "key", "no key but cell/swept may begin like this")
	case len(e.value) != keyspace.EpochSize:
		v.report("swept_events", "cell/swept", "value", "it has %d bytes, and not %d", len(e.value), keyspace.EpochSize)
	case v.trimmedEpoch >= v.epoch:
		v.report("swept_events", "cell/swept", "epoch", "the epoch %d is swept, and the present one is %d",
			v.trimmedEpoch, v.epoch)
	}
}

// beginEvents reads the current epoch and the trimmed epoch, at the revision of the verification.
func (v *eventChecks) beginEvents(epochKV, trimmedKV *mvccpb.KeyValue) {
	v.links.seed = maphash.MakeSeed()
	if epochKV != nil {
		v.epoch = keyspace.Epoch(epochKV.ModRevision)
	}
	if trimmedKV != nil {
		v.trimmedEpoch, _ = layout.DecodeEpoch(trimmedKV.Value) // checkTrimmed reports a malformed value
	}
}

// checkMark checks a mark of events.
func (v *eventChecks) checkMark(e entry) {
	m, err := layout.DecodeMark(e.rest, e.value)
	switch {
	case len(e.rest) != keyspace.EpochSize:
		v.report("event_mark", "cell/t/"+Opaque(e.rest), "key", "this is not the key of a mark")
	case err != nil:
		v.report("event_mark", fmt.Sprintf("cell/t/%d", binary.BigEndian.Uint64([]byte(e.rest))), "value",
			"the value can't be read: %v", err)
	case m.Epoch >= v.epoch:
		v.report("event_mark", fmt.Sprintf("cell/t/%d", m.Epoch), "epoch",
			"its epoch is not closed: the present one is %d", v.epoch)
	}
}

// checkOwner checks the key of an owner that has events, or had some.
func (v *eventChecks) checkOwner(e entry) {
	if _, rest, ok := keyspace.CutOwner(e.rest); !ok || rest != "" || len(e.value) > 0 {
		v.report("owner", "h/"+Opaque(e.rest), "key",
			"the key does not name an owner, or has a value")
	}
}

// wantEventOwner demands the key of an owner whose events are being read. An owner's events stand together, so the key
// is looked up once.
func (v *eventChecks) wantEventOwner(owner licensing.Owner) {
	if owner == v.links.owner {
		return
	}
	v.links.owner = owner
	v.want(keyspace.OwnerKey(owner), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("event", "e/"+keyspace.OwnerPath(owner), "owner_missing",
				"the sweep of old events will not find those of this owner")
		}
	})
}
