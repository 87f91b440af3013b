package kv

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// entryKeys returns all keys of an entry without a value.
func entryKeys(entry string) []string { return append([]string{entry}, keyspace.SkipKeys(entry)...) }

// TestSkipHeights: heights never change, since a build would miss keys that another build does not write.
func TestSkipHeights(t *testing.T) {
	depth.NotRaced(t)
	random := rand.New(rand.NewPCG(1, 2))
	const entries = 1 << 20
	counts := make([]int, keyspace.SkipLevels+1)
	for range entries {
		var block [licensing.LicenseBlockSize]byte
		binary.BigEndian.PutUint64(block[:], random.Uint64())
		binary.BigEndian.PutUint64(block[8:], random.Uint64())
		id := licensing.NewLicenseID(0, block)
		counts[keyspace.SkipHeight(keyspace.ListingKey(labOwner, kvtest.Time, id))]++
	}
	if want := []int{1040323, 8200, 53}; !slices.Equal(counts, want) {
		t.Errorf("of %d entries so many are of each height: %v, want %v", entries, counts, want)
	}
	for key, want := range map[string]int{"": 0, "x": 0,
		"lc2/00/o/acct/t/ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A": 0} {
		if got := keyspace.SkipHeight(key); got != want {
			t.Errorf("%q has height %d, want %d", key, got, want)
		}
	}
}

// heights returns positions of entries, with some of each height.
func heights() (positions []string) {
	for i := range 100_000 {
		position := fmt.Sprintf("%024d", i)
		if height := keyspace.SkipHeight(position); i%50 == 0 || height == 1 && i%4 == 0 || height == 2 {
			positions = append(positions, position)
		}
	}
	return positions
}

// plantListing writes the entries of a listing, without the keys for which leave returns true.
func plantListing(t *testing.T, listing string, positions []string, leave func(level int, position string) bool) {
	t.Helper()
	var ops []clientv3.Op
	flush := func() {
		if _, err := server.Client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
		ops = ops[:0]
	}
	for _, position := range positions {
		for level, key := range entryKeys(inLab(listing + position)) {
			if !leave(level, position) {
				ops = append(ops, clientv3.OpPut(key, ""))
			}
		}
		if len(ops) > 100 {
			flush()
		}
	}
	if len(ops) > 0 {
		flush()
	}
}

// walked returns all positions of a walk, read in pages of size.
func walked(t *testing.T, w *walk, size int) (positions []string) {
	t.Helper()
	for {
		some, err := w.next(t.Context(), size)
		if err != nil {
			t.Fatal(err)
		}
		positions = append(positions, some...)
		if len(some) < size {
			more, err := w.more(t.Context())
			if err != nil || more {
				t.Fatalf("a walk that has ended has more: %v, %v", more, err)
			}
			return positions
		}
	}
}

// TestWalk: a walk returns each entry once, from any beginning and with any upper levels. The upper levels only change
// its cost.
func TestWalk(t *testing.T) {
	s := openStore(t)
	positions := heights()
	backwards := slices.Clone(positions)
	slices.Reverse(backwards)
	for name, leave := range map[string]func(int, string) bool{
		"whole":                func(int, string) bool { return false },
		"without upper levels": func(level int, _ string) bool { return level > 0 },
		"without the top":      func(level int, _ string) bool { return level == 2 },
		"with holes on level 1": func(level int,
			position string) bool {
			return level == 1 && position[23]%2 == 0
		},
		"without every third entry": func(level int,
			position string) bool {
			return level == 0 && position[23]%3 == 0
		},
		"with the top and nothing 1": func(level int, _ string) bool { return level == 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listing := "i/acct_walk " + name + "/t/"
			plantListing(t, listing, positions, leave)
			want := slices.DeleteFunc(slices.Clone(backwards), func(position string) bool { return leave(0, position) })
			for _, size := range []int{1, 7, 128, 5000} {
				if got := walked(t, s.walkFrom(labOwner, listing, ""), size); !slices.Equal(got, want) {
					t.Fatalf("%d at a time: %d positions, want %d", size, len(got), len(want))
				}
			}
			for _, before := range []string{"0", positions[0], positions[1], positions[997], positions[997][:20],
				positions[1999], "1"} {
				rest := slices.DeleteFunc(slices.Clone(want), func(position string) bool { return position >= before })
				w := s.walkFrom(labOwner, listing, store.Position(before))
				if got := walked(t, w, 50); !slices.Equal(got, rest) {
					t.Errorf("from %s: %d positions, want %d", before, len(got), len(rest))
				}
				for _, oldest := range []string{"", "0", positions[1], positions[996], positions[998], "1"} {
					some := slices.DeleteFunc(slices.Clone(rest),
						func(position string) bool { return position < oldest })
					w := s.walkFrom(labOwner, listing, "")
					w.within(oldest, before)
					if got := walked(t, w, 50); !slices.Equal(got, some) {
						t.Errorf("from %s to %s: %d positions, want %d", oldest, before, len(got), len(some))
					}
				}
			}
		})
	}
}

// TestWalkWhileOthersAdd: a walk returns all earlier entries of a listing while others add entries.
func TestWalkWhileOthersAdd(t *testing.T) {
	s := openStore(t)
	const listing = "i/acct_walk busy/t/"
	positions := heights()
	var there, added []string
	for i, position := range positions {
		if i%2 == 0 {
			there = append(there, position)
		} else {
			added = append(added, position)
		}
	}
	whole := func(int, string) bool { return false }
	plantListing(t, listing, there, whole)
	w := s.walkFrom(labOwner, listing, "")
	var got []string
	for len(added) > 0 {
		some, err := w.next(t.Context(), 40)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, some...)
		plantListing(t, listing, added[len(added)-min(len(added), 30):], whole) // ahead of the walk, and behind it
		added = added[:len(added)-min(len(added), 30)]
	}
	got = append(got, walked(t, w, 40)...)
	seen := map[string]int{}
	for _, position := range got {
		seen[position]++
	}
	for _, position := range there {
		if seen[position] != 1 {
			t.Errorf("%s is an earlier entry, and was returned %d times", position, seen[position])
		}
	}
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Error("the entries were not returned in order")
	}
}

// TestListingCostsLittle: a new record puts little more than its own entry, and shares no key with other new records.
func TestListingCostsLittle(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const made = 20_000
	extra := 0
	seen := map[string]bool{}
	for range made {
		sw := &swap{}
		var id licensing.LicenseID
		binary.BigEndian.PutUint64(id[:], random.Uint64())
		binary.BigEndian.PutUint64(id[8:], random.Uint64())
		sw.list(keyspace.ListingKey(labOwner, kvtest.Time, id))
		extra += len(sw.then) - 1
		for _, op := range sw.then {
			if key := string(etcd.WrittenKey(op)); seen[key] {
				t.Fatalf("%q is put by two creations", key)
			} else {
				seen[key] = true
			}
		}
	}
	if extra > made/100 {
		t.Errorf("%d creations put %d keys beside their entries", made, extra)
	}
	// A license, its metadata, its end and its place; the first two are read too.
	const puts, reads = (4+keyspace.SkipLevels)*store.MaxNewLicenses + 8, 2*store.MaxNewLicenses + 8
	children := etcd.Branch(make([]*etcdserverpb.RequestOp, puts), reads)
	deepest := 0
	for _, child := range children {
		deepest = max(deepest, len(child.GetRequestTxn().GetSuccess()))
	}
	if ops := max(len(children), reads) + deepest; ops > etcd.MaxOps {
		t.Errorf("%d licenses of the greatest height make a transaction of %d operations", store.MaxNewLicenses, ops)
	}
}
