package node

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	defaultSeenEvery = time.Second
	// seenLimit bounds the devices that wait to be stored. The node forgets any further device: it will be seen
	// again.
	seenLimit = 1 << 16
	// seenAtOnce bounds the licenses that the node writes at a time, so that these writes delay no request.
	seenAtOnce = 64
	// seenTimeout bounds the writes of one license.
	seenTimeout = 5 * time.Second
)

// seenDevices collects when devices were seen, so that a storm of activations of bound devices costs reads, and few
// writes.
type seenDevices struct {
	mu       sync.Mutex
	count    int
	licenses map[licensing.LicenseKey]map[string]time.Time
}

// note collects that a device of a record was seen.
func (s *seenDevices) note(record *licensing.Record, device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := record.Devices[device]; entry != nil && entry.Bound {
		s.add(record.License.Key, &entry.Device)
	}
}

// noteAll collects that the devices with changed entries were seen.
func (s *seenDevices) noteAll(record *licensing.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range record.Devices {
		if entry.Changed && entry.Bound {
			s.add(record.License.Key, &entry.Device)
		}
	}
}

func (s *seenDevices) add(key licensing.LicenseKey, d *licensing.Device) {
	devices := s.licenses[key]
	if _, known := devices[d.ID]; !known {
		if s.count >= seenLimit {
			return
		}
		s.count++
	}
	if devices == nil {
		if s.licenses == nil {
			s.licenses = make(map[licensing.LicenseKey]map[string]time.Time)
		}
		devices = make(map[string]time.Time, 1)
		s.licenses[key] = devices
	}
	devices[d.ID] = d.LastSeenAt
}

func (s *seenDevices) take() map[licensing.LicenseKey]map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.licenses
	s.licenses, s.count = nil, 0
	return taken
}

// putBack collects devices again that could not be stored, unless they were seen since.
func (s *seenDevices) putBack(key licensing.LicenseKey, devices map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for device, at := range devices {
		if _, known := s.licenses[key][device]; !known {
			s.add(key, &licensing.Device{ID: device, LastSeenAt: at})
		}
	}
}

// KeepSeen stores when devices were seen, until ctx ends, and then once more. While the node has much to do, the
// devices wait; devices that the store fails to write are forgotten.
func (n *Node) KeepSeen(ctx context.Context) {
	ticker := time.NewTicker(n.cfg.SeenEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			n.storeSeen()
		case <-ctx.Done():
			n.storeSeen()
			return
		}
	}
}

// storeSeen stores the collected devices, license by license. If the store can't be reached, storeSeen forgets the
// rest: to try them all would delay the stop of a node. While the store is almost full, storeSeen forgets all: the
// devices will be seen again.
func (n *Node) storeSeen() {
	if n.Space() != store.SpaceFree {
		n.seen.take()
		return
	}
	var group sync.WaitGroup
	var failed atomic.Bool
	free := make(chan struct{}, seenAtOnce)
	for key, devices := range n.seen.take() {
		free <- struct{}{}
		if failed.Load() {
			break
		}
		n.runner.guard.StartIn(&group, "devices seen", func() {
			defer func() { <-free }()
			if !n.storeSeenOf(key, devices) {
				failed.Store(true)
			}
		}, func() { failed.Store(true) })
	}
	group.Wait()
}

// storeSeenOf stores when devices of one license were seen, in one task for each part that one swap takes:
// a longer task would keep others from the record. Devices for which the node has no room now wait for the next
// time. storeSeenOf reports false if the store failed.
func (n *Node) storeSeenOf(key licensing.LicenseKey, devices map[string]time.Time) bool {
	ctx, cancel := context.WithTimeout(context.Background(), seenTimeout)
	defer cancel()
	ref := licensing.LicenseRef(key)
	who := n.shareOf(ref, nil)
	for part := range slices.Chunk(slices.Sorted(maps.Keys(devices)), store.MaxTouchedDevices) {
		if n.admission.enterBackground(who) != nil {
			n.seen.putBack(key, devices)
			return true
		}
		seen := make([]licensing.Seen, len(part))
		for i, device := range part {
			seen[i] = licensing.Seen{Key: key, Device: device, At: devices[device]}
			delete(devices, device)
		}
		_, err := n.WithRecordLock(ctx, ref, func(ctx context.Context) (licensing.Result, error) {
			return licensing.Result{}, n.swapSeen(ctx, ref, seen)
		})
		n.admission.leave(who, err)
		switch licensing.ReasonOf(err) {
		case licensing.ReasonUnavailable, licensing.ReasonOutcomeUnknown:
			return false
		}
	}
	return true
}

// swapSeen stores in one swap when devices of a license were seen. Such a swap proves only that the devices
// are bound, so nothing else is made of its snapshot.
func (s *runner) swapSeen(ctx context.Context, ref licensing.Ref, seen []licensing.Seen) error {
	want := store.Want{Ref: ref, Devices: make([]string, len(seen))}
	for i, cmd := range seen {
		want.Devices[i] = cmd.Device
	}
	snapshot, unsure, known := s.cfg.Records.Recall(want)
	known = known && len(unsure) == 0
	for try := range swapTries {
		if !known {
			loaded, err := s.cfg.Records.Load(ctx, want)
			if err != nil {
				return err
			}
			snapshot = loaded[0]
		}
		at, err := s.timeOfTurn()
		if err != nil {
			return err
		}
		record := snapshot.Record
		for _, cmd := range seen {
			if s.apply(&record, cmd, &at, snapshot.AsOf, new(Answer)) {
				return licensing.ErrInternal
			}
		}
		if !record.Touched {
			return nil
		}
		outcome, err := s.commit(ctx,
			store.Change{Writes: []store.Write{{Ref: ref, Token: snapshot.Token, Record: record}}})
		if err != nil || outcome.Landed {
			return err
		}
		if known = len(outcome.Rivals) > 0; known {
			snapshot = outcome.Rivals[0]
		}
		if !pause(ctx, try) {
			break
		}
	}
	return licensing.ErrUnavailable // every swap was lost for certain
}
