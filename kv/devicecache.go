package kv

import (
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"licet/kv/internal/keyspace"
	"licet/licensing"
	"licet/node/store"
)

const (
	// deviceCacheWeight bounds all caches together, in positions of some 26 bytes. A cache is weighed again whenever it
	// has grown by a quarter or shrunk by half.
	deviceCacheWeight = 1 << 20
	// emptyWeight is about the weight of an empty cache, and entryWeight of a complete device without its value.
	emptyWeight = 16
	entryWeight = 4
	valueWeight = 26 // bytes of a value that weigh 1
	// passedReads is how many reads wait for the report of a swap. Few reads come while a swap is under way.
	passedReads = 8
	// completeDevices bounds the complete devices of one license in the cache.
	completeDevices = 1 << 14
)

// deviceCache remembers the devices of one license with many devices, as of one revision of the license. Every writer
// that binds, removes or renames a device swaps on that revision. So a swap that lands against the revision, or a read
// that finds the revision, proves the cache too. After a swap of this store the cache applies the change and stays
// valid; after a swap of another store it starts empty.
type deviceCache struct {
	mu       sync.Mutex
	revision int64
	// complete: bound has every device, so a device that is not in bound is not bound. The cache becomes complete when
	// this store moves a license's devices out of its record, or has scanned them. It stays complete until another
	// store writes to the license.
	complete bool
	bound    map[store.DeviceCursor]struct{} // by position; only if complete
	entries  map[store.DeviceCursor]knownDevice

	values  int         // bytes of the values in entries
	guesses int         // unknown devices that swaps have compared since the cache began
	passed  int         // reads of a revision that a swap of this store wrote and that follow has not reported yet
	scan    *deviceScan // under way; nil: none

	weighed atomic.Uint32 // the weight by which otter counts this cache
}

// knownDevice is a device as its key has it.
type knownDevice struct {
	value    []byte // of the device's own key; never changed
	revision int64  // of this key
}

// deviceCaches contains the caches of licenses that were used lately.
type deviceCaches struct {
	cache cache[licensing.LicenseID, *deviceCache]
}

func newDeviceCaches(weight uint64) (deviceCaches, error) {
	byID, err := otter.New(&otter.Options[licensing.LicenseID, *deviceCache]{
		MaximumWeight: weight,
		Weigher:       func(_ licensing.LicenseID, r *deviceCache) uint32 { return r.weighed.Load() },
	})
	return deviceCaches{byID}, err
}

// use calls f with the locked cache of a license.
func (s *deviceCaches) use(id licensing.LicenseID, begin bool, f func(*deviceCache)) {
	r, known := s.cache.GetIfPresent(id)
	if !known {
		if !begin {
			return
		}
		r = &deviceCache{}
		r.weighed.Store(emptyWeight)
		r, _ = s.cache.SetIfAbsent(id, r)
	}
	if r.change(f) {
		s.cache.Set(id, r)
	}
}

// change calls f with the cache locked, and reports whether the weight of the cache must be computed again.
func (r *deviceCache) change(f func(*deviceCache)) (stale bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r)
	weight, weighed := r.weight(), r.weighed.Load()
	if stale = weight > weighed+weighed/4 || weight < weighed/2; stale {
		r.weighed.Store(weight)
	}
	return stale
}

func (r *deviceCache) weight() uint32 {
	weight := emptyWeight + len(r.bound) + entryWeight*len(r.entries) + r.values/valueWeight
	if r.scan != nil {
		weight += len(r.scan.since)
	}
	return uint32(weight)
}

// forget clears a cache that does not know the latest write.
func (s *deviceCaches) forget(id licensing.LicenseID) {
	s.use(id, false, func(r *deviceCache) { r.restart(0) })
}

// forgetBefore clears a cache unless it is valid at the revision at which the license was just read. There, only a
// write of last_seen was lost, which changes no binding.
func (s *deviceCaches) forgetBefore(id licensing.LicenseID, revision int64) {
	s.use(id, false, func(r *deviceCache) {
		if r.revision != revision {
			r.restart(0)
		}
	})
}

