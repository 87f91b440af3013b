package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// eventBytes counts the bytes of an owner's events.
func (l *eventsLab) eventBytes(owner licensing.Owner) (bytes int64) {
	l.t.Helper()
	ctx := l.t.Context()
	for _, kv := range kvtest.Must(l.store.etcd.Native.Get(ctx, keyspace.EventsOf(owner),
		clientv3.WithPrefix()))(l.t).Kvs {
		if len(kv.Value) > 0 {
			bytes += int64(len(kv.Key) + len(kv.Value))
		}
	}
	return bytes
}

// TestLargestOwnerLosesFirst has one owner record far more than the budget, after another owner has recorded a little:
// the first owner loses its oldest events, and the other loses none.
func TestLargestOwnerLosesFirst(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	small, large := acct("small"), acct("large")
	const budget = 20 << 10
	keep := store.EventRetention{Age: 160 * time.Minute, Bytes: budget}
	for range 3 {
		l.license(l.store, small)
	}
	l.closeEpoch()
	little := l.feed(small, 10)
	first, err := l.store.ReadEvents(t.Context(), small, store.FeedPage{Limit: 1})
	if err != nil || len(first.Events) != 1 {
		t.Fatalf("%+v, %v", first, err)
	}
	var all []store.RecordedEvent
	behind := store.FeedPosition("") // of an earlier page, and no event's
	for i := range 6 {
		for range 40 {
			l.license(l.store, large)
		}
		l.closeEpoch()
		page, err := l.store.ReadEvents(t.Context(), large, store.FeedPage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			all, behind = page.Events, page.Next
		} else {
			more := kvtest.Must(l.after(large, store.FeedPosition(all[len(all)-1].ID)))(t)
			all = append(all, more...)
		}
		l.sweep(kvtest.Time.Add(time.Duration(i)*markAfter), keep)
		l.clean()
	}
	rest, err := l.after(small, first.Next)
	if diff := cmp.Diff(little[1:], rest); err != nil || diff != "" {
		t.Errorf("the feed of the owner with a little: %v\n%s", err, diff)
	}
	if diff := cmp.Diff(little, l.feed(small, 1)); diff != "" {
		t.Errorf("and from its beginning:\n%s", diff)
	}
	left := l.feed(large, 7)
	if diff := cmp.Diff(all[len(all)-len(left):], left); diff != "" || len(left) < 40 || len(left) == len(all) {
		t.Errorf("of %d events of the largest owner %d are left:\n%s", len(all), len(left), diff)
	}
	bytes := l.eventBytes(small) + l.eventBytes(large)
	if bytes > budget || bytes < budget*2/3 {
		t.Errorf("%d bytes are kept, and the budget is %d", bytes, budget)
	}
	for i, e := range all {
		_, err := l.after(large, store.FeedPosition(e.ID))
		if gone := i < len(all)-len(left); gone != errors.Is(err, licensing.ErrCursorExpired) || !gone && err != nil {
			t.Errorf("after event %d of %d, of which %d are left: %v", i, len(all), len(left), err)
		}
	}
	if _, err := l.after(large, behind); !errors.Is(err, licensing.ErrCursorExpired) {
		t.Errorf("after a page whose events are gone: %v", err)
	}
}

