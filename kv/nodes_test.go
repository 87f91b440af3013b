package kv

import (
	"context"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/node/store"
)

// awaitNode waits until a node is registered as it should be, or not at all.
func awaitNode(t *testing.T, s *Store, want store.Registration, there bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		nodes, err := s.Nodes(kvtest.Context(t, 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(nodes, want) == there {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the nodes are %+v", nodes)
		}
	}
}

func registration(s *Store) store.Registration {
	return store.Registration{Incarnation: s.Incarnation(), Address: "127.0.0.1:7070", PublicKey: [32]byte{1, 2, 3}}
}

// TestRegister: a node is registered while it lives, again after its lease was
// lost, and gone as soon as it leaves.
func TestRegister(t *testing.T) {
	t.Parallel()
	s, other := openStore(t), openStore(t)
	want := registration(s)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Register(ctx, want)
	}()
	awaitNode(t, other, want, true)

	kv, err := server.Client.Get(t.Context(), layout.NodeKey(s.Incarnation()))
	if err != nil || len(kv.Kvs) != 1 || kv.Kvs[0].Lease == 0 {
		t.Fatalf("%+v, %v", kv, err)
	}
	lost := clientv3.LeaseID(kv.Kvs[0].Lease)
	if _, err := server.Client.Revoke(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	awaitNode(t, other, want, true)

	leave()
	<-ended
	awaitNode(t, other, want, false)
}

// TestBadRegistrations are left out, and verify names them.
func TestBadRegistrations(t *testing.T) {
	for name, x := range map[string]struct{ rest, value string }{
		"no value":   {"12345678", ""},
		"short name": {"1234567", string(layout.EncodeNode(store.Registration{Address: "a:1", PublicKey: [32]byte{1}}))},
		"no address": {"12345678", string(layout.EncodeNode(store.Registration{PublicKey: [32]byte{1}}))},
		"no key":     {"12345678", string(layout.EncodeNode(store.Registration{Address: "a:1"}))},
		"newer form": {"12345678", "\x02"},
	} {
		if got, err := layout.DecodeNode(x.rest, []byte(x.value)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
