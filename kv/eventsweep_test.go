package kv

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

// keepAll keeps events for a day, with a budget that is never reached.
var keepAll = store.EventRetention{Age: 24 * time.Hour, Bytes: 1 << 40}

// sweep sweeps until nothing is left to remove.
func (l *eventsLab) sweep(now time.Time, keep store.EventRetention) (removed int) {
	l.t.Helper()
	for {
		n, err := l.store.SweepEvents(l.t.Context(), now, keep)
		if err != nil {
			l.t.Fatal(err)
		}
		if n == 0 {
			return removed
		}
		removed += n
	}
}

// clean checks that verify finds nothing.
func (l *eventsLab) clean() {
	l.t.Helper()
	(&lab{t: l.t, store: l.store}).clean()
}

func (l *lab) clean() {
	l.t.Helper()
	if _, found := l.verify(verify.Config{}); len(found) > 0 {
		l.t.Errorf("verify found %v", found)
	}
}

// family counts the keys of a family in all slots.
func (l *eventsLab) family(prefix string) (count int64) {
	l.t.Helper()
	if err := l.store.etcd.EachInSlots(l.t.Context(), "test", etcd.Family(prefix), 1000, 0,
		func(*mvccpb.KeyValue) { count++ }, clientv3.WithKeysOnly()); err != nil {
		l.t.Fatal(err)
	}
	return count
}

func (l *eventsLab) keys(prefix string) int64 {
	l.t.Helper()
	return kvtest.Must(l.store.etcd.Native.Get(l.t.Context(), prefix, clientv3.WithPrefix(),
		clientv3.WithCountOnly()))(l.t).Count
}

func (l *eventsLab) after(owner licensing.Owner, position store.FeedPosition) ([]store.RecordedEvent, error) {
	l.t.Helper()
	got, err := kvtest.Read(func() (store.Feed, error) {
		return l.store.ReadEvents(l.t.Context(), owner, store.FeedPage{After: position, Limit: 1000})
	})
	return got.Events, err
}

// TestEventsAreKeptByAge records events on three days, and sweeps as time goes by.
func TestEventsAreKeptByAge(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owners := []licensing.Owner{acct("a"), acct("b"), {AccountID: "acct_a", Mode: licensing.Test}}
	refs := make([]licensing.Ref, len(owners))
	for i, owner := range owners {
		refs[i] = l.license(l.store, owner)
	}
	now := kvtest.Time
	for day := range 3 {
		for i := range owners {
			l.commit(l.store, l.bound(l.store, refs[i], deviceIDs(day + 1)[day]))
		}
		l.closeEpoch()
		if n := l.sweep(now, keepAll); n != 0 {
			t.Errorf("on day %d %d events are swept", day, n)
		}
		l.clean()
		now = now.Add(10 * time.Hour)
	}
	// Day 0 has 3 events of each owner in 2 keys, days 1 and 2 have 1 event each.
	all := l.feed(owners[0], 100)
	if len(all) != 5 {
		t.Fatalf("the feed is %q", kindsOf(all))
	}
	swept := []struct {
		at   time.Duration
		keys int
		left int
	}{{24 * time.Hour, 0, 5}, {24*time.Hour + 1, 6, 2}, {34 * time.Hour, 0, 2}, {34*time.Hour + 1, 3,
		1}, {1000 * time.Hour, 3, 0}}
	for _, c := range swept {
		if n := l.sweep(kvtest.Time.Add(c.at), keepAll); n != c.keys {
			t.Errorf("after %v %d keys are swept, want %d", c.at, n, c.keys)
		}
		l.clean()
		for i, owner := range owners {
			if got := kindsOf(l.feed(owner, 2)); len(got) != c.left {
				t.Errorf("after %v the feed of %v is %q", c.at, owner, got)
			}
			history, err := l.store.History(t.Context(), refs[i], store.HistoryPage{Limit: 100})
			if err != nil || len(history.Events) != c.left || history.Next != "" {
				t.Errorf("after %v the history is %q, %q, %v", c.at, kindsOf(history.Events), history.Next, err)
			}
		}
		for i, e := range all {
			rest, err := l.after(owners[0], store.FeedPosition(e.ID))
			found, noErr := l.store.Event(t.Context(), owners[0], e.ID)
			if noErr != nil {
				t.Errorf("event %s: %v", e.ID, noErr)
			}
			if i < len(all)-c.left {
				if !errors.Is(err, licensing.ErrCursorExpired) || found != nil {
					t.Errorf("after %v event %d is %v, and the following events are %v, %v", c.at, i, found, rest, err)
				}
			} else if diff := cmp.Diff(all[i+1:], rest); err != nil || found == nil || diff != "" && len(rest) > 0 {
				t.Errorf("after %v the events that follow event %d: %v\n%s", c.at, i, err, diff)
			}
		}
	}
	// New events are recorded as before.
	l.commit(l.store, l.bound(l.store, refs[0], "later"))
	l.closeEpoch()
	if got := kindsOf(l.feed(owners[0], 10)); !slices.Equal(got, []string{"6 device.bound later"}) {
		t.Errorf("the feed is %q", got)
	}
	l.clean()
}

