package kv

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// weighedKV counts requests and the bytes of their responses. One goroutine uses it at a time.
type weighedKV struct {
	etcdserverpb.KVClient
	requests, bytes int
}

func (k *weighedKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	response, err := k.KVClient.Txn(ctx, request, opts...)
	k.requests, k.bytes = k.requests+1, k.bytes+proto.Size(response)
	return response, err
}

func (k *weighedKV) Range(
	ctx context.Context, request *etcdserverpb.RangeRequest, opts ...grpc.CallOption,
) (*etcdserverpb.RangeResponse, error) {
	response, err := k.KVClient.Range(ctx, request, opts...)
	k.requests, k.bytes = k.requests+1, k.bytes+proto.Size(response)
	return response, err
}

func weighedStore(t testing.TB) (*Store, *weighedKV) {
	kv := &weighedKV{KVClient: clientv3.RetryKVClient(server.Client)}
	s, err := storeOver(kv, server.Client, kvtest.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	return s, kv
}

// TestForeignLicense looks up a license with 1,000 devices and 16 KiB of metadata by the key of another account, on a
// node that knows the license and on a node that does not. The look-up costs etcd about what an unknown license costs.
func TestForeignLicense(t *testing.T) {
	key := putDevices(t, 1000, func(i int) store.DeviceCursor {
		return keyspace.DevicePosition(fmt.Sprintf("d-%d", i))
	})
	ctx := t.Context()
	if _, err := server.Client.Put(ctx, keyspace.MetadataKey(key.ID()),
		string(layout.EncodeMetadata(licensing.Metadata{Object: `{"a":"` + strings.Repeat("x", 16<<10) + `"}`},
			nil))); err != nil {
		t.Fatal(err)
	}
	s, kv := weighedStore(t)
	owner := licensing.Owner{AccountID: "acct_test", Mode: licensing.Test}
	stranger := licensing.Owner{AccountID: "acct_stranger", Mode: licensing.Test}
	read := func(key licensing.LicenseKey, caller licensing.Owner) (view *store.LicenseView, requests, bytes int) {
		t.Helper()
		kv.requests, kv.bytes = 0, 0
		page := store.DevicePage{Limit: 1000, Owner: caller, Enter: func() (func(), error) {
			if caller != owner {
				t.Error("a foreign caller takes a place for the devices")
			}
			return func() {}, nil
		}}
		view, err := s.ReadLicense(ctx, key, page)
		if err != nil {
			t.Fatal(err)
		}
		return view, kv.requests, kv.bytes
	}
	_, unknown, least := read(newKey(t), stranger)
	foreign := func(when string) {
		t.Helper()
		for _, other := range []licensing.Owner{stranger, {AccountID: owner.AccountID, Mode: licensing.Live}} {
			if view, requests, bytes := read(key, other); view != nil || requests != unknown || bytes > least+512 {
				t.Errorf("%s: %d requests and %d bytes, want %d and about %d: %+v", when, requests, bytes, unknown,
					least, view)
			}
		}
	}
	foreign("on a node that does not know the license")
	view, requests, _ := read(key, owner)
	if view == nil || len(view.Devices) != 1000 || len(view.Metadata.Object) < 16<<10 || requests != 3 {
		t.Fatalf("the owner's first look-up took %d requests: %+v", requests, view)
	}
	foreign("on a node that knows the license")
	view, requests, _ = read(key, owner)
	if view == nil || len(view.Devices) != 1000 || len(view.Metadata.Object) < 16<<10 || requests != 2 {
		t.Errorf("the owner's next look-up took %d requests", requests)
	}
}

// BenchmarkLookUp compares look-ups of a license with 1,000 devices with those of an unknown license.
func BenchmarkLookUp(b *testing.B) {
	key := putDevices(b, 1000, func(i int) store.DeviceCursor {
		return keyspace.DevicePosition(fmt.Sprintf("d-%d", i))
	})
	s, _ := weighedStore(b)
	for _, c := range []struct {
		name    string
		key     licensing.LicenseKey
		account string
	}{
		{"unknown", newKey(b), "acct_stranger"},
		{"of another account", key, "acct_stranger"},
		{"own", key, "acct_test"},
	} {
		b.Run(c.name, func(b *testing.B) {
			page := store.DevicePage{Limit: 1000, Owner: licensing.Owner{AccountID: c.account, Mode: licensing.Test}}
			for b.Loop() {
				if _, err := s.ReadLicense(b.Context(), c.key, page); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
