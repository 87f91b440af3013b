package licensing

import "time"

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
// may give a lease, remove devices of others, take it that receipts have ended, date when a receipt key ends, or tell
// the licenses of a rollout by their time of issue.
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

// NeedsDevices reports whether commands on this license need all its devices, if its own record holds them.
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

// unseenSince returns the time since which a device must be unseen to be inactive for a swap with a stamp.
func (l *License) unseenSince(stamp time.Time) time.Time {
	return l.InactiveAfter.Before(stamp.Add(-SeenMargin))
}

// searchesInactive reports whether a full license may have an inactive device, as far as SeenFrom says, and whether
// the device slot of one device is enough for another.
func (r *Record) searchesInactive(now time.Time) bool {
	l := r.License
	if !l.losesInactive() || l.CurrentDevices > l.MaxDevices {
		return false
	}
	return !l.seenFrom().After(l.unseenSince(r.stampAt(now)))
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
	return longest != nil && !longest.Device.LastSeenAt.After(r.License.unseenSince(r.stampAt(now)))
}

// removeInactive removes the device of a full license that was not seen for longest, if it is inactive, and reports
// whether it has done so. It sets SeenFrom anew: before InactiveAfter has passed since, no device is inactive.
func (r *Record) removeInactive(now time.Time) bool {
	if !r.Leases.All || !r.searchesInactive(now) {
		return false
	}
	l, stamp := r.License, r.stampAt(now)
	longest, others := r.longestUnseen()
	l.Stamp, r.Changed = stamp, true
	if longest == nil {
		l.SeenFrom = others
		return false
	}
	if seen := longest.Device.LastSeenAt; seen.After(l.unseenSince(stamp)) {
		l.SeenFrom = earlierEnd(others, seen)
		return false
	}
	l.SeenFrom = earlierEnd(others, now)
	r.unbind(longest, EventDeviceRemoved, System, now, EventMember{Name: "reason", JSON: `"inactive"`})
	return true
}
