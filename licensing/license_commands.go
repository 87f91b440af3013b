package licensing

import (
	"cmp"
	"net/netip"
	"time"
)

// DefaultSeenStep is the age of a device's LastSeenAt at which an activation updates it: many
// activations of a bound device cause few writes.
const DefaultSeenStep = time.Minute

// Target names the license of a command, and what must hold for the caller to see the license. A
// license that does not match returns ErrLicenseNotFound, like a license that does not exist.
type Target struct {
	Key LicenseKey // without a prefix, the license is named by its id
	// Caller is the owner that the caller's API key acts for, zero for an end user. Pin is the owner
	// that the request demands. Both must match.
	Caller, Pin Owner
	By          Actor // the author, for the events
	// Network is the network of an end user's address, the zero Addr if unknown. It decides nothing about the license.
	Network netip.Addr
}

func (t Target) caller() Owner { return t.Caller }

func (t Target) network() netip.Addr { return t.Network }

// NetworkOf returns the network of the end user who has sent a command; the zero Addr if unknown.
func NetworkOf(cmd Command) netip.Addr {
	if sent, ok := cmd.(interface{ network() netip.Addr }); ok {
		return sent.network()
	}
	return netip.Addr{}
}

// CallerOf returns the owner that the caller's API key acts for. It is zero for an
// end user, and for a command that is not on a license.
func CallerOf(cmd Command) Owner {
	if asked, ok := cmd.(interface{ caller() Owner }); ok {
		return asked.caller()
	}
	return Owner{}
}

func (t *Target) license(r *Record) (*License, error) {
	l := r.License
	if l == nil || !t.Key.Names(l.Key) || !l.Owner.Matches(t.Caller) || !l.Owner.Matches(t.Pin) {
		return nil, ErrLicenseNotFound
	}
	return l, nil
}

// Activate binds a device to a license. A bound device keeps its device slot: Activate updates when it was
// last seen, and its name if the command has one, at most once in each SeenStep.
type Activate struct {
	Target
	ProductID string // the product that the license must be of, or empty
	Device    string
	Name      string
	Named     bool // false: no name was given, and a stored name stays
	Receipt   ReceiptAsk
	SeenStep  time.Duration
	Lease     time.Duration // the length of the lease that the device asks for; 0: that of the license's terms
	// Components of the device. They are kept only if the license's terms compare them, see DeviceMatch.
	Components Components
}

// DeviceID returns the device to bind.
func (c Activate) DeviceID() string { return c.Device }

func (c Activate) growth(r *Record, now time.Time) Growth {
	l, err := c.license(r)
	switch {
	case err != nil, r.mayUse(c.Device, now), l.checkKey(c.Key, false, nil, now) != nil,
		l.unusable(c.ProductID, c.changes(r, now) != nil, now) != nil:
		return NoGrowth
	case l.MaxDevices == 0:
		return OrdinaryGrowth
	case !l.full(), c.changes(r, now) != nil, r.losesDevice(now), c.takesLapsed(r, now):
		return BoundedGrowth
	}
	return NoGrowth
}

// refusal returns why the command is refused, whether the license is full or not; nil if it is not.
func (c *Activate) refusal(r *Record, now time.Time) error {
	l, err := c.license(r)
	if err != nil {
		return err
	}
	mayUse := r.mayUse(c.Device, now)
	if err := l.checkKey(c.Key, mayUse, nil, now); err != nil {
		return err
	}
	has := mayUse || c.changes(r, now) != nil // a device slot
	if unusable := l.unusable(c.ProductID, has, now); unusable != nil {
		return unusable
	}
	doubt := cmp.Or(r.clockInDoubt(), r.receiptInDoubt(c.Receipt))
	if doubt == nil && !has {
		doubt = r.seenInDoubt()
	}
	return doubt
}

func (c Activate) apply(r *Record, now time.Time) (result Result, err error) {
	if err := c.refusal(r, now); err != nil {
		return result, err
	}
	entry := r.Devices[c.Device]
	if r.License.Lease.Leased() {
		if result.Bound, err = c.lease(r, entry, now); err != nil {
			return result, err
		}
		r.leased(&result, &entry.Device, now)
	} else {
		if result.Bound, err = c.activate(r, entry, now); err != nil {
			return result, err
		}
		result.License, result.Device = *r.License, entry.Device
	}
	r.receipt(&result, c.Receipt, c.Key, now)
	return result, nil
}

// activate is apply on a license without leases. It reports whether the device was not bound. Like lease, it returns no
// Result, so that an activation does not copy one more.
func (c *Activate) activate(r *Record, entry *DeviceEntry, now time.Time) (bound bool, err error) {
	l := r.License
	if entry.Bound {
		c.refresh(r, entry, now)
		return false, nil
	}
	if from := c.changes(r, now); from != nil {
		c.change(r, from, entry, now)
		return false, nil
	}
	if l.full() && !r.removeInactive(now) {
		r.recordLimit(c.By, now, Device{ID: c.Device, Name: c.Name, Named: c.Named})
		return false, deviceLimitReached(l)
	}
	c.bind(r, entry, now, 0)
	return true, nil
}

