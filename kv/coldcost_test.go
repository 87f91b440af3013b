package kv

import (
	"context"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// recordedKV keeps the requests that a store makes.
type recordedKV struct {
	etcdserverpb.KVClient
	txns   []*etcdserverpb.TxnRequest
	ranges int
}

func (r *recordedKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	r.txns = append(r.txns, request)
	return r.KVClient.Txn(ctx, request, opts...)
}

func (r *recordedKV) Range(
	ctx context.Context, request *etcdserverpb.RangeRequest, opts ...grpc.CallOption,
) (*etcdserverpb.RangeResponse, error) {
	r.ranges++
	return r.KVClient.Range(ctx, request, opts...)
}

// TestColdActivation bounds what the first activation of a license that the store does not remember asks of etcd: one
// read of one key, and one swap of this key, which also compares whether accounts listen, once for all changes of a
// request. The terms of the product and the metadata of the license have keys of their own, which the activation
// neither reads nor compares.
func TestColdActivation(t *testing.T) {
	plain, entitled, changing := newLicense(t, 3), newLicense(t, 3), newLicense(t, 3)
	entitled.Terms, entitled.OwnEntitlements = 1<<60, 1<<61
	changing.InactiveAfter, changing.Match.AtLeast = licensing.Period{Months: 3}, 2
	for _, c := range []struct {
		name    string
		license *licensing.License
		bytes   int // of the license's value at most
	}{
		{"of a plain license", plain, 65},
		{"of a license with entitlements", entitled, 87},
		{"of a license whose devices may change", changing, 73},
	} {
		t.Run(c.name, func(t *testing.T) {
			ref := licensing.LicenseRef(c.license.Key)
			metadata := &licensing.Metadata{Object: `{"seat":"1"}`, Changed: true}
			change := store.Change{Writes: []store.Write{
				{Ref: ref, Record: licensing.Record{License: c.license, Metadata: metadata}},
			}}
			if outcome, err := faultyStore(t, kvtest.Script()).Commit(t.Context(), change); !outcome.Landed {
				t.Fatalf("create: %+v, %v", outcome, err)
			}
			s, etcd := faultyStore(t, kvtest.Script()), &recordedKV{KVClient: clientv3.RetryKVClient(server.Client)}
			s.etcd.Remote = etcd
			change = bind(t, ref, loadOne(t, s, ref, "laptop"), "laptop")
			if outcome, err := s.Commit(t.Context(), change); !outcome.Landed {
				t.Fatalf("activate: %+v, %v", outcome, err)
			}
			if len(etcd.txns) != 2 || etcd.ranges != 0 {
				t.Fatalf("%d transactions and %d reads, want 2 and none", len(etcd.txns), etcd.ranges)
			}
			key, read, swap := keyspace.RecordKey(ref), etcd.txns[0], etcd.txns[1]
			if len(read.Compare) != 0 || len(read.Failure) != 0 || len(read.Success) != 1 ||
				string(read.Success[0].GetRequestRange().GetKey()) != key {
				t.Errorf("the read is %v, want one read of the license", read)
			}
			if len(swap.Compare) != 2 || len(swap.Success) != 1 || len(swap.Failure) != 2 {
				t.Fatalf("the swap is %v, want 2 compares, a put, and 2 reads after a loss", swap)
			}
			put := swap.Success[0].GetRequestPut()
			if string(put.GetKey()) != key || len(put.GetValue()) > c.bytes {
				t.Errorf("the put is %v with %d bytes, want the license in at most %d bytes", put,
					len(put.GetValue()), c.bytes)
			}
		})
	}
}
