package kv

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestSweepersAtOnce has nodes sweep at once while two owners record more than the budget, and another owner a little.
// No reader misses an event without an error, the small owner loses no event, and the sweeps remove no more than
// needed.
func TestSweepersAtOnce(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	small, large := acct("small"), []licensing.Owner{acct("large"), acct("larger")}
	l.license(l.store, small)
	l.closeEpoch()
	const budget = 24 << 10
	var now atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 3 {
		s := l.open(nil)
		group.Go(func() {
			for ctx.Err() == nil {
				_, err := s.SweepEvents(t.Context(), kvtest.Time.Add(time.Duration(now.Load())),
					bySpans(budget))
				if err != nil && !errors.Is(err, licensing.ErrUnavailable) {
					t.Errorf("sweep: %v", err)
				}
			}
		})
	}
	for i := range 6 {
		for range 20 {
			for _, owner := range large {
				l.license(l.store, owner)
			}
		}
		l.license(l.store, large[1])
		l.closeEpoch()
		now.Store(int64(i) * int64(markAfter))
	}
	cancel()
	group.Wait()
	l.sweep(kvtest.Time.Add(6*markAfter), bySpans(budget))
	l.clean()
	if got := l.feed(small, 10); len(got) != 1 {
		t.Errorf("of the owner with one event there are %q", kindsOf(got))
	}
	bytes, longest := l.eventBytes(small), int64(0)
	for _, owner := range large {
		bytes += l.eventBytes(owner)
		sum := int64(0)
		for _, span := range l.ledger(owner).Spans {
			sum, longest = sum+span.Bytes, max(longest, span.Bytes)
		}
		if is := l.eventBytes(owner); sum != is {
			t.Errorf("the ledger has %d bytes, and there are %d", sum, is)
		}
	}
	if bytes > budget || bytes < budget-2*longest {
		t.Errorf("%d bytes are kept, and the budget is %d", bytes, budget)
	}
}

// TestCutIsKilled ends a sweep over the budget after each number of writes. A reader of the owner that loses events
// misses none without an error, the other owner loses nothing, and the next sweep removes the rest.
func TestCutIsKilled(t *testing.T) {
	t.Parallel()
	gone := errors.New("killed")
	finished := false
	for kill := 0; !finished; kill++ {
		l := newEventsLab(t)
		small, large := acct("small"), acct("large")
		l.license(l.store, small)
		for i := range 3 {
			for range 5 {
				l.license(l.store, large)
			}
			l.closeEpoch()
			l.sweep(kvtest.Time.Add(time.Duration(i)*markAfter), bySpans(1<<40))
		}
		all := l.feed(large, 100)
		spans := l.ledger(large).Spans
		keep := bySpans(spans[2].Bytes + l.eventBytes(small))
		cfg := Config{Endpoints: l.etcd.Endpoints(), Metrics: kvtest.Metrics(), Log: zerolog.Nop()}
		s := kvtest.Must(Open(t.Context(), cfg))(t)
		writes := 0
		faulty := &kvtest.FaultyKV{KVClient: s.etcd.Remote, Next: func() kvtest.Fault {
			if writes++; writes > kill {
				return kvtest.Fault{Apply: kvtest.AppliedNever, Tell: gone}
			}
			return kvtest.Fault{}
		}}
		s.etcd.KV = clientv3.NewKVFromKVClient(faulty, s.etcd.Native)
		_, err := s.SweepEvents(t.Context(), kvtest.Time.Add(2*markAfter), keep)
		finished = err == nil
		_ = s.Close()
		l.clean()
		if got := l.feed(small, 1); len(got) != 1 {
			t.Errorf("killed after %d writes: of the owner with one event there are %q", kill, kindsOf(got))
		}
		rest, err := l.after(large, store.FeedPosition(all[0].ID))
		if diff := cmp.Diff(all[1:], rest); !errors.Is(err, licensing.ErrCursorExpired) && (err != nil || diff != "") {
			t.Errorf("killed after %d writes: %v\n%s", kill, err, diff)
		}
		if n := len(l.feed(large, 100)); kill == 0 && n != len(all) || kill > 0 && n != 5 {
			t.Errorf("killed after %d writes: the feed has %d events", kill, n)
		}
		l.sweep(kvtest.Time.Add(2*markAfter), keep)
		l.clean()
		if diff := cmp.Diff(all[10:], l.feed(large, 2)); diff != "" {
			t.Errorf("killed after %d writes, and swept:\n%s", kill, diff)
		}
		if n := l.keys(keyspace.EventsOf(large)); n != 5 {
			t.Errorf("killed after %d writes, and swept: %d keys are left", kill, n)
		}
		if ledger := l.ledger(large); len(ledger.Spans) != 1 || ledger.TrimmedEpoch != spans[1].Last {
			t.Errorf("killed after %d writes, and swept: the ledger is %+v", kill, ledger)
		}
		if kill > 10 {
			t.Fatal("a sweep does not end: it makes more and more writes")
		}
	}
}

