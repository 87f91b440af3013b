package kv

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet"
	"licet/node"
)

func newTestRosters(t *testing.T, weight uint64) *rosters {
	t.Helper()
	s, err := newRosters(weight)
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

func named(bound bool, devices ...string) (entries []*licet.DeviceEntry) {
	for _, id := range devices {
		entries = append(entries, &licet.DeviceEntry{Device: licet.Device{ID: id}, Bound: bound})
	}
	return entries
}

func swapped(id licet.LicenseID, from int64, changed []*licet.DeviceEntry, moved bool) *fresh {
	return &fresh{id: id, from: from, spilled: true, moved: moved, entries: changed}
}

// TestRoster takes a roster through what can happen to it. The license is at
// revision 10 at first, when its devices a and b were moved out.
func TestRoster(t *testing.T) {
	id := newKey(t).ID()
	read := func(f findings, devices ...string) func(*rosters) {
		for _, device := range devices {
			f.devices = append(f.devices, licet.Device{ID: device})
		}
		return func(s *rosters) { s.learn(id, &f) }
	}
	type is = map[string]standing
	for _, c := range []struct {
		name     string
		steps    []func(*rosters)
		revision int64
		want     is
	}{
		{"nothing more", nil, 10, is{"a": bound, "b": bound, "c": absent}},
		{"a swap of our own", []func(*rosters){
			func(s *rosters) { s.follow(swapped(id, 10, named(true, "c"), false), 11) },
			func(s *rosters) { s.follow(swapped(id, 11, named(false, "a"), false), 12) },
		}, 12, is{"a": absent, "b": bound, "c": bound, "d": absent}},
		{"a swap of our own, after a rival's", []func(*rosters){
			func(s *rosters) { s.follow(swapped(id, 11, named(true, "c"), false), 12) },
		}, 12, is{"a": unheardOf, "b": unheardOf, "c": bound}},
		{"a swap that was overtaken", []func(*rosters){
			func(s *rosters) { s.follow(swapped(id, 10, named(true, "c"), false), 12) },
			func(s *rosters) { s.follow(swapped(id, 10, named(true, "d"), false), 11) },
		}, 12, is{"c": bound, "d": absent}},
		{"read at the same revision", []func(*rosters){
			read(findings{revision: 10, entries: map[string]int64{"b": 10}}, "b", "c"),
		}, 10, is{"a": bound, "b": bound, "c": absent}},
		{"read of a rival's", []func(*rosters){
			read(findings{revision: 11, entries: map[string]int64{"b": 10}}, "b", "c"),
		}, 11, is{"a": unheardOf, "b": bound, "c": unheardOf}},
		{"read of what we have just written", []func(*rosters){
			read(findings{revision: 11, entries: map[string]int64{"c": 11}, own: true}, "c"),
			func(s *rosters) { s.follow(swapped(id, 10, named(true, "c", "d"), false), 11) },
		}, 11, is{"a": bound, "c": bound, "d": bound, "e": absent}},
		{"an old read", []func(*rosters){
			func(s *rosters) { s.follow(swapped(id, 10, named(false, "a"), false), 12) },
			read(findings{revision: 11, entries: map[string]int64{"a": 10}}, "a"),
		}, 12, is{"a": absent, "b": bound}},
		{"a loss to what seems older", []func(*rosters){
			read(findings{revision: 7, entries: map[string]int64{"z": 5}, corrects: true}, "z", "a"),
		}, 7, is{"a": unheardOf, "b": unheardOf, "z": bound}},
		{"a loss to a copy of our own", []func(*rosters){
			read(findings{revision: 11, entries: map[string]int64{"c": 11}, own: true, corrects: true}, "c"),
		}, 11, is{"a": unheardOf, "c": bound}},
		{"moved out anew", []func(*rosters){
			func(s *rosters) { s.follow(swapped(id, 20, named(true, "x"), true), 21) },
		}, 21, is{"a": absent, "x": bound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestRosters(t, rosterWeight)
			s.follow(swapped(id, 9, named(true, "a", "b"), true), 10)
			for _, step := range c.steps {
				step(s)
			}
			s.use(id, false, func(r *roster) {
				if r.revision != c.revision {
					t.Errorf("it is at revision %d, want %d", r.revision, c.revision)
				}
				for device, want := range c.want {
					if got, _ := r.find(device); got != want {
						t.Errorf("%s: %v, want %v", device, got, want)
					}
				}
			})
		})
	}
}

// TestRosterTouch: that a device was seen is noted over what it replaced, and an
// older read of it is not.
func TestRosterTouch(t *testing.T) {
	id, s := newKey(t).ID(), newTestRosters(t, rosterWeight)
	s.follow(swapped(id, 9, named(true, "a"), true), 10)
	at := func(want int64) {
		t.Helper()
		s.use(id, false, func(r *roster) {
			if _, known := r.find("a"); known.revision != want {
				t.Errorf("a is known as of revision %d, want %d", known.revision, want)
			}
		})
	}
	s.touched(id, licet.Device{ID: "a"}, 10, 11)
	at(11)
	s.touched(id, licet.Device{ID: "a"}, 10, 12)
	at(11)
	older := &findings{revision: 10, devices: []licet.Device{{ID: "a"}}, entries: map[string]int64{"a": 10}}
	s.learn(id, older)
	at(11)
	s.touched(id, licet.Device{ID: "never"}, 0, 12)
	s.use(id, false, func(r *roster) {
		if standing, _ := r.find("never"); standing != absent {
			t.Error("a device that was never bound is known")
		}
	})
	s.touched(newKey(t).ID(), licet.Device{ID: "a"}, 10, 11)
}

// TestRosterBounds: no license is known with more devices in full than it may,
// and those that are dropped are still known to be bound; and the rosters
// together don't grow beyond their weight.
func TestRosterBounds(t *testing.T) {
	id, s := newKey(t).ID(), newTestRosters(t, rosterWeight)
	s.follow(swapped(id, 9, nil, true), 10)
	const more = 100
	for i := range rosterEntries + more {
		s.follow(swapped(id, int64(10+i), named(true, fmt.Sprint(i)), false), int64(11+i))
	}
	s.use(id, false, func(r *roster) {
		count := map[standing]int{}
		for i := range rosterEntries + more {
			standing, _ := r.find(fmt.Sprint(i))
			count[standing]++
		}
		if count[bound] != rosterEntries || count[present] != more {
			t.Errorf("%d known in full and %d otherwise", count[bound], count[present])
		}
		if weight := len(r.bound) + entryWeight*len(r.entries); weight > 2*int(r.weighed.Load()) {
			t.Errorf("it weighs %d, and counts as %d", weight, r.weighed.Load())
		}
	})

	few := newTestRosters(t, 100*entryWeight)
	for range 1000 {
		few.follow(swapped(newKey(t).ID(), 9, named(true, "a", "b"), true), 10)
	}
	few.cache.CleanUp()
	if n := few.cache.EstimatedSize(); n > 100 {
		t.Errorf("%d rosters of three devices' weight are kept, in room for 100", n)
	}
}

// TestRosterTellsTheTruth lets two stores change licenses in any order. Of
// whatever a store remembers and confirms, every word must be true.
func TestRosterTellsTheTruth(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			stores := []*Store{faultyStore(t, script()), faultyStore(t, script())}
			confirmed, whole := 0, 0
			for range 8 {
				ref, _ := createStored(t, stores[0])
				truth := make(map[string]licet.Device)
				for step := range 100 {
					// Mostly one store writes, so that it comes to know the license.
					s := stores[0]
					if rng.IntN(40) == 0 {
						s = stores[1]
					}
					at := testTime.Add(time.Duration(step) * time.Minute)
					change(t, s, ref, randomCommand(rng, ref, at), at, truth)
					s = stores[rng.IntN(2)]
					if rng.IntN(4) == 0 {
						loadOne(t, s, ref) // which tells nothing of devices
					}
					guess, ok := confirmTruth(t, s, ref, someDevices(rng), truth)
					if !ok {
						continue
					}
					confirmed++
					if guess.Token.(*stored).whole {
						whole++
					}
				}
			}
			if whole < 50 || confirmed-whole < 50 {
				t.Errorf("%d confirmed, %d with all devices known: the test tells little", confirmed, whole)
			}
		})
	}
}

