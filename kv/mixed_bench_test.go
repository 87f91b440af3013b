package kv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// ready answers each transaction at once, as etcd does if every compare holds. So a benchmark measures the store alone.
type ready struct {
	etcdserverpb.KVClient
	revision int64
}

func (r *ready) Txn(
	_ context.Context, request *etcdserverpb.TxnRequest, _ ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	r.revision++
	return &etcdserverpb.TxnResponse{Header: &etcdserverpb.ResponseHeader{Revision: r.revision}, Succeeded: true,
		Responses: make([]*etcdserverpb.ResponseOp, len(request.Success))}, nil
}

// BenchmarkMixed measures what activations cost a store, without HTTP and etcd: turns of 64 activations of a license
// with 5,000 devices, of which four in five are of bound devices. recall asks what the store remembers; turn also
// applies the activations and commits.
func BenchmarkMixed(b *testing.B) {
	b.Run("recall", func(b *testing.B) { benchmarkMixed(b, false) })
	b.Run("turn", func(b *testing.B) { benchmarkMixed(b, true) })
}

func benchmarkMixed(b *testing.B, whole bool) {
	const bound, turn, turns = 5_000, 64, 512
	s, err := storeOver(&ready{revision: 1 << 20}, server.Client, kvtest.Metrics())
	if err != nil {
		b.Fatal(err)
	}
	l := newLicense(b, 0)
	l.CurrentDevices, l.ActivatedAt = bound, kvtest.Time
	ref, id := licensing.LicenseRef(l.Key), l.Key.ID()
	value := (&layout.License{License: *l, Spilled: true}).Encode()
	devices := make([]licensing.Device, bound+turn*turns) // the bound devices, and new ones
	written := make([]writtenDevice, bound)
	for i := range devices {
		raw := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		devices[i] = licensing.Device{ID: hex.EncodeToString(raw[:]), Name: "a laptop in the office", Named: true,
			BoundAt: kvtest.Time, LastSeenAt: kvtest.Time}
		if i < bound {
			written[i] = writtenDevice{devices[i].ID, layout.EncodeDevice(&devices[i])}
		}
	}
	start := func() {
		s.memory.licenses.Invalidate(id)
		slot := s.memory.note(id, cachedValue{revision: 1, value: value, spilled: true})
		s.memory.deviceCaches.forget(id)
		s.memory.deviceCaches.follow(&fresh{id: id, slot: slot, spilled: true, moved: true, written: written}, 1)
	}
	activations := make([]licensing.Activate, turn)
	want := store.Want{Ref: ref, Devices: make([]string, turn)}
	next := turns * turn
	b.ReportAllocs()
	for b.Loop() {
		if next == turns*turn {
			b.StopTimer()
			start()
			next = 0
			b.StartTimer()
		}
		for i := range activations {
			d := &devices[next*7%bound]
			if i%5 == 0 {
				d = &devices[bound+next]
			}
			activations[i] = licensing.Activate{Target: licensing.Target{Key: l.Key}, Device: d.ID, Name: d.Name,
				Named: true}
			want.Devices[i] = d.ID
			next++
		}
		snapshot, unsure, known := s.Recall(want)
		if !known || len(unsure) > 0 {
			b.Fatal(known, unsure)
		}
		if !whole {
			continue
		}
		record := snapshot.Record.Clone()
		for _, cmd := range activations {
			if _, err := licensing.Apply(&record, cmd, kvtest.Time); err != nil {
				b.Fatal(err)
			}
		}
		change := store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: record}}}
		if outcome, err := s.Commit(b.Context(), change); err != nil || !outcome.Landed {
			b.Fatal(outcome, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*turn), "ns/activation")
}
