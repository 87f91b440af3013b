package handlers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// memStore is a store.Store without a database. It keeps the contract of store.Store, and fails and
// hangs on request.
type memStore struct {
	mu       sync.Mutex
	revision int64
	records  map[licensing.Ref]*memRecord
	keys     map[[32]byte]licensing.APIKey

	events []store.RecordedEvent // the oldest first

	revocations []memRevocation // the oldest first
	listReads   int

	providerEvents map[licensing.Owner]memProviderEvents

	keyChanges int // counts the changes of keys
	keyUses    map[[32]byte]time.Time

	fail   error  // the error of every call, if set
	commit error  // the error of Commit, if set, after the write
	hook   func() // called by every read, if set

	listingKeys func() // called by every ListAPIKeys, if set; set before the requests

	// Load, or Commit, hangs until its caller's time is up, if set.
	hangLoad, hangCommit bool

	space atomic.Int32 // a store.Space
}

type memRecord struct {
	revision int64
	record   licensing.Record // without devices
	devices  map[string]licensing.Device
	metadata licensing.Metadata
}

func newMemStore() *memStore {
	return &memStore{
		records: make(map[licensing.Ref]*memRecord),
		keys:    make(map[[32]byte]licensing.APIKey),
		keyUses: make(map[[32]byte]time.Time),

		providerEvents: make(map[licensing.Owner]memProviderEvents),
	}
}

func (s *memStore) addKey(text string, key licensing.APIKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key.Hash = keyring.HashAPIKey(text)
	if key.ID == "" {
		key.ID = keyID(text)
	}
	if key.CreatedAt.IsZero() {
		key.CreatedAt = time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	}
	s.keys[key.Hash] = key
	s.keyChanges++
}

// keyID returns the public id that addKey makes for a key without an id: the name of the key.
func keyID(text string) string {
	id := "key_" + strings.TrimPrefix(text, "lk_")
	if !serviceKeys.ValidAPIKey(text) {
		return id
	}
	const mode = len("key_test_")
	name, _ := crockford.DecodeString(id[mode+licensing.SlotLength : len(id)-4])
	return id[:mode] + string(bytes.TrimRight(name, "\x00"))
}

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// breakWith makes every call return all, and Commit return commit after its write. Nil ends that.
func (s *memStore) breakWith(all, commit error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.commit = all, commit
}

// onRead sets the hook that every read for a caller calls first.
func (s *memStore) onRead(hook func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// read locks the store for a read and returns the function that unlocks it. A hook that
// panics leaves the store unlocked.
func (s *memStore) read() (unlock func()) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		hook()
	}
	s.mu.Lock()
	return s.mu.Unlock
}

func (s *memStore) snapshot(want store.Want) store.Snapshot {
	stored := s.records[want.Ref]
	if stored == nil {
		return store.Snapshot{}
	}
	record := stored.record.Clone()
	if want.Metadata {
		metadata := stored.metadata
		record.Metadata = &metadata
	}
	record.Listening = record.License != nil
	record.Devices = make(licensing.Devices)
	for _, id := range want.Devices {
		entry := &licensing.DeviceEntry{Device: licensing.Device{ID: id}}
		if d, bound := stored.devices[id]; bound {
			entry.Device, entry.Bound = d, true
		}
		record.Devices[id] = entry
	}
	if record.License != nil && record.License.NeedsDevices() {
		for id, d := range stored.devices {
			record.Devices[id] = &licensing.DeviceEntry{Device: d, Bound: true}
		}
		record.Leases = licensing.KnownLeases{All: true, Every: true}
	}
	return store.Snapshot{Record: record, Token: stored.revision}
}

// OwnerOf returns the owner of any license.
func (s *memStore) OwnerOf(ref licensing.Ref) (licensing.Owner, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored := s.records[ref]; stored != nil && stored.record.License != nil {
		return stored.record.License.Owner, true
	}
	return licensing.Owner{}, false
}

// Recall remembers nothing.
func (*memStore) Recall(store.Want) (store.Snapshot, []string, bool) {
	return store.Snapshot{}, nil, false
}

// Space returns what fill has set.
func (s *memStore) Space() store.Space { return store.Space(s.space.Load()) }

// fill sets the space.
func (s *memStore) fill(space store.Space) { s.space.Store(int32(space)) }

// MaxDevicesPerCommit returns the least that a store allows.
func (*memStore) MaxDevicesPerCommit(licensing.Ref) int { return store.MaxTouchedDevices }

// Confirm is never called, since Recall remembers nothing.
func (*memStore) Confirm(context.Context, licensing.Ref, store.Token) (bool, error) {
	return false, nil
}

// hang makes loads, or commits, hang.
func (s *memStore) hang(load, commit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hangLoad, s.hangCommit = load, commit
}

func (s *memStore) hangs() (load, commit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hangLoad, s.hangCommit
}

