package licensing

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
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

// Limits of the components of a device.
const (
	MaxComponents    = 8
	MaxComponentName = 32
	// componentHash is how many bytes of a component's SHA-256 are kept: enough to tell the components of at most 16
	// devices apart, and too few to be worth a search for the text behind the hash.
	componentHash = 8
)

// Components are the parts of a device that a program has named in its activation, each with the beginning of its hash:
// for each, by name, the length of the name in a byte, the name, and the bytes of the hash.
type Components string

// ValidComponentName reports whether a text can name a component: [a-z0-9._-]{1,32}.
func ValidComponentName(name string) bool {
	return name != "" && len(name) <= MaxComponentName &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

// NewComponents returns components by their names and SHA-256 hashes in hex; false if one of them is malformed, or
// there are too many.
func NewComponents(hashes map[string]string) (Components, bool) {
	if len(hashes) > MaxComponents {
		return "", false
	}
	names := make([]string, 0, len(hashes))
	for name := range hashes {
		names = append(names, name)
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		hash, err := hex.DecodeString(hashes[name])
		if err != nil || len(hash) != 32 || !ValidComponentName(name) {
			return "", false
		}
		all = append(append(append(all, byte(len(name))), name...), hash[:componentHash]...)
	}
	return Components(all), true
}

// next returns the first component, and the rest; false if there is none, or it is malformed.
func (c Components) next() (name, hash string, rest Components, ok bool) {
	if c == "" || len(c) < 1+int(c[0])+componentHash {
		return "", "", "", false
	}
	end := 1 + int(c[0])
	return string(c[1:end]), string(c[end : end+componentHash]), c[end+componentHash:], true
}

// Valid reports whether the components are in the form of NewComponents.
func (c Components) Valid() bool {
	before := ""
	for count := 0; c != ""; count++ {
		name, _, rest, ok := c.next()
		if !ok || count == MaxComponents || name <= before || !ValidComponentName(name) {
			return false
		}
		before, c = name, rest
	}
	return true
}

// Names returns the names of the components, in order.
func (c Components) Names() (names []string) {
	for {
		name, _, rest, ok := c.next()
		if !ok {
			return names
		}
		names, c = append(names, name), rest
	}
}

// compare returns how many components two devices share, and the names of the components in which they differ.
func (c Components) compare(other Components) (same int, differ []string) {
	for c != "" || other != "" {
		name, hash, rest, ok := c.next()
		otherName, otherHash, otherRest, otherOK := other.next()
		if !ok && !otherOK {
			break
		}
		order := cmp.Compare(name, otherName)
		switch {
		case ok && (!otherOK || order < 0):
			differ, c = append(differ, name), rest
		case !ok || order > 0:
			differ, other = append(differ, otherName), otherRest
		default:
			if hash == otherHash {
				same++
			} else {
				differ = append(differ, name)
			}
			c, other = rest, otherRest
		}
	}
	return same, differ
}