// follow notes a landed swap of this store. It returns a scan if one is due.
func (s *deviceCaches) follow(f *fresh, to int64) (due *deviceScan) {
	s.use(f.id, true, func(r *deviceCache) {
		switch {
		case f.moved, r.revision < to && r.revision != f.from:
			r.restart(to)
			r.complete = f.moved
		case r.revision > to:
			return
		}
		r.revision, r.passed = to, 0
		for _, d := range f.written {
			position := keyspace.DevicePosition(d.id)
			if d.value != nil {
				r.bind(position, knownDevice{d.value, to})
			} else {
				r.remove(position)
			}
		}
		if r.guesses += f.guesses; r.scanIsDue(f.devices) {
			due = &deviceScan{revision: to, devices: f.devices, since: make(map[store.DeviceCursor]bool)}
			r.scan = due
		}
	})
	return due
}

// learn notes the devices that were read along with their license: bound has the devices with keys of their own, and
// the revisions of these keys.
func (s *deviceCaches) learn(id licensing.LicenseID, read *findings) {
	s.use(id, true, func(r *deviceCache) {
		switch {
		case r.revision == read.revision:
		case r.revision != 0 && !read.corrects && r.revision > read.revision:
			return // a later revision is cached
		case r.revision != 0 && !read.corrects && read.own && r.passed < passedReads:
			// A swap of this store wrote this revision. follow will report it in full, unless the caller of the swap
			// gave up before it landed.
			r.passed++
			return
		default:
			r.restart(read.revision)
		}
		for _, device := range read.devices {
			position := keyspace.DevicePosition(device)
			if known, bound := read.entries[device]; bound {
				r.bind(position, known)
			} else {
				r.remove(position)
			}
		}
	})
}

// findings is the result of reading a license with many devices.
type findings struct {
	revision int64                  // of the license
	devices  []string               // the ids of the requested devices
	entries  map[string]knownDevice // the bound devices
	own      bool                   // this store was the last to write to the license
	corrects bool                   // a swap of this store lost to this revision
}

// touched notes that a write of a device's last_seen has replaced a revision of the device's key.
func (s *deviceCaches) touched(id licensing.LicenseID, device writtenDevice, from, to int64) {
	s.use(id, false, func(r *deviceCache) {
		position := keyspace.DevicePosition(device.id)
		if known, ok := r.entries[position]; ok && known.revision == from {
			r.keep(position, knownDevice{device.value, to})
		}
	})
}

func (r *deviceCache) restart(revision int64) {
	r.revision, r.complete, r.bound, r.entries = revision, false, nil, nil
	r.values, r.guesses, r.passed, r.scan = 0, 0, 0, nil
}

func (r *deviceCache) bind(position store.DeviceCursor, known knownDevice) {
	if r.scan != nil {
		r.scan.since[position] = true
	}
	if r.complete {
		if r.bound == nil {
			r.bound = make(map[store.DeviceCursor]struct{})
		}
		r.bound[position] = struct{}{}
	}
	r.keep(position, known)
}

// keep caches a complete device, as far as there is room.
func (r *deviceCache) keep(position store.DeviceCursor, known knownDevice) {
	if r.entries[position].revision > known.revision {
		return // the device was read before a later touch
	}
	if r.entries == nil {
		r.entries = make(map[store.DeviceCursor]knownDevice)
	}
	r.drop(position)
	r.entries[position] = known
	r.values += len(known.value)
	if len(r.entries) <= completeDevices {
		return
	}
	for other := range r.entries { // in no order
		if other != position {
			r.drop(other)
			return
		}
	}
}

// drop forgets a complete device.
func (r *deviceCache) drop(position store.DeviceCursor) {
	if known, ok := r.entries[position]; ok {
		r.values -= len(known.value)
		delete(r.entries, position)
	}
}

func (r *deviceCache) remove(position store.DeviceCursor) {
	if r.scan != nil {
		r.scan.since[position] = false
	}
	delete(r.bound, position)
	r.drop(position)
}

// standing is the state of a device by the cache.
type standing int

const (
	unknown standing = iota
	absent           // surely not bound
	bound            // known in full
	present          // bound, and not known in full
)

func (r *deviceCache) find(device string) (standing, knownDevice) {
	position := keyspace.DevicePosition(device)
	if known, ok := r.entries[position]; ok {
		return bound, known
	}
	if !r.complete {
		return unknown, knownDevice{}
	}
	if _, ok := r.bound[position]; ok {
		return present, knownDevice{}
	}
	return absent, knownDevice{}
}