func (s *memStore) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	if hangs, _ := s.hangs(); hangs {
		<-ctx.Done()
		return nil, licensing.ErrUnavailable
	}
	defer s.read()()
	if s.fail != nil {
		return nil, s.fail
	}
	var snapshots []store.Snapshot
	for _, w := range wants {
		snapshots = append(snapshots, s.snapshot(w))
	}
	return snapshots, nil
}

func (s *memStore) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if _, hangs := s.hangs(); hangs {
		<-ctx.Done()
		return store.Outcome{}, licensing.ErrOutcomeUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return store.Outcome{}, s.fail
	}
	if slices.ContainsFunc(change.Writes, s.stale) {
		var rivals []store.Snapshot
		for _, w := range change.Writes {
			var ids []string
			for id := range w.Record.Devices {
				ids = append(ids, id)
			}
			rivals = append(rivals,
				s.snapshot(store.Want{Ref: w.Ref, Devices: ids, Metadata: w.Record.Metadata != nil}))
		}
		return store.Outcome{Rivals: rivals}, nil
	}
	s.revision++
	bytes := 0
	for _, w := range change.Writes {
		s.write(w)
		bytes += 100 // about a record
		if w.Record.Metadata != nil {
			bytes += len(w.Record.Metadata.Object)
		}
	}
	return store.Outcome{Landed: true, Bytes: bytes}, s.commit
}

// stale reports whether a record has changed since the read of a write.
func (s *memStore) stale(w store.Write) bool {
	var have store.Token
	if stored := s.records[w.Ref]; stored != nil {
		have = stored.revision
	}
	taken := slices.ContainsFunc(w.Record.NewAliases,
		func(name licensing.AliasName) bool { return s.records[licensing.AliasRef(name)] != nil })
	return have != w.Token || taken
}

func (s *memStore) write(w store.Write) {
	if w.Ref.Kind == licensing.KindProduct && w.Record.Product == nil ||
		w.Ref.Kind == licensing.KindTrial && w.Record.Trial == nil || w.Record.Removed {
		s.tell(w)
		delete(s.records, w.Ref)
		return
	}
	stored := s.records[w.Ref]
	if stored == nil {
		stored = &memRecord{devices: make(map[string]licensing.Device)}
		s.records[w.Ref] = stored
	}
	s.tell(w)
	for _, name := range w.Record.NewAliases {
		l := w.Record.License
		s.records[licensing.AliasRef(name)] = &memRecord{revision: s.revision,
			record: licensing.Record{Alias: &licensing.Alias{License: l.Key.ID(), Owner: l.Owner}}}
	}
	for _, terms := range w.Record.NewTerms {
		s.records[licensing.TermsRef(w.Ref.Owner, terms.Entitlements.Version())] = &memRecord{revision: s.revision,
			record: licensing.Record{Terms: &terms}}
	}
	record := w.Record.Clone()
	if record.Metadata != nil && record.Metadata.Changed && record.Issued == nil {
		stored.metadata = *record.Metadata
		stored.metadata.Changed = false
	}
	for id, entry := range record.Devices {
		if entry.Bound {
			stored.devices[id] = entry.Device
		} else {
			delete(stored.devices, id)
		}
	}
	for _, issued := range record.Issued {
		devices := make(map[string]licensing.Device)
		for id, entry := range record.IssuedDevices {
			devices[id] = entry.Device
		}
		s.records[licensing.LicenseRef(issued.Key)] = &memRecord{
			revision: s.revision,
			record:   licensing.Record{License: issued},
			devices:  devices,
		}
		if record.Metadata != nil {
			customer := record.Metadata.Customer
			s.records[licensing.LicenseRef(issued.Key)].metadata = licensing.Metadata{Customer: customer}
		}
	}
	record.Devices, record.Metadata, record.Issued, record.Events, record.Changed = nil, nil, nil, nil, false
	s.noteRevocations(&record)
	record.NewAliases, record.NewTerms, record.IssuedDevices, record.Revocations = nil, nil, nil, nil
	stored.record, stored.revision = record, s.revision
}

func (s *memStore) ReadLicense(
	_ context.Context, key licensing.LicenseKey, page store.DevicePage,
) (*store.LicenseView, error) {
	defer s.read()()
	if s.fail != nil {
		return nil, s.fail
	}
	stored := s.records[licensing.LicenseRef(key)]
	if stored == nil {
		return nil, nil
	}
	return stored.view(page), nil
}

// view is a license with a page of its devices; for an empty page, with the devices that a record
// always holds.
func (stored *memRecord) view(page store.DevicePage) *store.LicenseView {
	view := &store.LicenseView{License: *stored.record.License, Metadata: stored.metadata}
	if page.Limit == 0 {
		if page.Limit = 16; len(stored.devices) > page.Limit {
			view.Next = &store.DeviceCursor{}
			return view
		}
	}
	places := make(map[string]store.DeviceCursor, len(stored.devices)) // each is a hash, and hashing is slow
	for _, d := range stored.devices {
		if at := place(d.ID); bytes.Compare(at[:], page.After[:]) >= 0 {
			view.Devices, places[d.ID] = append(view.Devices, d), at
		}
	}
	slices.SortFunc(view.Devices, func(a, b licensing.Device) int {
		x, y := places[a.ID], places[b.ID]
		return bytes.Compare(x[:], y[:])
	})
	if len(view.Devices) > page.Limit {
		next := place(view.Devices[page.Limit].ID)
		view.Devices, view.Next = view.Devices[:page.Limit], &next
	}
	return view
}

