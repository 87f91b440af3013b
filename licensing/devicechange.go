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
	// MaxMatchedDevices bounds the devices of a license whose devices may change: its own record contains them all.
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
// devices are kept. The record must have all devices.
func (r *Record) matches() bool {
	l := r.License
	return l.Match.AtLeast > 0 && !l.Lease.Leased() && l.MaxDevices > 0 && l.MaxDevices <= MaxMatchedDevices &&
		r.Leases.Every
}

// changes returns the bound device that has become the command's device; nil if there is none, if more than one can
// be meant, or if too many devices have changed this month.
func (c *Activate) changes(r *Record, now time.Time) (from *DeviceEntry) {
	if c.Components == "" || r.Devices.bound(c.Device) || !r.matches() {
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
	l.raiseRevision(now)
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

// dropComponents forgets the components of all devices that the record contains.
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

// Limits of the removal of inactive devices.
const (
	// MinInactive is the shortest time after which a device may be inactive.
	MinInactive = 24 * time.Hour
	// MaxInactiveDevices bounds the devices of a license that loses inactive devices, since a search reads them all.
	MaxInactiveDevices = MaxLeasedDevices
	// SeenMargin is how much longer than the terms say a device must be unseen: the stored time may be that late.
	SeenMargin = time.Hour
	// seenKept is the age of a stored LastSeenAt at which an activation is answered only once the new time is stored.
	// It is less than SeenMargin by more than twice the difference that clocks of nodes may have.
	seenKept = SeenMargin - time.Minute
)

// ActsByTime reports whether commands of this license remove devices of others by time, see Record.ActsByTime.
func (l *License) ActsByTime() bool { return l.Lease.Leased() || l.losesInactive() }

// NeedsClock reports whether a command needs to know whether the node may act by its clock, see Record.ActsByTime: it
// may give a lease, remove devices of others, decide that receipts have ended or when a receipt key ends, or select the
// licenses of a rollout by their time of issue.
func (r *Record) NeedsClock(c Command) bool {
	if l := r.License; l != nil {
		return l.ActsByTime() || l.ReceiptsUntil != 0
	}
	switch c.(type) {
	case StartTrial, RotateReceiptKeys, BeginRollout:
		return true
	}
	return false
}

// NeedsDevices reports whether commands on this license need all its devices, if its own record has them.
func (l *License) NeedsDevices() bool { return l.ActsByTime() || l.Match.AtLeast > 0 }

// losesInactive reports whether activations of the full license remove inactive devices.
func (l *License) losesInactive() bool {
	return !l.InactiveAfter.IsZero() && !l.Lease.Leased() && l.MaxDevices > 0 && l.MaxDevices <= MaxInactiveDevices
}

// seenAt returns the time at which a device is seen now. A node that must not act by its clock takes the latest of the
// nodes' clocks for a license that loses inactive devices: any of the clocks may be right, and a time that is too early
// would let the device be removed too early.
func (r *Record) seenAt(now time.Time) time.Time {
	if r.ActsByTime || !r.License.losesInactive() {
		return now
	}
	return now.Add(max(r.Behind, 0))
}

// seenInDoubt refuses to bind a device of a license that loses inactive devices on a node that must not act by its
// clock, and knows no other clock. A bound device goes on: the node stores no earlier time for it.
func (r *Record) seenInDoubt() error {
	if r.License.losesInactive() && !r.ActsByTime && r.Behind < 0 {
		return ErrClockInDoubt
	}
	return nil
}

// keepsSeen reports whether an activation or validation of a bound device is answered only once its time is stored.
// Without that, a device could be removed although it was seen: other times are stored later, and may be lost.
func (l *License) keepsSeen(d *Device, now time.Time) bool {
	return l.losesInactive() && now.Sub(d.LastSeenAt) >= seenKept
}

// StoresSeen reports whether Apply would store when a bound device was seen before it answers a command that nothing
// else refuses.
func StoresSeen(r *Record, cmd Command, now time.Time) bool {
	switch cmd.(type) {
	case Activate, ValidateLicense:
		entry := r.Devices[cmd.DeviceID()]
		return r.License != nil && entry != nil && entry.Bound && r.License.keepsSeen(&entry.Device, r.seenAt(now))
	}
	return false
}

// unseenSince returns the cutoff of inactivity for a swap with a LeaseClock: a device not seen since is inactive.
func (l *License) unseenSince(clock time.Time) time.Time {
	return l.InactiveAfter.Before(clock.Add(-SeenMargin))
}

// searchesInactive reports whether a full license may have an inactive device, as far as SeenFrom says, and whether
// removing one device would make room for a new one.
func (r *Record) searchesInactive(now time.Time) bool {
	l := r.License
	if !l.losesInactive() || l.CurrentDevices > l.MaxDevices {
		return false
	}
	return !l.seenFrom().After(l.unseenSince(r.leaseClockAt(now)))
}

// seenFrom returns a time before which no bound device was last seen.
func (l *License) seenFrom() time.Time {
	if l.SeenFrom.IsZero() {
		return l.CreatedAt
	}
	return l.SeenFrom
}

// longestUnseen returns the bound device that was not seen for longest, of those in the record, and the earliest time
// at which any other device was last seen.
func (r *Record) longestUnseen() (longest *DeviceEntry, others time.Time) {
	others = r.Leases.Next
	for _, entry := range r.Devices {
		d := &entry.Device
		switch {
		case !entry.Bound:
		case longest == nil:
			longest = entry
		case d.LastSeenAt.Before(longest.Device.LastSeenAt),
			d.LastSeenAt.Equal(longest.Device.LastSeenAt) && d.ID < longest.Device.ID:
			others = earlierEnd(others, longest.Device.LastSeenAt)
			longest = entry
		default:
			others = earlierEnd(others, d.LastSeenAt)
		}
	}
	return longest, others
}

// losesDevice reports whether an activation of a full license removes an inactive device.
func (r *Record) losesDevice(now time.Time) bool {
	if !r.Leases.All || !r.searchesInactive(now) {
		return false
	}
	longest, _ := r.longestUnseen()
	return longest != nil && !longest.Device.LastSeenAt.After(r.License.unseenSince(r.leaseClockAt(now)))
}

// removeInactive removes the device of a full license that was not seen for longest, if it is inactive, and reports
// whether it has done so. It sets SeenFrom anew: before InactiveAfter has passed since, no device is inactive.
func (r *Record) removeInactive(now time.Time) bool {
	if !r.Leases.All || !r.searchesInactive(now) {
		return false
	}
	l, clock := r.License, r.leaseClockAt(now)
	longest, others := r.longestUnseen()
	l.LeaseClock, r.Changed = clock, true
	if longest == nil {
		l.SeenFrom = others
		return false
	}
	if seen := longest.Device.LastSeenAt; seen.After(l.unseenSince(clock)) {
		l.SeenFrom = earlierEnd(others, seen)
		return false
	}
	l.SeenFrom = earlierEnd(others, now)
	r.unbind(longest, EventDeviceRemoved, System, now, EventMember{Name: "reason", JSON: `"inactive"`})
	return true
}
