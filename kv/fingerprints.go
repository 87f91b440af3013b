package kv

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"licet/licensing"
)

const (
	// fingerprintSlots is how many devices are remembered: eight bytes each.
	fingerprintSlots = 1 << 19
	// fingerprintWays is how many adjacent slots a device may be in.
	fingerprintWays = 4
)

// fingerprints remembers which devices of licenses with many devices are bound. The answer is a hint, and may be wrong
// either way: later devices displace earlier ones, and one device in 2^64 is taken for another.
type fingerprints struct {
	seed  maphash.Seed
	slots func() []atomic.Uint64 // 4 MiB, made by the first call: only licenses with many devices need them
}

func newFingerprints() fingerprints {
	return fingerprints{
		seed:  maphash.MakeSeed(),
		slots: sync.OnceValue(func() []atomic.Uint64 { return make([]atomic.Uint64, fingerprintSlots) }),
	}
}

// find returns the slots that a device may be in, and its fingerprint, which is
// never 0.
func (f *fingerprints) find(id licensing.LicenseID, device string) ([]atomic.Uint64, uint64) {
	// A license id is random, so its first bytes tell licenses apart.
	print := maphash.String(f.seed, device) ^ binary.LittleEndian.Uint64(id[:8])
	slots := f.slots()
	at := print % uint64(len(slots)/fingerprintWays) * fingerprintWays
	return slots[at : at+fingerprintWays], max(print, 1)
}

// contains reports whether the device was bound at the last read or write of it here.
func (f *fingerprints) contains(id licensing.LicenseID, device string) bool {
	slots, print := f.find(id, device)
	for i := range slots {
		if slots[i].Load() == print {
			return true
		}
	}
	return false
}

// note remembers whether a device is bound.
func (f *fingerprints) note(id licensing.LicenseID, device string, bound bool) {
	slots, print := f.find(id, device)
	for i := range slots {
		if slots[i].Load() != print {
			continue
		}
		if !bound {
			slots[i].CompareAndSwap(print, 0)
		}
		return
	}
	if !bound {
		return
	}
	for i := range slots {
		if slots[i].CompareAndSwap(0, print) {
			return
		}
	}
	slots[print>>62].Store(print)
}