// TestHistoryPastCut reads the history of a license whose latest events can't be read, of an owner that gave up the
// events before: the search for the events before finds none, and counts only the value that can't be read.
func TestHistoryPastCut(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("cut")
	ref := l.license(l.store, owner)
	for i := range 3 {
		l.commit(l.store, l.bound(l.store, ref, fmt.Sprint(i)))
		l.closeEpoch()
		l.sweep(kvtest.Time.Add(time.Duration(i)*markAfter), bySpans(1<<40))
	}
	spans := l.ledger(owner).Spans
	l.sweep(kvtest.Time.Add(3*markAfter), bySpans(spans[2].Bytes))
	if l.ledger(owner).TrimmedEpoch != spans[1].Last {
		t.Fatalf("the ledger is %+v", l.ledger(owner))
	}
	latest := l.feed(owner, 10)[0]
	at := placeOf(owner, latest.ID)
	key := keyspace.EventsKeyOf(owner, keyspace.Location{Epoch: at.Epoch},
		keyspace.LicenseInEvents(ref.LicenseID()), latest.Sequence)
	if _, err := l.store.etcd.Native.Put(t.Context(), key, "garbled"); err != nil {
		t.Fatal(err)
	}
	l.store = l.open(nil)
	var found []store.RecordedEvent
	for page := (store.HistoryPage{Limit: 10}); ; {
		got := kvtest.Must(l.store.History(t.Context(), ref, page))(t)
		found = append(found, got.Events...)
		if page.Before = got.Next; page.Before == "" {
			break
		}
	}
	if len(found) != 1 || found[0].Type != licensing.EventUnreadable {
		t.Errorf("the history has %q", kindsOf(found))
	}
	if n := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable); n != 1 {
		t.Errorf("%v values can't be read, want 1", n)
	}
}

// TestOlderStore sweeps a store that an older build has written, with marks that have the bytes of all owners, and with
// the trimmed epoch of all owners.
func TestOlderStore(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	ctx := t.Context()
	small, large := acct("small"), acct("large")
	mark := func(e keyspace.Epoch, at time.Time, bytes uint64) {
		t.Helper()
		value := protowire.AppendVarint(protowire.AppendTag((&layout.RetentionMark{At: at}).Encode(), 2,
			protowire.VarintType), bytes)
		kvtest.Must(l.store.etcd.Native.Put(ctx, keyspace.MarkKey(e), string(value)))(t)
	}
	l.license(l.store, large)
	trimmed := l.closeEpoch() - 1
	var last keyspace.Epoch
	for i := range 3 {
		l.license(l.store, small)
		for range 10 {
			l.license(l.store, large)
		}
		last = l.closeEpoch() - 1
		mark(last, kvtest.Time.Add(time.Duration(i)*markAfter), 5000)
	}
	kvtest.Must(l.store.raiseTrimmedEpoch(ctx, trimmed))(t)
	l.clean()
	if n := len(l.feed(large, 10)); n != 30 {
		t.Fatalf("the feed has %d events", n)
	}
	// Nothing is measured before the next mark. A mark of an older build may come first.
	keep := bySpans(3000)
	if l.sweep(kvtest.Time.Add(2*markAfter), keep); l.family(keyspace.LedgersFamily) != 0 {
		t.Error("there are ledgers")
	}
	l.license(l.store, large)
	mark(l.closeEpoch()-1, kvtest.Time.Add(3*markAfter), 200)
	l.license(l.store, large)
	l.closeEpoch()
	l.sweep(kvtest.Time.Add(4*markAfter), store.EventRetention{Age: keep.Age, Bytes: 1 << 40})
	for _, owner := range []licensing.Owner{small, large} {
		sum := int64(0)
		for _, span := range l.ledger(owner).Spans {
			sum += span.Bytes
		}
		if is := l.eventBytes(owner); owner == small && sum != is || sum > is || sum < is*9/10 {
			t.Errorf("the ledger of %s has %d bytes, and there are %d", owner.AccountID, sum, is)
		}
	}
	for range 10 {
		l.license(l.store, large)
	}
	l.closeEpoch()
	l.sweep(kvtest.Time.Add(5*markAfter), keep)
	l.clean()
	if got := l.feed(small, 10); len(got) != 3 {
		t.Errorf("the owner with a little has %q", kindsOf(got))
	}
	if got := l.feed(large, 100); len(got) != 10 {
		t.Errorf("the owner that has most has %d events", len(got))
	}
	// An older build reads no bytes in a mark of this build, so the budget of bytes never removes that mark.
	marks, _, err := l.store.retentionMarks(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if m := marks[len(marks)-1]; !m.Measured || marks[0].Measured {
		t.Errorf("the marks are %+v", marks)
	}
	l.sweep(kvtest.Time.Add(markAfter+keep.Age+1), keep)
	l.clean()
	if got := l.feed(small, 10); len(got) != 1 {
		t.Errorf("by age the owner with a little has %q", kindsOf(got))
	}
}
