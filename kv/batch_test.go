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
	"licet/licensing"
	"licet/node/store"
)

// batched makes changes share one request, which the batcher sends as usual.
func batched(t *testing.T, s *Store, changes ...store.Change) ([]store.Outcome, []error) {
	t.Helper()
	ref, snapshot := createStored(t, s, "first")
	// Wait until the request of the creation has its answer: otherwise the next request could carry some of the
	// changes.
	awaitIdle(t, &s.writes)
	blocked := make(chan struct{})
	release := sync.OnceFunc(func() { close(blocked) })
	send := s.writes.send
	s.writes.few, s.writes.most = 1, 1
	s.writes.send = func(batch []*batchItem) {
		<-blocked
		send(batch)
	}
	defer func() {
		release()
		awaitIdle(t, &s.writes)
		s.writes.send, s.writes.few, s.writes.most = send, fewFlights, mostFlights
	}()
	// This request takes the only place in flight, so the others must wait together.
	outcomes, errs := make([]store.Outcome, len(changes)), make([]error, len(changes))
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := s.Commit(t.Context(), bind(t, ref, snapshot, "first")); err != nil {
			t.Errorf("the change in front: %v", err)
		}
	})
	awaitBatcher(t, &s.writes, "the first is under way",
		func() bool { return s.writes.dispatching > 0 && len(s.writes.waiting) == 0 })
	for i, change := range changes {
		group.Go(func() { outcomes[i], errs[i] = s.Commit(t.Context(), change) })
	}
	awaitWaiting(t, &s.writes, len(changes))
	release()
	group.Wait()
	return outcomes, errs
}

// countedStore notes the form of its writes: how many operations each request has at its top level, and whether these
// are transactions.
func countedStore(t *testing.T, next func() kvtest.Fault) (*Store, func() []string) {
	t.Helper()
	kv := &shapesKV{FaultyKV: &kvtest.FaultyKV{KVClient: clientv3.RetryKVClient(server.Client), Next: next}}
	kv.FaultyKV.Note = kv.note
	s, err := storeOver(kv, server.Client, kvtest.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	learn(t, s)
	return s, kv.shapes
}

type licenseAndChange struct {
	ref    licensing.Ref
	change store.Change
}

// TestBatch puts changes of several licenses into one request, one of which has
// lost to a rival: the others land, whatever form the request has.
func TestBatch(t *testing.T) {
	lost := rpctypes.ErrTimeout
	for _, c := range []struct {
		name   string
		losers int
		nested bool // from the start
		faults []kvtest.Fault
		want   []string // the requests' forms
	}{
		{name: "none loses", want: []string{"flat 3"}},
		{name: "one loses", losers: 1, want: []string{"flat 3", "nested 3"}},
		{name: "two lose, nested from the start", losers: 2, nested: true, want: []string{"nested 3"}},
		{name: "the answer is lost, and it was made", faults: []kvtest.Fault{{Apply: kvtest.AppliedNow, Tell: lost}},
			want: []string{"flat 3", "nested 3"}},
		{name: "the answer is lost, and it was not made",
			faults: []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: lost}}, want: []string{"flat 3", "nested 3"}},
		{name: "the answer is lost, and it is made behind our back", losers: 1, faults: []kvtest.Fault{{},
			{Apply: kvtest.AppliedLate, Tell: lost}}, want: []string{"flat 3", "nested 3", "nested 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, shapes := countedStore(t, kvtest.Script())
			var all []licenseAndChange
			var changes []store.Change
			for i := range 3 {
				ref, snapshot := createStored(t, s, "a")
				change := bind(t, ref, snapshot, "a")
				all = append(all, licenseAndChange{ref, change})
				changes = append(changes, change)
				if i < c.losers {
					rivals(t, ref, 1)
				}
			}
			if c.nested {
				s.nested.Store(nestedAfterLoss)
			}
			s.etcd.Remote.(*shapesKV).FaultyKV.Next = kvtest.Script(append([]kvtest.Fault{{}, {}}, c.faults...)...)
			before := len(shapes())
			outcomes, errs := batched(t, s, changes...)
			for i := range all {
				if errs[i] != nil || outcomes[i].Landed != (i >= c.losers) {
					t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
				}
				if after := loadOne(t, s, all[i].ref, "a"); after.Record.Devices["a"].Bound != (i >= c.losers) {
					t.Errorf("license %d: bound is %v", i, after.Record.Devices["a"].Bound)
				}
				if i < c.losers && outcomes[i].Rivals[0].Record.License.CurrentDevices != 1 {
					t.Errorf("the outcome of change %d lacks the rival that it lost to: %+v", i, outcomes[i].Rivals)
				}
			}
			// The first two requests are those of the license in front.
			got := shapes()[before+2:]
			if lost := c.losers > 0 && !c.nested; lost != (s.nested.Load() == nestedAfterLoss) {
				t.Errorf("%d of the next batches go nested", s.nested.Load())
			}
			// Re-issues leave when their pauses end, so they may go one by one.
			if len(c.faults) > 0 {
				got, c.want = got[:1], c.want[:1]
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("requests %v, want %v", got, c.want)
			}
		})
	}
}

