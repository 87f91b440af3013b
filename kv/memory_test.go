package kv

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// manyDevices stores a license with the devices d-0, d-1 and so on in keys of their own. A store that has just read the
// license knows none of these devices.
func manyDevices(t *testing.T, s *Store, count int) licensing.Ref {
	t.Helper()
	ref := licensing.LicenseRef(putDevices(t, count,
		func(i int) store.DeviceCursor { return keyspace.DevicePosition(fmt.Sprint("d-", i)) }))
	loadOne(t, s, ref)
	return ref
}

// guessed returns the remembered license, with devices that the store assumes to be absent.
func guessed(t *testing.T, s *Store, ref licensing.Ref, devices ...string) store.Snapshot {
	t.Helper()
	guess, unsure, ok := s.Recall(store.Want{Ref: ref, Devices: devices})
	if !ok || len(unsure) > 0 {
		t.Fatalf("remembered: %v, unsure of %v", ok, unsure)
	}
	for _, device := range devices {
		if guess.Record.Devices[device].Bound {
			t.Fatalf("%s is remembered as bound", device)
		}
	}
	return guess
}

// TestWrongAssumption swaps a change that was made on a guess without a bound device: the swap must not land, although
// the license has the remembered revision. The swap returns the device, and the store learns from it.
func TestWrongAssumption(t *testing.T) {
	for _, c := range []struct {
		name    string
		touched []string
		device  string // to be bound
	}{
		{"the device that is written", []string{"d-3"}, "d-3"},
		{"a device that is only answered for", []string{"d-3", "new"}, "new"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := faultyStore(t, kvtest.Script())
			ref := manyDevices(t, s, 20)
			outcome, err := s.Commit(t.Context(),
				bind(t, ref, guessed(t, s, ref, c.touched...), c.device))
			if err != nil || outcome.Landed {
				t.Fatalf("got %+v, %v; want a loss", outcome, err)
			}
			rival := outcome.Rivals[0].Record
			if !rival.Devices["d-3"].Bound || rival.License.CurrentDevices != 20 {
				t.Errorf("the rival has d-3 bound: %v, among %d", rival.Devices["d-3"].Bound,
					rival.License.CurrentDevices)
			}
			want := store.Want{Ref: ref, Devices: []string{"d-3", "d-4", "d-5"}}
			if guess, unsure, ok := s.Recall(want); !ok || len(unsure) != 2 || !guess.Record.Devices["d-3"].Bound {
				t.Errorf("after a wrong guess the store is unsure of %v", unsure)
			}
			// After distrustAfterGuess absent devices the cache guesses again, but not
			// about the device that is known to be bound.
			for range distrustAfterGuess {
				loadOne(t, s, ref, "absent")
			}
			if guess, unsure, _ := s.Recall(want); len(unsure) != 0 || !guess.Record.Devices["d-3"].Bound {
				t.Errorf("after %d absent devices the store is unsure of %v", distrustAfterGuess, unsure)
			}
		})
	}
}

// TestRememberedSwaps swaps again and again on the values that the store remembers from earlier swaps, without a read.
// The license has few devices or many, and the swap has a request of its own or shares one.
func TestRememberedSwaps(t *testing.T) {
	for _, first := range []int{0, 20} {
		s := faultyStore(t, kvtest.Script())
		var ref licensing.Ref
		if first == 0 {
			ref, _ = createStored(t, s)
		} else {
			ref = manyDevices(t, s, first)
		}
		for i := range 4 {
			device := fmt.Sprint("d-", first+i)
			change := bind(t, ref, guessed(t, s, ref, device), device)
			outcome, err := s.Commit(t.Context(), change)
			if err != nil || !outcome.Landed {
				t.Fatalf("%s, after %d: %+v, %v", device, first, outcome, err)
			}
		}
		if got := loadOne(t, s, ref).Record.License.CurrentDevices; got != first+4 {
			t.Errorf("%d devices, want %d", got, first+4)
		}
	}
}

// TestConfirm: the store confirms a guess as long as all of it is true, and reads only revisions.
func TestConfirm(t *testing.T) {
	for _, first := range []int{0, 20} {
		s, other := faultyStore(t, kvtest.Script()), faultyStore(t, kvtest.Script())
		var ref licensing.Ref
		if first == 0 {
			ref, _ = createStored(t, s)
		} else {
			ref = manyDevices(t, s, first)
		}
		confirm := func(guess store.Snapshot, want bool) {
			t.Helper()
			still, err := s.Confirm(t.Context(), ref, guess.Token)
			if still != want || err != nil {
				t.Errorf("%d devices: got %v, %v; want %v", first, still, err, want)
			}
		}
		guess := guessed(t, s, ref, "new")
		confirm(guess, true)
		confirm(guess, true)
		if first > 0 {
			confirm(guessed(t, s, ref, "new", "d-3"), false) // d-3 is bound
		}
		change := bind(t, ref, loadOne(t, other, ref, "new"), "new")
		if outcome, err := other.Commit(t.Context(), change); err != nil || !outcome.Landed {
			t.Fatalf("got %+v, %v", outcome, err)
		}
		confirm(guess, false)
	}
}

