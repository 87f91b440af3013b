package node

import (
	"context"
	"sync"
	"time"

	"licet"
)

const (
	// seenEvery is how often what was seen is stored.
	seenEvery = time.Second
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
	licenses map[licet.LicenseKey]map[string]time.Time
}

// note gathers that a device of a record was seen.
func (s *seenDevices) note(record *licet.Record, device string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if entry := record.Devices[device]; entry != nil && entry.Bound {
		s.add(record.License.Key, &entry.Device)
	}
}

// noteAll gathers that the devices were seen whose entries have changed.
func (s *seenDevices) noteAll(record *licet.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range record.Devices {
		if entry.Changed && entry.Bound {
			s.add(record.License.Key, &entry.Device)
		}
	}
}

func (s *seenDevices) add(key licet.LicenseKey, d *licet.Device) {
	devices := s.licenses[key]
	if _, known := devices[d.ID]; !known {
		if s.count >= seenLimit {
			return
		}
		s.count++
	}
	if devices == nil {
		if s.licenses == nil {
			s.licenses = make(map[licet.LicenseKey]map[string]time.Time)
		}
		devices = make(map[string]time.Time, 1)
		s.licenses[key] = devices
	}
	devices[d.ID] = d.LastSeenAt
}

func (s *seenDevices) take() map[licet.LicenseKey]map[string]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.licenses
	s.licenses, s.count = nil, 0
	return taken
}

// putBack gathers again what was not stored, unless it was seen since.
func (s *seenDevices) putBack(key licet.LicenseKey, devices map[string]time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for device, at := range devices {
		if _, known := s.licenses[key][device]; !known {
			s.add(key, &licet.Device{ID: device, LastSeenAt: at})
		}
	}
}

// KeepSeen stores when devices were seen, until ctx ends, and then once more.
// While the node has much to do they wait; what the store fails to write is
// forgotten.
func (n *Node) KeepSeen(ctx context.Context) {
	ticker := time.NewTicker(seenEvery)
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

func (n *Node) storeSeen() {
	var group sync.WaitGroup
	free := make(chan struct{}, seenAtOnce)
	for key, devices := range n.seen.take() {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			n.storeSeenOf(key, devices)
		})
	}
	group.Wait()
}

// storeSeenOf posts the devices of one license together, so that they are
// folded, and waits until all are answered. Those that may not be posted are
// left for the next time.
func (n *Node) storeSeenOf(key licet.LicenseKey, devices map[string]time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), seenTimeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	ref := licet.LicenseRef(key)
	var mine *mailbox
	var first *call
	calls := make([]*call, 0, len(devices))
	for device, at := range devices {
		if n.admission.enterBackground() != nil {
			break
		}
		c := &call{cmd: licet.Seen{Key: key, Device: device, At: at}, deadline: deadline}
		box, err := n.post(ref, c)
		if err != nil {
			n.admission.leave(err)
			break
		}
		delete(devices, device)
		if box != nil {
			mine, first = box, c
		} else {
			calls = append(calls, c)
		}
	}
	if mine != nil {
		n.runFirst(ctx, mine, first)
		n.admission.leave(first.err)
	}
	for _, c := range calls {
		_, err := n.await(ctx, c)
		n.admission.leave(err)
	}
	n.seen.putBack(key, devices)
}
