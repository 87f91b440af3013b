package kv

import (
	"math/rand/v2"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// blocksFor is how many keys the events of so many records of an owner take.
func blocksFor(records int) int { return (records + layout.BlockRuns - 1) / layout.BlockRuns }

// eventKeys counts the keys that what items tell takes in a flat request.
type eventKeys struct {
	of   map[licensing.Owner]int // of how many records of an owner is told
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
func (s *Store) blocksOf(e layout.Epoch, batch []*batchItem) blockWrites {
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

// randomBlock gives the first of as many numbers of blocks in a row. They sort blocks of
// one request. Others may have them, if hardly ever: then a compare keeps them apart.
func randomBlock(count int) layout.Block {
	return layout.Block(1<<31 | rand.Uint32N(1<<31-uint32(count)))
}

// add puts what is told of an owner into blocks, from the one at a site on.
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

// appendThen adds the operations of an item, without those that blocks make up for.
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
