package kv

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// lapsedPage is how many devices one read of a search for lapsed leases returns.
const lapsedPage = 1000

// EachLeased calls each for the licenses of a slot in the index of leases, as of about one revision.
func (s *Store) EachLeased(ctx context.Context, slot licensing.Slot, each func(*licensing.License)) error {
	index := layout.DueIndexOf(licensing.DueLeases)
	prefix, revision := layout.InSlot(slot, index.Family), int64(0)
	for from, more := prefix, true; more; {
		page, err := s.etcd.Page(ctx, "list_leased", from, clientv3.GetPrefixRangeEnd(prefix), lapsedPage, revision)
		if err != nil {
			return err
		}
		revision = page.Header.Revision
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

// readLeased calls each for licenses that exist and can be read; verify reports the others.
func (s *Store) readLeased(ctx context.Context, ids []licensing.LicenseID, each func(*licensing.License)) error {
	reads := make([][]byte, len(ids))
	for i, id := range ids {
		reads[i] = []byte(layout.LicenseKey(id))
	}
	r := s.read(ctx, "load", &batchItem{reads: reads})
	if r.err != nil {
		return etcd.Unavailable(r.err)
	}
	for i, id := range ids {
		if kv := etcd.First(r.responses, i); kv != nil {
			if license, err := layout.DecodeLicense(id, kv.Value); err == nil {
				each(&license.License)
			}
		}
	}
	return nil
}

// allLeases reports whether the record of a license holds all its leases.
func allLeases(license *layout.License) bool {
	return license.License.Lease.Leased() && !license.Spilled
}

// addInline adds the devices in a license's own record.
func addInline(devices licensing.Devices, license *layout.License) error {
	bound, err := layout.DecodeInline(license.Devices, license.License.CreatedAt)
	for i := range bound {
		devices[bound[i].ID] = &licensing.DeviceEntry{Device: bound[i], Bound: true}
	}
	return err
}

// findLapsed adds the leases that ended by LapsedBy to the snapshot of a license whose devices have keys of their own,
// at the revision of the snapshot. There is no index of leases by time, so it reads all devices.
func (s *Store) findLapsed(ctx context.Context, q *query, snapshot *store.Snapshot, revision int64) error {
	token, exists := snapshot.Token.(*stored)
	if q.LapsedBy.IsZero() || !exists || !token.spilled || q.incomplete(*snapshot) {
		return nil
	}
	if token.entries == nil {
		token.entries = make(map[string]knownDevice)
	}
	record, found := &snapshot.Record, 0
	var next time.Time
	prefix := layout.DevicesPrefix(q.Ref.LicenseID())
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
			_, known := record.Devices[device.ID]
			switch end := device.LeaseEnd; {
			case known, end.IsZero():
			case !end.After(q.LapsedBy) && found < store.MaxLapsed:
				found++
				record.Devices[device.ID] = &licensing.DeviceEntry{Device: device, Bound: true}
				token.entries[device.ID] = knownDevice{&device, kv.ModRevision}
			case next.IsZero() || end.Before(next):
				next = end
			}
		}
		if more = page.More && len(page.Kvs) > 0; more {
			from = etcd.After(page.Kvs[len(page.Kvs)-1].Key)
		}
	}
	record.Leases, token.searched = licensing.KnownLeases{All: true, Next: next}, true
	return nil
}
