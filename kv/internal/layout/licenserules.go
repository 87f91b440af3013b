package layout

import "cmp"

// NotCounted is the number of a license's devices with keys of their own if the caller has not counted them.
const NotCounted = -1

// EachBrokenRule calls broken with each rule that a stored license breaks and with a description. own is the number of
// devices with keys of their own, or NotCounted. EachBrokenRule is cheap enough for every request: it allocates nothing
// unless a rule is broken.
func (s *License) EachBrokenRule(own int, broken func(rule, format string, args ...any)) {
	l, inline := &s.License, len(s.Devices)
	if l.CurrentDevices < 0 || l.MaxDevices < 0 || l.AllowedOver < 0 {
		broken("negative", "it counts %d devices of %d, and %d allowed beyond", l.CurrentDevices, l.MaxDevices,
			l.AllowedOver)
		return
	}
	if (l.Revision == 0) != (l.ReceiptsUntil == 0) {
		broken("receipts", "its revision is %d, and receipts may be valid until day %d", l.Revision, l.ReceiptsUntil)
	}
	devices := inline
	switch {
	case s.Spilled:
		if devices = own; inline > 0 {
			broken("spilled", "its devices have keys of their own, and %d are in its record too", inline)
		}
	case own > 0:
		broken("spilled", "its devices are in its record, and %d have keys of their own too", own)
	}
	if inline > MaxInline {
		broken("inline_limit", "%d devices are in its record, and %d is the most", inline, MaxInline)
	}
	if devices != NotCounted && l.CurrentDevices != devices {
		broken("device_count", "it counts %d devices, and there are %d", l.CurrentDevices, devices)
	}
	if most := max(l.MaxDevices, l.AllowedOver); l.MaxDevices > 0 && l.CurrentDevices > most {
		broken("device_limit", "it counts %d devices, and %d are allowed", l.CurrentDevices, most)
	}
}

// BrokenRule returns the first rule that a stored license breaks, by what its own key has; empty if it breaks none.
func (s *License) BrokenRule() (first string) {
	s.EachBrokenRule(NotCounted, func(rule, _ string, _ ...any) { first = cmp.Or(first, rule) })
	return first
}
