package kv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// span is a number of epochs, apart from each other by apart, with each keys of events in each epoch.
type span struct {
	from         keyspace.Epoch
	epochs, each int
	apart        keyspace.Epoch
}

// putEpochs writes one event under each key, as a store does. Each event is of a license of its own. putEpochs returns
// the keys in their order.
func (l *eventsLab) putEpochs(owner licensing.Owner, spans ...span) (keys []string) {
	l.t.Helper()
	if err := l.store.putOwners(l.t.Context(), []licensing.Owner{owner}); err != nil {
		l.t.Fatal(err)
	}
	var puts []clientv3.Op
	for _, c := range spans {
		for i := range c.epochs * c.each {
			made := newLicense(l.t, 0)
			made.Owner = owner
			record := licensing.NewLicense(made, nil, "")
			key := keyspace.EventsKeyOf(owner, keyspace.Location{Epoch: c.from + keyspace.Epoch(i/c.each)*c.apart},
				keyspace.LicenseInEvents(made.Key.ID()), 1)
			keys, puts = append(keys, key), append(puts,
				clientv3.OpPut(key, string(layout.EncodeEvents(record.Events, keyspace.Location{}))))
		}
	}
	for some := range slices.Chunk(puts, etcd.MaxOps) {
		kvtest.Must(l.store.etcd.Native.Txn(l.t.Context()).Then(some...).Commit())(l.t)
	}
	slices.Sort(keys)
	return keys
}

// observed makes the store count its ranges.
func (l *eventsLab) observed() *counting {
	kv := &counting{KV: l.store.etcd.KV}
	l.store.etcd.KV = kv
	return kv
}

// TestEtcdCountsFewOfManyEvents makes marks behind thousands of events, and sweeps them. Each range has etcd count all
// of its keys. With a single range, etcd would count about 30 keys for each event to mark them, and 12 to sweep them.
func TestEtcdCountsFewOfManyEvents(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("many")
	const events, atMost = 12_000, 5 * 12_000
	keys := l.putEpochs(owner, span{from: 1, epochs: 80, each: events / 80, apart: 1})
	if last := l.closeEpoch(); last <= 80 {
		t.Fatalf("the epoch is %d, and there are events in epoch 80", last)
	}
	seen := l.observed()
	if n := l.sweep(kvtest.Time, keepAll); n != 0 {
		t.Fatalf("%d events are swept", n)
	}
	if n := seen.keys.Load(); n < events || n > atMost {
		t.Errorf("to mark %d events etcd counts %d", events, n)
	}
	size := int64(0)
	for _, span := range l.ledger(owner).Spans {
		size += span.Bytes
	}
	for _, kv := range kvtest.Must(l.store.etcd.Native.Get(t.Context(), keyspace.EventsOf(owner),
		clientv3.WithPrefix()))(t).Kvs {
		size -= int64(len(kv.Key) + len(kv.Value))
	}
	if size != 0 {
		t.Errorf("the ledger has %d bytes more than there are", size)
	}
	seen.keys.Store(0)
	if n := l.sweep(kvtest.Time.Add(1000*time.Hour), keepAll); n != len(keys) {
		t.Errorf("%d events are swept of %d", n, len(keys))
	}
	if n := seen.keys.Load(); n < events || n > atMost {
		t.Errorf("to sweep %d events etcd counts %d", events, n)
	}
	if n := l.family(keyspace.EventsFamily); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// TestWalkEvents walks through events that are spread in several ways: the walk visits each event once and in order,
// with few ranges, for which etcd counts few keys.
func TestWalkEvents(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	seen := l.observed()
	for i, c := range []struct {
		name           string
		spans          []span
		from, to       keyspace.Epoch
		limit          int64
		ranges, counts int64 // at most
	}{
		{"nothing", nil, 0, 1 << 40, 200, 14, 0},
		{"no epoch at all", []span{{7, 1, 1, 1}}, 7, 7, 200, 0, 0},
		{"less than none", []span{{7, 1, 1, 1}}, 8, 7, 200, 0, 0},
		{"one epoch", []span{{6, 3, 2, 1}}, 7, 8, 200, 1, 2},
		{"one page", []span{{7, 1, 200, 1}}, 7, 8, 200, 1, 200},
		{"one page and a key", []span{{7, 1, 201, 1}}, 7, 8, 200, 2, 202},
		{"from the first to the last", []span{{9, 1, 1, 1}, {10, 1, 1, 1}, {99, 1, 1, 1}, {100, 1, 1, 1}}, 10, 100, 1,
			2, 3},
		{"where a slice ends", []span{{10 + firstWidth - 1, 3, 1, 1}, {10 + 5*firstWidth - 1, 3, 1, 1}}, 10,
			10 + 30*firstWidth, 200, 4, 6},
		{"where a slice ends, and a page with it", []span{{10 + firstWidth - 1, 3, 2, 1}}, 10, 10 + 30*firstWidth, 2, 5,
			8},
		{"all epochs that there can be", []span{{0, 1, 1, 1}, {1 << 40, 1, 1, 1}, {math.MaxUint64 - 1, 1, 1, 1}}, 0,
			math.MaxUint64, 200, 30, 3},
		{"far apart", []span{{1, 300, 1, 1 << 30}}, 0, 301 << 30, 200, 300, 3 * 300},
		{"as many as a slice has", []span{{1, 1, sliceKeys, 1}}, 0, 1 << 20, 200, 10, 5 * sliceKeys},
		{"a few more, at its beginning", []span{{0, 1, sliceKeys + 100, 1}}, 0, 1 << 20, 200, 12, 5 * sliceKeys},
		{"a few more, at its end", []span{{firstWidth - 1, 1, sliceKeys + 100, 1}}, 0, firstWidth, 200, 12,
			5 * sliceKeys},
		{"one epoch with far more", []span{{1 << 20, 1, 5000, 1}, {1<<20 + 3, 40, 5, 7}}, 0, 1 << 21, 500, 30,
			10 * 5200},
		{"crowds far apart", []span{{1 << 30, 6, 700, 1 << 30}}, 0, 7 << 30, 200, 80, 10 * 6 * 700},
		{"few, and then many in each", []span{{1, 500, 1, 10}, {5001, 50, 100, 1}}, 0, 1 << 20, 200, 60, 10 * 5500},
		{"many in each, and then few", []span{{1, 50, 100, 1}, {51, 500, 1, 10}}, 0, 1 << 20, 200, 60, 10 * 5500},
	} {
		owner := acct(fmt.Sprintf("walk%d", i))
		want := l.putEpochs(owner, c.spans...)
		t.Run(c.name, func(t *testing.T) {
			prefix := keyspace.EventsOf(owner)
			want = slices.DeleteFunc(want, func(key string) bool {
				e := epochIn([]byte(key[len(prefix):]))
				return e < c.from || e >= c.to
			})
			seen.ranges.Store(0)
			seen.keys.Store(0)
			var got []string
			begins := prefix + string(keyspace.AppendEpoch(nil, c.from))
			err := l.store.walkEvents(t.Context(), "walk", owner, c.from, c.to, c.limit,
				func(begin, next string, page *clientv3.GetResponse) error {
					if begin < begins || int64(len(page.Kvs)) > c.limit {
						t.Errorf("a page of %d keys begins at %x, before %x", len(page.Kvs), begin, begins)
					}
					for _, kv := range page.Kvs {
						if key := string(kv.Key); key < begin || key >= next || len(kv.Value) > 0 {
							t.Errorf("a page from %x to %x has %x: %x", begin, next, key, kv.Value)
						}
						got = append(got, string(kv.Key))
					}
					begins = next
					return nil
				}, clientv3.WithKeysOnly())
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d of %d keys are visited: %v", len(got), len(want), err)
			}
			if n := seen.ranges.Load(); n > c.ranges {
				t.Errorf("it takes %d ranges", n)
			}
			if n := seen.keys.Load(); n > c.counts {
				t.Errorf("etcd counts %d keys", n)
			}
		})
	}
}

