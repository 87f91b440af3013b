package kv

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/etcdtest"
	"licet/licensing"
	"licet/node/store"
)

// TestBarredMembersAreNotAsked: while all members are barred, every way to ask them fails and leases
// are not kept alive. Afterward leases are kept alive again.
func TestBarredMembersAreNotAsked(t *testing.T) {
	t.Parallel()
	s, err := openAt(t, t.Context(), etcdtest.Start(t, 1).Endpoints()...)
	if err != nil {
		t.Fatal(err)
	}
	s.etcd.members.cancel() // no probe says otherwise
	<-s.etcd.members.stopped
	ctx := testContext(t, time.Minute)
	keep := func() <-chan *clientv3.LeaseKeepAliveResponse {
		t.Helper()
		lease, err := s.etcd.Native.Grant(ctx, 3)
		if err != nil {
			t.Fatal(err)
		}
		alive, err := s.etcd.Native.KeepAlive(ctx, lease.ID)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, is := <-alive; !is {
				t.Fatal("a lease is not kept alive")
			}
		}
		return alive
	}
	alive := keep()
	why := fmt.Errorf("%w: by the test", errBarred)
	s.etcd.members.barred.Store(&why)
	for name, ask := range map[string]func() error{
		"Ping":   func() error { return s.Ping(ctx) },
		"list":   func() error { _, err := s.Nodes(ctx); return err },
		"scan":   func() error { _, err := s.etcd.scan(ctx, "test", "a", "b", 1, 0); return err },
		"due":    func() error { _, err := s.Due(ctx, licensing.DueOrderEnd, time.Now(), "", 1); return err },
		"claims": func() error { _, err := s.dueClaims(ctx, time.Now(), 1); return err },
		"count":  func() error { _, err := s.CountKeys(ctx); return err },
		"txn": func() error {
			_, err := s.etcd.txn(ctx, "test", nil, nil, []clientv3.Op{clientv3.OpGet("a")})
			return err
		},
		"swap":    func() error { _, err := s.etcd.transact("test", &etcdserverpb.TxnRequest{}); return err },
		"listen":  func() error { return s.learnListening(ctx) },
		"node":    func() error { _, err := s.register(ctx, store.Registration{}); return err },
		"worker":  func() error { return s.Work(ctx, func(context.Context, store.DeliveryWorker) error { return nil }) },
		"put":     func() error { _, err := s.etcd.KV.Put(ctx, "a", ""); return err },
		"status":  func() error { _, err := s.etcd.Native.Status(ctx, s.etcd.Native.Endpoints()[0]); return err },
		"members": func() error { _, err := s.etcd.Native.MemberList(ctx); return err },
		"watch": func() error {
			for response := range s.etcd.Native.Watch(ctx, "a") {
				return response.Err()
			}
			return nil
		},
	} {
		if err := ask(); !errors.Is(err, errBarred) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range alive { // until the client takes the lease for lost
	}
	if ctx.Err() != nil {
		t.Fatal("the lease is kept alive")
	}
	s.etcd.members.barred.Store(nil)
	keep()
}
