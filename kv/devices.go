package kv

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// putLicense writes a license's facts and the devices that changed.
func (sw *swap) putLicense(key []byte, record *licensing.Record, token *stored, writers []layout.Writer) error {
	next := layout.License{License: *record.License, Writers: writers, Spilled: token.spilled,
		LastEvent: token.lastEvent, Unknown: token.unknown}
	changed := changedEntries(record.Devices)
	id, created := record.License.Key.ID(), record.License.CreatedAt
	if next.Spilled && !record.Changed && record.Touched {
		sw.touch(id, changed, token)
		return nil
	}
	sw.compare(key, token.revision)
	sw.assumed = append(sw.assumed, layout.Listening{Owner: record.License.Owner, Listens: token.listens})
	if now := keyspace.DueOf(record.License.Due()); now != token.due {
		sw.reschedule(string(key), token.due, now)
	}
	if !next.Spilled {
		next.Devices = layout.MergeInline(token.inline, changed, created)
		var moved []writtenDevice
		if len(next.Devices) > layout.MaxInline {
			for _, stored := range next.Devices {
				d, err := stored.Decode(created)
				if err != nil {
					return err
				}
				value, err := stored.Alone(created)
				if err != nil {
					return err
				}
				sw.create([]byte(keyspace.DeviceKey(id, d.ID)), value)
				moved = append(moved, writtenDevice{d.ID, value})
			}
			next.Devices, next.Spilled = nil, true
		}
		sw.keep(key, &next, record, token, moved, 0)
		return nil
	}
	guesses := 0
	for device := range token.assumed {
		if _, touched := record.Devices[device]; touched {
			sw.compare([]byte(keyspace.DeviceKey(id, device)), 0)
			guesses++
		}
	}
	written := make([]writtenDevice, len(changed))
	for i, entry := range changed {
		at, value := []byte(keyspace.DeviceKey(id, entry.Device.ID)), []byte(nil)
		if entry.Bound {
			value = layout.EncodeDevice(&entry.Device)
		}
		written[i] = writtenDevice{entry.Device.ID, value}
		before, was := token.entries[entry.Device.ID]
		switch {
		case !entry.Bound && was:
			if token.searched { // few enough for a compare each
				sw.compare(at, before.revision)
			}
			sw.remove(at, len(before.value))
		case !entry.Bound: // bound and removed by the same change
			sw.drop(at)
		case was:
			sw.replace(at, value, len(before.value))
		default:
			sw.create(at, value)
		}
	}
	sw.keep(key, &next, record, token, written, guesses)
	return nil
}

// touch stores that devices with keys of their own were seen. It leaves the
// license alone, and compares each device's own revision, so that a removed device never comes back. Devices beyond
// the limit of a request are left to a later touch.
func (sw *swap) touch(id licensing.LicenseID, changed []*licensing.DeviceEntry, token *stored) {
	for _, entry := range changed[:min(len(changed), store.MaxTouchedDevices)] {
		at := []byte(keyspace.DeviceKey(id, entry.Device.ID))
		before := token.entries[entry.Device.ID]
		sw.compare(at, before.revision)
		value := layout.EncodeDevice(&entry.Device)
		sw.replace(at, value, len(before.value))
		sw.touches = append(sw.touches, touch{id, writtenDevice{entry.Device.ID, value}, before.revision})
	}
}

// keep puts a license, and notes what to cache once the swap has landed.
func (sw *swap) keep(
	key []byte, next *layout.License, record *licensing.Record, token *stored, written []writtenDevice,
	guesses int,
) {
	sw.brokenRule = cmp.Or(sw.brokenRule, next.BrokenRule())
	value := next.Encode()
	sw.replace(key, value, token.size)
	if len(record.Events) > 0 {
		sw.writeLicenseEvents(value, record.Events, token.lastEvent)
	}
	sw.fresh = append(sw.fresh, fresh{
		id: next.License.Key.ID(), slot: token.slot, from: token.revision, value: value,
		spilled: next.Spilled, moved: next.Spilled && !token.spilled, written: written,
		guesses: guesses, devices: next.License.CurrentDevices,
	})
}