// TestBatchSentTwice sends a batch twice: the first copy lands, and the second copy is refused. Whatever happens to
// the next request, no caller gets the answer that nothing was done.
func TestBatchSentTwice(t *testing.T) {
	twice := kvtest.Fault{Apply: kvtest.AppliedTwice, Tell: nil}
	for name, faults := range map[string][]kvtest.Fault{
		"nothing else":         {twice},
		"then it is refused":   {twice, {Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTooManyRequests}},
		"then no answer comes": {twice, {Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTimeout}},
	} {
		t.Run(name, func(t *testing.T) {
			s, shapes := countedStore(t, kvtest.Script())
			var changes []store.Change
			for range 3 {
				ref, snapshot := createStored(t, s, "a")
				changes = append(changes, bind(t, ref, snapshot, "a"))
			}
			s.etcd.Remote.(*shapesKV).FaultyKV.Next = kvtest.Script(append([]kvtest.Fault{{}, {}}, faults...)...)
			before := len(shapes())
			outcomes, errs := batched(t, s, changes...)
			for i := range outcomes {
				if errs[i] != nil || !outcomes[i].Landed {
					t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
				}
			}
			if got := shapes()[before+2:]; len(got) < 2 || got[0] != "flat 3" || got[1] != "nested 3" {
				t.Errorf("requests %v", got)
			}
		})
	}
}

// TestBatchRejected: etcd refuses a batch because of the form of one change. Only that change fails.
func TestBatchRejected(t *testing.T) {
	s, shapes := countedStore(t, kvtest.Script())
	good, bad := putting("lc2/test/"+newKey(t).String()), putting("lc2/test/"+newKey(t).String())
	bad.then = append(bad.then, bad.then[0]) // etcd: duplicate key given in txn request
	good.done, bad.done = make(chan struct{}), make(chan struct{})
	s.sendWrites([]*batchItem{bad, good})
	<-good.done
	<-bad.done
	if good.reply.err != nil || !good.reply.succeeded {
		t.Errorf("the valid change: %+v", good.reply)
	}
	if !errors.Is(bad.reply.err, rpctypes.ErrDuplicateKey) {
		t.Errorf("the invalid change: %+v", bad.reply)
	}
	if got := fmt.Sprint(shapes()); got != "[flat 3 flat 2 flat 1]" {
		t.Errorf("requests %v", got)
	}
}

// TestBatchInDoubt: a change that may have landed already would fail a flat request of all changes, so its batch is
// nested from the start.
func TestBatchInDoubt(t *testing.T) {
	s, shapes := countedStore(t, kvtest.Script())
	mate := putting("lc2/test/" + t.Name() + "/" + newKey(t).String())
	inDoubt := putting("lc2/test/" + t.Name() + "/" + newKey(t).String())
	inDoubt.inDoubt = true
	mate.done, inDoubt.done = make(chan struct{}), make(chan struct{})
	s.sendWrites([]*batchItem{mate, inDoubt})
	<-mate.done
	<-inDoubt.done
	if !mate.reply.succeeded || !inDoubt.reply.succeeded {
		t.Errorf("got %+v and %+v", mate.reply, inDoubt.reply)
	}
	if got := fmt.Sprint(shapes()); got != "[nested 2]" {
		t.Errorf("requests %v", got)
	}
}

