package licensing

import (
	"encoding/json"
	"time"
)

// Limits of devices that change.
const (
	// MaxMatchedDevices bounds the devices of a license whose devices may change: its own record holds them all.
	MaxMatchedDevices = 16
	// DefaultDeviceChanges is how many devices of a license may change in a month, unless the terms say otherwise.
	DefaultDeviceChanges = 4
)

// DeviceMatch says which unknown devices are bound devices that have changed. The zero DeviceMatch: none.
type DeviceMatch struct {
	AtLeast         int // equal components
	ChangesPerMonth int // of a license, in a calendar month of UTC
}

// matches reports whether an unknown device can be a bound device that has changed, and whether the components of
// devices are kept. The record must hold all devices.
func (r *Record) matches() bool {
	l := r.License
	return l.Match.AtLeast > 0 && !l.Lease.Leased() && l.MaxDevices > 0 && l.MaxDevices <= MaxMatchedDevices &&
		r.Leases.Every
}

// changes returns the bound device that has become the command's device; nil if there is none, if more than one can
// be meant, or if too many devices have changed this month.
func (c *Activate) changes(r *Record, now time.Time) (from *DeviceEntry) {
	if c.Components == "" || r.bound(c.Device) || !r.matches() {
		return nil
	}
	l := r.License
	for _, entry := range r.Devices {
		if !entry.Bound {
			continue
		}
		if same, _ := c.Components.compare(entry.Device.Components); same < l.Match.AtLeast {
			continue
		}
		if from != nil {
			return nil
		}
		from = entry
	}
	if from != nil && l.Changes.in(now).Count >= l.Match.ChangesPerMonth {
		return nil
	}
	return from
}

// change gives the device slot of a bound device to its new id.
func (c *Activate) change(r *Record, from, to *DeviceEntry, now time.Time) {
	previous := from.Device
	d := previous
	d.ID, d.Components = c.Device, c.Components
	if c.Named {
		d.Name, d.Named = c.Name, true
	}
	if seen := r.seenAt(now); seen.After(d.LastSeenAt) {
		d.LastSeenAt = seen
	}
	from.Device, from.Bound, from.Changed = Device{ID: previous.ID}, false, true
	to.Device, to.Bound, to.Changed, r.Changed = d, true, true, true
	l := r.License
	l.Changes = l.Changes.in(now)
	l.Changes.Count++
	l.raise(now)
	r.voidDevice(&previous, now)
	if r.Listening {
		_, differ := c.Components.compare(previous.Components)
		r.recordDevice(EventDeviceChanged, c.By, now, d, jsonMember("previous_device_id", previous.ID),
			jsonMember("changed_components", append([]string{}, differ...)))
	}
}

// jsonMember returns a member of an event's data.
func jsonMember(name string, value any) EventMember {
	text, _ := json.Marshal(value) // of texts, which can always be encoded
	return EventMember{Name: name, JSON: string(text)}
}

// dropComponents forgets the components of all devices that the record holds.
func (r *Record) dropComponents() {
	for _, entry := range r.Devices {
		if entry.Device.Components != "" {
			entry.Device.Components, entry.Changed, r.Changed = "", true, true
		}
	}
}
