package kv

import (
	"math/rand/v2"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// eventsOf returns the events of a record that are about a value of the record's own type.
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

// eventsOfIssued returns the events of a license that a change of another record issues.
func eventsOfIssued(r *licensing.Record, l *licensing.License) []licensing.Event {
	var of []licensing.Event
	for _, e := range r.Events {
		if e.License != nil && e.License.Key == l.Key {
			of = append(of, e)
		}
	}
	return of
}

// eventWrite has the events of one record in a change. They get a key of their own, unless the request has events of
// other records of the owner too: see blocksOf.
type eventWrite struct {
	owner   licensing.Owner
	record  string
	last    uint64 // sequence
	events  []byte // the key's value
	op      int    // the index of the put among the operations of the change
	inBlock bool   // the events are in a block

	location []byte // where the record's value has the location of its latest event
	epoch    []byte // where the key has the epoch
}

// patchLocation writes the location of the events into the record's value and into the key.
func (t *eventWrite) patchLocation(at keyspace.Location) {
	at.Patch(t.location)
	at.Epoch.Patch(t.epoch)
}

// writeLicenseEvents puts the events of a license. value is the license's value, before the location of the license's
// previous event.
func (sw *swap) writeLicenseEvents(value []byte, events []licensing.Event, before keyspace.Location) {
	l := events[len(events)-1].License
	record := keyspace.LicenseInEvents(l.Key.ID())
	sw.writeEvents(value, layout.EncodeEvents(events, before), l.Owner, record, l.Sequence)
}

func (sw *swap) writeOrderEvents(value []byte, events []licensing.Event, before keyspace.Location) error {
	o := events[len(events)-1].Order
	if !licensing.ValidOrderNo(o.OrderNo) {
		return layout.ErrMalformed
	}
	sw.writeEvents(value, layout.EncodeEvents(events, before), o.Owner, keyspace.OrderInEvents(o.OrderNo), o.Sequence)
	return nil
}

func (sw *swap) writeEvents(value, events []byte, owner licensing.Owner, record string, last uint64) {
	key := []byte(keyspace.EventsKeyOf(owner, keyspace.Location{}, record, last))
	sw.eventWrites = append(sw.eventWrites, eventWrite{
		owner: owner, record: record, last: last, events: events, op: len(sw.then),
		location: layout.LocationIn(value), epoch: keyspace.EpochIn(owner, key),
	})
	sw.put(key, events)
}

// blocksFor returns how many keys the events of so many records of an owner take.
func blocksFor(records int) int { return (records + layout.BlockRuns - 1) / layout.BlockRuns }

// eventKeys counts the keys that the events of items take in a flat request.
type eventKeys struct {
	of   map[licensing.Owner]int // the number of records with events, by owner
	keys int
}

// add adds the events of an item to the count, or subtracts them if sign is -1.
func (k *eventKeys) add(writes []eventWrite, sign int) {
	if k.of == nil && len(writes) > 0 {
		k.of = make(map[licensing.Owner]int)
	}
	for i := range writes {
		owner := writes[i].owner
		before := k.of[owner]
		k.keys += blocksFor(before+sign) - blocksFor(before)
		if before+sign == 0 {
			delete(k.of, owner)
			continue
		}
		k.of[owner] = before + sign
	}
}

func (k *eventKeys) clear() {
	clear(k.of)
	k.keys = 0
}

// blockWrites contains what a flat request writes in place of some of the keys of its events.
type blockWrites struct {
	compares []*etcdserverpb.Compare
	puts     []*etcdserverpb.RequestOp
}

// blocksOf puts the events of a batch into blocks, owner by owner. If a batch has events of only one record of an
// owner, they keep their own key. The packer has made sure that there is room. If the batch is not sent in this form,
// patchApart undoes the change.
func (s *requests) blocksOf(e keyspace.Epoch, batch []*batchItem) blockWrites {
	var j blockWrites
	var rest []*eventWrite
	for _, p := range batch {
		for i := range p.eventWrites {
			rest = append(rest, &p.eventWrites[i])
		}
	}
	for len(rest) > 1 {
		owner := rest[0].owner
		var own []*eventWrite
		others := rest[:0]
		for _, t := range rest {
			if t.owner == owner {
				own = append(own, t)
			} else {
				others = append(others, t)
			}
		}
		rest = others
		if len(own) > 1 {
			j.add(keyspace.Location{Epoch: e, Block: s.firstBlock(blocksFor(len(own)))}, own)
		}
	}
	return j
}

// randomBlock returns the first of count consecutive numbers of blocks. The numbers sort the blocks of one request. If
// other blocks have these numbers, which hardly ever happens, a compare fails.
func randomBlock(count int) keyspace.Block {
	return keyspace.Block(1<<31 | rand.Uint32N(1<<31-uint32(count)))
}

// add puts the events of an owner into blocks, beginning with the block at a location.
func (j *blockWrites) add(at keyspace.Location, own []*eventWrite) {
	slices.SortFunc(own, func(a, b *eventWrite) int { return keyspace.CompareRecords(a.record, b.record) })
	for some := range slices.Chunk(own, layout.BlockRuns) {
		var runs [layout.BlockRuns]layout.Run
		for i, t := range some {
			t.inBlock = true
			t.patchLocation(at)
			runs[i] = layout.Run{Record: t.record, Last: t.last, Value: t.events}
		}
		key := []byte(keyspace.BlockKey(own[0].owner, at))
		j.compares = append(j.compares, etcd.Unchanged(key, 0))
		j.puts = append(j.puts, etcd.Put(key, layout.EncodeBlock(runs[:len(some)])))
		at.Block++
	}
}

// patchApart gives the events of an item a key of their own, in an epoch.
func patchApart(e keyspace.Epoch, p *batchItem) {
	for i := range p.eventWrites {
		t := &p.eventWrites[i]
		t.inBlock = false
		t.patchLocation(keyspace.Location{Epoch: e})
	}
}

// appendThen adds the operations of an item, without the puts of events that blocks replace.
func (p *batchItem) appendThen(ops []*etcdserverpb.RequestOp) []*etcdserverpb.RequestOp {
	from := 0
	for i := range p.eventWrites {
		if t := &p.eventWrites[i]; t.inBlock {
			ops = append(ops, p.then[from:t.op]...)
			from = t.op + 1
		}
	}
	return append(ops, p.then[from:]...)
}
