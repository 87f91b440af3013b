package kv

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/licensing/keyring"
)

// bulk writes licenses with devices straight into etcd.
func (l *lab) bulk(licenses, devices int) {
	l.t.Helper()
	var ops []clientv3.Op
	put := func(key string, value []byte) {
		ops = append(ops, clientv3.OpPut(key, string(value)))
		if len(ops) == 120 {
			kvtest.Must(l.client.Txn(l.ctx()).Then(ops...).Commit())(l.t)
			ops = ops[:0]
		}
	}
	for range licenses {
		var entropy [keyring.LicenseKeyEntropy]byte
		_, _ = rand.Read(entropy[:])
		record := layout.License{
			License: *licensing.DefaultTerms().Issue(l.keys.Mint("LIC", labOwner, entropy), labOwner, "pro", "",
				kvtest.Time),
			Spilled: true,
		}
		id := record.License.Key.ID()
		record.License.MaxDevices, record.License.CurrentDevices, record.License.ActivatedAt = 0, devices, kvtest.Time
		put(keyspace.LicenseKey(id), record.Encode())
		for _, key := range entryKeys(keyspace.ListingKey(labOwner, kvtest.Time, id)) {
			put(key, nil)
		}
		for i := range devices {
			d := licensing.Device{ID: fmt.Sprintf("device-%d", i), BoundAt: kvtest.Time, LastSeenAt: kvtest.Time}
			put(keyspace.DeviceKey(id, d.ID), layout.EncodeDevice(&d))
		}
	}
	put(keyspace.SlotKey(licensing.SlotOf(labOwner)), nil)
	kvtest.Must(l.client.Txn(l.ctx()).Then(ops...).Commit())(l.t)
}

// TestVerifyMemoryIsBounded verifies 3,000 devices and then 15,000. It compares how much memory is in use at most
// beyond the memory used before. Both figures contain the memory of the etcd in the same process.
func TestVerifyMemoryIsBounded(t *testing.T) {
	depth.NotRaced(t)
	l := newLab(t)
	highWater := func(store *Store, every int) uint64 {
		before := liveHeap()
		most := before
		calls := 0
		sample := func(int64) {
			if calls++; calls%every == 0 {
				most = max(most, liveHeap())
			}
		}
		summary, found := (&lab{t: t, store: store}).verify(verify.Config{Progress: sample, PageSize: 100})
		if len(found) > 0 {
			t.Fatalf("found %v", found)
		}
		t.Logf("%d keys: %d KiB beyond %d KiB", summary.Keys, (most-before)/1024, before/1024)
		return most - before
	}
	paged := storeOn(withoutStreams{l.store.etcd.KV})

	l.bulk(60, 50)
	few := highWater(paged, 10)
	l.bulk(240, 50)
	many, manyStreamed := highWater(paged, 10), highWater(l.store, 1)

	// Five times the devices in pages of the same size.
	if many > 2*few+1<<20 {
		t.Errorf("in pages: %d bytes with few devices, and %d with many", few, many)
	}
	// A stream's pieces grow up to the size of an etcd request, 1.5 MiB, and
	// then no more; both ends have some of them here.
	if manyStreamed > 24<<20 {
		t.Errorf("streamed: %d bytes with many devices", manyStreamed)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // frees the memory that pools kept during the first collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
