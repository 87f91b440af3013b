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
	// LeaseGuard is how long after its end a lease still keeps its device slot from other devices. Clocks of two
	// nodes that give leases differ by less, see clocks.MaxApart.
	LeaseGuard = 5 * time.Second
	// renewalShare bounds the stored renewals: a renewal is stored if it moves the end by at least 1/8 of the lease,
	// see renewal.
	renewalShare = 8
)

// ErrMoreLapsed: a swap can't remove all lapsed leases of a license that stays full. Once the swap has landed, run the
// command again. No caller of the service gets this error.
var ErrMoreLapsed = fmt.Errorf("more leases have lapsed than one change removes: %w", ErrUnavailable)

// LeaseTerms say whether the devices of a license are bound until they are removed, or take leases. The zero
// LeaseTerms have no leases.
type LeaseTerms struct {
	Length  time.Duration // of a lease, unless the device asks for another; whole seconds; 0: no leases
	Longest time.Duration // of the leases that devices ask for; whole seconds
}

// Leased reports whether devices take leases.
func (t LeaseTerms) Leased() bool { return t.Length != 0 }

// lengthFor returns the length of the lease of a device that asks for a length; 0: the device asks for none. A device
// that asks for more than the longest lease gets the longest: programs may ask for a length from before a rollout.
func (t LeaseTerms) lengthFor(asked time.Duration) time.Duration {
	return cmp.Or(min(asked, t.Longest), t.Length)
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

// KnownLeases says which devices of a license a record has besides the devices that the commands touch: of a license
// with leases, the devices whose leases end first; of any other license, the devices that were unseen for longest. The
// store sets KnownLeases.
type KnownLeases struct {
	// All: Devices has every lease of the license whose guard has passed, except leases that end at Next or later; or
	// the devices that were not seen for longest, except devices that were last seen at Next or later.
	All bool
	// Every: Devices has every device of the license, which its own record contains.
	Every bool
	// Next is the earliest such time of the devices that are not in Devices; zero: there are none.
	Next time.Time
}

// LeaseTime returns the time that decides about leases: the later of the node's clock and the license's LeaseClock.
// So a clock that is behind neither shortens a lease nor brings a lapsed one back.
func (l *License) LeaseTime(now time.Time) time.Time {
	if l.LeaseClock.After(now) {
		return l.LeaseClock
	}
	return now
}

// leaseClockAt returns the LeaseClock of a swap. A node that does not act by its clock keeps the license's LeaseClock,
// so its clock takes no lease and no device slot away.
func (r *Record) leaseClockAt(now time.Time) time.Time {
	if r.ActsByTime {
		return r.License.LeaseTime(now)
	}
	return r.License.LeaseClock
}

// guardPassed reports whether a swap with a LeaseClock may remove a lease with an end. LeaseClock is stored, so a later
// swap can't have an earlier one.
func guardPassed(end, clock time.Time) bool {
	return !end.IsZero() && !clock.Before(end.Add(LeaseGuard))
}

// leaseRuns reports whether a bound device may be used at a time: its lease, if it has one, has not lapsed.
func (d *Device) leaseRuns(at time.Time) bool { return d.LeaseEnd.IsZero() || d.LeaseEnd.After(at) }

// Lapsed reports whether the device had a lease that has ended.
func (d *Device) Lapsed(at time.Time) bool { return !d.leaseRuns(at) }

// mayUse reports whether a device is bound to the license and has no lapsed lease. A node that must not act by its
// clock counts no lease as lapsed.
func (r *Record) mayUse(device string, now time.Time) bool {
	entry := r.Devices[device]
	return entry != nil && entry.Bound && (!r.ActsByTime || entry.Device.leaseRuns(r.License.LeaseTime(now)))
}

// clockInDoubt refuses to give or renew a lease on a node that must not act by its clock: the end would be wrong by as
// much as the clock.
func (r *Record) clockInDoubt() error {
	if r.License.Lease.Leased() && !r.ActsByTime {
		return ErrClockInDoubt
	}
	return nil
}

// SearchesDevices reports whether a command needs more devices than the record knows: it may find the license full, and
// a lease may have lapsed or a device be inactive. commands is how many commands come together.
func (r *Record) SearchesDevices(c Command, commands int, now time.Time) bool {
	l := r.License
	if l == nil || r.Leases.All || !guardPassed(l.LeasesUntil, r.leaseClockAt(now)) && !r.searchesInactive(now) {
		return false
	}
	switch c := c.(type) {
	case LapseLeases:
		return true
	case Activate:
		return l.MaxDevices != 0 && l.CurrentDevices+commands > l.MaxDevices &&
			!r.mayUse(c.Device, now) && c.refusal(r, now) == nil
	}
	return false
}

// LapsedBy returns the end up to which leases may be removed now, or the time since which inactive devices are unseen.
func (r *Record) LapsedBy(now time.Time) time.Time {
	clock := r.leaseClockAt(now)
	if r.License.losesInactive() {
		return r.License.unseenSince(clock)
	}
	return clock.Add(-LeaseGuard)
}

// lapseLeases removes the leases whose guard has passed, as far as the record knows them, and sets LeasesUntil anew.
// Before LeasesUntil and its guard, no lease has lapsed.
func (r *Record) lapseLeases(now time.Time) {
	l, clock := r.License, r.leaseClockAt(now)
	if !r.Leases.All || !guardPassed(l.LeasesUntil, clock) {
		return
	}
	until := r.Leases.Next
	var lapsed []*DeviceEntry
	for _, entry := range r.Devices {
		switch end := entry.Device.LeaseEnd; {
		case !entry.Bound || end.IsZero():
		case guardPassed(end, clock):
			lapsed = append(lapsed, entry)
		default:
			until = earlierEnd(until, end)
		}
	}
	slices.SortFunc(lapsed, func(a, b *DeviceEntry) int {
		return cmp.Or(a.Device.LeaseEnd.Compare(b.Device.LeaseEnd), cmp.Compare(a.Device.ID, b.Device.ID))
	})
	l.LeasesUntil, l.LeaseClock, r.Changed = until, clock, true
	l.planEarly(now)
	for _, entry := range lapsed {
		r.unbind(entry, EventDeviceLeaseLapsed, System, now)
	}
}

// takesLapsed reports whether an activation of a full license by a device without a lease gets the slot of a lapsed
// lease: its own, or, once the guard has passed, one of another device.
func (c *Activate) takesLapsed(r *Record, now time.Time) bool {
	l := r.License
	if !l.Lease.Leased() {
		return false
	}
	clock, taken := r.leaseClockAt(now), l.CurrentDevices
	removes := r.Leases.All && guardPassed(l.LeasesUntil, clock) // as lapseLeases does
	for _, entry := range r.Devices {
		d := &entry.Device
		if entry.Bound && (d.ID == c.Device || removes && guardPassed(d.LeaseEnd, clock)) {
			taken--
		}
	}
	return taken < l.MaxDevices
}

// earlierEnd returns the earlier of two ends; zero is no end.
func earlierEnd(one, other time.Time) time.Time {
	if one.IsZero() || !other.IsZero() && other.Before(one) {
		return other
	}
	return one
}

// lease gives a device a lease, or renews the lease that it holds. Once its lease has lapsed, the device is like any
// other: it counts, and a full license refuses it. lease reports whether the device held no lease.
func (c *Activate) lease(r *Record, entry *DeviceEntry, now time.Time) (bound bool, err error) {
	l := r.License
	length := l.Lease.lengthFor(c.Lease)
	if r.mayUse(c.Device, now) {
		c.renewLease(r, entry, length, now)
		return false, nil
	}
	r.lapseLeases(now)
	taken := l.CurrentDevices
	if entry.Bound { // by its own lease, which it gives up for the new one; see takesLapsed
		taken--
	}
	if l.MaxDevices != 0 && taken >= l.MaxDevices {
		if r.Leases.All && guardPassed(l.LeasesUntil, r.leaseClockAt(now)) {
			return false, ErrMoreLapsed
		}
		r.recordLimit(c.By, now, Device{ID: c.Device, Name: c.Name, Named: c.Named})
		return false, deviceLimitReached(l)
	}
	if entry.Bound {
		r.unbind(entry, EventDeviceLeaseLapsed, System, now)
	}
	c.bind(r, entry, now, length)
	return true, nil
}

// renewal returns the new end of a renewed lease, and whether to store it. A renewal that moves the end by less than an
// eighth of the lease is not stored, so frequent renewals cause few writes. If the lease is shorter than the lease of
// the terms, the threshold is an eighth of the lease of the terms, but at most half of the lease.
func (l *License) renewal(d *Device, length time.Duration, now time.Time) (end time.Time, stored bool) {
	at := l.LeaseTime(now)
	end = l.lastsFor(length, at)
	least := min(max(length, l.Lease.Length)/renewalShare, length/2)
	return end, !d.LeaseEnd.IsZero() && at.Add(length).Sub(d.LeaseEnd) >= least && end.After(d.LeaseEnd)
}

// RenewsLease reports whether Apply would store another end of the lease of a bound device, if the device holds it.
func RenewsLease(r *Record, cmd Command, now time.Time) bool {
	var asked time.Duration
	switch c := cmd.(type) {
	case Activate:
		asked = c.Lease
	case ValidateLicense:
		asked = c.Lease
	default:
		return false
	}
	if r.License == nil || !r.Devices.bound(cmd.DeviceID()) {
		return false
	}
	length := r.License.Lease.lengthFor(asked)
	_, stored := r.License.renewal(&r.Devices[cmd.DeviceID()].Device, length, now)
	return stored
}

// renewLease moves the end of a lease that a device holds, never back.
func (c *Activate) renewLease(r *Record, entry *DeviceEntry, length time.Duration, now time.Time) {
	l, d := r.License, &entry.Device
	end, stored := l.renewal(d, length, now)
	if !stored {
		return
	}
	d.LeaseEnd = end
	l.raiseRevision(now)
	if seen := l.Reissues.seenAt(now); seen.After(d.LastSeenAt) {
		d.LastSeenAt = seen
	}
	if c.renames(d) {
		d.Name, d.Named = c.Name, true
	}
	l.LeaseClock = r.leaseClockAt(now)
	entry.Changed, r.Changed = true, true
}

// leased sets the License and the Device of a result to the license, which may have leases, and a device. It counts no
// lease that is known to have lapsed. A node that must not act by its clock knows of none.
func (r *Record) leased(result *Result, d *Device, now time.Time) {
	result.License, result.Device = *r.License, *d
	if !r.ActsByTime {
		return
	}
	at := r.License.LeaseTime(now)
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

// LeasesLapsed reports whether LapseLeases has something to do, as far as LeasesUntil says.
func (l *License) LeasesLapsed(now time.Time) bool {
	due := l.leasesDue()
	return due.Kind != 0 && !due.At.After(now)
}

// leasesDue returns when the lapsed leases of the license are to be removed.
func (l *License) leasesDue() Due {
	if l.LeasesUntil.IsZero() {
		return Due{}
	}
	return Due{Kind: DueLeases, At: l.LeasesUntil.Add(LeaseGuard)}
}

// LeasedKinds returns the kinds of work of which one may be due first on a license with leases, see License.Due.
func LeasedKinds() []DueKind { return []DueKind{DueLeases, DueLicenseNotice, DueLicenseEnd, DueTrial} }

// WholeSeconds returns a lease's length in seconds, rounded down, so that no client counts on more than it has.
func WholeSeconds(d time.Duration) int { return int(min(d/time.Second, math.MaxInt32)) }