// bySpans returns a retention by bytes with which each mark begins a span of each owner.
func bySpans(bytes int64) store.EventRetention {
	return store.EventRetention{Age: ageSpans * markAfter, Bytes: bytes}
}

// TestEventsAreKeptByBytes: the store keeps the newest events of an owner that fit into the budget.
func TestEventsAreKeptByBytes(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("bytes")
	now := kvtest.Time
	for range 5 {
		for range 20 {
			l.license(l.store, owner)
		}
		l.closeEpoch()
		l.sweep(now, bySpans(1<<40))
		now = now.Add(markAfter)
	}
	spans := l.ledger(owner).Spans
	total := int64(0)
	for _, kv := range kvtest.Must(l.store.etcd.Native.Get(t.Context(), keyspace.EventsOf(owner),
		clientv3.WithPrefix()))(t).Kvs {
		total += int64(len(kv.Key) + len(kv.Value))
	}
	if marks := l.keys(keyspace.MarksPrefix); len(spans) != 5 || marks != 5 {
		t.Fatalf("there are %d marks and spans %+v", marks, spans)
	}
	for _, span := range spans {
		total -= span.Bytes
	}
	if total != 0 {
		t.Errorf("the spans miss %d bytes: %+v", total, spans)
	}
	all := l.feed(owner, 1000)
	kept := spans[2].Bytes + spans[3].Bytes + spans[4].Bytes
	for _, c := range []struct {
		bytes int64
		left  int
	}{{kept, 60}, {kept - 1, 40}, {spans[4].Bytes, 20}, {1, 0}} {
		l.sweep(now, bySpans(c.bytes))
		if diff := cmp.Diff(all[len(all)-c.left:], l.feed(owner, 7)); diff != "" && c.left > 0 {
			t.Errorf("of %d bytes:\n%s", c.bytes, diff)
		}
		if n := l.family(keyspace.EventsFamily); n != int64(c.left) {
			t.Errorf("of %d bytes there are %d keys", c.bytes, n)
		}
		l.clean()
	}
	l.sweep(now.Add(1000*time.Hour), bySpans(1))
	events, ledgers := l.family(keyspace.EventsFamily), l.family(keyspace.LedgersFamily)
	marks := l.keys(keyspace.MarksPrefix)
	if events+marks+ledgers != 0 {
		t.Errorf("of the events that are too old there are %d keys, %d marks and %d ledgers", events, marks, ledgers)
	}
	l.clean()
}

