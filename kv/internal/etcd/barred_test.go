package etcd

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/etcdtest"
)

// TestBarredMembersAreNotAsked: while all members are barred, every way to ask them fails and leases
// are not kept alive. Afterward leases are kept alive again.
func TestBarredMembersAreNotAsked(t *testing.T) {
	t.Parallel()
	s, err := clientAt(t, t.Context(), etcdtest.Start(t, 1).Endpoints()...)
	if err != nil {
		t.Fatal(err)
	}
	s.members.cancel() // no probe says otherwise
	<-s.members.stopped
	ctx := t.Context()
	keep := func() <-chan *clientv3.LeaseKeepAliveResponse {
		t.Helper()
		lease, err := s.Native.Grant(ctx, 3)
		if err != nil {
			t.Fatal(err)
		}
		alive, err := s.Native.KeepAlive(ctx, lease.ID)
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
	why := fmt.Errorf("%w: by the test", ErrBarred)
	s.members.refusing.Store(&why)
	for name, ask := range map[string]func() error{
		"get":    func() error { return ping(s) },
		"list":   func() error { _, err := s.List(ctx, "test", "a"); return err },
		"scan":   func() error { _, err := s.Page(ctx, "test", "a", "b", 1, 0); return err },
		"getAll": func() error { _, err := s.GetAll(ctx, "test", []string{"a"}); return err },
		"count":  func() error { _, err := s.KV.Get(ctx, "a", clientv3.WithCountOnly()); return err },
		"txn": func() error {
			_, err := s.Txn(ctx, "test", nil, nil, []clientv3.Op{clientv3.OpGet("a")})
			return err
		},
		"swap": func() error { _, err := s.Transact("test", &etcdserverpb.TxnRequest{}); return err },
		"lease": func() error {
			_, err := s.UnderLease(ctx, "test", 3, "a", "",
				func(context.Context, clientv3.LeaseID) error { return nil })
			return err
		},
		"put":     func() error { _, err := s.KV.Put(ctx, "a", ""); return err },
		"status":  func() error { _, err := s.Native.Status(ctx, s.Native.Endpoints()[0]); return err },
		"members": func() error { _, err := s.Native.MemberList(ctx); return err },
		"watch": func() error {
			for response := range s.Native.Watch(ctx, "a") {
				return response.Err()
			}
			return nil
		},
	} {
		if err := ask(); !errors.Is(err, ErrBarred) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range alive { // until the client takes the lease for lost
	}
	if ctx.Err() != nil {
		t.Fatal("the lease is kept alive")
	}
	s.members.refusing.Store(nil)
	keep()
}
