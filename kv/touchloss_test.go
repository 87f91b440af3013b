package kv

import (
	"testing"
	"time"

	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// TestTouchLossKeepsDeviceCache: another node has stored when a device was seen. This changes no binding, so the store
// must not forget the devices that it knows.
func TestTouchLossKeepsDeviceCache(t *testing.T) {
	s, other := faultyStore(t, kvtest.Script()), faultyStore(t, kvtest.Script())
	ref := spilled(t, s)
	at := kvtest.Time.Add(time.Hour)
	seen := licensing.Seen{Key: keyOf(ref), Device: "d-1", At: at}
	read := loadOne(t, other, ref, "d-1")
	if _, err := licensing.Apply(&read.Record, seen, at); err != nil {
		t.Fatal(err)
	}
	commit(t, other, ref, read, true)
	if s.MaxDevicesPerCommit(ref) != store.MaxFoldDevices {
		t.Fatal("the store does not know all devices at first")
	}
	seen.At = at.Add(time.Hour)
	guess, _, _ := s.Recall(store.Want{Ref: ref, Devices: []string{"d-1"}})
	if _, err := licensing.Apply(&guess.Record, seen, seen.At); err != nil {
		t.Fatal(err)
	}
	commit(t, s, ref, guess, false)
	if got := s.MaxDevicesPerCommit(ref); got != store.MaxFoldDevices {
		t.Errorf("room for %d after a lost touch, want %d: the license has not changed", got, store.MaxFoldDevices)
	}
}
