package kv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// spaceLab is a node over an etcd with a tiny quota.
type spaceLab struct {
	t     *testing.T
	etcd  *clientv3.Client
	store *Store
	node  *service.Service
	owner licensing.Owner
	keys  []licensing.LicenseKey
	sent  atomic.Int64 // requests that write and were sent to etcd
}

func newSpaceLab(t *testing.T) *spaceLab { return newSpaceLabOf(t, 2<<20) }

// newSpaceLabOf makes a lab whose etcd has a quota in bytes. tune may change other settings.
func newSpaceLabOf(t *testing.T, quota int64, tune ...func(*embed.Config)) *spaceLab {
	t.Helper()
	server := embeddedtest.StartTuned(t, t.TempDir(), func(cfg *embed.Config) {
		embeddedtest.Quick(cfg)
		cfg.QuotaBackendBytes = quota
		for _, change := range tune {
			change(cfg)
		}
	})
	l := &spaceLab{t: t, etcd: embeddedtest.Dial(t, server),
		owner: licensing.Owner{AccountID: "acct_space", Mode: licensing.Test}}
	var err error
	if l.store, err = openAt(t, l.ctx(), server.Endpoints()...); err != nil {
		t.Fatal(err)
	}
	if err := l.store.OpenEpoch(l.ctx()); err != nil {
		t.Fatal(err)
	}
	remote := &kvtest.FaultyKV{KVClient: l.store.etcd.Remote,
		Next: func() kvtest.Fault { l.sent.Add(1); return kvtest.Fault{} }}
	l.store.etcd.Remote, l.store.etcd.KV = remote, clientv3.NewKVFromKVClient(remote, l.store.etcd.Native)
	keys, err := l.store.LicenseKeys(l.ctx(), kvtest.Ring(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	l.node = service.New(service.Config{
		Config: node.Config{
			Records:     l.store,
			Queries:     l.store,
			LicenseKeys: keys,
			Clock:       time.Now,
			Metrics:     kvtest.Metrics(),
			Log:         zerolog.Nop(),
		},
		Keys:    l.store,
		Sweeps:  l.store,
		Events:  l.store,
		Ring:    kvtest.Ring(t),
		Entropy: rand.Reader,
	})
	unlimited := 0
	granted, _, err := l.node.Grant(l.ctx(), l.owner,
		service.Grant{ProductID: "pro", Quantity: 8, MaxDevices: &unlimited})
	if err != nil {
		t.Fatal(err)
	}
	for i := range granted {
		l.keys = append(l.keys, granted[i].License.Key)
	}
	return l
}

func (l *spaceLab) ctx() context.Context { return l.t.Context() }

func (l *spaceLab) activate(i int) error {
	_, err := l.node.Activate(l.ctx(),
		licensing.Activate{Target: licensing.Target{Key: l.keys[i%len(l.keys)]}, Device: fmt.Sprint("device ", i)})
	return err
}

func (l *spaceLab) lookUp(i int) {
	if _, err := l.node.License(l.ctx(), l.owner, l.keys[i%len(l.keys)], store.DevicePage{Limit: 10}); err != nil {
		l.t.Errorf("a look-up: %v", err)
	}
}

// fill writes until etcd raises its alarm, and waits until the store knows of the alarm.
func (l *spaceLab) fill() {
	l.t.Helper()
	ballast := strings.Repeat("x", 64<<10)
	for {
		_, err := l.etcd.Put(l.ctx(), "ballast", ballast)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			break
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
	kvtest.Await(l.t, func() bool { return l.store.Space() == store.SpaceFull })
}

// makeRoom frees space and ends the alarm, as an operator does.
func (l *spaceLab) makeRoom() {
	l.t.Helper()
	now, err := l.etcd.Get(l.ctx(), "ballast", clientv3.WithKeysOnly())
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.etcd.Compact(l.ctx(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.etcd.Defragment(l.ctx(), l.etcd.Endpoints()[0]); err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.etcd.AlarmDisarm(l.ctx(), &clientv3.AlarmMember{}); err != nil {
		l.t.Fatal(err)
	}
}

// TestFullStore fills etcd up to its quota. Under the alarm the store refuses changes without a request to etcd, so
// that they hold no places and look-ups go on. After the alarm the store makes changes again.
func TestFullStore(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	if err := l.activate(0); err != nil {
		t.Fatal(err)
	}
	l.fill()
	l.sent.Store(0)
	var activations, lookUps sync.WaitGroup
	refused := make(chan struct{})
	for i := range 200 {
		activations.Go(func() {
			if err := l.activate(1 + i); !licensing.NotExecuted(err) {
				t.Errorf("an activation under the alarm: %v", err)
			}
		})
	}
	for i := range 64 {
		lookUps.Go(func() {
			for l.lookUp(i); !isClosed(refused); l.lookUp(i) {
			}
		})
	}
	activations.Wait()
	close(refused)
	lookUps.Wait()
	if sent := l.sent.Load(); sent != 0 {
		t.Errorf("under the alarm %d requests with writes were sent", sent)
	}
	if err := l.activate(0); err != nil {
		t.Errorf("a bound device under the alarm: %v", err)
	}
	if err := l.activate(1); err == nil || !strings.Contains(err.Error(), "the store is full") {
		t.Errorf("the refusal does not say why: %v", err)
	}
	if _, _, err := l.node.PutProduct(l.ctx(),
		licensing.PutProduct{ID: "new", Owner: l.owner, Terms: licensing.DefaultTerms()}); !licensing.NotExecuted(err) {
		t.Errorf("a product under the alarm: %v", err)
	}
	if summary, err := verify.Run(l.ctx(), l.store, verify.Config{}); err != nil || summary.Violations != 0 {
		t.Errorf("verify under the alarm: %+v, %v", summary, err)
	}
	l.makeRoom()
	kvtest.Await(t, func() bool { return l.activate(1) == nil })
	if l.store.Space() == store.SpaceFull {
		t.Error("changes land, but the store still assumes the alarm")
	}
}

// TestAlarmFoundByAChange makes a change while the alarm is on and the store does not know of it: the store returns
// "outcome unknown", without waiting for the deadline.
func TestAlarmFoundByAChange(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	l.fill()
	for range 5 {
		l.sent.Store(0)
		l.store.etcd.SetSpace(store.SpaceFree)
		err := l.activate(1)
		switch sent := l.sent.Load(); {
		case sent == 0 && licensing.NotExecuted(err): // a probe was quicker
		case sent == 1 && licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown:
		default:
			t.Errorf("%d requests were sent, and the answer is %v", sent, err)
		}
	}
	if l.store.Space() != store.SpaceFull {
		t.Error("the store did not learn of the alarm")
	}
}

// TestNoSpaceWithoutAlarm answers a change with NoSpace while no alarm is on: the next probe finds no alarm, and
// changes go on.
func TestNoSpaceWithoutAlarm(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	answer := kvtest.Script(kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrNoSpace})
	l.store.etcd.Remote.(*kvtest.FaultyKV).Next = answer
	err := l.activate(1)
	if err != nil && licensing.ReasonOf(err) != licensing.ReasonOutcomeUnknown {
		t.Errorf("the change in doubt: %v", err)
	}
	kvtest.Await(t, func() bool { return l.activate(2) == nil })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestStartWhileFull starts a node on a store whose alarm is on: the node serves look-ups, and
// takes changes once there is room, in an epoch of its own.
func TestStartWhileFull(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	if err := l.activate(0); err != nil {
		t.Fatal(err)
	}
	l.fill()
	store, err := openAt(t, l.ctx(), l.etcd.Endpoints()...)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := store.LicenseKeys(l.ctx(), kvtest.Ring(t), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.OpenEpoch(l.ctx()); err != nil {
		t.Fatal(err)
	}
	before := l.store.fences.known()
	l.store, l.node = store, service.New(service.Config{
		Config: node.Config{
			Records:     store,
			Queries:     store,
			LicenseKeys: keys,
			Clock:       time.Now,
			Metrics:     kvtest.Metrics(),
			Log:         zerolog.Nop(),
		},
		Keys:    store,
		Sweeps:  store,
		Events:  store,
		Ring:    kvtest.Ring(t),
		Entropy: rand.Reader,
	})
	l.lookUp(0)
	if err := l.activate(0); err != nil {
		t.Errorf("a bound device under the alarm: %v", err)
	}
	if err := l.activate(1); !licensing.NotExecuted(err) || !strings.Contains(err.Error(), "the store is full") {
		t.Errorf("an activation under the alarm: %v", err)
	}
	if _, err := store.readOpenEpoch(l.ctx()); err != nil || store.fences.known() != before {
		t.Fatalf("epoch %d, not %d, %v", store.fences.known(), before, err)
	}
	l.makeRoom()
	changes := 0
	kvtest.Await(t, func() bool {
		changes++
		_, _, err := l.node.CreateOrder(l.ctx(), l.owner,
			service.NewOrder{ProductID: "pro", Amount: 100, Currency: "EUR"})
		return err == nil
	})
	if now := store.fences.known(); now <= before || store.fences.owes.Load() {
		t.Errorf("the first event after %d tries is in epoch %d, like the events of the node before", changes, now)
	}
}

// TestMoveWhileFull: under the alarm, a change that waits for a move of keyspace.ListenKey is refused at once.
func TestMoveWhileFull(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	asked, err := l.etcd.Put(l.ctx(), keyspace.ListenRequestKey(l.owner), string(layout.EncodeListenRequest(true)))
	if err != nil {
		t.Fatal(err)
	}
	l.fill()
	if err := l.store.awaitMove(t.Context(), asked.Header.Revision); !errors.Is(err,
		etcd.ErrFull) {
		t.Errorf("a wait for a move under the alarm: %v", err)
	}
}

// TestRemovalsWhileFull: under the alarm, a removal succeeds that shares its request with changes that put keys.
func TestRemovalsWhileFull(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	if _, err := l.etcd.Put(l.ctx(), "gone", "x"); err != nil {
		t.Fatal(err)
	}
	l.fill()
	item := func(op *etcdserverpb.RequestOp) *batchItem {
		return &batchItem{then: []*etcdserverpb.RequestOp{op}, reads: [][]byte{[]byte("gone")},
			done: make(chan struct{})}
	}
	put, removal := item(etcd.Put([]byte("new"), nil)), item(etcd.Delete([]byte("gone")))
	l.store.sendWrites([]*batchItem{put, removal})
	if !errors.Is(put.reply.err, etcd.ErrFull) {
		t.Errorf("the change that puts a key: %+v", put.reply)
	}
	if removal.reply.err != nil || !removal.reply.succeeded {
		t.Errorf("the removal: %+v", removal.reply)
	}
	if left, err := l.etcd.Get(l.ctx(), "gone"); err != nil || left.Count != 0 {
		t.Errorf("the key is still there: %v, %v", left, err)
	}
}

// TestLeasesWhileFull: under the alarm, the store asks etcd for no lease.
func TestLeasesWhileFull(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t)
	l.fill()
	put, err := l.store.etcd.UnderLease(l.ctx(), "test", 10, "leased", "",
		func(context.Context, clientv3.LeaseID) error {
			t.Error("there is a lease")
			return nil
		})
	if put || !errors.Is(err, etcd.ErrFull) {
		t.Errorf("a lease under the alarm: %v, %v", put, err)
	}
}

// TestCompactHistory fills etcd with history: the second call compacts it, and the store has space again. With space,
// calls compact nothing.
func TestCompactHistory(t *testing.T) {
	l := newSpaceLabOf(t, 8<<20, func(cfg *embed.Config) {
		cfg.BackendBatchLimit = 1 // a commit for each request: etcd knows its size
	})
	compact := func() {
		t.Helper()
		if err := l.store.CompactHistory(l.ctx()); err != nil {
			t.Fatal(err)
		}
	}
	// Each value is smaller than a page: large values leave gaps in the file that the next values don't fit into.
	write := func(values int) (revision int64) {
		t.Helper()
		var puts []clientv3.Op
		for i := range values {
			puts = append(puts, clientv3.OpPut(fmt.Sprint("changed", i), strings.Repeat("x", 1<<10)))
		}
		put, err := l.etcd.Txn(l.ctx()).Then(puts...).Commit()
		if err != nil {
			t.Fatal(err)
		}
		return put.Header.Revision
	}
	wantHistory := func(revision int64, want bool) {
		t.Helper()
		_, err := l.etcd.Get(l.ctx(), "changed0", clientv3.WithRev(revision))
		if gone := errors.Is(err, rpctypes.ErrCompacted); gone == want || !gone && err != nil {
			t.Fatalf("history at revision %d: %v", revision, err)
		}
	}
	first := write(1)
	compact()
	compact()
	wantHistory(first, true)
	inUse := func() float64 {
		t.Helper()
		status, err := l.etcd.Status(l.ctx(), l.etcd.Endpoints()[0])
		if err != nil {
			t.Fatal(err)
		}
		return float64(status.DbSizeInUse) / float64(status.DbSizeQuota)
	}
	for inUse() < 0.91 { // well below the share of the file from which the reserve would stay on
		write(64)
	}
	kvtest.Await(t, func() bool { return l.store.Space() == store.SpaceReserve })
	compact()
	wantHistory(first, true)
	compact()
	wantHistory(first, false)
	kvtest.Await(t, func() bool {
		write(1) // a commit frees the pages that the commit before it has emptied
		return l.store.Space() == store.SpaceFree
	})
	compact()
	latest := write(1)
	write(1)
	compact()
	compact()
	wantHistory(latest, true)
}