// TestCutIsFair cuts books of any owners to any budget: the kept bytes fit into the budget. No owner loses a span while
// another owner keeps more, so no owner with an equal share or less loses a span.
func TestCutIsFair(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 21))
		book := &ledgerBook{}
		total, owners := int64(0), int64(0)
		before := make(map[licensing.Owner]int64)
		for i := range random.IntN(12) {
			o := &ownerLedger{owner: acct(fmt.Sprint(i))}
			for j := range random.IntN(8) {
				span := layout.Span{Last: keyspace.Epoch(j + 1), Bytes: 1 + random.Int64N(1<<random.IntN(12))}
				o.Spans, o.kept = append(o.Spans, span), o.kept+span.Bytes
			}
			book.ledgers = append(book.ledgers, o)
			before[o.owner] = o.kept
			if total += o.kept; o.kept > 0 {
				owners++
			}
		}
		budget := random.Int64N(total + total/4 + 1)
		cuts := book.cut(budget)
		after, most := int64(0), int64(0)
		for _, o := range book.ledgers {
			after, most = after+o.kept, max(most, o.kept)
		}
		if after > budget || total <= budget && len(cuts) > 0 {
			t.Errorf("seed %d: %d bytes are cut to %d, and the budget is %d", seed, total, after, budget)
		}
		for _, o := range cuts {
			lost := o.Spans[o.next-1].Bytes
			if had := o.kept + lost; had < most || had*owners <= budget {
				t.Errorf("seed %d: an owner of %d gives up a span of %d, and another keeps %d; the budget is %d",
					seed, had, lost, most, budget)
			}
			if o.TrimmedEpoch != o.Spans[o.next-1].Last {
				t.Errorf("seed %d: %d spans are lost, and the recorded epoch is %d", seed, o.next, o.TrimmedEpoch)
			}
		}
		for _, o := range book.ledgers {
			if !slices.Contains(cuts, o) && o.kept != before[o.owner] {
				t.Errorf("seed %d: an owner has lost bytes and is not among %d cuts", seed, len(cuts))
			}
		}
		if len(cuts) > 0 && after+maxLost(cuts) <= budget {
			t.Errorf("seed %d: %d bytes are kept, far below the budget of %d", seed, after, budget)
		}
	}
}

// maxLost is the largest span that was lost last.
func maxLost(cuts []*ownerLedger) (bytes int64) {
	for _, o := range cuts {
		bytes = max(bytes, o.Spans[o.next-1].Bytes)
	}
	return bytes
}

// TestOneNodeDecidesCuts has two nodes read the ledgers, and one ledger grows in between, so that the nodes would trim
// different owners: only the first node's decision counts.
func TestOneNodeDecidesCuts(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	ctx := t.Context()
	put := func(owner licensing.Owner, bytes int64) {
		t.Helper()
		ledger := &layout.Ledger{Begun: kvtest.Time,
			Spans: []layout.Span{{Last: 1, Bytes: bytes / 2}, {Last: 2, Bytes: bytes / 2}}}
		kvtest.Must(l.store.etcd.Native.Put(ctx, keyspace.LedgerKey(owner), string(ledger.Encode())))(t)
	}
	a, b := acct("a"), acct("b")
	if err := l.store.putOwners(ctx, []licensing.Owner{a, b}); err != nil {
		t.Fatal(err)
	}
	put(a, 1000)
	put(b, 800)
	one := kvtest.Must(l.store.readLedgers(ctx))(t)
	put(b, 1100)
	other := kvtest.Must(l.store.readLedgers(ctx))(t)
	ofOne, ofOther := one.cut(1500), other.cut(1700)
	if len(ofOne) != 1 || len(ofOther) != 1 || ofOne[0].owner != a || ofOther[0].owner != b {
		t.Fatalf("%+v and %+v are cut", ofOne, ofOther)
	}
	if recorded, err := l.store.recordCuts(ctx, one, ofOne); err != nil || !recorded {
		t.Fatalf("the first: %v, %v", recorded, err)
	}
	if recorded, err := l.store.recordCuts(ctx, other, ofOther); err != nil || recorded {
		t.Errorf("the second: %v, %v", recorded, err)
	}
	if trimmed := l.ledger(b).TrimmedEpoch; trimmed != 0 {
		t.Errorf("both owners gave up events, one of them up to %d", trimmed)
	}
	// A decision does not count either if cell/swept has changed since it was made.
	third := kvtest.Must(l.store.readLedgers(ctx))(t)
	kvtest.Must(l.store.raiseTrimmedEpoch(ctx, 1))(t)
	if recorded, err := l.store.recordCuts(ctx, third, third.cut(1)); err != nil || recorded {
		t.Errorf("after events got too old: %v, %v", recorded, err)
	}
}