// TestRememberedSize: a remembered license takes no more memory than needed, whether it was read or written, with few
// devices or many.
func TestRememberedSize(t *testing.T) {
	if got := reflect.TypeFor[slot]().Size(); got > 64 { // one of the sizes that Go allocates
		t.Errorf("a slot takes %d bytes", got)
	}
	for _, first := range []int{0, layout.MaxInline, layout.MaxInline + 1} {
		s := faultyStore(t, kvtest.Script())
		ref, _ := createStored(t, s)
		snug := func(after string) {
			t.Helper()
			slot, last := s.memory.recall(ref.LicenseID())
			if slot == nil {
				t.Fatalf("after %s: not remembered", after)
			}
			if needed := cap(bytes.Clone(last.value)); cap(last.value) > needed {
				t.Errorf("after %s: %d bytes take %d, and a copy of them %d", after, len(last.value), cap(last.value),
					needed)
			}
		}
		snug("a read")
		for i := range first {
			device := fmt.Sprint("d-", i)
			commit(t, s, ref, snapshotOf(bind(t, ref, guessed(t, s, ref, device), device)), true)
			snug(fmt.Sprintf("%d swaps", i+1))
		}
		loadOne(t, s, ref)
		snug("another read")
	}
}

// TestNoteKeepsTheNewer: a read that a swap has overtaken does not replace the newer value. A lost swap replaces the
// value by an older one, since the remembered value was wrong.
func TestNoteKeepsTheNewer(t *testing.T) {
	m, err := newMemory(10)
	if err != nil {
		t.Fatal(err)
	}
	id := newKey(t).ID()
	remembered := func() int64 {
		_, last := m.recall(id)
		return last.revision
	}
	m.note(id, cachedValue{revision: 7})
	m.note(id, cachedValue{revision: 5})
	if got := remembered(); got != 7 {
		t.Errorf("after an overtaken read: revision %d, want 7", got)
	}
	m.note(id, cachedValue{revision: 9})
	if got := remembered(); got != 9 {
		t.Errorf("after a later one: revision %d, want 9", got)
	}
	m.correct(id, cachedValue{revision: 3})
	if got := remembered(); got != 3 {
		t.Errorf("after a loss: revision %d, want 3", got)
	}
}

// TestTouchOfRemoved stores a use of a device that was removed, or removed and bound again, since it was read: the swap
// must lose.
func TestTouchOfRemoved(t *testing.T) {
	for _, again := range []bool{false, true} {
		s, other := faultyStore(t, kvtest.Script()), faultyStore(t, kvtest.Script())
		ref := manyDevices(t, s, 20)
		key := keyOf(ref)
		read := loadOne(t, s, ref, "d-3")
		if _, err := licensing.Apply(&read.Record,
			licensing.Seen{Key: key, Device: "d-3", At: kvtest.Time.Add(time.Hour)}, kvtest.Time); err != nil {
			t.Fatal(err)
		}
		swap := func(cmd licensing.Command) {
			t.Helper()
			s := loadOne(t, other, ref, "d-3")
			if _, err := licensing.Apply(&s.Record, cmd, kvtest.Time.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			commit(t, other, ref, s, true)
		}
		swap(licensing.RemoveDevice{Target: licensing.Target{Key: key}, Device: "d-3"})
		if again {
			swap(licensing.Activate{Target: licensing.Target{Key: key}, Device: "d-3"})
		}
		commit(t, s, ref, read, false)
		after := loadOne(t, other, ref, "d-3").Record.Devices["d-3"]
		if after.Bound != again || again && !after.Device.LastSeenAt.Equal(kvtest.Time.Add(time.Minute)) {
			t.Errorf("bound again %v: %+v", again, after)
		}
	}
}

func commit(t *testing.T, s *Store, ref licensing.Ref, snapshot store.Snapshot, landed bool) {
	t.Helper()
	outcome, err := s.Commit(t.Context(),
		store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
	if err != nil || outcome.Landed != landed {
		t.Fatalf("got %+v, %v; want landed %v", outcome, err, landed)
	}
}

// TestMemoryAfterRestore remembers a license at a revision that the store has not reached after a restore: one swap
// loses because of that, and no other.
func TestMemoryAfterRestore(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	ref, _ := createStored(t, s)
	id := ref.LicenseID()
	_, last := s.memory.recall(id)
	s.memory.correct(id, cachedValue{revision: last.revision + 1<<40, value: last.value})
	for _, landed := range []bool{false, true} {
		guess := guessed(t, s, ref, "a")
		commit(t, s, ref, store.Snapshot{Record: bind(t, ref, guess, "a").Writes[0].Record, Token: guess.Token}, landed)
	}
}

// TestMergeInline: a change leaves the devices it was made of as they are.
func TestMergeInline(t *testing.T) {
	device := func(id string) layout.InlineDevice {
		return layout.NewInlineDevice(&licensing.Device{ID: id, BoundAt: kvtest.Time, LastSeenAt: kvtest.Time},
			kvtest.Time)
	}
	a, b := device("a"), device("b")
	stored := []layout.InlineDevice{a, b}
	merged := layout.MergeInline(stored, []*licensing.DeviceEntry{{Device: licensing.Device{ID: "a"}}}, kvtest.Time)
	if len(merged) != 1 || string(merged[0]) != string(b) {
		t.Errorf("without a: %q", merged)
	}
	if string(stored[0]) != string(a) || string(stored[1]) != string(b) {
		t.Errorf("what was stored is now %q", stored)
	}
}

// BenchmarkOwnerOf looks up the owner of a remembered license, as each activation does.
func BenchmarkOwnerOf(b *testing.B) {
	m, err := newMemory(0)
	if err != nil {
		b.Fatal(err)
	}
	s := &Store{memory: m}
	key := kvtest.Keys.Mint("LIC", kvtest.Owner, [keyring.LicenseKeyEntropy]byte{1})
	l := &licensing.License{Key: key, Owner: kvtest.Owner, CreatedAt: kvtest.Time}
	value := (&layout.License{License: *l}).Encode()
	m.note(key.ID(), cachedValue{revision: 1, value: value})
	ref := licensing.LicenseRef(key)
	b.ReportAllocs()
	for b.Loop() {
		if owner, known := s.OwnerOf(ref); !known || owner != kvtest.Owner {
			b.Fatalf("got %v, %v", owner, known)
		}
	}
}
