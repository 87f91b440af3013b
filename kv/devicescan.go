package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// scanLeast and scanShare say when a scan is due. A scan costs etcd about a third of a compare for each device of
	// the license. It begins once a quarter as many devices as the license has were compared, so scans never cost much
	// more than the compares that they replace.
	scanLeast = 256
	scanShare = 4
	// scanMost is the number of devices above which no license is scanned.
	scanMost = deviceCacheWeight / 2
	scanPage = 1000
)

// deviceScan reads the positions of all devices of a license, at one revision of the license.
type deviceScan struct {
	revision int64
	devices  int // as the license counts them
	// since contains the changes after that revision, by position: true for a bound device, false for a removed one.
	since map[store.DeviceCursor]bool
}

// scanIsDue reports whether reading all devices of the license is worth its cost.
func (r *deviceCache) scanIsDue(devices int) bool {
	return !r.complete && r.scan == nil && devices <= scanMost && r.guesses >= scanLeast+devices/scanShare
}

// startDeviceScan starts a scan in the background. One scan runs at a time.
func (s *Store) startDeviceScan(id licensing.LicenseID, v *deviceScan) {
	if !s.scanning.CompareAndSwap(false, true) {
		s.memory.deviceCaches.putOffScan(id, v)
		return
	}
	s.guard.StartIn(&s.background, "scan devices", func() {
		var bound map[store.DeviceCursor]struct{}
		defer s.scanning.Store(false)
		defer func() { s.memory.deviceCaches.endScan(id, v, bound) }()
		found, err := s.readPositions(s.life, id, v)
		if err != nil {
			s.log.Debug().Err(err).Int("devices", v.devices).Msg("gave up scanning the devices of a license")
		} else if len(found) != v.devices {
			s.countBrokenRule("device_count", "read")
		} else {
			bound = found
		}
	})
}

// readPositions reads the positions of a license's devices at one revision of the license. It rests at least as long as
// it reads, so that reading takes at most half of the time.
func (s *Store) readPositions(
	ctx context.Context, id licensing.LicenseID, v *deviceScan,
) (map[store.DeviceCursor]struct{}, error) {
	found := make(map[store.DeviceCursor]struct{}, v.devices)
	prefix := keyspace.DevicesPrefix(id)
	width := sliceWidth(scanPage, v.devices)
	position, from := uint64(0), prefix
	for {
		to, last := clientv3.GetPrefixRangeEnd(prefix), position >= math.MaxUint64-width
		if !last {
			to = prefix + string(binary.BigEndian.AppendUint64(nil, position+width))
		}
		began := time.Now()
		response, err := s.etcd.Page(ctx, "scan_devices", from, to, 2*scanPage, v.revision, clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		for _, kv := range response.Kvs {
			if len(kv.Key) != len(prefix)+len(store.DeviceCursor{}) {
				return nil, fmt.Errorf("%w: the key of a device has %d bytes", layout.ErrMalformed, len(kv.Key))
			}
			found[store.DeviceCursor(kv.Key[len(prefix):])] = struct{}{}
		}
		switch {
		case response.More: // hashes cluster here
			from = etcd.After(response.Kvs[len(response.Kvs)-1].Key)
		case last:
			return found, nil
		default:
			from, position = to, position+width
		}
		if !backoff.Sleep(ctx, time.Since(began)) {
			return nil, ctx.Err()
		}
	}
}

// putOffScan drops a scan, so that the next swap begins another.
func (s *deviceCaches) putOffScan(id licensing.LicenseID, v *deviceScan) {
	s.use(id, false, func(r *deviceCache) {
		if r.scan == v {
			r.scan = nil
		}
	})
}

// endScan stores the positions that a scan has found; nil if it failed.
func (s *deviceCaches) endScan(id licensing.LicenseID, v *deviceScan, found map[store.DeviceCursor]struct{}) {
	s.use(id, false, func(r *deviceCache) {
		if r.scan != v {
			return // another store has written since
		}
		r.scan, r.guesses = nil, 0
		if found == nil {
			return
		}
		for position, isBound := range v.since {
			if isBound {
				found[position] = struct{}{}
			} else {
				delete(found, position)
			}
		}
		r.complete, r.bound = true, found
	})
}