// TestWalkEventsEnds ends walks by what the visit says, and while others change the store.
func TestWalkEventsEnds(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("ends")
	keys := l.putEpochs(owner, span{from: 1, epochs: 10, each: 1, apart: 3 * firstWidth})
	seen := l.observed()
	own := errors.New("of the visit")
	for _, c := range []struct {
		name  string
		visit func(page int) error
		pages int
		want  error
	}{
		{"all", func(int) error { return nil }, 10, nil},
		{"enough", func(page int) error {
			if page == 3 {
				return fmt.Errorf("page %d: %w", page, errEnough)
			}
			return nil
		}, 3, nil},
		{"an error", func(page int) error {
			if page == 2 {
				return own
			}
			return nil
		}, 2, own},
		{"all is compacted meanwhile", func(int) error {
			at := kvtest.Must(l.store.etcd.Native.Put(t.Context(), "a key of others",
				""))(t).Header.Revision
			_, err := l.store.etcd.Native.Compact(t.Context(), at)
			return err
		}, 10, nil},
		{"what follows is swept meanwhile", func(page int) error {
			if page != 4 {
				return nil
			}
			_, err := l.store.etcd.Native.Delete(t.Context(), keys[4],
				clientv3.WithRange(keys[9]+"\x00"))
			return err
		}, 4, nil},
	} {
		pages, ranges := 0, int64(0)
		err := l.store.walkEvents(t.Context(), "walk", owner, 0, 40*firstWidth, 1,
			func(_, _ string, page *clientv3.GetResponse) error {
				if string(page.Kvs[0].Key) != keys[pages] {
					t.Errorf("%s: page %d has %x", c.name, pages, page.Kvs[0].Key)
				}
				pages++
				ranges = seen.ranges.Load()
				return c.visit(pages)
			})
		if !errors.Is(err, c.want) || pages != c.pages {
			t.Errorf("%s: it ends with page %d: %v", c.name, pages, err)
		}
		if n := seen.ranges.Load() - ranges; c.pages == 2 && n != 0 || c.pages == 3 && n != 0 {
			t.Errorf("%s: %d ranges are read after that", c.name, n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := l.store.walkEvents(ctx, "walk", owner, 0, 100, 1,
		func(_, _ string, _ *clientv3.GetResponse) error { return nil })
	if !errors.Is(err, licensing.ErrUnavailable) {
		t.Errorf("without etcd: %v", err)
	}
}
