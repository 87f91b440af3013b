package kv

import (
	"sync"
	"sync/atomic"
	"unique"

	"github.com/maypok86/otter/v2"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// DefaultRemembered is how many licenses a store remembers.
const DefaultRemembered = 100_000

// memory is the store's cache of licenses: the last seen value of the license's key, still encoded, since a decoded
// value takes ten times as much memory. The cache never proves anything: it says which revision to swap against, and
// whether a command is likely to change something.
type memory struct {
	licenses     cache[licensing.LicenseID, *slot]
	deviceCaches deviceCaches
	devices      fingerprints
}

// cache is an otter.Cache as an interface: a package that imports kv then does not compile otter's generic code once
// more.
type cache[K comparable, V any] interface {
	GetIfPresent(K) (V, bool)
	Set(K, V) (V, bool)
	SetIfAbsent(K, V) (V, bool)
	EstimatedSize() int
	Invalidate(K) (V, bool)
}

// slot is the entry of one license. The slot stays in the cache while its contents are replaced. Since there may be
// many slots, the fields of cachedValue are its own, in an order without padding.
type slot struct {
	mu       sync.Mutex
	revision int64  // guarded by mu
	value    []byte // guarded by mu
	// distrust is above 0 if a device that was assumed absent was bound after all: then such devices are read before a
	// swap. Each device that is found absent lowers distrust.
	distrust atomic.Int32
	spilled  bool // guarded by mu
	// owner is the owner of the license, decoded at the first use; guarded by mu. A license never changes its owner.
	owner unique.Handle[licensing.Owner]
}

// distrustAfterGuess is how many devices are read after a wrong guess.
const distrustAfterGuess = 64

// cachedValue is a license's value at a revision. The value is never changed.
type cachedValue struct {
	revision int64
	value    []byte
	spilled  bool
}

func newMemory(licenses int) (*memory, error) {
	if licenses <= 0 {
		licenses = DefaultRemembered
	}
	slots, err := otter.New(&otter.Options[licensing.LicenseID, *slot]{MaximumSize: licenses})
	if err != nil {
		return nil, err
	}
	caches, err := newDeviceCaches(deviceCacheWeight)
	if err != nil {
		return nil, err
	}
	return &memory{licenses: slots, deviceCaches: caches, devices: newFingerprints()}, nil
}

// recall returns the last seen value of a license; the zero value without a slot.
func (m *memory) recall(id licensing.LicenseID) (*slot, cachedValue) {
	s, ok := m.licenses.GetIfPresent(id)
	if !ok {
		return nil, cachedValue{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, cachedValue{revision: s.revision, value: s.value, spilled: s.spilled}
}

// note stores a value that was read or written, unless the slot has a newer value.
func (m *memory) note(id licensing.LicenseID, next cachedValue) *slot {
	s, known := m.licenses.GetIfPresent(id)
	if !known {
		return m.add(id, next)
	}
	s.note(next)
	return s
}

func (s *slot) note(next cachedValue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revision < next.revision {
		s.revision, s.value, s.spilled = next.revision, next.value, next.spilled
	}
}

// correct stores the value that won against a swap, whatever the slot contained before: that value was wrong, even if
// it seemed newer, as after a restore.
func (m *memory) correct(id licensing.LicenseID, next cachedValue) *slot {
	s, known := m.licenses.GetIfPresent(id)
	if !known {
		return m.add(id, next)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision, s.value, s.spilled = next.revision, next.value, next.spilled
	return s
}

func (m *memory) add(id licensing.LicenseID, next cachedValue) *slot {
	s := &slot{revision: next.revision, value: next.value, spilled: next.spilled}
	m.licenses.Set(id, s)
	return s
}

// Recall returns what the store remembers of a record, without a request. The store does not remember metadata,
// which is large and rarely read.
func (s *Store) Recall(want store.Want) (store.Snapshot, []string, bool) {
	if want.Ref.Kind != licensing.KindLicense || want.Metadata {
		return store.Snapshot{}, nil, false
	}
	id := want.Ref.LicenseID()
	slot, last := s.memory.recall(id)
	if slot == nil {
		s.counts.recordMiss.Inc()
		return store.Snapshot{}, nil, false
	}
	s.counts.recordHit.Inc()
	license, err := layout.DecodeLicense(id, last.value)
	if err != nil {
		return store.Snapshot{}, nil, false
	}
	token := &stored{
		revision: last.revision, size: len(last.value), writers: license.Writers, unknown: license.Unknown,
		due:    keyspace.DueOf(license.License.Due()),
		inline: license.Devices, spilled: license.Spilled, lastEvent: license.LastEvent, slot: slot,
	}
	snapshot := store.Snapshot{Token: token, Record: licensing.Record{License: &license.License}}
	s.sayWhoListens(&snapshot)
	if !license.Spilled {
		snapshot.Record.Devices, err = deviceEntries(want.Devices, license, nil)
		snapshot.Record.Leases = knownLeases(license)
		return snapshot, nil, err == nil && len(want.Devices) <= store.MaxTouchedDevices
	}
	snapshot.Record.Devices = make(licensing.Devices, len(want.Devices))
	unsure := s.recallDevices(id, want.Devices, token, snapshot.Record.Devices)
	return snapshot, unsure, token.complete || len(want.Devices) <= store.MaxTouchedDevices
}

// OwnerOf returns whose license a record is, if the store remembers the license.
func (s *Store) OwnerOf(ref licensing.Ref) (owner licensing.Owner, known bool) {
	if ref.Kind != licensing.KindLicense {
		return licensing.Owner{}, false
	}
	return s.memory.ownerOf(ref.LicenseID())
}

// ownerOf returns whose license it is, if the license is remembered. Each owner is in memory once, however many
// licenses are remembered.
func (m *memory) ownerOf(id licensing.LicenseID) (owner licensing.Owner, known bool) {
	slot, remembered := m.licenses.GetIfPresent(id)
	if !remembered {
		return licensing.Owner{}, false
	}
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.owner == (unique.Handle[licensing.Owner]{}) {
		license, err := layout.DecodeLicense(id, slot.value)
		if err != nil {
			return licensing.Owner{}, false
		}
		slot.owner = unique.Make(license.License.Owner)
	}
	return slot.owner.Value(), true
}

// MaxDevicesPerCommit returns how many devices one swap of a record may touch. If all devices of a license are known, a
// swap compares nothing but the license, and so its operations can be divided.
func (s *Store) MaxDevicesPerCommit(ref licensing.Ref) (room int) {
	room = store.MaxTouchedDevices
	if ref.Kind != licensing.KindLicense {
		return room
	}
	id := ref.LicenseID()
	if _, last := s.memory.recall(id); last.spilled {
		s.memory.deviceCaches.use(id, false, func(r *deviceCache) {
			if r.complete && r.revision == last.revision {
				room = store.MaxFoldDevices
			}
		})
	}
	return room
}

// recallDevices returns the cached devices of a license with many devices, and the ids of which the cache is unsure.
func (s *Store) recallDevices(
	id licensing.LicenseID, wanted []string, token *stored, devices licensing.Devices,
) (unsure []string) {
	entries := make([]licensing.DeviceEntry, 0, len(wanted)) // one allocation for all
	add := func(entry licensing.DeviceEntry) {
		entries = append(entries, entry)
		devices[entry.Device.ID] = &entries[len(entries)-1]
	}
	unknown := wanted
	s.memory.deviceCaches.use(id, false, func(r *deviceCache) {
		if r.revision != token.revision {
			return
		}
		token.complete, unknown = r.complete, nil
		for _, device := range wanted {
			switch standing, known := r.find(device); standing {
			case bound:
				decoded, err := layout.DecodeDeviceOf(device, known.value)
				if err != nil { // a read says why
					unsure = append(unsure, device)
					continue
				}
				add(licensing.DeviceEntry{Device: decoded, Bound: true})
				if token.entries == nil {
					token.entries = make(map[string]knownDevice, len(wanted))
				}
				token.entries[device] = known
			case absent:
				add(licensing.DeviceEntry{Device: licensing.Device{ID: device}})
			case present:
				unsure = append(unsure, device)
			default:
				unknown = append(unknown, device)
			}
		}
	})
	distrusts := token.slot.distrust.Load() > 0
	for _, device := range unknown {
		if distrusts || s.memory.devices.contains(id, device) {
			unsure = append(unsure, device)
			continue
		}
		if token.assumed == nil {
			token.assumed = make(map[string]struct{}, len(unknown))
		}
		token.assumed[device] = struct{}{}
		add(licensing.DeviceEntry{Device: licensing.Device{ID: device}})
	}
	return unsure
}

// spilled reports whether the store remembers the record as a license whose devices have keys of their own.
func (m *memory) spilled(ref licensing.Ref) bool {
	if ref.Kind != licensing.KindLicense {
		return false
	}
	_, last := m.recall(ref.LicenseID())
	return last.spilled
}

// remember caches a license that was read. corrects: a swap lost to this value.
func (s *Store) remember(q *query, record *mvccpb.KeyValue, snapshot *store.Snapshot, corrects bool) {
	id := q.Ref.LicenseID()
	token := snapshot.Token.(*stored)
	last := cachedValue{revision: record.ModRevision, value: record.Value, spilled: token.spilled}
	if corrects {
		token.slot = s.memory.correct(id, last)
	} else {
		token.slot = s.memory.note(id, last)
	}
	if !token.spilled || !q.devices || len(q.Devices) == 0 {
		return
	}
	read := &findings{
		revision: record.ModRevision, devices: q.Devices, entries: token.entries, corrects: corrects,
		own: layout.LastWriter(token.writers) == s.incarnation,
	}
	for _, device := range q.Devices {
		_, bound := token.entries[device]
		switch {
		case !bound:
			token.slot.distrust.Store(max(token.slot.distrust.Load()-1, 0))
		case !s.memory.devices.contains(id, device):
			token.slot.distrust.Store(distrustAfterGuess)
		}
		s.memory.devices.note(id, device, bound)
	}
	s.memory.deviceCaches.learn(id, read)
}
