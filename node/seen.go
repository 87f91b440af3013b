package node

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/node/store"
)

const (
	defaultSeenEvery = time.Second
	// seenLimit bounds the devices that wait for it. More are forgotten: they
	// will be seen again.
	seenLimit = 1 << 16
	// seenAtOnce bounds the licenses that are written at a time, so that what
	// nobody waits for keeps out of the way of what somebody does.
	seenAtOnce = 64
	// seenTimeout bounds the storing for one license.
	seenTimeout = 5 * time.Second
)

// seenDevices gathers which devices were seen, so that a storm of activations
// of bound devices is answered by reads, and writes little.
type seenDevices struct {
	mu       sync.Mutex
	count    int
	licenses map[licensing.LicenseKey]map[string]time.Time
}

// note gathers that a device of a record was seen.
func (s *seenDevices) note(record *licensing.Record, device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := record.Devices[device]; entry != nil && entry.Bound {
		s.add(record.License.Key, &entry.Device)
	}
}

// noteAll gathers that the devices were seen whose entries have changed.
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

// putBack gathers again what was not stored, unless it was seen since.
func (s *seenDevices) putBack(key licensing.LicenseKey, devices map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for device, at := range devices {
		if _, known := s.licenses[key][device]; !known {
			s.add(key, &licensing.Device{ID: device, LastSeenAt: at})
		}
	}
}

// KeepSeen stores when devices were seen, until ctx ends, and then once more.
// While the node has much to do they wait; what the store fails to write is
// forgotten.
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

// storeSeen stores what was seen, license by license. Where the store can't be
// reached the rest is forgotten: trying it all would take a stop's time too.
func (n *Node) storeSeen() {
	var group sync.WaitGroup
	var failed atomic.Bool
	free := make(chan struct{}, seenAtOnce)
	for key, devices := range n.seen.take() {
		free <- struct{}{}
		if failed.Load() {
			break
		}
		n.guard.StartIn(&group, "devices seen", func() {
			defer func() { <-free }()
			if !n.storeSeenOf(key, devices) {
				failed.Store(true)
			}
		}, func() { failed.Store(true) })
	}
	group.Wait()
}

// storeSeenOf stores when devices of one license were seen, one fold after the
// other: more at a time would take up the mailbox. What the node has no room
// for now is left for the next time. It reports false where the store failed.
func (n *Node) storeSeenOf(key licensing.LicenseKey, devices map[string]time.Time) bool {
	ctx, cancel := context.WithTimeout(context.Background(), seenTimeout)
	defer cancel()
	seen := make([]licensing.Seen, 0, len(devices))
	for device, at := range devices {
		seen = append(seen, licensing.Seen{Key: key, Device: device, At: at})
	}
	for fold := range slices.Chunk(seen, store.MaxTouchedDevices) {
		posted, err := n.storeSeenFold(ctx, licensing.LicenseRef(key), fold)
		switch licensing.ReasonOf(err) {
		case licensing.ReasonUnavailable, licensing.ReasonOutcomeUnknown:
			return false
		}
		for _, cmd := range fold[:posted] {
			delete(devices, cmd.Device)
		}
		if posted < len(fold) {
			n.seen.putBack(key, devices)
			break
		}
	}
	return true
}

// storeSeenFold posts what was seen together, so that it is folded, and waits
// until all is answered. It tells how many there was room for, and one of the
// errors of these.
func (n *Node) storeSeenFold(ctx context.Context, ref licensing.Ref, seen []licensing.Seen) (posted int, failed error) {
	deadline, _ := ctx.Deadline()
	var mine *mailbox
	var first *call
	calls := make([]*call, 0, len(seen))
	who := n.shareOf(ref, nil)
	for _, cmd := range seen {
		if n.admission.enterBackground(who) != nil {
			break
		}
		c := newCall(who, &call{cmd: cmd, deadline: deadline})
		box, err := n.post(ref, c)
		if err != nil {
			n.admission.leave(c.gone(), err)
			if licensing.ReasonOf(err) != licensing.ReasonOverloaded {
				failed = err
			}
			break
		}
		posted++
		if box != nil {
			mine, first = box, c
		} else {
			calls = append(calls, c)
		}
	}
	if mine != nil {
		n.runFirst(ctx, mine, first)
		n.admission.leave(first.gone(), first.err)
		failed = cmp.Or(failed, first.err)
	}
	for _, c := range calls {
		_, err := n.await(ctx, c)
		n.admission.leave(c.gone(), err)
		failed = cmp.Or(failed, err)
	}
	return posted, failed
}
