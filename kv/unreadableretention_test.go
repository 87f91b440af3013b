package kv

import (
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// put writes a raw value.
func (l *eventsLab) put(key, value string) {
	l.t.Helper()
	if _, err := l.store.etcd.Native.Put(l.t.Context(), key, value); err != nil {
		l.t.Fatal(err)
	}
}

// TestUnreadableMark damages one of three retention marks: events of all owners go by age all the same, nodes make new
// marks, and the damaged mark goes with the events.
func TestUnreadableMark(t *testing.T) {
	t.Parallel()
	for damaged := range 3 {
		t.Run(fmt.Sprint("mark ", damaged), func(t *testing.T) {
			t.Parallel()
			l := newEventsLab(t)
			owners := []licensing.Owner{acct("a"), acct("b")}
			now := kvtest.Time
			record := func() {
				for _, owner := range owners {
					l.license(l.store, owner)
				}
				l.closeEpoch()
				l.sweep(now, keepAll)
				now = now.Add(time.Hour)
			}
			var marks []string
			for range 3 {
				record()
				found := kvtest.Must(l.store.etcd.Native.Get(t.Context(), keyspace.MarksPrefix,
					clientv3.WithPrefix()))(t).Kvs
				marks = append(marks, string(found[len(found)-1].Key))
			}
			l.put(marks[damaged], "?")
			record()
			if n := l.keys(keyspace.MarksPrefix); n != 4 {
				t.Errorf("there are %d marks, want another one behind the damaged one", n)
			}
			for i, left := range []int{4, 3, 2, 1, 0} {
				if damaged == i-1 {
					continue // the mark of that age is damaged: the events go with the next mark
				}
				l.sweep(kvtest.Time.Add(keepAll.Age+time.Duration(i-1)*time.Hour+1), keepAll)
				for _, owner := range owners {
					if got := kindsOf(l.feed(owner, 10)); len(got) != left {
						t.Errorf("after %d hours the feed of %v is %q", i, owner, got)
					}
				}
			}
			if n := l.keys(keyspace.MarksPrefix); n != 0 {
				t.Errorf("%d marks are left", n)
			}
			if n := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable); n != 1 {
				t.Errorf("%v values are counted", n)
			}
			l.clean()
		})
	}
}

// TestUnreadableTrimmedEpoch damages cell/swept: feeds and both kinds of retention go on, the damaged value removes no
// event, and the next sweep by age writes the key anew.
func TestUnreadableTrimmedEpoch(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner, large := acct("little"), acct("large")
	now := kvtest.Time
	var first store.FeedPosition
	for day := range 3 {
		l.license(l.store, owner)
		for range 20 {
			l.license(l.store, large)
		}
		l.closeEpoch()
		l.sweep(now, keepAll)
		if day == 0 {
			first = store.FeedPosition(l.feed(owner, 10)[0].ID)
		}
		now = now.Add(10 * time.Hour)
	}
	l.sweep(kvtest.Time.Add(keepAll.Age+1), keepAll) // the events of the first day
	if _, err := l.after(owner, first); !errors.Is(err, licensing.ErrCursorExpired) {
		t.Fatalf("after an event that was swept: %v", err)
	}
	keep := store.EventRetention{Age: keepAll.Age, Bytes: l.eventBytes(owner) + l.eventBytes(large) - 1}
	for _, value := range []string{"", "?", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"} {
		l.put(keyspace.TrimmedKey, value)
		l.sweep(kvtest.Time.Add(keepAll.Age+1), keep)
		if got := kindsOf(l.feed(owner, 10)); len(got) != 2 {
			t.Errorf("%q: the feed is %q", value, got)
		}
		if got := kvtest.Must(l.store.etcd.Native.Get(t.Context(),
			keyspace.TrimmedKey))(t).Kvs[0].Value; string(got) != value {
			t.Errorf("%q: a cut has written %q", value, got)
		}
	}
	if got := len(l.feed(large, 100)); got != 20 {
		t.Errorf("the owner with most has %d events, want those of one of two days", got)
	}
	l.sweep(kvtest.Time.Add(keepAll.Age+10*time.Hour+1), keepAll)
	if got := kindsOf(l.feed(owner, 10)); len(got) != 1 {
		t.Errorf("after the next sweep by age the feed is %q", got)
	}
	if _, err := l.after(owner, first); !errors.Is(err, licensing.ErrCursorExpired) {
		t.Errorf("after an event that was swept: %v", err)
	}
	l.clean()
}

// TestUnreadableLedger damages the ledger of an owner who gave up events: the owner's feed goes on, and the next
// measurement rebuilds the ledger, whether or not the owner has new events.
func TestUnreadableLedger(t *testing.T) {
	t.Parallel()
	for _, quiet := range []bool{false, true} {
		t.Run(fmt.Sprint("quiet: ", quiet), func(t *testing.T) {
			t.Parallel()
			l := newEventsLab(t)
			owner, other := acct("bytes"), acct("other")
			now := kvtest.Time
			measure := func(n int) {
				for range n {
					l.license(l.store, owner)
				}
				l.license(l.store, other)
				l.closeEpoch()
				l.sweep(now, bySpans(1<<40))
				now = now.Add(markAfter)
			}
			for range 4 {
				measure(20)
			}
			all := l.feed(owner, 100)
			l.sweep(now, bySpans(l.eventBytes(owner)+l.eventBytes(other)-1))
			left := len(l.feed(owner, 100))
			if left == 0 || left == len(all) {
				t.Fatalf("of %d events %d are left", len(all), left)
			}
			l.put(keyspace.LedgerKey(owner), "?")
			if got := len(l.feed(owner, 7)); got != left {
				t.Errorf("the feed has %d events, and had %d", got, left)
			}
			more := 0
			if !quiet {
				more = 5
			}
			measure(more)
			if got := len(l.feed(owner, 7)); got != left+more {
				t.Errorf("the feed has %d events, want %d", got, left+more)
			}
			sum := int64(0)
			for _, span := range l.ledger(owner).Spans {
				sum += span.Bytes
			}
			if is := l.eventBytes(owner); sum != is {
				t.Errorf("the ledger has %d bytes, and there are %d", sum, is)
			}
			for i, e := range all {
				_, err := l.after(owner, store.FeedPosition(e.ID))
				if gone := i < len(all)-left; gone != errors.Is(err, licensing.ErrCursorExpired) ||
					!gone && err != nil {
					t.Errorf("after event %d, of which %d are left: %v", i, left, err)
				}
			}
			l.sweep(now, bySpans(l.eventBytes(other)))
			if got := len(l.feed(owner, 100)); got > 1 {
				t.Errorf("over the budget the feed has %d events", got)
			}
			if n := kvtest.Counted(t, l.store.metrics.EventValuesUnreadable); n != 1 {
				t.Errorf("%v values are counted", n)
			}
			l.clean()
		})
	}
}
