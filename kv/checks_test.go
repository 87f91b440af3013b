package kv

import (
	"context"
	"slices"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
)

// seenKV notes the requests that pass.
type seenKV struct {
	etcdserverpb.KVClient
	mu       sync.Mutex
	requests []*etcdserverpb.TxnRequest
}

func (k *seenKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	k.mu.Lock()
	k.requests = append(k.requests, request)
	k.mu.Unlock()
	return k.KVClient.Txn(ctx, request, opts...)
}

// shape returns the requests since its last call: c for a request with compares, g for a request with only gets.
func (k *seenKV) shape() (shape string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.requests {
		if len(r.Compare) > 0 {
			shape += "c"
		} else {
			shape += "g"
		}
	}
	k.requests = nil
	return shape
}

func seenStore(t *testing.T) (*Store, *seenKV) {
	t.Helper()
	kv := &seenKV{KVClient: clientv3.RetryKVClient(server.Client)}
	s, err := storeOver(kv, server.Client, kvtest.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	learn(t, s)
	return s, kv
}

// TestChecks sends checks and reads in one request. Each gets its own answer, whatever the answers of the others are.
func TestChecks(t *testing.T) {
	s, kv := seenStore(t)
	type known struct {
		key      []byte
		revision int64
	}
	var records []known
	for range 3 {
		ref, snapshot := createStored(t, s)
		records = append(records, known{[]byte(keyspace.RecordKey(ref)), snapshot.Token.(*stored).revision})
	}
	absent := []byte(inLab("l/absent"))
	check := func(r known, more ...*etcdserverpb.Compare) *batchItem {
		p := &batchItem{compares: append([]*etcdserverpb.Compare{etcd.Unchanged(r.key, r.revision)}, more...)}
		for _, c := range p.compares {
			p.reads = append(p.reads, c.Key)
		}
		return p
	}
	stale := known{records[1].key, records[1].revision - 1}
	read := func() *batchItem { return &batchItem{reads: [][]byte{records[2].key, absent}} }
	for _, x := range []struct {
		name     string
		batch    []*batchItem
		succeeds []bool // by item
		shape    string
	}{
		{"one", []*batchItem{check(records[0])}, []bool{true}, "c"},
		{"a few", []*batchItem{check(records[0]), check(records[1], etcd.Unchanged(absent, 0))}, []bool{true, true},
			"c"},
		{"among reads", []*batchItem{read(), check(records[0]), read()}, []bool{true, true, true}, "c"},
		{"reads alone", []*batchItem{read(), read()}, []bool{true, true}, "g"},
		{"a check that does not hold", []*batchItem{check(stale)}, []bool{false}, "cg"},
		{"one among others", []*batchItem{check(records[0]), check(stale), read(), check(records[2])},
			[]bool{true, false, true, true}, "cg"},
		{"there, and should not be", []*batchItem{check(records[0], etcd.Unchanged(records[1].key, 0))}, []bool{false},
			"cg"},
		{"absent, and should be there", []*batchItem{check(known{absent, 7}), check(records[0])}, []bool{false, true},
			"cg"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s.checksLost.Store(0)
			for _, p := range x.batch {
				p.done = make(chan struct{})
			}
			kv.shape()
			s.sendReads(x.batch)
			for i, p := range x.batch {
				<-p.done
				if p.reply.err != nil || p.reply.succeeded != x.succeeds[i] || p.reply.revision == 0 {
					t.Errorf("item %d: %+v", i, p.reply)
				}
				if p.isCheck() {
					continue
				}
				if found := etcd.First(p.reply.responses, 0); found == nil ||
					!slices.Equal(found.Key, records[2].key) || len(found.Value) == 0 {
					t.Errorf("item %d read %v", i, found)
				}
				if etcd.First(p.reply.responses, 1) != nil {
					t.Errorf("item %d found a record that does not exist", i)
				}
			}
			if shape := kv.shape(); shape != x.shape {
				t.Errorf("it took the requests %q, want %q", shape, x.shape)
			}
		})
	}
}

// TestChecksAfterLoss: after a check that did not hold, the next batches read revisions at once: while others write,
// more checks would not hold.
func TestChecksAfterLoss(t *testing.T) {
	s, kv := seenStore(t)
	ref, snapshot := createStored(t, s)
	key, revision := []byte(keyspace.RecordKey(ref)), snapshot.Token.(*stored).revision
	send := func(revision int64) bool {
		p := &batchItem{compares: []*etcdserverpb.Compare{etcd.Unchanged(key, revision)}, reads: [][]byte{key}}
		r, _ := s.reads.do(t.Context(), p)
		if r.err != nil {
			t.Fatal(r.err)
		}
		return r.succeeded
	}
	kv.shape()
	if send(revision - 1) {
		t.Error("an old revision succeeds")
	}
	want := "cg"
	for range readAfterLoss {
		want += "g"
	}
	for range readAfterLoss + 2 {
		if !send(revision) {
			t.Error("the check of the current revision fails")
		}
	}
	if shape := kv.shape(); shape != want+"cc" {
		t.Errorf("it took the requests %q, want %q", shape, want+"cc")
	}
}

// TestChecksAreLinearizable: each request has a linearizable Get. Without it, any member would answer by itself.
func TestChecksAreLinearizable(t *testing.T) {
	s, kv := seenStore(t)
	ref, snapshot := createStored(t, s)
	kv.shape()
	if still, err := s.Confirm(t.Context(), ref, snapshot.Token); err != nil || !still {
		t.Fatal(still, err)
	}
	if len(kv.requests) != 1 {
		t.Fatalf("%d requests", len(kv.requests))
	}
	r := kv.requests[0]
	if len(r.Success) != 1 || r.Success[0].GetRequestRange() == nil || r.Success[0].GetRequestRange().Serializable {
		t.Errorf("asked %v", r)
	}
}