// changedEntries returns the entries to be written, in the order the devices
// were bound, so that the same change always makes the same transaction.
func changedEntries(devices licensing.Devices) []*licensing.DeviceEntry {
	var changed []*licensing.DeviceEntry
	for _, entry := range devices {
		if entry.Changed {
			changed = append(changed, entry)
		}
	}
	slices.SortFunc(changed, func(a, b *licensing.DeviceEntry) int { return byBinding(a.Device, b.Device) })
	return changed
}

func byBinding(a, b licensing.Device) int {
	return cmp.Or(a.BoundAt.Compare(b.BoundAt), cmp.Compare(a.ID, b.ID))
}

// readTries bounds how often a look-up starts over because etcd has compacted the revision.
const readTries = 3

// ReadLicense reads a license and a page of its devices at one revision.
func (s *views) ReadLicense(
	ctx context.Context, key licensing.LicenseKey, page store.DevicePage,
) (view *store.LicenseView, err error) {
	for range readTries {
		view, err = s.tryLicense(ctx, key.ID(), page)
		if !errors.Is(err, rpctypes.ErrCompacted) {
			break
		}
	}
	return view, err
}

// tryLicense reads a license. It reads the metadata together with the facts only if the store remembers that the
// license is of the page's owner: a caller with the key of a foreign license must not cost more than a caller with an
// unknown key.
func (s *views) tryLicense(
	ctx context.Context, id licensing.LicenseID, page store.DevicePage,
) (*store.LicenseView, error) {
	owner, known := s.memory.ownerOf(id)
	together := page.Owner == licensing.Owner{} || known && owner.Matches(page.Owner)
	reads := [][]byte{[]byte(keyspace.LicenseKey(id)), []byte(keyspace.MetadataKey(id))}
	if !together {
		reads = reads[:1]
	}
	r := s.read(ctx, "load", &batchItem{reads: reads})
	if r.err != nil {
		return nil, etcd.Unavailable(r.err)
	}
	facts := etcd.First(r.responses, 0)
	license, err := s.decodeLicense(id, facts)
	if license == nil || !license.License.Owner.Matches(page.Owner) {
		return nil, err
	}
	var metadata *mvccpb.KeyValue
	if together {
		metadata = etcd.First(r.responses, 1)
	} else {
		s.memory.note(id, cachedValue{revision: facts.ModRevision, value: facts.Value, spilled: license.Spilled})
		found, err := s.etcd.List(ctx, "load", keyspace.MetadataKey(id), clientv3.WithRev(r.revision))
		if err != nil {
			return nil, err
		}
		if len(found.Kvs) > 0 {
			metadata = found.Kvs[0]
		}
	}
	return s.viewLicense(ctx, license, metadata, page, r.revision)
}

// ReadLicenses reads licenses, each with its first devices, at one revision.
func (s *views) ReadLicenses(
	ctx context.Context, keys []licensing.LicenseKey, devices int,
) (views []*store.LicenseView, err error) {
	for range readTries {
		views, err = s.tryLicenses(ctx, keys, store.DevicePage{Limit: devices})
		if !errors.Is(err, rpctypes.ErrCompacted) {
			break
		}
	}
	return views, err
}

func (s *views) tryLicenses(
	ctx context.Context, keys []licensing.LicenseKey, page store.DevicePage,
) ([]*store.LicenseView, error) {
	var reads [][]byte
	for _, key := range keys {
		reads = append(reads, []byte(keyspace.LicenseKey(key.ID())), []byte(keyspace.MetadataKey(key.ID())))
	}
	r := s.read(ctx, "load", &batchItem{reads: reads})
	if r.err != nil {
		return nil, etcd.Unavailable(r.err)
	}
	views := make([]*store.LicenseView, len(keys))
	for i, key := range keys {
		facts, metadata := etcd.First(r.responses, 2*i), etcd.First(r.responses, 2*i+1)
		var err error
		if views[i], err = s.viewStored(ctx, key.ID(), facts, metadata, page, r.revision); err != nil {
			return nil, err
		}
	}
	return views, nil
}

// decodeLicense decodes the key of a license as it was read, and counts a license that breaks a rule. It returns nil if
// there is no such key.
func (s *views) decodeLicense(id licensing.LicenseID, facts *mvccpb.KeyValue) (*layout.License, error) {
	if facts == nil {
		return nil, nil
	}
	license, err := layout.DecodeLicense(id, facts.Value)
	if err != nil {
		return nil, layout.Internal(err)
	}
	s.checkRules(license, "read")
	return license, nil
}

