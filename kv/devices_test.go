package kv

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// onGet calls a hook before each range read.
type onGet struct {
	clientv3.KV
	before func()
}

func (c *onGet) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	c.before()
	return c.KV.Get(ctx, key, opts...)
}

func hookedStore(t *testing.T, before func()) *Store {
	t.Helper()
	s, err := storeOver(clientv3.RetryKVClient(server.Client), server.Client, kvtest.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	learn(t, s)
	s.etcd.KV = &onGet{KV: s.etcd.KV, before: before}
	return s
}

// putDevices stores a license with many devices, at the places that position
// returns.
func putDevices(t testing.TB, count int, position func(i int) store.DeviceCursor) licensing.LicenseKey {
	t.Helper()
	l := newLicense(t, 0)
	l.CurrentDevices = count
	id := l.Key.ID()
	ctx := t.Context()
	ops := []clientv3.Op{clientv3.OpPut(keyspace.LicenseKey(id),
		string((&layout.License{License: *l, Spilled: true}).Encode()))}
	for i := range count {
		d := licensing.Device{ID: fmt.Sprintf("d-%d", i), BoundAt: kvtest.Time, LastSeenAt: kvtest.Time}
		at := position(i)
		ops = append(ops, clientv3.OpPut(keyspace.DevicesPrefix(id)+string(at[:]), string(layout.EncodeDevice(&d))))
		if len(ops) == 128 || i == count-1 {
			if _, err := server.Client.Txn(ctx).Then(ops...).Commit(); err != nil {
				t.Fatal(err)
			}
			ops = nil
		}
	}
	return l.Key
}

// TestClusteredDevices reads a page of a license whose devices all hash to the far end, which an end user can cause.
// The store must not read the empty slices before them one by one.
func TestClusteredDevices(t *testing.T) {
	const count = 5000
	key := putDevices(t, count, func(i int) store.DeviceCursor {
		return store.DeviceCursor{0xff, 0xff, 0xff, byte(i >> 8), byte(i)}
	})
	var reads atomic.Int32
	s := hookedStore(t, func() { reads.Add(1) })
	page := store.DevicePage{Limit: 1}
	view, err := s.ReadLicense(t.Context(), key, page)
	if err != nil || len(view.Devices) != 1 || view.Next == nil {
		t.Fatalf("%+v, %v", view, err)
	}
	if got := reads.Load(); got > 20 {
		t.Errorf("%d reads for one device", got)
	}
}

// TestPageReadsOnce reads a page of a large license with evenly spread devices like a page of a small license: in one
// slice of about the size of the page.
func TestPageReadsOnce(t *testing.T) {
	for _, count := range []int{100, 5000} {
		key := putDevices(t, count,
			func(i int) store.DeviceCursor { return keyspace.DevicePosition(fmt.Sprintf("d-%d", i)) })
		var reads atomic.Int32
		s := hookedStore(t, func() { reads.Add(1) })
		view, err := s.ReadLicense(t.Context(), key, store.DevicePage{Limit: 50})
		if err != nil || len(view.Devices) != 50 {
			t.Fatalf("%d devices: %v", len(view.Devices), err)
		}
		if got := reads.Load(); got > 2 {
			t.Errorf("%d devices: %d reads for a page", count, got)
		}
	}
}

// TestLookupAtOneRevision writes to a license, and compacts, while it is read.
func TestLookupAtOneRevision(t *testing.T) {
	s := openStore(t)
	ref, _ := createStored(t, s)
	ctx := t.Context()
	activate := func(device string) {
		if outcome, err := s.Commit(ctx, bind(t, ref, loadOne(t, s, ref, device), device)); err != nil ||
			!outcome.Landed {
			t.Errorf("%+v, %v", outcome, err)
		}
	}
	for i := range layout.MaxInline + 4 {
		activate(fmt.Sprint("d-", i))
	}
	reads := 0
	reader := hookedStore(t, func() {
		if reads++; reads > 2 {
			return
		}
		activate(fmt.Sprint("meanwhile-", reads))
		if reads == 1 {
			now, err := server.Client.Get(ctx, keyspace.CheckKey)
			if err == nil {
				_, err = server.Client.Compact(ctx, now.Header.Revision)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	view, err := reader.ReadLicense(ctx, keyOf(ref), store.DevicePage{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	if view.License.CurrentDevices != len(view.Devices) {
		t.Errorf("current_devices is %d, and %d devices are listed", view.License.CurrentDevices, len(view.Devices))
	}
}
