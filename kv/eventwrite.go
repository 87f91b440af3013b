package kv

import (
	"math/rand/v2"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// eventsOf returns those of a record's events that are of one thing: the record
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
	op      int    // the index of the put among the operations of the change
	inBlock bool   // it is in a block

	location []byte // the place for its location in the record's value
	epoch    []byte // the place for the epoch in its key
}

// patchLocation says where the events will stand.
func (t *eventWrite) patchLocation(at layout.Location) {
	at.Patch(t.location)
	at.Epoch.Patch(t.epoch)
}

// writeLicenseEvents puts events of a license, whose value is given, and which had its
// latest event before at a location.
func (sw *swap) writeLicenseEvents(value []byte, events []licensing.Event, before layout.Location) {
	l := events[len(events)-1].License
	sw.writeEvents(value, layout.EncodeEvents(events, before), l.Owner, layout.LicenseInEvents(l.Key.ID()), l.Sequence)
}

func (sw *swap) writeOrderEvents(value []byte, events []licensing.Event, before layout.Location) error {
	o := events[len(events)-1].Order
	if !licensing.ValidOrderNo(o.OrderNo) {
		return layout.ErrMalformed
	}
	sw.writeEvents(value, layout.EncodeEvents(events, before), o.Owner, layout.OrderInEvents(o.OrderNo), o.Sequence)
	return nil
}

func (sw *swap) writeEvents(value, events []byte, owner licensing.Owner, record string, last uint64) {
	key := []byte(layout.EventsKeyOf(owner, layout.Location{}, record, last))
	sw.eventWrites = append(sw.eventWrites, eventWrite{
		owner: owner, record: record, last: last, events: events, op: len(sw.then),
		location: layout.LocationIn(value), epoch: layout.EpochIn(owner, key),
	})
	sw.put(key, events)
}

// blocksFor is how many keys the events of so many records of an owner take.
func blocksFor(records int) int { return (records + layout.BlockRuns - 1) / layout.BlockRuns }

// eventKeys counts the keys that what items tell takes in a flat request.
type eventKeys struct {
	of   map[licensing.Owner]int // the number of records with events, by owner
	keys int
}

// add counts what an item tells, or takes it off, where sign is -1.
func (k *eventKeys) add(tellings []eventWrite, sign int) {
	if k.of == nil && len(tellings) > 0 {
		k.of = make(map[licensing.Owner]int)
	}
	for i := range tellings {
		owner := tellings[i].owner
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

// blockWrites is what a flat request writes in place of some of the keys of its events.
type blockWrites struct {
	compares []*etcdserverpb.Compare
	puts     []*etcdserverpb.RequestOp
}

// blocksOf puts what a batch tells into blocks, owner by owner; what it tells of an
// owner of whom it has one record keeps its own key. The packer has seen to it that
// there is room. Where the batch isn't made so, patchApart takes it back.
func (s *requests) blocksOf(e layout.Epoch, batch []*batchItem) blockWrites {
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
			j.add(layout.Location{Epoch: e, Block: s.firstBlock(blocksFor(len(own)))}, own)
		}
	}
	return j
}

// randomBlock returns the first of as many numbers of blocks in a row. They sort blocks of
// one request. Others may have them, if hardly ever: then a compare keeps them apart.
func randomBlock(count int) layout.Block {
	return layout.Block(1<<31 | rand.Uint32N(1<<31-uint32(count)))
}

// add puts the events of an owner into blocks, beginning with the block at a location.
func (j *blockWrites) add(at layout.Location, own []*eventWrite) {
	slices.SortFunc(own, func(a, b *eventWrite) int { return layout.CompareRecords(a.record, b.record) })
	for some := range slices.Chunk(own, layout.BlockRuns) {
		var runs [layout.BlockRuns]layout.Run
		for i, t := range some {
			t.inBlock = true
			t.patchLocation(at)
			runs[i] = layout.Run{Record: t.record, Last: t.last, Value: t.events}
		}
		key := []byte(layout.BlockKey(own[0].owner, at))
		j.compares = append(j.compares, etcd.Unchanged(key, 0))
		j.puts = append(j.puts, etcd.Put(key, layout.EncodeBlock(runs[:len(some)])))
		at.Block++
	}
}

// patchApart has the events of an item stand under keys of their own, in an epoch.
func patchApart(e layout.Epoch, p *batchItem) {
	for i := range p.eventWrites {
		t := &p.eventWrites[i]
		t.inBlock = false
		t.patchLocation(layout.Location{Epoch: e})
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
