package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// tells makes an item put events of a record too.
func tells(p *batchItem, owner licensing.Owner, record string) *batchItem {
	sw := swap{then: p.then, eventWrites: p.eventWrites}
	sw.writeEvents(make([]byte, 64), []byte{1}, owner, record, 1)
	p.then, p.eventWrites = sw.then, sw.eventWrites
	return p
}

// checked counts the operations of a request as etcd does (server/etcdserver/api/v3rpc,
// checkTxnRequest).
func checked(r *etcdserverpb.TxnRequest) int {
	most := max(len(r.Compare), len(r.Success), len(r.Failure))
	deepest := 0
	for _, ops := range [][]*etcdserverpb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if txn := op.GetRequestTxn(); txn != nil {
				deepest = max(deepest, checked(txn))
			}
		}
	}
	return most + deepest
}

// putKeys counts the keys that a flat request puts, each of which it must put once.
func putKeys(t *testing.T, r *etcdserverpb.TxnRequest) int {
	t.Helper()
	keys := make(map[string]bool)
	for _, op := range r.Success {
		key := string(etcd.WrittenKey(op))
		if keys[key] {
			t.Errorf("%q is put twice", key)
		}
		keys[key] = true
	}
	return len(keys)
}

// TestBatchesFit packs items of all kinds, with events of no record, of one or of two, of few owners or many: each
// batch fits into etcd's limits in both its forms, and no item is left behind. In the end the batcher counts no
// waiting item.
func TestBatchesFit(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 19))
		owners := 1 + random.IntN(70)
		l := &batcher{apart: true}
		parts := 50 + random.IntN(400)
		for i := range parts {
			owner := acct(fmt.Sprint("o", random.IntN(owners)))
			width := 1
			switch random.IntN(20) {
			case 0:
				width = hotOps + random.IntN(3*hotOps)
			case 1, 2:
				width = 1 + random.IntN(hotOps)
			}
			p := putting(many(fmt.Sprint("k", i, "/"), width)...)
			if random.IntN(4) == 0 {
				p = comparing(fmt.Sprint("c", i), many(fmt.Sprint("d", i, "/"), random.IntN(4))...)
			}
			for range random.IntN(3) {
				tells(p, owner, fmt.Sprintf("l%016d", random.Uint64()))
			}
			l.waiting = append(l.waiting, p)
			l.ops += p.ops()
			l.eventKeys.add(p.eventWrites, 1)
		}
		store := &requests{firstBlock: randomBlock}
		top := fenced{epoch: 7}
		for _, key := range []string{keyspace.EpochKey, keyspace.ListenKey} {
			top.compares = append(top.compares, etcd.Unchanged([]byte(key), 7))
			top.gets = append(top.gets, []byte(key))
		}
		packer := newPacker(true)
		sent := 0
		for batch := l.nextBatch(packer); len(batch) > 0; batch = l.nextBatch(packer) {
			sent += len(batch)
			want, events := 0, eventKeys{}
			for _, p := range batch {
				want += len(p.then) - len(p.eventWrites)
				events.add(p.eventWrites, 1)
			}
			flat := store.flat(top, batch)
			if got := putKeys(t, flat); got != want+events.keys {
				t.Errorf("seed %d: %d keys are put, want %d and %d of events", seed, got, want, events.keys)
			}
			if len(batch) == 1 {
				continue // it has what it has
			}
			if n := checked(flat); n > etcd.MaxOps {
				t.Errorf("seed %d: %d changes together have %d operations", seed, len(batch), n)
			}
			apart := nested(top, batch)
			if n := checked(apart); n > etcd.MaxOps {
				t.Errorf("seed %d: %d changes, each in a transaction, have %d operations", seed, len(batch), n)
			}
			for _, p := range batch {
				for i := range p.eventWrites {
					if tell := &p.eventWrites[i]; tell.inBlock ||
						keyspace.ReadLocation(tell.location) != (keyspace.Location{Epoch: 7}) {
						t.Errorf("seed %d: events have the location %+v, in a block: %v, but their change has "+
							"its own transaction", seed, keyspace.ReadLocation(tell.location), tell.inBlock)
					}
				}
			}
		}
		if sent != parts || l.ops != 0 || l.eventKeys.keys != 0 || len(l.eventKeys.of) != 0 || len(l.waiting) != 0 {
			t.Errorf("seed %d: %d of %d items were sent; %d operations and %+v wait", seed, sent, parts, l.ops,
				l.eventKeys)
		}
	}
}

// TestFullOfEvents: keys of events fill requests as other keys do: once the waiting items fill a request, the batcher
// sends one more request.
func TestFullOfEvents(t *testing.T) {
	for _, c := range []struct {
		name   string
		owners int
		full   int // how many items, of one license each
	}{
		{"of one owner", 1, 120},     // 120 and 8 blocks
		{"each of another", 200, 64}, // and as many keys of events
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &batcher{most: 1, apart: true}
			for i := range c.full {
				if l.free() {
					t.Fatalf("%d items fill a request", i)
				}
				p := tells(putting(fmt.Sprint("k", i)), acct(fmt.Sprint("o", i%c.owners)), fmt.Sprintf("l%016d", i))
				l.waiting = append(l.waiting, p)
				l.ops += p.ops()
				l.eventKeys.add(p.eventWrites, 1)
			}
			if !l.free() {
				t.Errorf("%d items do not fill a request", c.full)
			}
		})
	}
}