// viewStored returns the view of a license whose keys were read at a revision; nil if there is no license.
func (s *views) viewStored(
	ctx context.Context, id licensing.LicenseID, facts, metadata *mvccpb.KeyValue, page store.DevicePage,
	revision int64,
) (*store.LicenseView, error) {
	license, err := s.decodeLicense(id, facts)
	if license == nil {
		return nil, err
	}
	return s.viewLicense(ctx, license, metadata, page, revision)
}

// viewLicense adds metadata and a page of devices to a license that was read at a revision. Without a page it returns
// the devices in the license's own record.
func (s *views) viewLicense(
	ctx context.Context, license *layout.License, metadata *mvccpb.KeyValue, page store.DevicePage, revision int64,
) (*store.LicenseView, error) {
	attached, _, err := metadataOf(metadata)
	if err != nil {
		return nil, layout.Internal(err)
	}
	view := &store.LicenseView{License: license.License, Metadata: attached}
	listing, err := layout.DecodeInline(license.Devices, license.License.CreatedAt)
	if err != nil {
		return nil, layout.Internal(err)
	}
	if page.Limit == 0 {
		if view.Devices = listing; license.Spilled && license.License.CurrentDevices > 0 {
			view.Next = &store.DeviceCursor{}
		}
		return view, nil
	}
	if license.Spilled {
		if page.Enter != nil {
			leave, err := page.Enter()
			if err != nil {
				return nil, err
			}
			defer leave()
		}
		if listing, err = s.listDevices(ctx, &license.License, page, revision); err != nil {
			return nil, err
		}
		complete := page.After == store.DeviceCursor{} && len(listing) <= page.Limit
		if complete && len(listing) != license.License.CurrentDevices {
			s.countBrokenRule("device_count", "read")
		}
	} else {
		listing = slices.DeleteFunc(listing, func(d licensing.Device) bool {
			return comparePositions(keyspace.DevicePosition(d.ID), page.After) < 0
		})
	}
	slices.SortFunc(listing, func(a, b licensing.Device) int {
		return comparePositions(keyspace.DevicePosition(a.ID), keyspace.DevicePosition(b.ID))
	})
	if len(listing) > page.Limit {
		next := keyspace.DevicePosition(listing[page.Limit].ID)
		view.Next, listing = &next, listing[:page.Limit]
	}
	view.Devices = listing
	return view, nil
}

func comparePositions(a, b store.DeviceCursor) int { return slices.Compare(a[:], b[:]) }

// listDevices reads up to one device more than the page contains, from the page's beginning on, at a revision. For a
// license with many devices, listDevices reads hash space slice by slice, each wide enough for the missing devices.
func (s *views) listDevices(
	ctx context.Context, l *licensing.License, page store.DevicePage, revision int64,
) ([]licensing.Device, error) {
	var devices []licensing.Device
	prefix := keyspace.DevicesPrefix(l.Key.ID())
	end := clientv3.GetPrefixRangeEnd(prefix)
	from := prefix + string(page.After[:])
	position := binary.BigEndian.Uint64(page.After[:])
	for round := 0; ; round++ {
		missing := page.Limit + 1 - len(devices)
		to := end
		// Each slice is twice as wide as the slice before, for the same need: end users choose device ids, so hashes
		// may cluster, and then most slices are empty.
		width := sliceWidth(missing, l.CurrentDevices>>round)
		last := position >= math.MaxUint64-width
		if !last {
			position += width
			to = prefix + string(binary.BigEndian.AppendUint64(nil, position))
		}
		response, err := s.etcd.Page(ctx, "list_devices", from, to, int64(missing), revision)
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			device, err := layout.DecodeDeviceValue(kv.Value)
			if err != nil {
				return nil, layout.Internal(err)
			}
			devices = append(devices, device)
		}
		if last || len(devices) > page.Limit {
			return devices, nil
		}
		from = to
	}
}

// sliceWidth returns how much of the space of 64-bit hashes almost surely contains the wanted number of a license's
// devices: the expected share and four standard deviations.
func sliceWidth(wanted, devices int) uint64 {
	generous := float64(wanted) + 4*math.Sqrt(float64(wanted)) + 16
	share := generous / float64(max(devices, 1))
	if share > 0.5 {
		return math.MaxUint64 // one read of all costs no more than two
	}
	return uint64(share * math.MaxUint64)
}
