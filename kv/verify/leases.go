package verify

import (
	"time"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// leases are those of the devices of a license.
type leases struct {
	count int
	first time.Time // the earliest end
}

func (s *leases) add(d *licensing.Device) {
	if d.LeaseEnd.IsZero() {
		return
	}
	if s.count++; s.count == 1 || d.LeaseEnd.Before(s.first) {
		s.first = d.LeaseEnd
	}
}

// checkLeases compares what a license says of its leases with those of its devices. all has the leases of devices with
// keys of their own.
func (v *recordChecks) checkLeases(stored *layout.License, all leases, bad func(rule, format string, args ...any)) {
	l := &stored.License
	devices, err := layout.DecodeInline(stored.Devices, l.CreatedAt)
	if err != nil {
		return // checkCounts reports it
	}
	for i := range devices {
		all.add(&devices[i])
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