// confirmTruth compares what a store remembers with what is true, if it confirms
// it.
func confirmTruth(t *testing.T, s *Store, ref licet.Ref, devices []string, truth map[string]licet.Device) (node.Snapshot, bool) {
	t.Helper()
	guess, _, ok := s.Recall(node.Want{Ref: ref, Devices: devices})
	if !ok {
		return guess, false
	}
	still, err := s.Confirm(testContext(t, 10*time.Second), ref, guess.Token)
	if err != nil {
		t.Fatal(err)
	}
	if !still {
		return guess, false
	}
	if got := guess.Record.License.CurrentDevices; got != len(truth) {
		t.Fatalf("%d devices are confirmed, of %d", got, len(truth))
	}
	for id, entry := range guess.Record.Devices {
		if d, isBound := truth[id]; entry.Bound != isBound || isBound && entry.Device.Name != d.Name {
			t.Fatalf("%s is confirmed as bound %v, %+v; it is %v, %+v", id, entry.Bound, entry.Device, isBound, d)
		}
	}
	return guess, true
}

const deviceCount = 60

func randomCommand(rng *rand.Rand, ref licet.Ref, at time.Time) licet.Command {
	target := licet.Target{Key: licet.LicenseKey(ref.ID)}
	device := fmt.Sprint("device-", rng.IntN(deviceCount))
	switch rng.IntN(8) {
	case 0:
		return licet.RemoveDevice{Target: target, Device: device}
	case 1:
		return licet.Activate{Target: target, Device: device, Named: true, Name: at.String()}
	case 2:
		return licet.Seen{Key: target.Key, Device: device, At: at}
	default:
		return licet.Activate{Target: target, Device: device}
	}
}

