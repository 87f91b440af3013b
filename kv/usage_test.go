package kv

import (
	"testing"
	"time"

	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// addUsage adds growth to an owner's usage, and returns what Commit says and the snapshot that it was made of.
func addUsage(
	t *testing.T, s *Store, snapshot store.Snapshot, change licensing.SizeChange, b licensing.Budget,
) store.Outcome {
	t.Helper()
	record := snapshot.Record.Clone()
	cmd := licensing.AddUsage{Owner: kvtest.Owner, Changes: []licensing.SizeChange{change}, Budget: b}
	if _, err := licensing.Apply(&record, cmd, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	outcome, err := s.Commit(kvtest.Context(t, 10*time.Second), store.Change{Writes: []store.Write{
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
	ref, ctx := licensing.UsageRef(kvtest.Owner), kvtest.Context(t, 20*time.Second)
	forget := func() {
		for _, key := range []string{layout.UsageKey(kvtest.Owner), layout.RecountKey} {
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
	mark := kvtest.Must(server.Client.Put(ctx, layout.RecountKey, string((&layout.Recount{}).Encode())))(t)
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