// TestBatchedReads: the reads of many callers share one request.
func TestBatchedReads(t *testing.T) {
	s, _ := countedStore(t, kvtest.Script())
	const licenses = 20
	var refs []licensing.Ref
	for range licenses {
		ref, _ := createStored(t, s)
		refs = append(refs, ref)
	}
	blocked := make(chan struct{})
	sizes := make(chan int, licenses+1)
	awaitIdle(t, &s.reads)
	send := s.reads.send
	s.reads.few, s.reads.most = 1, 1
	s.reads.send = func(batch []*batchItem) {
		sizes <- len(batch)
		<-blocked
		send(batch)
	}
	var group sync.WaitGroup
	load := func(ref licensing.Ref) {
		group.Go(func() {
			if l := loadOne(t, s, ref, "a").Record.License; l == nil || licensing.LicenseRef(l.Key) != ref {
				t.Errorf("asked for %s, got %+v", ref.ID, l)
			}
		})
	}
	load(refs[0])
	if got := <-sizes; got != 1 {
		t.Fatalf("the first read was sent among %d", got)
	}
	for _, ref := range refs[1:] {
		load(ref)
	}
	awaitWaiting(t, &s.reads, licenses-1)
	close(blocked)
	group.Wait()
	if got := <-sizes; got != licenses-1 {
		t.Errorf("the other reads were sent in several batches, the first of %d", got)
	}
}

// shapesKV notes the form of each write.
type shapesKV struct {
	*kvtest.FaultyKV
	mu   sync.Mutex
	seen []string
}

func (k *shapesKV) shapes() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.seen...)
}

func (k *shapesKV) note(request *etcdserverpb.TxnRequest) {
	form := "flat"
	if request.Success[0].GetRequestTxn() != nil {
		form = "nested"
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen = append(k.seen, fmt.Sprint(form, " ", len(request.Success)))
}

// panickingKV panics instead of sending transactions while its switch is on.
type panickingKV struct {
	etcdserverpb.KVClient
	panics atomic.Bool
}

func (k *panickingKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	if k.panics.Load() {
		panic("a bug")
	}
	return k.KVClient.Txn(ctx, request, opts...)
}

// TestBatchPanic: a panic on the way to etcd leaves the changes of its batch in doubt and fails its reads. The process
// goes on, and later requests succeed.
func TestBatchPanic(t *testing.T) {
	s, _ := countedStore(t, kvtest.Script())
	remote := &panickingKV{KVClient: s.etcd.Remote}
	s.etcd.Remote = remote
	ref, snapshot := createStored(t, s, "a")
	remote.panics.Store(true)
	if _, err := s.Load(t.Context(), store.Want{Ref: ref}); !errors.Is(err,
		licensing.ErrUnavailable) {
		t.Errorf("a read: %v, want ErrUnavailable", err)
	}
	if _, err := s.Commit(kvtest.Context(t, 50*time.Millisecond), bind(t, ref, snapshot, "a")); !errors.Is(err,
		licensing.ErrOutcomeUnknown) {
		t.Errorf("a change: %v, want ErrOutcomeUnknown", err)
	}
	remote.panics.Store(false)
	outcome, err := s.Commit(t.Context(), bind(t, ref, loadOne(t, s, ref, "b"), "b"))
	if err != nil || !outcome.Landed {
		t.Errorf("a change afterwards: %+v, %v", outcome, err)
	}
}

// TestBatchOfNothing puts changes without effect into one request, on licenses whose devices have keys of their own:
// each is a swap nevertheless.
func TestBatchOfNothing(t *testing.T) {
	s, _ := countedStore(t, kvtest.Script())
	var changes []store.Change
	for range 3 {
		l := licensing.LicenseRef(putDevices(t, 20,
			func(i int) store.DeviceCursor { return keyspace.DevicePosition(fmt.Sprintf("d-%d", i)) }))
		snapshot := loadOne(t, s, l, "d-1", "d-2")
		changes = append(changes,
			store.Change{Writes: []store.Write{{Ref: l, Token: snapshot.Token, Record: snapshot.Record}}})
	}
	outcomes, errs := batched(t, s, changes...)
	for i := range changes {
		if errs[i] != nil || !outcomes[i].Landed {
			t.Errorf("change %d: %+v, %v", i, outcomes[i], errs[i])
		}
		if outcome, err := s.Commit(t.Context(), changes[i]); err != nil || outcome.Landed {
			t.Errorf("the same change %d, made again, was not lost: %+v, %v", i, outcome, err)
		}
	}
}
