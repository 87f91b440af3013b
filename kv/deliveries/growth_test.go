package deliveries

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv"
	"licet/kv/deliveries/deliveriestest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// openCounted opens a store of records and the deliveries beside it.
func openCounted(t *testing.T) (*kv.Store, *Store) {
	t.Helper()
	s := openRecords(t, kvtest.Metrics())
	return s, New(s)
}

// growthOf compares the growth of an owner that stores note with what verify.Sizes counts.
type growthOf struct {
	owner  licensing.Owner
	stores []*kv.Store
	base   licensing.Size // what the owner had stored before
	noted  licensing.Size // since then
	latest licensing.Size // what the owner stores more since then
}

func (g *growthOf) stored(t *testing.T) licensing.Size {
	t.Helper()
	ctx := t.Context()
	at := kvtest.Must(own.Client.Get(ctx, keyspace.CheckKey))(t).Header.Revision
	return kvtest.Must(verify.Sizes(ctx, g.stores[0], at, 0))(t)[g.owner]
}

func (g *growthOf) compare(t *testing.T, when string) {
	t.Helper()
	for _, s := range g.stores {
		for _, c := range s.TakeGrowth() {
			if c.Owner == g.owner {
				g.noted = g.noted.Plus(c.Size)
			}
		}
	}
	g.latest = g.stored(t).Minus(g.base)
	if g.noted != g.latest {
		t.Errorf("%s: the growth is %+v, and the endpoint has %+v", when, g.noted, g.latest)
	}
}

// TestGrowthIsWhatIsStored compares the growth that deliveries note with what verify.Sizes counts: through checkpoints,
// the bounds of the log, replays, other holders, and the sweep of the deleted endpoint by two nodes.
func TestGrowthIsWhatIsStored(t *testing.T) {
	owner, endpoint := ownEndpoint(t)
	first, s := openCounted(t)
	second, other := openCounted(t)
	g := growthOf{owner: owner, stores: []*kv.Store{first, second}}
	g.base = g.stored(t)
	ctx := t.Context()

	claim := licensing.Claim{Fingerprint: [32]byte{1}, CreatedAt: kvtest.Time, EndpointID: endpoint}
	once := store.Write{Ref: licensing.ClaimRef(owner, strings.Repeat("h", 32)),
		Record: licensing.Record{Claim: &claim}}
	for i, claims := range [][]store.Write{{once}, nil} {
		dead := store.Replay{ID: fmt.Sprint(i), Dead: true}
		if err := other.AddReplay(ctx, owner, endpoint, dead, claims...); err != nil {
			t.Fatal(err)
		}
	}
	g.compare(t, "replays")
	if g.latest.Keys != 4 {
		t.Errorf("%+v, want two replays, a claim and its place", g.latest)
	}

	hold := holdOf(t, newWorker(t, s), owner, endpoint)
	checkpoint := func(done store.Checkpoint) {
		t.Helper()
		if err := hold.Checkpoint(ctx, done); err != nil {
			t.Fatal(err)
		}
	}
	all := messages(0, 1700)
	all[5].Answer = "an answer that is stored with the message"
	checkpoint(store.Checkpoint{Delivered: all[600:603], Pending: all[:400], Dead: all[400:600], EndJobs: []string{"0"},
		PutJobs: []store.Replay{{ID: "1", Dead: true, Place: "evt_000500"}}})
	g.compare(t, "one checkpoint of several transactions")
	for n := range 5 {
		checkpoint(store.Checkpoint{Delivered: all[600+300*n/2 : 900+300*n/2]})
	}
	g.compare(t, "a log that drops pages")
	longer := all[:10]
	for i := range longer {
		longer[i].Attempts = append(longer[i].Attempts, longer[i].Attempts...)
	}
	checkpoint(store.Checkpoint{Pending: longer, Dead: all[10:20], Delivered: all[395:405]})
	g.compare(t, "messages that change their state")

	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	hold = holdOf(t, newWorker(t, other), owner, endpoint)
	checkpoint(store.Checkpoint{Pending: all[600:1700], EndJobs: []string{"1"}})
	g.compare(t, "another holder")

	deliveriestest.PutEndpoints(own.Client)(t, owner, nil, endpoint)
	g.base = g.stored(t).Minus(g.noted) // the test has written the owner's record itself
	for n := 1; n > 0; {
		n = 0
		for _, s := range []*Store{s, other} {
			n += kvtest.Must(s.SweepWebhooks(ctx))(t)
			g.compare(t, "swept")
		}
	}
	if g.latest.Keys != 2 {
		t.Errorf("%+v, want a claim and its place", g.latest)
	}
}

// TestGrowthOfRepeatedWrites: a checkpoint or a replay that was refused before counts once. One whose answer is lost
// counts with the next recount.
func TestGrowthOfRepeatedWrites(t *testing.T) {
	t.Parallel()
	owner, endpoint := ownEndpoint(t)
	on, s := openCounted(t)
	g := growthOf{owner: owner, stores: []*kv.Store{on}}
	g.base = g.stored(t)
	hold := holdOf(t, newWorker(t, s), owner, endpoint)
	faults := []kvtest.Fault{{Apply: kvtest.AppliedNever, Tell: rpctypes.ErrTimeout}, {}}
	faulty := &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: func() kvtest.Fault {
		faults = append(faults[1:], faults[0])
		return faults[0]
	}}
	s.etcd.Remote, s.etcd.KV = faulty, clientv3.NewKVFromKVClient(faulty, s.etcd.Native)
	ctx := t.Context()
	for n := range 3 {
		err := hold.Checkpoint(ctx, store.Checkpoint{Pending: messages(0, 10*n), Delivered: messages(5, 9)})
		err = errors.Join(err, s.AddReplay(ctx, owner, endpoint, store.Replay{ID: fmt.Sprint(n), Dead: true}))
		if err != nil {
			t.Fatal(err)
		}
	}
	g.compare(t, "under faults")
	if g.latest.Keys == 0 {
		t.Error("nothing is stored")
	}
}
