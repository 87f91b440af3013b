package kv

import (
	"hash/maphash"

	"licet/kv/internal/etcd"
)

// packer decides which items may share a request.
type packer struct {
	apart bool

	count, ops, widest, bytes int
	closed                    bool

	eventKeys eventKeys

	// Keys, as hashes: a collision only separates two items that could share a request. Set only if apart is true.
	seed          maphash.Seed
	writes, reads map[uint64]struct{}
}

func newPacker(apart bool) *packer {
	b := &packer{apart: apart}
	if apart {
		b.seed = maphash.MakeSeed()
		b.writes, b.reads = make(map[uint64]struct{}), make(map[uint64]struct{})
	}
	return b
}

func (b *packer) begin() {
	b.count, b.ops, b.widest, b.bytes, b.closed = 0, 0, 0, 0, false
	b.eventKeys.clear()
	clear(b.writes)
	clear(b.reads)
}

// room returns how many operations fit into a flat request besides the compares of fences, and the keys of events and
// their compares.
func (b *packer) room() int {
	if b.apart {
		return etcd.MaxOps - fenceOps - b.eventKeys.keys
	}
	return etcd.MaxOps
}

// full reports whether no further item fits.
func (b *packer) full() bool { return b.closed || b.ops >= b.room() || b.bytes >= maxBatchBytes }

// fits adds an item to the batch, or reports false. The batch must stay within the limits of a flat request and of a
// nested request, since either may be sent.
func (b *packer) fits(p *batchItem) bool {
	ops, width := p.ops(), p.width()
	alone := b.apart && width >= hotOps
	if b.count > 0 {
		switch {
		case alone,
			b.ops+ops > b.room(),
			b.count+1+max(b.widest, width) > etcd.MaxOps,
			b.bytes+p.bytes > maxBatchBytes,
			b.apart && b.conflicts(p):
			return false
		}
	}
	if b.eventKeys.add(p.eventWrites, 1); b.count > 0 && b.ops+ops > b.room() {
		b.eventKeys.add(p.eventWrites, -1)
		return false
	}
	b.count, b.ops, b.widest, b.bytes = b.count+1, b.ops+ops, max(b.widest, width), b.bytes+p.bytes
	b.closed = alone
	if b.apart {
		b.note(p)
	}
	return true
}

// conflicts reports whether an item writes a key that the batch touches, or touches a key that the batch writes. etcd
// evaluates every compare of a request before any write, and refuses two writes of one key, or reorders them.
func (b *packer) conflicts(p *batchItem) bool {
	for _, c := range p.compares {
		if has(b.writes, b.hash(c.Key)) {
			return true
		}
	}
	for _, key := range p.reads {
		if has(b.writes, b.hash(key)) {
			return true
		}
	}
	for _, op := range p.then {
		if key := b.hash(etcd.WrittenKey(op)); has(b.writes, key) || has(b.reads, key) {
			return true
		}
	}
	return false
}

func (b *packer) note(p *batchItem) {
	for _, c := range p.compares {
		b.reads[b.hash(c.Key)] = struct{}{}
	}
	for _, key := range p.reads {
		b.reads[b.hash(key)] = struct{}{}
	}
	for _, op := range p.then {
		b.writes[b.hash(etcd.WrittenKey(op))] = struct{}{}
	}
}

func (b *packer) hash(key []byte) uint64 { return maphash.Bytes(b.seed, key) }

func has(keys map[uint64]struct{}, key uint64) bool {
	_, is := keys[key]
	return is
}