func someDevices(rng *rand.Rand) (devices []string) {
	for _, i := range rng.Perm(deviceCount)[:20] {
		devices = append(devices, fmt.Sprint("device-", i))
	}
	return devices
}

// change makes a command on what a store remembers, or else has read, again
// until it lands, and keeps account of it.
func change(t *testing.T, s *Store, ref licet.Ref, cmd licet.Command, at time.Time, truth map[string]licet.Device) {
	t.Helper()
	ctx := testContext(t, 10*time.Second)
	want := node.Want{Ref: ref, Devices: []string{cmd.DeviceID()}}
	snapshot, unsure, ok := s.Recall(want)
	for range 3 {
		if !ok || len(unsure) > 0 {
			snapshot = loadOne(t, s, ref, want.Devices...)
		}
		if _, err := licet.Apply(&snapshot.Record, cmd, at); err != nil {
			t.Fatal(err)
		}
		if !snapshot.Record.Changed && !snapshot.Record.Touched {
			if still, err := s.Confirm(ctx, ref, snapshot.Token); still || err != nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			ok = false
			continue
		}
		outcome, err := s.Commit(ctx, node.Change{Writes: []node.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Landed {
			entry := snapshot.Record.Devices[cmd.DeviceID()]
			if delete(truth, cmd.DeviceID()); entry.Bound {
				truth[cmd.DeviceID()] = entry.Device
			}
			return
		}
		ok = false
	}
	t.Fatalf("%+v was lost three times", cmd)
}

// spilled stores a license whose devices this store has moved out of it, so that
// it knows all of them.
func spilled(t *testing.T, s *Store) licet.Ref {
	t.Helper()
	ref, _ := createStored(t, s)
	for i := range maxInline + 1 {
		device := fmt.Sprint("d-", i)
		commit(t, s, ref, snapshotOf(bind(t, ref, guessed(t, s, ref, device), device)), true)
	}
	return ref
}

func snapshotOf(change node.Change) node.Snapshot {
	return node.Snapshot{Record: change.Writes[0].Record, Token: change.Writes[0].Token}
}

// TestLargeFold binds as many devices at once as any fold may touch: in one
// request that compares nothing but the license, where all devices are known.
// After a rival's write there is room for as many as usual, and what was made of
// the old guess is lost.
func TestLargeFold(t *testing.T) {
	s := faultyStore(t, script())
	ref := spilled(t, s)
	if got := s.Room(ref); got != node.MaxFoldDevices {
		t.Fatalf("room for %d devices, want %d", got, node.MaxFoldDevices)
	}
	var many [2][]string
	for i := range node.MaxFoldDevices {
		for j := range many {
			many[j] = append(many[j], fmt.Sprint("many-", j, "-", i))
		}
	}
	bindAll := func(guess node.Snapshot, devices []string) node.Snapshot {
		for _, device := range devices {
			guess = snapshotOf(bind(t, ref, guess, device))
		}
		return guess
	}
	var requests []*etcdserverpb.TxnRequest
	s.remote.(*faultyKV).note = func(r *etcdserverpb.TxnRequest) { requests = append(requests, r) }
	commit(t, s, ref, bindAll(guessed(t, s, ref, many[0]...), many[0]), true)
	if len(requests) != 1 || len(requests[0].Compare) != 1 {
		t.Errorf("%d requests, want one with one compare", len(requests))
	}
	count := maxInline + 1 + node.MaxFoldDevices
	view, err := s.ReadLicense(testContext(t, 10*time.Second), licet.LicenseKey(ref.ID), node.DevicePage{Limit: 1000})
	if err != nil || view.License.CurrentDevices != count || len(view.Devices) != count {
		t.Fatalf("%d devices, %d listed, want %d; %v", view.License.CurrentDevices, len(view.Devices), count, err)
	}

	stale := bindAll(guessed(t, s, ref, many[1]...), many[1])
	other := faultyStore(t, script())
	commit(t, other, ref, snapshotOf(bind(t, ref, loadOne(t, other, ref, "many-1-7"), "many-1-7")), true)
	outcome, err := s.Commit(testContext(t, 10*time.Second), node.Change{Writes: []node.Write{{Ref: ref, Token: stale.Token, Record: stale.Record}}})
	if err != nil || outcome.Landed || outcome.Rivals != nil {
		t.Fatalf("got %+v, %v; want a loss that tells of no device", outcome, err)
	}
	if got := s.Room(ref); got != node.MaxTouchedDevices {
		t.Errorf("after a rival's write: room for %d", got)
	}
	if _, _, ok := s.Recall(node.Want{Ref: ref, Devices: many[1]}); ok {
		t.Error("more is remembered than there is room for")
	}
	if got := loadOne(t, s, ref).Record.License.CurrentDevices; got != count+1 {
		t.Errorf("%d devices, want %d", got, count+1)
	}
}

// TestRoom: of what is not a license with all devices known, there is room for
// the usual number.
func TestRoom(t *testing.T) {
	s := faultyStore(t, script())
	inline, _ := createStored(t, s)
	for _, ref := range []licet.Ref{
		inline,
		manyDevices(t, s, 20),
		licet.LicenseRef(newKey(t)),
		licet.OrderRef(licet.Owner{AccountID: "acct_test", Mode: licet.Test}, "ord_1"),
	} {
		if got := s.Room(ref); got != node.MaxTouchedDevices {
			t.Errorf("%+v: room for %d devices", ref, got)
		}
	}
}
