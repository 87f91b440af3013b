package kv

import (
	"cmp"
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// lapsedPage is how many devices one read of a search for lapsed leases returns.
const lapsedPage = 1000

// EachLeased calls each for the licenses with leases of a slot. It reads the indexes of due work at one revision, so it
// finds each license once: at any revision, a license is in one index. Each license is as of a later read.
func (s *Store) EachLeased(
	ctx context.Context, slot licensing.Slot, now time.Time, each func(*licensing.License),
) error {
	revision := int64(0)
	for _, kind := range licensing.LeasedKinds() {
		if err := s.eachLeased(ctx, slot, kind, leasedSpan(kind, now), &revision, each); err != nil {
			return err
		}
	}
	return nil
}

// leasedSpan returns the part of an index to search for licenses with leases. A license is in the index of its earliest
// work. No lease is longer than licensing.MaxLease, so work that is due later is not the earliest.
func leasedSpan(kind licensing.DueKind, now time.Time) store.DueSpan {
	if kind == licensing.DueLeases {
		return store.DueSpan{}
	}
	return store.DueSpan{Until: now.Add(licensing.MaxLease + time.Hour)} // clocks differ by less than the hour
}

// eachLeased is EachLeased for the licenses in one index. If revision is 0, eachLeased reads the index at the current
// revision, and stores that revision there.
func (s *Store) eachLeased(
	ctx context.Context, slot licensing.Slot, kind licensing.DueKind, span store.DueSpan, revision *int64,
	each func(*licensing.License),
) error {
	due, index := dueRange(kind, span), keyspace.DueIndexOf(kind)
	prefix := keyspace.InSlot(slot, index.Family)
	for from, more := keyspace.InSlot(slot, due.From), true; more; {
		page, err := s.etcd.Page(ctx, "list_leased", from, keyspace.InSlot(slot, due.To), lapsedPage, *revision)
		if err != nil {
			return err
		}
		if *revision == 0 {
			*revision = page.Header.Revision
		}
		var ids []licensing.LicenseID
		for _, kv := range page.Kvs {
			if _, ref, ok := index.Decode(slot, string(kv.Key[len(prefix):]), kv.Value); ok {
				ids = append(ids, ref.LicenseID())
			}
		}
		for some := range slices.Chunk(ids, store.MaxReadLicenses) {
			if err := s.readLeased(ctx, some, each); err != nil {
				return err
			}
		}
		if more = page.More && len(page.Kvs) > 0; more {
			from = etcd.After(page.Kvs[len(page.Kvs)-1].Key)
		}
	}
	return nil
}

// readLeased calls each for those of the licenses that have leases. It skips unreadable licenses: verify reports them.
func (s *Store) readLeased(ctx context.Context, ids []licensing.LicenseID, each func(*licensing.License)) error {
	reads := make([][]byte, len(ids))
	for i, id := range ids {
		reads[i] = []byte(keyspace.LicenseKey(id))
	}
	r := s.read(ctx, "load", &batchItem{reads: reads})
	if r.err != nil {
		return etcd.Unavailable(r.err)
	}
	for i, id := range ids {
		if kv := etcd.First(r.responses, i); kv != nil {
			license, err := layout.DecodeLicense(id, kv.Value)
			if err == nil && license.License.Lease.Leased() && license.License.CurrentDevices > 0 {
				each(&license.License)
			}
		}
	}
	return nil
}

// knownLeases returns the devices in the record of a license that the command needs.
func knownLeases(license *layout.License) licensing.KnownLeases {
	all := license.License.NeedsDevices() && !license.Spilled
	return licensing.KnownLeases{All: all, Every: all}
}

// addInline adds the devices in a license's own record.
func addInline(devices licensing.Devices, license *layout.License) error {
	bound, err := layout.DecodeInline(license.Devices, license.License.CreatedAt)
	for i := range bound {
		devices[bound[i].ID] = &licensing.DeviceEntry{Device: bound[i], Bound: true}
	}
	return err
}

// findLapsed adds the leases that ended by LapsedBy, or the devices that were last seen by then, to the snapshot of a
// license whose devices have keys of their own, at the revision of the snapshot. There is no index of devices by time,
// so it reads all devices.
func (s *Store) findLapsed(ctx context.Context, q *query, snapshot *store.Snapshot, revision int64) error {
	token, exists := snapshot.Token.(*stored)
	if q.LapsedBy.IsZero() || !exists || !token.spilled || q.incomplete(*snapshot) {
		return nil
	}
	if token.entries == nil {
		token.entries = make(map[string]knownDevice)
	}
	record, found := &snapshot.Record, lapsed{by: q.LapsedBy}
	prefix := keyspace.DevicesPrefix(q.Ref.LicenseID())
	for from, more := prefix, true; more; {
		page, err := s.etcd.Page(ctx, "find_lapsed", from, clientv3.GetPrefixRangeEnd(prefix), lapsedPage, revision)
		if err != nil {
			return err
		}
		for _, kv := range page.Kvs {
			device, err := layout.DecodeDeviceValue(kv.Value)
			if err != nil {
				return layout.Internal(err)
			}
			if _, known := record.Devices[device.ID]; !known {
				found.add(device, knownDevice{kv.Value, kv.ModRevision}, record.License.Lease.Leased())
			}
		}
		if more = page.More && len(page.Kvs) > 0; more {
			from = etcd.After(page.Kvs[len(page.Kvs)-1].Key)
		}
	}
	found.cut()
	for _, d := range found.devices {
		record.Devices[d.device.ID] = &licensing.DeviceEntry{Device: d.device, Bound: true}
		token.entries[d.device.ID] = d.known
	}
	record.Leases, token.searched = licensing.KnownLeases{All: true, Next: found.next}, true
	return nil
}

// lapsed collects the devices whose times are the earliest, and not after by. next is the earliest time of all others.
type lapsed struct {
	by, next time.Time
	devices  []timedDevice
}

// timedDevice is a device with the end of its lease, or when it was last seen.
type timedDevice struct {
	device licensing.Device
	known  knownDevice
	at     time.Time
}

func (f *lapsed) add(d licensing.Device, known knownDevice, leased bool) {
	at := d.LastSeenAt
	if leased {
		at = d.LeaseEnd
	}
	switch {
	case at.IsZero():
	case at.After(f.by):
		f.leaveOut(at)
	default:
		if f.devices = append(f.devices, timedDevice{d, known, at}); len(f.devices) >= 8*store.MaxLapsed {
			f.cut()
		}
	}
}

// cut drops all devices but the store.MaxLapsed earliest.
func (f *lapsed) cut() {
	slices.SortFunc(f.devices, func(a, b timedDevice) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.device.ID, b.device.ID))
	})
	if len(f.devices) > store.MaxLapsed {
		f.leaveOut(f.devices[store.MaxLapsed].at)
		f.devices = f.devices[:store.MaxLapsed]
	}
}

// leaveOut notes the time of a device that is not among the devices.
func (f *lapsed) leaveOut(at time.Time) {
	if f.next.IsZero() || at.Before(f.next) {
		f.next = at
	}
}
