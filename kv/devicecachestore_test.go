package kv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestDeviceCacheMatchesEtcd lets two stores change licenses in any order. All devices that a store remembers and
// confirms must be as in etcd.
func TestDeviceCacheMatchesEtcd(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			stores := []*Store{faultyStore(t, kvtest.Script()), faultyStore(t, kvtest.Script())}
			confirmed, whole := 0, 0
			for range 8 {
				ref, _ := createStored(t, stores[0])
				truth := make(map[string]licensing.Device)
				for step := range 100 {
					// Mostly one store writes, so that it comes to know the license.
					s := stores[0]
					if rng.IntN(40) == 0 {
						s = stores[1]
					}
					at := kvtest.Time.Add(time.Duration(step) * time.Minute)
					change(t, s, ref, randomCommand(rng, ref, at), at, truth)
					s = stores[rng.IntN(2)]
					if rng.IntN(4) == 0 {
						loadOne(t, s, ref) // which reads no devices
					}
					guess, ok := confirmTruth(t, s, ref, someDevices(rng), truth)
					if !ok {
						continue
					}
					confirmed++
					if guess.Token.(*stored).complete {
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

// confirmTruth compares the devices that a store remembers with the true devices, if the store confirms them.
func confirmTruth(
	t *testing.T, s *Store, ref licensing.Ref, devices []string, truth map[string]licensing.Device,
) (store.Snapshot, bool) {
	t.Helper()
	guess, _, ok := s.Recall(store.Want{Ref: ref, Devices: devices})
	if !ok {
		return guess, false
	}
	still, err := s.Confirm(t.Context(), ref, guess.Token)
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
			t.Fatalf("%s is confirmed as bound: %v, %+v; true is %v, %+v", id, entry.Bound, entry.Device, isBound, d)
		}
	}
	return guess, true
}

const deviceCount = 60

func randomCommand(rng *rand.Rand, ref licensing.Ref, at time.Time) licensing.Command {
	target := licensing.Target{Key: keyOf(ref)}
	device := fmt.Sprint("device-", rng.IntN(deviceCount))
	switch rng.IntN(8) {
	case 0:
		return licensing.RemoveDevice{Target: target, Device: device}
	case 1:
		return licensing.Activate{Target: target, Device: device, Named: true, Name: at.String()}
	case 2:
		return licensing.Seen{Key: target.Key, Device: device, At: at}
	default:
		return licensing.Activate{Target: target, Device: device}
	}
}

func someDevices(rng *rand.Rand) (devices []string) {
	for _, i := range rng.Perm(deviceCount)[:20] {
		devices = append(devices, fmt.Sprint("device-", i))
	}
	return devices
}

// change runs a command on the record that the store remembers or has read, and commits it until it lands. It notes the
// result in truth.
func change(
	t *testing.T, s *Store, ref licensing.Ref, cmd licensing.Command, at time.Time, truth map[string]licensing.Device,
) {
	t.Helper()
	ctx := t.Context()
	want := store.Want{Ref: ref, Devices: []string{cmd.DeviceID()}}
	snapshot, unsure, ok := s.Recall(want)
	for range 3 {
		if !ok || len(unsure) > 0 {
			snapshot = loadOne(t, s, ref, want.Devices...)
		}
		if _, err := licensing.Apply(&snapshot.Record, cmd, at); err != nil {
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
		outcome, err := s.Commit(ctx,
			store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: snapshot.Record}}})
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

// TestDeviceCacheAfterDoubt makes a swap whose answer never comes, and a swap whose answer comes late. The store knows
// the devices again after the next read.
func TestDeviceCacheAfterDoubt(t *testing.T) {
	for _, answered := range []bool{false, true} {
		t.Run(fmt.Sprint("answered at last: ", answered), func(t *testing.T) {
			s := faultyStore(t, kvtest.Script())
			ref := spilled(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sent := 0
			s.etcd.Remote.(*kvtest.FaultyKV).Next = func() kvtest.Fault {
				if sent++; sent > 1 && answered {
					return kvtest.Fault{}
				}
				if sent > 1 { // so the first copy has been applied
					cancel()
				}
				return kvtest.Fault{Apply: kvtest.AppliedNow, Tell: rpctypes.ErrTimeout}
			}
			outcome, err := s.Commit(ctx, bind(t, ref, guessed(t, s, ref, "new"), "new"))
			if outcome.Landed != answered || (err == nil) != answered {
				t.Fatalf("got %+v, %v", outcome, err)
			}
			want := store.Want{Ref: ref, Devices: []string{"new", "d-1", "d-2"}}
			loadOne(t, s, ref, want.Devices...)
			guess, unsure, ok := s.Recall(want)
			if !ok || len(unsure) > 0 || guess.Token.(*stored).complete {
				t.Fatalf("remembered: %v, unsure of %v", ok, unsure)
			}
			for _, device := range want.Devices {
				if !guess.Record.Devices[device].Bound {
					t.Errorf("%s is not known to be bound", device)
				}
			}
		})
	}
}

// TestTouchOfRemembered: one swap stores when devices were seen, also if the store remembers the devices and has not
// read them. Of more devices than a request has room for, it stores some.
func TestTouchOfRemembered(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	ref := spilled(t, s)
	var many []string
	for i := range store.MaxFoldDevices {
		many = append(many, fmt.Sprint("many-", i))
	}
	guess := guessed(t, s, ref, many...)
	for _, device := range many {
		guess = snapshotOf(bind(t, ref, guess, device))
	}
	commit(t, s, ref, guess, true)
	for round := range 3 {
		at := kvtest.Time.Add(time.Duration(1+round) * time.Hour)
		guess, unsure, ok := s.Recall(store.Want{Ref: ref, Devices: many})
		if !ok || len(unsure) > 0 {
			t.Fatalf("remembered: %v, unsure of %d", ok, len(unsure))
		}
		for _, device := range many {
			if _, err := licensing.Apply(&guess.Record,
				licensing.Seen{Key: keyOf(ref), Device: device, At: at}, at); err != nil {
				t.Fatal(err)
			}
		}
		commit(t, s, ref, guess, true)
		view, err := s.ReadLicense(t.Context(), keyOf(ref),
			store.DevicePage{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, d := range view.Devices {
			if d.LastSeenAt.Equal(at) {
				seen++
			}
		}
		if seen != store.MaxTouchedDevices {
			t.Errorf("round %d: %d were seen, want %d", round, seen, store.MaxTouchedDevices)
		}
	}
}

// spilled stores a license whose devices have keys of their own. The store itself has written these keys, so it knows
// all devices.
func spilled(t *testing.T, s *Store) licensing.Ref {
	t.Helper()
	ref, _ := createStored(t, s)
	for i := range layout.MaxInline + 1 {
		device := fmt.Sprint("d-", i)
		commit(t, s, ref, snapshotOf(bind(t, ref, guessed(t, s, ref, device), device)), true)
	}
	return ref
}

func snapshotOf(change store.Change) store.Snapshot {
	return store.Snapshot{Record: change.Writes[0].Record, Token: change.Writes[0].Token}
}

// TestLargeFold binds as many devices at once as any fold may touch: in one request that compares nothing but the
// license, if the store knows all devices. After a rival's write there is room for the usual number of devices, and a
// change that was made on the old guess is lost.
func TestLargeFold(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	ref := spilled(t, s)
	if got := s.MaxDevicesPerCommit(ref); got != store.MaxFoldDevices {
		t.Fatalf("room for %d devices, want %d", got, store.MaxFoldDevices)
	}
	var many [2][]string
	for i := range store.MaxFoldDevices {
		for j := range many {
			many[j] = append(many[j], fmt.Sprint("many-", j, "-", i))
		}
	}
	bindAll := func(guess store.Snapshot, devices []string) store.Snapshot {
		for _, device := range devices {
			guess = snapshotOf(bind(t, ref, guess, device))
		}
		return guess
	}
	var requests []*etcdserverpb.TxnRequest
	s.etcd.Remote.(*kvtest.FaultyKV).Note = func(r *etcdserverpb.TxnRequest) { requests = append(requests, r) }
	commit(t, s, ref, bindAll(guessed(t, s, ref, many[0]...), many[0]), true)
	if len(requests) != 1 || len(requests[0].Compare) != 2 {
		t.Errorf("%d requests, want one request, which compares the license and the listeners", len(requests))
	}
	count := layout.MaxInline + 1 + store.MaxFoldDevices
	view, err := s.ReadLicense(t.Context(), keyOf(ref),
		store.DevicePage{Limit: 1000})
	if err != nil || view.License.CurrentDevices != count || len(view.Devices) != count {
		t.Fatalf("%d devices, %d listed, want %d; %v", view.License.CurrentDevices, len(view.Devices), count, err)
	}

	stale := bindAll(guessed(t, s, ref, many[1]...), many[1])
	other := faultyStore(t, kvtest.Script())
	commit(t, other, ref, snapshotOf(bind(t, ref, loadOne(t, other, ref, "many-1-7"), "many-1-7")), true)
	outcome, err := s.Commit(t.Context(),
		store.Change{Writes: []store.Write{{Ref: ref, Token: stale.Token, Record: stale.Record}}})
	if err != nil || outcome.Landed || outcome.Rivals != nil {
		t.Fatalf("got %+v, %v; want a loss without devices", outcome, err)
	}
	if got := s.MaxDevicesPerCommit(ref); got != store.MaxTouchedDevices {
		t.Errorf("after a rival's write: room for %d", got)
	}
	if _, _, ok := s.Recall(store.Want{Ref: ref, Devices: many[1]}); ok {
		t.Error("the store remembers more devices than there is room for")
	}
	if got := loadOne(t, s, ref).Record.License.CurrentDevices; got != count+1 {
		t.Errorf("%d devices, want %d", got, count+1)
	}
}

// TestMaxDevicesPerCommit: unless a license has all its devices known, a commit contains the usual number of devices.
func TestMaxDevicesPerCommit(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	inline, _ := createStored(t, s)
	for _, ref := range []licensing.Ref{
		inline,
		manyDevices(t, s, 20),
		licensing.LicenseRef(newKey(t)),
		licensing.OrderRef(licensing.Owner{AccountID: "acct_test", Mode: licensing.Test}, "ord_1"),
	} {
		if got := s.MaxDevicesPerCommit(ref); got != store.MaxTouchedDevices {
			t.Errorf("%+v: room for %d devices", ref, got)
		}
	}
}

// TestLateSwapIsLearned: a swap that lands after its caller gave up is read like a swap of another store.
func TestLateSwapIsLearned(t *testing.T) {
	s := faultyStore(t, kvtest.Script())
	ref := spilled(t, s)
	f := s.etcd.Remote.(*kvtest.FaultyKV)
	ctx, cancel := context.WithCancel(t.Context())
	f.Next = func() kvtest.Fault {
		cancel()
		return kvtest.Fault{Apply: kvtest.AppliedLate, Tell: context.DeadlineExceeded}
	}
	if o, err := s.Commit(ctx, bind(t, ref, guessed(t, s, ref, "new"), "new")); err == nil {
		t.Fatalf("got %+v", o)
	}
	want := store.Want{Ref: ref, Devices: []string{"d-1", "d-2"}}
	loadOne(t, s, ref, want.Devices...)
	f.Next = kvtest.Script()
	createStored(t, s) // applies the late swap
	for range passedReads {
		loadOne(t, s, ref, want.Devices...)
	}
	if !loadOne(t, s, ref, "new").Record.Devices["new"].Bound {
		t.Fatal("the swap was not made late")
	}
	loadOne(t, s, ref, want.Devices...)
	_, unsure, ok := s.Recall(want)
	if !ok || len(unsure) > 0 {
		t.Errorf("recalled %v, unsure of %v, which were read often enough", ok, unsure)
	}
}