// bind binds a device that is not bound, for the length of its lease, if there are leases. The first activation sets
// the end of the license, and with that the end of the grace, which no lease outlasts.
func (c *Activate) bind(r *Record, entry *DeviceEntry, now time.Time, lease time.Duration) {
	l, seen := r.License, r.seenAt(now)
	first := l.ActivatedAt.IsZero()
	if first {
		l.ActivatedAt = now
		if !l.Validity.IsZero() {
			l.ExpiresAt = l.Validity.AddTo(now)
			l.Validity = Period{}
		}
	}
	entry.Device = Device{ID: c.Device, Name: c.Name, Named: c.Named, BoundAt: now, LastSeenAt: seen}
	if l.Lease.Leased() {
		end := l.lastsFor(lease, l.LeaseTime(now))
		entry.Device.LeaseEnd, entry.Device.LastSeenAt = end, l.Reissues.seenAt(now)
		l.LeasesUntil, l.LeaseClock = earlierEnd(l.LeasesUntil, end), r.leaseClockAt(now)
	}
	if r.matches() {
		entry.Device.Components = c.Components
	}
	if seen.Before(l.seenFrom()) {
		l.SeenFrom = seen
	}
	entry.Bound, entry.Changed, r.Changed = true, true, true
	l.CurrentDevices++
	l.planEarly(now)
	if first {
		r.recordDevice(EventLicenseActivated, c.By, now, entry.Device)
	}
	r.recordDevice(EventDeviceBound, c.By, now, entry.Device)
}

// StoresDevice reports whether Apply would bind a device, also a device whose lease has lapsed, or store a new name of
// a device. r and now are as for Apply, growth is that of the command on the record.
func StoresDevice(r *Record, cmd Command, growth Growth, now time.Time) bool {
	c, ok := cmd.(Activate)
	if !ok || !r.mayUse(c.Device, now) {
		return ok && growth != NoGrowth
	}
	l, err := c.license(r)
	d := &r.Devices[c.Device].Device
	return err == nil && l.checkKey(c.Key, true, nil, now) == nil && l.unusable(c.ProductID, true, now) == nil &&
		c.refreshes(d, r.seenAt(now)) && (c.renames(d) || c.recomposes(r, d))
}

// refresh notes that a bound device was seen, and stores a new name and new components along with that: all at most
// once in each SeenStep. So an end user who changes the name back and forth writes no more than a device that is only
// used. A clock that is behind changes nothing. A new LastSeenAt alone makes the record Changed only if keepsSeen says
// so: else it is stored along with other changes, or by a Seen command.
func (c *Activate) refresh(r *Record, entry *DeviceEntry, now time.Time) {
	d, seen := &entry.Device, r.seenAt(now)
	kept, refreshes := r.License.keepsSeen(d, seen), c.refreshes(d, seen)
	if !refreshes && !kept {
		return
	}
	if refreshes && c.renames(d) {
		d.Name, d.Named, r.Changed = c.Name, true, true
	}
	if refreshes && c.recomposes(r, d) {
		d.Components, r.Changed = c.Components, true
	}
	r.Changed = r.Changed || kept
	d.LastSeenAt, r.Touched, entry.Changed = seen, true, true
}

// refreshes reports whether SeenStep has passed since a bound device was seen last.
func (c *Activate) refreshes(d *Device, seen time.Time) bool {
	return seen.Sub(d.LastSeenAt) >= max(c.SeenStep, time.Millisecond)
}

// renames reports whether the command has another name for a bound device.
func (c *Activate) renames(d *Device) bool { return c.Named && (!d.Named || d.Name != c.Name) }

// recomposes reports whether the command has other components for a bound device.
func (c *Activate) recomposes(r *Record, d *Device) bool {
	return c.Components != "" && c.Components != d.Components && r.matches()
}

// Seen stores when a device was last seen. It never binds a device and changes nothing else.
type Seen struct {
	Key    LicenseKey
	Device string
	At     time.Time
}

// DeviceID returns the device that was seen.
func (c Seen) DeviceID() string { return c.Device }

func (Seen) growth(*Record, time.Time) Growth { return NoGrowth }

func (c Seen) apply(r *Record, _ time.Time) (Result, error) {
	l, err := (&Target{Key: c.Key}).license(r)
	if err != nil {
		return Result{}, err
	}
	entry := r.Devices[c.Device]
	if entry.Bound && c.At.After(entry.Device.LastSeenAt) {
		entry.Device.LastSeenAt = c.At
		entry.Changed, r.Touched = true, true
	}
	return Result{License: *l, Device: entry.Device}, nil
}

// RemoveDevice unbinds a device. If the device is not bound, RemoveDevice is a no-op. It is allowed in
// every state.
type RemoveDevice struct {
	Target
	Device string
}

// DeviceID returns the device to remove.
func (c RemoveDevice) DeviceID() string { return c.Device }

func (RemoveDevice) growth(*Record, time.Time) Growth { return NoGrowth }

func (c RemoveDevice) apply(r *Record, now time.Time) (Result, error) {
	if _, err := c.license(r); err != nil {
		return Result{}, err
	}
	entry := r.Devices[c.Device]
	var result Result
	if !entry.Bound {
		r.leased(&result, &Device{ID: c.Device}, now)
		return result, nil
	}
	mayUse, event := r.mayUse(c.Device, now), EventDeviceRemoved
	if !mayUse {
		event = EventDeviceLeaseLapsed
	}
	removed := r.unbind(entry, event, c.By, now)
	r.leased(&result, &entry.Device, now)
	result.Device, result.Removed = removed, mayUse
	return result, nil
}

// unbind removes a bound device, and records the event of that.
func (r *Record) unbind(
	entry *DeviceEntry, event EventType, by Actor, now time.Time, members ...EventMember,
) Device {
	l, removed := r.License, entry.Device
	entry.Device = Device{ID: removed.ID}
	entry.Bound, entry.Changed, r.Changed = false, true, true
	l.CurrentDevices--
	l.raiseRevision(now)
	r.voidDevice(&removed, now)
	if l.CurrentDevices <= l.MaxDevices {
		l.AllowedOver = 0
	}
	if l.CurrentDevices == 0 {
		l.LeasesUntil = time.Time{}
	}
	r.recordDevice(event, by, now, removed, members...)
	return removed
}