func (s *memStore) ReadLicenses(
	ctx context.Context, keys []licensing.LicenseKey, devices int,
) ([]*store.LicenseView, error) {
	views := make([]*store.LicenseView, len(keys))
	for i, key := range keys {
		var err error
		if views[i], err = s.ReadLicense(ctx, key, store.DevicePage{Limit: devices}); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// place is a device's position in the listing.
func place(id string) store.DeviceCursor {
	sum := sha256.Sum256([]byte(id))
	return store.DeviceCursor(sum[:len(store.DeviceCursor{})])
}

func (s *memStore) OrderOwner(_ context.Context, orderNo string) (licensing.Owner, bool, error) {
	defer s.read()()
	if s.fail != nil {
		return licensing.Owner{}, false, s.fail
	}
	for ref := range s.records {
		if ref.Kind == licensing.KindOrder && ref.ID == orderNo {
			return ref.Owner, true, nil
		}
	}
	return licensing.Owner{}, false, nil
}

func (s *memStore) APIKey(_ context.Context, hash [32]byte) (*licensing.APIKey, error) {
	defer s.read()()
	if s.fail != nil {
		return nil, s.fail
	}
	key, found := s.keys[hash]
	if !found {
		return nil, nil
	}
	return &key, nil
}

func (s *memStore) SweepClaims(_ context.Context, before time.Time) (swept int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, r := range s.records {
		if r.record.Claim != nil && r.record.Claim.CreatedAt.Before(before) {
			delete(s.records, ref)
			swept++
		}
	}
	return swept, s.fail
}

// DueSlots returns all slots with a record.
func (s *memStore) DueSlots(context.Context, licensing.DueKind, store.DueSpan) (slots []licensing.Slot, err error) {
	defer s.read()()
	for _, stored := range s.records {
		slots = append(slots, licensing.SlotOf(ownerOf(&stored.record)))
	}
	slices.Sort(slots)
	return slices.Compact(slots), s.fail
}

// ownerOf returns the owner of a license, an order or a product; zero for other records.
func ownerOf(r *licensing.Record) licensing.Owner {
	switch {
	case r.License != nil:
		return r.License.Owner
	case r.Order != nil:
		return r.Order.Owner
	case r.Product != nil:
		return r.Product.Owner
	}
	return licensing.Owner{}
}

// Due looks at every record.
func (s *memStore) Due(
	_ context.Context, kind licensing.DueKind, slot licensing.Slot, span store.DueSpan, from string, limit int,
) (store.DuePage, error) {
	defer s.read()()
	if s.fail != nil {
		return store.DuePage{}, s.fail
	}
	places := make(map[string]licensing.Ref)
	for ref, stored := range s.records {
		var due licensing.Due
		switch {
		case licensing.SlotOf(ownerOf(&stored.record)) != slot:
			continue
		case stored.record.License != nil:
			due = stored.record.License.Due()
		case stored.record.Order != nil:
			due = stored.record.Order.Due()
		case stored.record.Product != nil:
			due = stored.record.Product.Due()
		}
		outside := due.At.Before(span.Since) || !span.Until.IsZero() && due.At.After(span.Until)
		if place := due.At.Format("2006-01-02T15:04:05.000 ") + ref.ID; due.Kind == kind && !outside && place >= from {
			places[place] = ref
		}
	}
	var page store.DuePage
	for _, place := range slices.Sorted(maps.Keys(places)) {
		if len(page.Records) == limit {
			page.Next = place
			break
		}
		page.Records = append(page.Records, places[place])
	}
	return page, nil
}

// EachLeased looks at every license.
func (s *memStore) EachLeased(
	_ context.Context, slot licensing.Slot, _ time.Time, each func(*licensing.License),
) error {
	defer s.read()()
	for _, stored := range s.records {
		if l := stored.record.License; l != nil && licensing.SlotOf(l.Owner) == slot && !l.LeasesUntil.IsZero() {
			each(l)
		}
	}
	return s.fail
}

// APIKeyMarks calls no hook: no caller's request reads the marks, but a scan every second.
func (s *memStore) APIKeyMarks(context.Context) (store.KeyMarks, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return store.KeyMarks{All: store.KeyMark(strconv.Itoa(s.keyChanges))}, s.fail
}

// WatchAPIKeys never reports anything, like a watch that hangs.
func (s *memStore) WatchAPIKeys(ctx context.Context, _ func()) { <-ctx.Done() }

func (s *memStore) Ping(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fail
}
