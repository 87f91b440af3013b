package kv

import (
	"fmt"
	"sync/atomic"
	"testing"

	"licet/licensing"
)

// TestFingerprints: the table contains each noted device until later devices displace it, and no others.
func TestFingerprints(t *testing.T) {
	f := newFingerprints()
	one, other := newKey(t).ID(), newKey(t).ID()
	const few = 1000
	for i := range few {
		f.note(one, fmt.Sprint(i), true)
		f.note(one, fmt.Sprint(i), true)
	}
	for i := range few {
		if !f.contains(one, fmt.Sprint(i)) {
			t.Fatalf("device %d of %d is missing", i, few)
		}
		if f.contains(other, fmt.Sprint(i)) {
			t.Fatalf("device %d is there for another license", i)
		}
	}
	f.note(one, "1", false)
	f.note(one, "never", false)
	if f.contains(one, "1") || f.contains(one, "never") || !f.contains(one, "2") {
		t.Error("a removed device is there, or another device is missing")
	}
	// A smaller table, filled twice over.
	slots := f.slots()[:64*fingerprintWays]
	f.slots = func() []atomic.Uint64 { return slots }
	found, last := 0, 2*len(slots)-1
	for i := range last + 1 {
		f.note(other, fmt.Sprint(i), true)
	}
	for i := range last + 1 {
		if f.contains(other, fmt.Sprint(i)) {
			found++
		}
	}
	if found == 0 || found > len(slots) {
		t.Errorf("%d devices are there, with room for %d", found, len(slots))
	}
	if !f.contains(other, fmt.Sprint(last)) {
		t.Error("the latest device is missing")
	}
	var none licensing.LicenseID
	if f.contains(none, "") {
		t.Error("an empty slot is taken for a device")
	}
}