// TestReaderIsOvertakenBySweep reads half of a feed and then sweeps its beginning, with a store that remembers the
// feed and with a store that does not: the reader gets all following events, or an error that events are gone.
func TestReaderIsOvertakenBySweep(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("reader")
	for range 6 {
		for range 4 {
			l.license(l.store, owner)
		}
		l.closeEpoch()
	}
	all := l.feed(owner, 100)
	half, err := l.store.ReadEvents(t.Context(), owner, store.FeedPage{Limit: 10})
	if diff := cmp.Diff(all[:10], half.Events); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	at := placeOf(owner, string(half.Next))
	for _, c := range []struct {
		trimmedEpoch keyspace.Epoch
		want         error
	}{{at.Epoch - 1, nil}, {at.Epoch, licensing.ErrCursorExpired}} {
		kvtest.Must(l.store.raiseTrimmedEpoch(t.Context(), c.trimmedEpoch))(t)
		for _, s := range []*Store{l.store, l.open(nil)} {
			rest, err := s.ReadEvents(t.Context(), owner,
				store.FeedPage{After: half.Next, Limit: 100})
			if diff := cmp.Diff(all[10:], rest.Events); !errors.Is(err, c.want) || c.want == nil && diff != "" {
				t.Errorf("swept up to %d: %v\n%s", c.trimmedEpoch, err, diff)
			}
		}
		l.clean()
	}
	if now := kvtest.Must(l.store.raiseTrimmedEpoch(t.Context(), 1))(t); now != at.Epoch {
		t.Errorf("the trimmed epoch was lowered to %d", now)
	}
	// A reader has listed the events, and they are removed before it reads them.
	last := placeOf(owner, all[12].ID)
	if _, err := l.store.etcd.Native.Delete(t.Context(),
		keyspace.EventsOf(owner)+string(keyspace.AppendEpoch(nil, last.Epoch)), clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	if rest, err := l.after(owner, store.FeedPosition(all[12].ID)); !errors.Is(err, licensing.ErrCursorExpired) {
		t.Errorf("removed during the read: %q, %v", kindsOf(rest), err)
	}
}

// TestSweepUnderReaders reads feeds from their beginning, again and again, while two nodes record and sweep events: a
// reader gets every event from its start, in order, or an error that events are gone.
func TestSweepUnderReaders(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("race")
	ref := l.license(l.store, owner)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	sweepers := []*Store{l.open(nil), l.open(nil)}
	for i, s := range sweepers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Each pass is a day later, so that it makes a mark, and keeps two days.
				now := kvtest.Time.Add(time.Duration(n) * 24 * time.Hour)
				_, err := s.SweepEvents(t.Context(), now,
					store.EventRetention{Age: 48 * time.Hour, Bytes: 1 << 40})
				if err != nil && !errors.Is(err, licensing.ErrUnavailable) &&
					!errors.Is(err, licensing.ErrOutcomeUnknown) {
					t.Errorf("sweeper %d: %v", i, err)
				}
			}
		})
	}
	var mu sync.Mutex
	expired, read := 0, 0 // guarded by mu
	for range 2 {
		s := l.open(nil)
		group.Go(func() {
			page, last := store.FeedPage{Limit: 3}, uint64(0)
			for ctx.Err() == nil {
				feed, err := s.ReadEvents(t.Context(), owner, page)
				mu.Lock()
				switch {
				case errors.Is(err, licensing.ErrCursorExpired) && page.After != "":
					expired++
					page.After, last = "", 0
				case err != nil && !errors.Is(err, licensing.ErrUnavailable):
					t.Errorf("reader: %v", err)
				case err == nil:
					for _, e := range feed.Events {
						if last != 0 && e.Sequence != last+1 {
							t.Errorf("event %d follows %d", e.Sequence, last)
						}
						last = e.Sequence
						read++
					}
					page.After = feed.Next
				}
				mu.Unlock()
			}
		})
	}
	for i := range 60 {
		snapshot := loadOne(t, l.store, ref)
		cmd := licensing.RenewLicense{Target: licensing.Target{Key: keyOf(ref), By: "key_shop"},
			ExpiresAt: kvtest.Time.Add(time.Duration(i+1) * 24 * time.Hour)}
		kvtest.Must(licensing.Apply(&snapshot.Record, cmd, kvtest.Time))(t)
		l.commit(l.store,
			store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
		l.closeEpoch()
		if i%20 == 0 {
			l.clean()
		}
	}
	cancel()
	group.Wait()
	l.clean()
	t.Logf("%d events read, %d cursors expired", read, expired)
}

// TestSweepIsKilled kills a sweep after each number of writes, also between recording the trimmed epoch and removing
// events: the next sweep, of another node, removes the rest.
func TestSweepIsKilled(t *testing.T) {
	t.Parallel()
	gone := errors.New("killed")
	for kill := range 12 {
		l := newEventsLab(t)
		owners := []licensing.Owner{acct("x"), acct("y")}
		for i := range 3 {
			for _, owner := range owners {
				l.license(l.store, owner)
			}
			l.closeEpoch()
			l.sweep(kvtest.Time.Add(time.Duration(i)*markAfter), keepAll)
		}
		later := kvtest.Time.Add(1000 * time.Hour)
		for _, owner := range owners {
			l.license(l.store, owner)
		}
		l.closeEpoch() // so that a mark is to be made first
		s := kvtest.Must(Open(t.Context(),
			Config{Endpoints: l.etcd.Endpoints(), Metrics: kvtest.Metrics(), Log: zerolog.Nop()}))(t)
		writes := 0
		faulty := &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: func() kvtest.Fault {
			if writes++; writes > kill {
				return kvtest.Fault{Apply: kvtest.AppliedNever, Tell: gone}
			}
			return kvtest.Fault{}
		}}
		s.etcd.KV = clientv3.NewKVFromKVClient(faulty, s.etcd.Native)
		if _, err := s.SweepEvents(t.Context(), later, keepAll); err == nil && writes > kill {
			t.Errorf("killed after %d writes, and no error", kill)
		}
		_ = s.Close()
		l.clean()
		for _, owner := range owners {
			l.feed(owner, 1) // fails if a key is missing that should be kept
		}
		l.sweep(later, keepAll)
		l.clean()
		if n, marks := l.family(keyspace.EventsFamily), l.keys(keyspace.MarksPrefix); n != 2 || marks != 1 {
			t.Errorf("killed after %d writes: %d keys of events and %d marks are left", kill, n, marks)
		}
	}
}
