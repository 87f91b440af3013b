package licensing

import "time"

// DefaultSeenStep is how old a device's LastSeenAt gets before a new
// activation moves it: a storm of re-activations is no storm of writes.
const DefaultSeenStep = time.Minute

// Target says which license a command means, and what must hold for the
// caller to see it at all. A license that does not match answers
// ErrLicenseNotFound, the same as one that does not exist.
type Target struct {
	Key LicenseKey
	// Caller is the owner that the caller's API key acts for, zero for an end
	// user; Pin is what the request demands. Both must match.
	Caller, Pin Owner
	By          Actor // who asks, for the events
}

func (t Target) caller() Owner { return t.Caller }

// CallerOf returns the owner that the caller's API key acts for. It is zero for an
// end user, and for a command that is not on a license.
func CallerOf(cmd Command) Owner {
	if asked, ok := cmd.(interface{ caller() Owner }); ok {
		return asked.caller()
	}
	return Owner{}
}

func (t Target) license(r *Record) (*License, error) {
	l := r.License
	if l == nil || l.Key != t.Key || !l.Owner.Matches(t.Caller) || !l.Owner.Matches(t.Pin) {
		return nil, ErrLicenseNotFound
	}
	return l, nil
}

// Activate binds a device to a license. A device that is bound already keeps
// its slot; it is seen again, and takes the new name if one is given.
type Activate struct {
	Target
	ProductID string // demanded product, or empty
	Device    string
	Name      string
	Named     bool // false: Name was not given, and a name already stored stays
	SeenStep  time.Duration
}

// DeviceID names the device to bind.
func (c Activate) DeviceID() string { return c.Device }

func (c Activate) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	if unusable := l.unusable(c.ProductID, now); unusable != nil {
		return Result{}, unusable
	}
	entry := r.Devices[c.Device]
	if entry.Bound {
		c.refresh(r, entry, now)
		return Result{License: *l, Device: entry.Device}, nil
	}
	if l.MaxDevices != 0 && l.CurrentDevices >= l.MaxDevices {
		r.tellLimit(c.By, now, Device{ID: c.Device, Name: c.Name, Named: c.Named})
		return Result{}, deviceLimitReached(l)
	}
	entry.Device = Device{ID: c.Device, Name: c.Name, Named: c.Named, BoundAt: now, LastSeenAt: now}
	entry.Bound, entry.Changed, r.Changed = true, true, true
	l.CurrentDevices++
	if l.ActivatedAt.IsZero() {
		l.ActivatedAt = now
		if !l.Validity.IsZero() {
			l.ExpiresAt = l.Validity.AddTo(now)
			l.Validity = Period{}
		}
		r.tellDevice(EventLicenseActivated, c.By, now, entry.Device)
	}
	r.tellDevice(EventDeviceBound, c.By, now, entry.Device)
	return Result{License: *l, Device: entry.Device, Bound: true}, nil
}

// refresh notes that a bound device was seen. A clock that runs behind never
// moves LastSeenAt back. Having been seen does not make the record Changed: it
// is stored along with other changes, or by a Seen of its own.
func (c Activate) refresh(r *Record, entry *DeviceEntry, now time.Time) {
	d := &entry.Device
	renamed := c.Named && (!d.Named || d.Name != c.Name)
	seen := now.Sub(d.LastSeenAt) >= max(c.SeenStep, time.Millisecond)
	if !renamed && !seen {
		return
	}
	if renamed {
		d.Name, d.Named, r.Changed = c.Name, true, true
	}
	if now.After(d.LastSeenAt) {
		d.LastSeenAt, r.Touched = now, true
	}
	entry.Changed = true
}

// Seen stores that a device was seen. It never binds a device, and changes
// nothing but the moment.
type Seen struct {
	Key    LicenseKey
	Device string
	At     time.Time
}

// DeviceID names the device that was seen.
func (c Seen) DeviceID() string { return c.Device }

func (c Seen) apply(r *Record, _ time.Time) (Result, error) {
	l, err := Target{Key: c.Key}.license(r)
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

// RemoveDevice frees a device's slot. Removing one that is not bound changes
// nothing and is no error. It is allowed in every state.
type RemoveDevice struct {
	Target
	Device string
}

// DeviceID names the device to remove.
func (c RemoveDevice) DeviceID() string { return c.Device }

func (c RemoveDevice) apply(r *Record, now time.Time) (Result, error) {
	l, err := c.license(r)
	if err != nil {
		return Result{}, err
	}
	entry := r.Devices[c.Device]
	if !entry.Bound {
		return Result{License: *l, Device: Device{ID: c.Device}}, nil
	}
	removed := entry.Device
	entry.Device = Device{ID: c.Device}
	entry.Bound, entry.Changed, r.Changed = false, true, true
	l.CurrentDevices--
	if l.CurrentDevices <= l.MaxDevices {
		l.AllowedOver = 0
	}
	r.tellDevice(EventDeviceRemoved, c.By, now, removed)
	return Result{License: *l, Device: removed, Removed: true}, nil
}
