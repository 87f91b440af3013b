package licensing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Limits of leases.
const (
	MinLease = 30 * time.Second
	MaxLease = 30 * 24 * time.Hour
	// MaxLeasedDevices bounds the devices of a license with leases, since a search for lapsed leases reads them all.
	MaxLeasedDevices = 10_000
	// LeaseGuard is how long after its end a lease still keeps its device slot from other devices. It is more than
	// twice the difference that clocks of nodes may have.
	LeaseGuard = 5 * time.Second
	// renewalShare says which renewals are stored: those that move the end by at least this part of the lease.
	renewalShare = 8
)

// LeaseTerms say whether the devices of a license are bound until they are removed, or take leases. The zero
// LeaseTerms have no leases.
type LeaseTerms struct {
	Length  time.Duration // of a lease, unless the device asks for another; whole seconds; 0: no leases
	Longest time.Duration // that a device may ask for; whole seconds
}

// Leased reports whether devices take leases.
func (t LeaseTerms) Leased() bool { return t.Length != 0 }

// lengthFor returns the length of the lease of a device that asks for one; 0: it asks for none.
func (t LeaseTerms) lengthFor(asked time.Duration) (time.Duration, error) {
	if asked > t.Longest {
		return 0, InvalidField("lease_seconds",
			fmt.Sprintf("must be at most %d for this license", t.Longest/time.Second))
	}
	return cmp.Or(asked, t.Length), nil
}

// DevicesProblem returns what is wrong with a limit of devices for these terms; "": nothing.
func (t LeaseTerms) DevicesProblem(limit int) string {
	if t.Leased() && (limit < 1 || limit > MaxLeasedDevices) {
		return fmt.Sprintf("must be 1 to %d with leases", MaxLeasedDevices)
	}
	return ""
}

// CheckDevices refuses a limit of devices that these terms do not allow.
func (t LeaseTerms) CheckDevices(limit int) error {
	if problem := t.DevicesProblem(limit); problem != "" {
		return InvalidField("max_devices", problem)
	}
	return nil
}

// KnownLeases says what a record knows of the devices of its license besides the devices that the commands touch: of a
// license with leases by the ends of these, and otherwise by when the devices were last seen. The store sets it.
type KnownLeases struct {
	// All: Devices has every lease of the license whose guard has passed, except leases that end at Next or later; or
	// the devices that were not seen for longest, except devices that were last seen at Next or later.
	All bool
	// Next is the earliest such time of the devices that are not in Devices; zero: there are none.
	Next time.Time
	// Every: Devices has every device of the license, which its own record holds.
	Every bool
}

// LeaseTime returns the time that decides about leases: the later of the node's clock and the license's last stamp.
// So a clock that is behind neither shortens a lease nor brings a lapsed one back.
func (l *License) LeaseTime(now time.Time) time.Time {
	if l.Stamp.After(now) {
		return l.Stamp
	}
	return now
}

// stampAt returns the stamp of a swap. A node that must not act by its clock stamps with the license's last stamp: it
// gives out leases, and takes none from other devices on its own word.
func (r *Record) stampAt(now time.Time) time.Time {
	if r.ActsByTime {
		return r.License.LeaseTime(now)
	}
	return r.License.Stamp
}

// guardPassed reports whether a swap with a stamp may remove a lease with an end. Stamps are stored, so a later swap
// can't have an earlier stamp.
func guardPassed(end, stamp time.Time) bool {
	return !end.IsZero() && !stamp.Before(end.Add(LeaseGuard))
}

// holds reports whether a bound device may be used at a time: its lease, if it has one, has not lapsed.
func (d *Device) holds(at time.Time) bool { return d.LeaseEnd.IsZero() || d.LeaseEnd.After(at) }

// Lapsed reports whether the device had a lease that has ended.
func (d *Device) Lapsed(at time.Time) bool { return !d.holds(at) }

// holds reports whether the device is bound to the license and may be used at a time.
func (e *DeviceEntry) holds(at time.Time) bool { return e != nil && e.Bound && e.Device.holds(at) }

// SearchesDevices reports whether a command needs more devices than the record knows: it may find the license full, and
// a lease may have lapsed or a device be inactive. commands is how many commands come together.
func (r *Record) SearchesDevices(c Command, commands int, now time.Time) bool {
	l := r.License
	if l == nil || r.Leases.All || !guardPassed(l.LeasesUntil, r.stampAt(now)) && !r.searchesInactive(now) {
		return false
	}
	switch c := c.(type) {
	case LapseLeases:
		return true
	case Activate:
		return l.MaxDevices != 0 && l.CurrentDevices+commands > l.MaxDevices &&
			!r.Devices[c.Device].holds(l.LeaseTime(now)) && c.refusal(r, now) == nil
	}
	return false
}

// LapsedBy returns the end up to which leases may be removed now, or the time since which inactive devices are unseen.
func (r *Record) LapsedBy(now time.Time) time.Time {
	if stamp := r.stampAt(now); r.License.losesInactive() {
		return r.License.unseenSince(stamp)
	}
	return r.stampAt(now).Add(-LeaseGuard)
}

