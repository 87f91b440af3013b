package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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

// slowKV counts transactions and delays them, or refuses some.
type slowKV struct {
	etcdserverpb.KVClient
	delay  time.Duration
	refuse func(*etcdserverpb.TxnRequest) error // may be nil
	sent   atomic.Int64
}

// Txn makes a transaction after the delay, unless it is refused.
func (k *slowKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	k.sent.Add(1)
	if k.refuse != nil {
		if err := k.refuse(request); err != nil {
			return nil, err
		}
	}
	time.Sleep(k.delay)
	return k.KVClient.Txn(ctx, request, opts...)
}

// moveThrough makes a store send its reads and moves of keyspace.ListenKey through k.
func (k *slowKV) moveThrough(s *Store) {
	k.KVClient = s.etcd.Remote
	s.etcd.KV = clientv3.NewKVFromKVClient(k, s.etcd.Native)
}

// orphan stores an endpoint on a node that dies before keyspace.ListenKey moves.
func (l *eventsLab) orphan(owner licensing.Owner) {
	l.t.Helper()
	dies := l.open(nil)
	dies.moveEvery = time.Hour
	dies.fences.listeners.learned = time.Now()
	ctx, cancel := context.WithCancel(l.t.Context())
	written := make(chan struct{})
	go func() {
		<-written
		cancel()
	}()
	go l.awaitKey(keyspace.ListenRequestKey(owner), written)
	if _, err := dies.Commit(ctx, l.hooked(dies, owner, subscribe(owner))); err == nil {
		l.t.Fatal("the change took effect")
	}
}

// TestManyWaitForOneMove: look-ups wait for one move on a store whose etcd is slow. One of them moves
// keyspace.ListenKey, and the others send no request to etcd. A look-up beyond moveWaits of the same owner is refused
// at once; another owner's is not.
func TestManyWaitForOneMove(t *testing.T) {
	l := newHooksLab(t)
	owner := acct("herd")
	l.orphan(owner)
	s := l.open(nil)
	s.moveEvery = time.Hour
	s.fences.listeners.learned = time.Now()
	k := &slowKV{delay: 10 * time.Millisecond}
	k.moveThrough(s)
	look := func(ctx context.Context, owner licensing.Owner) error {
		_, err := s.Load(ctx, store.Want{Ref: licensing.WebhooksRef(owner)})
		return err
	}
	ctx, giveUp := context.WithCancel(t.Context())
	errs := make(chan error, moveWaits+1)
	for range moveWaits + 1 {
		go func() { errs <- look(ctx, owner) }()
	}
	if err := <-errs; !errors.Is(err, licensing.ErrOverloaded) { // the others wait
		t.Errorf("a look-up beyond moveWaits: %v", err)
	}
	if err := look(ctx, acct("bystander")); err != nil {
		t.Errorf("another owner: %v", err)
	}
	giveUp()
	for range moveWaits {
		if err := <-errs; !errors.Is(err, licensing.ErrUnavailable) {
			t.Errorf("a look-up that gave up: %v", err)
		}
	}
	k.sent.Store(0)
	s.moveEvery = 0
	var all sync.WaitGroup
	for range moveWaits {
		all.Go(func() {
			if err := look(t.Context(), owner); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := k.sent.Load(); n > 6 {
		t.Errorf("%d transactions for one move", n)
	}
	l.wantListeners(owner)
}

// TestClosingWaitsForNoMove reads the epoch while a request moves keyspace.ListenKey: a slow move
// does not keep events out of the feed.
func TestClosingWaitsForNoMove(t *testing.T) {
	l := newHooksLab(t)
	l.orphan(acct("slow"))
	s := l.open(nil)
	s.moveTurn <- struct{}{}
	ctx := t.Context()
	kvtest.Must(s.readOpenEpoch(ctx))(t)
	if ctx.Err() != nil {
		t.Error("the store knew the epoch only after the caller had given up")
	}
}

// TestWaitWithoutARequest waits for a request that is neither stored nor in effect, as after a restore: the wait ends.
func TestWaitWithoutARequest(t *testing.T) {
	l := newHooksLab(t)
	s := l.open(nil)
	k := &slowKV{}
	k.moveThrough(s)
	now := kvtest.Must(s.etcd.Native.Get(t.Context(), keyspace.ListenKey))(t).Header.Revision
	if err := s.awaitMove(t.Context(), now); err != nil || k.sent.Load() > 5 {
		t.Errorf("%v after %d transactions", err, k.sent.Load())
	}
}

// TestMoversDieBeforeTheyRemove makes more owners wait than one move names. Two movers die before they remove the
// requests that are in effect: in the end all owners listen.
func TestMoversDieBeforeTheyRemove(t *testing.T) {
	l := newHooksLab(t)
	const owners = moveOwners + 50
	for i := range owners {
		kvtest.Must(l.store.etcd.Native.Put(t.Context(),
			keyspace.ListenRequestKey(acct(fmt.Sprint("page", i))), string(layout.EncodeListenRequest(true))))(t)
	}
	kvtest.Must(l.store.etcd.Native.Put(t.Context(), keyspace.WebhooksMark, ""))(t)
	dies := l.open(nil)
	(&slowKV{refuse: func(request *etcdserverpb.TxnRequest) error {
		if child := request.Success[0].GetRequestTxn(); child != nil && len(child.Compare) == 1 {
			return rpctypes.ErrTimeout
		}
		return nil
	}}).moveThrough(dies)
	for range 2 {
		kvtest.Must(dies.readOpenEpoch(t.Context()))(t)
	}
	s := l.open(nil)
	for range 5 {
		kvtest.Must(s.readOpenEpoch(t.Context()))(t)
	}
	if n := len(l.listeners()); n != owners {
		t.Errorf("%d owners listen, of %d", n, owners)
	}
	l.wantNoRequests()
}

// TestUnreadableListenRequest damages an owner's request to listen: the owner listens, since missing events can't be
// added later.
func TestUnreadableListenRequest(t *testing.T) {
	l := newHooksLab(t)
	owner := acct("unread")
	l.orphan(owner)
	kvtest.Must(l.store.etcd.Native.Put(t.Context(), keyspace.ListenRequestKey(owner), "\x02"))(t)
	loadOne(t, l.open(nil), licensing.WebhooksRef(owner))
	l.wantListeners(owner)
	l.clean()
}

// TestRestoreBringsARequestBack restores a backup in which a request to listen waits, under
// a node that knows the request to be in effect.
func TestRestoreBringsARequestBack(t *testing.T) {
	t.Parallel()
	for name, look := range map[string]func(d *disaster, owner licensing.Owner){
		"the node looks by itself": func(d *disaster,
			_ licensing.Owner) {
			kvtest.Must(d.store.readOpenEpoch(d.ctx()))(d.t)
		},
		"the endpoint is looked up": func(d *disaster, owner licensing.Owner) {
			_ = d.store.learnListening(d.ctx())
			loadOne(d.t, d.store, licensing.WebhooksRef(owner))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisaster(t)
			l := &eventsLab{t: t, etcd: d.etcd, store: d.store}
			d.store.moveEvery = 0
			owner := licensing.Owner{AccountID: "acct_back", Mode: licensing.Test}
			kvtest.Must(d.store.readOpenEpoch(d.ctx()))(t)
			l.orphan(owner)
			d.backup = backUp(t, d.etcd)
			kvtest.Must(d.store.readOpenEpoch(d.ctx()))(t)
			l.wantListeners(labListener, owner)
			d.restore(keyspace.RevisionBump)
			l.etcd = d.etcd
			look(d, owner)
			l.wantListeners(labListener, owner)
		})
	}
}
