package kv

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestMovedSlots: a node that runs refuses requests for records, lists and events in slots that move away, as soon as
// the map moves the slots, and serves them again once the slots are back. No node starts on a store from which slots
// have moved.
func TestMovedSlots(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.fill()
	go l.store.FollowSlotMap(l.ctx())
	own, slot := licensing.LicenseRef(s.own), licensing.SlotOf(labOwner)
	write := func(m layout.SlotMap) {
		t.Helper()
		kvtest.Must(l.client.Put(l.ctx(), keyspace.SlotMapKey, string(m.Encode())))(t)
	}
	snapshot := kvtest.Must(l.store.Load(l.ctx(), store.Want{Ref: own}))(t)[0]
	event := kvtest.Must(l.store.History(l.ctx(), own, store.HistoryPage{Limit: 1}))(t).Events[0].ID
	load := func() error {
		_, err := l.store.Load(l.ctx(), store.Want{Ref: own})
		return err
	}
	requests := map[string]func() error{
		"a read": load,
		"a check of a remembered license": func() error {
			_, err := l.store.Confirm(l.ctx(), own, snapshot.Token)
			return err
		},
		"a change": func() error {
			_, err := l.store.Commit(l.ctx(), store.Change{Writes: []store.Write{{Ref: own, Token: snapshot.Token,
				Record: snapshot.Record}}})
			return err
		},
		"a look-up": func() error {
			_, err := l.store.ReadLicense(l.ctx(), s.own, store.DevicePage{Limit: 1})
			return err
		},
		"look-ups": func() error {
			_, err := l.store.ReadLicenses(l.ctx(), []licensing.LicenseKey{s.own}, 0)
			return err
		},
		"a list": func() error {
			_, err := l.store.ListOrders(l.ctx(), labOwner, "", store.Page{Limit: 1}, nil)
			return err
		},
		"a feed": func() error {
			_, err := l.store.ReadEvents(l.ctx(), labOwner, store.FeedPage{Limit: 1})
			return err
		},
		"an event": func() error {
			_, err := l.store.Event(l.ctx(), labOwner, event)
			return err
		},
		"a history": func() error {
			_, err := l.store.History(l.ctx(), own, store.HistoryPage{Limit: 1})
			return err
		},
	}
	refused := func() bool {
		err := load()
		return errors.Is(err, errElsewhere) && errors.Is(err, licensing.ErrUnavailable)
	}
	elsewhere := func() (names []string) {
		for name, request := range requests {
			if err := request(); errors.Is(err, errElsewhere) {
				names = append(names, name)
			} else if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return names
	}
	if err := l.store.OpenSlotMap(l.ctx()); err != nil || len(elsewhere()) > 0 {
		t.Fatalf("a new store: %v, refused: %q", err, elsewhere())
	}

	write(layout.SlotMap{{First: slot, Last: slot, Cell: "other"}})
	kvtest.Await(t, refused)
	if names := elsewhere(); len(names) != len(requests) {
		t.Errorf("of a slot that has moved, only these are refused: %q", names)
	}
	if _, err := l.store.Load(l.ctx(), store.Want{Ref: licensing.WebhooksRef(labListener)}); err != nil {
		t.Errorf("a record that has not moved: %v", err)
	}
	if _, err := l.store.ReadEvents(l.ctx(), labListener, store.FeedPage{Limit: 1}); err != nil {
		t.Errorf("a feed that has not moved: %v", err)
	}
	if err := l.store.OpenSlotMap(l.ctx()); !errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("a start: %v", err)
	}
	kvtest.Must(l.client.Put(l.ctx(), keyspace.SlotMapKey, "?"))(t)
	if err := l.store.OpenSlotMap(l.ctx()); !errors.Is(err, licensing.ErrInternal) || !refused() {
		t.Errorf("a map that can't be read: %v", err)
	}
	write(layout.SlotMap{})
	kvtest.Await(t, func() bool { return !refused() })
}

// awayForReads fails the first reads of keys.
type awayForReads struct {
	etcdserverpb.KVClient
	left atomic.Int32
}

func (a *awayForReads) Range(
	ctx context.Context, request *etcdserverpb.RangeRequest, opts ...grpc.CallOption,
) (*etcdserverpb.RangeResponse, error) {
	if a.left.Add(-1) >= 0 {
		return nil, rpctypes.ErrTimeout
	}
	return a.KVClient.Range(ctx, request, opts...)
}

// TestSlotMapIsReadAgain: a node learns of a map that it could not read when its watch began.
func TestSlotMapIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	slot := licensing.SlotOf(labOwner)
	moved := layout.SlotMap{{First: slot, Last: slot, Cell: "other"}}
	kvtest.Must(l.client.Put(l.ctx(), keyspace.SlotMapKey, string(moved.Encode())))(t)
	away := &awayForReads{KVClient: l.store.etcd.Remote}
	away.left.Store(3)
	l.store.etcd.KV = clientv3.NewKVFromKVClient(away, l.store.etcd.Native)
	go l.store.FollowSlotMap(l.ctx())
	kvtest.Await(t, func() bool { return l.store.moved.Load() != nil })
}
