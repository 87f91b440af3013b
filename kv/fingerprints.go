package kv

import (
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"

	"licet"
)

// fingerprintSlots is how many devices are remembered: eight bytes each.
const fingerprintSlots = 1 << 19

// fingerprints remembers which devices of licenses with many are bound. It is a
// hint that may be wrong either way: two devices may share a slot, and then the
// later one drives the earlier one out, or, once in 2^64, is taken for it.
type fingerprints struct {
	seed  maphash.Seed
	slots []atomic.Uint64
}

func newFingerprints() fingerprints {
	return fingerprints{seed: maphash.MakeSeed(), slots: make([]atomic.Uint64, fingerprintSlots)}
}

func (f *fingerprints) find(id licet.LicenseID, device string) (slot *atomic.Uint64, print uint64) {
	// A license id is random, so its first bytes tell licenses apart.
	print = maphash.String(f.seed, device) ^ binary.LittleEndian.Uint64(id[:8])
	return &f.slots[print%fingerprintSlots], max(print, 1)
}

// holds tells whether a device was bound when it was last heard of.
func (f *fingerprints) holds(id licet.LicenseID, device string) bool {
	slot, print := f.find(id, device)
	return slot.Load() == print
}

// note remembers whether a device is bound.
func (f *fingerprints) note(id licet.LicenseID, device string, bound bool) {
	slot, print := f.find(id, device)
	if bound {
		slot.Store(print)
	} else {
		slot.CompareAndSwap(print, 0)
	}
}
