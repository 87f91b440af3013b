package verify

import (
	"time"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// leases are those of the devices of a license, and what else the license says of its devices.
type leases struct {
	count    int
	first    time.Time         // the earliest end
	unseen   *licensing.Device // for longest
	composed int               // devices with components
}

func (s *leases) add(d *licensing.Device) {
	if s.unseen == nil || d.LastSeenAt.Before(s.unseen.LastSeenAt) {
		s.unseen = d
	}
	if d.Components != "" {
		s.composed++
	}
	if d.LeaseEnd.IsZero() {
		return
	}
	if s.count++; s.count == 1 || d.LeaseEnd.Before(s.first) {
		s.first = d.LeaseEnd
	}
}

// checkLeases compares what a license says of the leases, the times and the components of its devices with the devices.
// all has those of devices with keys of their own.
func (v *licenseChecks) checkLeases(stored *layout.License, all leases, bad func(rule, format string, args ...any)) {
	l := &stored.License
	devices, err := layout.DecodeInline(stored.Devices, l.CreatedAt)
	if err != nil {
		return // checkCounts reports it
	}
	for i := range devices {
		all.add(&devices[i])
	}
	if all.unseen != nil && all.unseen.LastSeenAt.Before(l.SeenFrom) {
		bad("seen_from", "a device was last seen at %v, and none before %v", all.unseen.LastSeenAt, l.SeenFrom)
	}
	switch m := l.Match; {
	case l.Lease.Leased() && (!l.InactiveAfter.IsZero() || m.AtLeast > 0):
		bad("device_terms", "its devices have leases, and become inactive or change too")
	case m.AtLeast > licensing.MaxComponents, (m.AtLeast > 0) != (m.ChangesPerMonth > 0):
		bad("device_terms", "%d equal components make a device, %d times a month", m.AtLeast, m.ChangesPerMonth)
	case m.AtLeast == 0 && (all.composed > 0 || l.Changes.Count > 0):
		bad("components", "%d of its devices have components and %d have changed, and its terms compare none",
			all.composed, l.Changes.Count)
	}
	switch {
	case !l.Lease.Leased():
		if all.count > 0 {
			bad("leases", "%d of its devices have leases, and its terms have none", all.count)
		}
	case l.Lease.Longest < l.Lease.Length, l.Lease.DevicesProblem(l.MaxDevices) != "":
		bad("leases", "its terms are leases of %v, up to %v, for %d devices", l.Lease.Length, l.Lease.Longest,
			l.MaxDevices)
	case all.count != l.CurrentDevices:
		bad("leases", "%d of its %d devices have leases", all.count, l.CurrentDevices)
	case all.count > 0 && (l.LeasesUntil.IsZero() || all.first.Before(l.LeasesUntil)):
		bad("leases", "a lease ends at %v, and none before %v", all.first, l.LeasesUntil)
	}
}
