package etcd

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/licensing"
)

// slotLab is a store with the keys of a family in some slots.
type slotLab struct {
	*spaceLab
	keys []string // of the family, in the order of pages
}

// newSlotLab puts as many keys of the family f/ into each slot as counts says, among keys of other families.
func newSlotLab(t *testing.T, counts map[licensing.Slot]int) *slotLab {
	t.Helper()
	l := &slotLab{spaceLab: newSpaceLab(t, 1)}
	put := func(key string) {
		t.Helper()
		if _, err := l.client.Native.Put(l.ctx(), key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	for slot, n := range counts {
		put(keyspace.SlotKey(slot))
		put(keyspace.InSlot(slot, "e/1"))
		put(keyspace.InSlot(slot, "g/1"))
		for i := range n {
			key := keyspace.InSlot(slot, fmt.Sprintf("f/%03d", i))
			put(key)
			l.keys = append(l.keys, key)
		}
	}
	slices.Sort(l.keys)
	return l
}

// pages reads a range page by page, and returns the keys and the number of pages.
func (l *slotLab) pages(t *testing.T, r SlotRange, limit int) (keys []string, pages int) {
	t.Helper()
	for from := ""; ; pages++ {
		page, err := l.client.PageInSlots(l.ctx(), "test", r, from, limit, 0, clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Kvs) > limit {
			t.Fatalf("a page has %d keys, and %d is the limit", len(page.Kvs), limit)
		}
		for _, kv := range page.Kvs {
			keys = append(keys, string(kv.Key))
		}
		if from = page.Next; from == "" {
			return keys, pages + 1
		}
	}
}

// TestPagesInSlots: pages of any size have each key of the range once, by slot, also where slots have no key, or more
// keys than a page.
func TestPagesInSlots(t *testing.T) {
	t.Parallel()
	counts := map[licensing.Slot]int{0: 7, 3: 0, 4: 1, 31: 40, 32: 3, licensing.Slots - 1: 2}
	for i := range licensing.Slot(2*MaxOps + 5) { // more slots than two requests read
		counts[500+i] = int(i) % 3
	}
	l := newSlotLab(t, counts)
	for _, limit := range []int{1, 2, 5, 39, 40, 41, len(l.keys), 10_000} {
		keys, pages := l.pages(t, Family("f/"), limit)
		if !slices.Equal(keys, l.keys) {
			t.Errorf("pages of %d: %d keys, want %d; the first ones are %q", limit, len(keys), len(l.keys), keys[:5])
		}
		if most := len(l.keys)/limit + 1; pages > most {
			t.Errorf("pages of %d: %d pages, want up to %d", limit, pages, most)
		}
	}
	some, _ := l.pages(t, SlotRange{"f/001", "f/003"}, 4)
	want := slices.DeleteFunc(slices.Clone(l.keys), func(key string) bool {
		path := key[len("lc2/00/"):]
		return path < "f/001" || path >= "f/003"
	})
	if !slices.Equal(some, want) {
		t.Errorf("a part of the range is %q, want %q", some, want)
	}
}

// TestSlotsNotInUse: keys of a slot that is not registered are not read, nor is a registration of no form.
func TestSlotsNotInUse(t *testing.T) {
	t.Parallel()
	l := newSlotLab(t, map[licensing.Slot]int{5: 2})
	for _, key := range []string{keyspace.InSlot(6, "f/1"), keyspace.SlotsPrefix + "U0", keyspace.SlotsPrefix + "000"} {
		if _, err := l.client.Native.Put(l.ctx(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	if keys, _ := l.pages(t, Family("f/"), 10); !slices.Equal(keys, l.keys) {
		t.Errorf("read are %q, want %q", keys, l.keys)
	}
	for r, want := range map[SlotRange][]licensing.Slot{
		Family("f/"): {5}, {"f/001", "f/9"}: {5}, {"f/002", "f/9"}: nil, Family("x/"): nil,
	} {
		if with, err := l.client.SlotsWith(l.ctx(), "test", r); err != nil || !slices.Equal(with, want) {
			t.Errorf("keys in %v are in the slots %v, want %v, %v", r, with, want, err)
		}
	}
}

// TestPagesAtARevision: a page is as of one revision, whatever is written meanwhile.
func TestPagesAtARevision(t *testing.T) {
	t.Parallel()
	l := newSlotLab(t, map[licensing.Slot]int{5: 2, 6: 2})
	before, err := l.client.Native.Get(l.ctx(), keyspace.SlotKey(5))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.client.Native.Delete(l.ctx(), l.keys[0]); err != nil {
		t.Fatal(err)
	}
	read := func(revision int64) (keys []string) {
		t.Helper()
		if err := l.client.EachInSlots(context.Background(), "test", Family("f/"), 1, revision,
			func(kv *mvccpb.KeyValue) { keys = append(keys, string(kv.Key)) }); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	if keys := read(before.Header.Revision); !slices.Equal(keys, l.keys) {
		t.Errorf("before: %q", keys)
	}
	if keys := read(0); !slices.Equal(keys, l.keys[1:]) {
		t.Errorf("now: %q", keys)
	}
}