// lapseLeases removes the leases whose guard has passed, as far as the record knows them, and sets LeasesUntil anew.
// Before LeasesUntil and its guard, no lease has lapsed.
func (r *Record) lapseLeases(now time.Time) {
	l, stamp := r.License, r.stampAt(now)
	if !r.Leases.All || !guardPassed(l.LeasesUntil, stamp) {
		return
	}
	until := r.Leases.Next
	var lapsed []*DeviceEntry
	for _, entry := range r.Devices {
		switch end := entry.Device.LeaseEnd; {
		case !entry.Bound || end.IsZero():
		case guardPassed(end, stamp):
			lapsed = append(lapsed, entry)
		default:
			until = earlierEnd(until, end)
		}
	}
	slices.SortFunc(lapsed, func(a, b *DeviceEntry) int {
		return cmp.Or(a.Device.LeaseEnd.Compare(b.Device.LeaseEnd), cmp.Compare(a.Device.ID, b.Device.ID))
	})
	l.LeasesUntil, l.Stamp, r.Changed = until, stamp, true
	l.planEarly(now)
	for _, entry := range lapsed {
		r.unbind(entry, EventDeviceLeaseLapsed, System, now)
	}
}

// earlierEnd returns the earlier of two ends; zero is no end.
func earlierEnd(one, other time.Time) time.Time {
	if one.IsZero() || !other.IsZero() && other.Before(one) {
		return other
	}
	return one
}

// lease gives a device a lease, or renews the lease that it holds. Once its lease has lapsed, the device is like any
// other: it counts, and a full license refuses it.
func (c Activate) lease(r *Record, entry *DeviceEntry, now time.Time) (Result, error) {
	l := r.License
	length, err := l.Lease.lengthFor(c.Lease)
	if err != nil {
		return Result{}, err
	}
	if entry.holds(l.LeaseTime(now)) {
		c.renewLease(r, entry, length, now)
		return r.leased(entry.Device, now), nil
	}
	r.lapseLeases(now)
	taken := l.CurrentDevices
	if entry.Bound { // by its own lease, which it gives up for the new one
		taken--
	}
	if l.MaxDevices != 0 && taken >= l.MaxDevices {
		r.recordLimit(c.By, now, Device{ID: c.Device, Name: c.Name, Named: c.Named})
		return Result{}, deviceLimitReached(l)
	}
	if entry.Bound {
		r.unbind(entry, EventDeviceLeaseLapsed, System, now)
	}
	end := l.lastsFor(length, l.LeaseTime(now))
	l.LeasesUntil, l.Stamp = earlierEnd(l.LeasesUntil, end), r.stampAt(now)
	c.bind(r, entry, now, end)
	result := r.leased(entry.Device, now)
	result.Bound = true
	return result, nil
}

// renewLease moves the end of a lease that a device holds, never back. It stores nothing as long as that would move
// the end by less than an eighth of the lease: a storm of renewals is not a storm of writes.
func (c Activate) renewLease(r *Record, entry *DeviceEntry, length time.Duration, now time.Time) {
	l, d := r.License, &entry.Device
	wished := l.LeaseTime(now).Add(length)
	end := l.lastsFor(length, l.LeaseTime(now))
	if d.LeaseEnd.IsZero() || wished.Sub(d.LeaseEnd) < length/renewalShare || !end.After(d.LeaseEnd) {
		return
	}
	d.LeaseEnd = end
	l.raise(now)
	if now.After(d.LastSeenAt) {
		d.LastSeenAt = now
	}
	if c.renames(d) {
		d.Name, d.Named = c.Name, true
	}
	l.Stamp = r.stampAt(now)
	entry.Changed, r.Changed = true, true
}

// leased returns the result for a device of a license with leases, which counts no lease that is known to have lapsed.
func (r *Record) leased(d Device, now time.Time) Result {
	at := r.License.LeaseTime(now)
	result := Result{License: *r.License, Device: d}
	if d.LeaseEnd.After(at) {
		result.LeaseLeft = d.LeaseEnd.Sub(at)
	}
	if r.Leases.All {
		for _, entry := range r.Devices {
			if entry.Bound && entry.Device.Lapsed(at) {
				result.License.CurrentDevices--
			}
		}
	}
	return result
}

// LapseLeases removes lapsed leases. It needs the license's leases in Record.Devices, see SearchesDevices.
type LapseLeases struct{}

// DeviceID is empty: the record says which devices have lapsed.
func (LapseLeases) DeviceID() string { return "" }

func (LapseLeases) growth(*Record, time.Time) Growth { return NoGrowth }

func (LapseLeases) apply(r *Record, now time.Time) (Result, error) {
	if r.License == nil {
		return Result{}, ErrLicenseNotFound
	}
	r.lapseLeases(now)
	return Result{License: *r.License}, nil
}

// leasesDue returns when the lapsed leases of the license are to be removed.
func (l *License) leasesDue() Due {
	if l.LeasesUntil.IsZero() {
		return Due{}
	}
	return Due{Kind: DueLeases, At: l.LeasesUntil.Add(LeaseGuard)}
}

// WholeSeconds returns a lease's length in seconds, rounded down, so that no client counts on more than it has.
func WholeSeconds(d time.Duration) int { return int(min(d/time.Second, math.MaxInt32)) }
