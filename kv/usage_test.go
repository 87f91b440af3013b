package kv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// addUsage adds growth to an owner's usage, and returns the outcome of Commit and the snapshot before.
func addUsage(
	t *testing.T, s *Store, snapshot store.Snapshot, change licensing.SizeChange, b licensing.Budget,
) store.Outcome {
	t.Helper()
	record := snapshot.Record.Clone()
	cmd := licensing.AddUsage{Owner: kvtest.Owner, Changes: []licensing.SizeChange{change}, Budget: b}
	if _, err := licensing.Apply(&record, cmd, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	outcome, err := s.Commit(t.Context(), store.Change{Writes: []store.Write{
		{Ref: licensing.UsageRef(kvtest.Owner), Token: snapshot.Token, Record: record},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// TestUsageRecord stores an owner's usage with its warning, and loses the swap once another recount has begun.
func TestUsageRecord(t *testing.T) {
	s := openStore(t)
	ref, ctx := licensing.UsageRef(kvtest.Owner), t.Context()
	forget := func() {
		for _, key := range []string{keyspace.UsageKey(kvtest.Owner), keyspace.RecountKey} {
			if _, err := server.Client.Delete(ctx, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	forget()
	defer forget()
	load := func() store.Snapshot { return kvtest.Must(s.Load(ctx, store.Want{Ref: ref}))(t)[0] }
	budget := licensing.Budget{Bytes: 1000}
	grown := licensing.SizeChange{Revision: 1, Size: licensing.Size{Bytes: 700, Keys: 5}}

	none := load()
	if none.Record.Usage != nil || none.Record.RecountAt != 0 {
		t.Fatalf("%+v", none.Record)
	}
	if outcome := addUsage(t, s, none, grown, budget); !outcome.Landed {
		t.Fatalf("%+v", outcome)
	}
	first := load()
	if u := first.Record.Usage; u.Size != grown.Size || u.Sequence != 1 || !u.Warned || !u.WarnedAt.Equal(kvtest.Time) {
		t.Fatalf("%+v", u)
	}
	history := kvtest.Must(s.History(ctx, ref, store.HistoryPage{Limit: 10}))(t)
	if len(history.Events) != 1 || history.Events[0].Type != licensing.EventBudgetWarning ||
		len(history.Events[0].Members) != 6 || history.Events[0].Owner != kvtest.Owner {
		t.Fatalf("%+v", history)
	}

	// Another writer, and then a recount, come in between.
	if outcome := addUsage(t, s, none, grown, budget); outcome.Landed || outcome.Rivals[0].Record.Usage.Bytes != 700 {
		t.Fatalf("%+v", outcome)
	}
	mark := kvtest.Must(server.Client.Put(ctx, keyspace.RecountKey, string((&layout.Recount{}).Encode())))(t)
	outcome := addUsage(t, s, first, grown, budget)
	if outcome.Landed || outcome.Rivals[0].Record.RecountAt != mark.Header.Revision {
		t.Fatalf("%+v, want a loss to the recount at %d", outcome, mark.Header.Revision)
	}
	if outcome = addUsage(t, s, outcome.Rivals[0], grown, budget); !outcome.Landed {
		t.Fatalf("%+v", outcome)
	}
	last := load()
	if u := last.Record.Usage; u.Bytes != 1400 || u.RecountAt != mark.Header.Revision || u.Since != (licensing.Size{}) {
		t.Fatalf("%+v", u)
	}

	// An owner without a record learns about the recount too.
	other := licensing.UsageRef(kvtest.OtherOwner)
	if got := kvtest.Must(s.Load(ctx, store.Want{Ref: other}))(t)[0]; got.Record.RecountAt != mark.Header.Revision {
		t.Fatalf("%+v", got.Record)
	}
}

// grown is the sum of the growth of stores.
type grown map[licensing.Owner]licensing.Size

func (g grown) take(s *Store) {
	for _, c := range s.TakeGrowth() {
		if g[c.Owner] = g[c.Owner].Plus(c.Size); g[c.Owner] == (licensing.Size{}) {
			delete(g, c.Owner)
		}
	}
}

// compare compares the growth of all changes of a lab with what verify.Sizes counts.
func (g grown) compare(l *lab, when string) {
	l.t.Helper()
	g.take(l.store)
	at := kvtest.Must(l.client.Get(l.ctx(), keyspace.CheckKey))(l.t).Header.Revision
	stored := kvtest.Must(verify.Sizes(l.ctx(), l.store, at, 0))(l.t)
	if diff := cmp.Diff(grown(stored), g); diff != "" {
		l.t.Errorf("%s: growth differs from what is stored (-stored +grown):\n%s", when, diff)
	}
}

// TestGrowthIsWhatIsStored compares the growth of the changes of a store with what verify.Sizes counts.
func TestGrowthIsWhatIsStored(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	all := grown{}
	all.compare(l, "empty")
	made := l.fill()
	all.compare(l, "filled")

	other := labOn(t, l.client.Endpoints())
	other.node = other.nodeWith(rand.Reader, time.Now) // with keys that the first node does not make too
	var nodes sync.WaitGroup
	for i, node := range []*lab{l, other} {
		nodes.Go(func() {
			for n := range 20 {
				if err := node.traffic(made.spilled, fmt.Sprint("machine ", i, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	nodes.Wait()
	all.take(other.store)
	all.compare(l, "two nodes")

	rename := licensing.Activate{Target: licensing.Target{Key: made.spilled}, Device: "device-3", Named: true}
	rename.Name = "renamed"
	kvtest.Must(l.node.Activate(l.ctx(), rename))(t)
	l.remove(made.spilled, "device-3")
	l.remove(made.spilled, "machine 10")
	l.remove(made.inline, "device-1")
	l.activate(made.spilled, "machine 10", "device-3")
	for _, metadata := range []string{`{"seat":"another"}`, `{}`, `{"seat":"again"}`} {
		kvtest.Must(l.node.Do(l.ctx(), licensing.LicenseRef(made.spilled),
			licensing.UpdateLicense{Target: licensing.Target{Key: made.spilled}, Metadata: metadata}))(t)
	}
	if err := l.node.DeleteProduct(l.ctx(), labOwner, "own"); err != nil {
		t.Fatal(err)
	}
	kvtest.Must(l.store.ChangeAPIKey(l.ctx(), labOwner, "key_0elab", func(k *licensing.APIKey) error {
		k.Name = "a longer name"
		return nil
	}))(t)
	l.hook(labOwner, licensing.DeleteEndpoint{ID: "we_0egone"})
	all.compare(l, "changed")

	if _, _, err := l.node.Redact(l.ctx(), labOwner, licensing.Customer{BuyerEmail: labBuyer}, nil); err != nil {
		t.Fatal(err)
	}
	for {
		if kvtest.Must(l.store.SweepClaims(l.ctx(), time.Now().Add(time.Hour)))(t) == 0 {
			break
		}
	}
	all.compare(l, "redacted and swept")
}

// TestGrowthUnderFaults compares the growth of a store whose writes fail with what is stored: a change whose answer is
// lost counts once, and a change that was not made doesn't.
func TestGrowthUnderFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.product()
	storm := kvtest.Storm(7)
	next := func() kvtest.Fault {
		f := storm()
		if errors.Is(f.Tell, rpctypes.ErrNoSpace) { // after it, changes in doubt stay in doubt, and don't count
			f.Tell = rpctypes.ErrTimeout
		}
		return f
	}
	l.store.etcd.Remote = &kvtest.FaultyKV{KVClient: l.store.etcd.Remote, Next: next}
	spilling := licensing.LicenseKey{}
	for spilling.IsZero() {
		unlimited := 0
		granted, _, err := l.node.Grant(l.ctx(), labOwner,
			service.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &unlimited})
		if err == nil {
			spilling = granted[0].License.Key
		}
	}
	for n := range 60 {
		err := l.traffic(spilling, fmt.Sprint("machine ", n))
		if licensing.ReasonOf(err) == licensing.ReasonOutcomeUnknown {
			t.Fatal(err) // the change may have been made without being counted
		}
	}
	grown{}.compare(l, "under faults")
}

// TestRecountOfAWrongClock: a recount of a node whose clock was days ahead does not put off the next one.
func TestRecountOfAWrongClock(t *testing.T) {
	s := openStore(t)
	at := func(begun time.Time) *mvccpb.KeyValue {
		return &mvccpb.KeyValue{Value: (&layout.Recount{Begun: begun}).Encode()}
	}
	for _, c := range []struct {
		ago time.Duration
		due bool
	}{
		{0, false}, {time.Hour, false}, {-time.Hour, false}, {2 * time.Hour, true}, {-9 * 24 * time.Hour, true},
	} {
		if due := s.recountDue(at(kvtest.Time.Add(-c.ago)), nil, kvtest.Time); due != c.due {
			t.Errorf("after a recount %v ago that has not ended, the next is due: %v", c.ago, due)
		}
	}
}
