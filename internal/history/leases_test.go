package history

import (
	"cmp"
	"context"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"licet/licensing"
	"licet/node/store"
)

// leasePool bounds the devices of a license with leases that the model has.
const leasePool = 6

// leaseGuard is how long a lapsed lease keeps its slot, in milliseconds.
const leaseGuard = 5000

// lateClock is by how much a clock can be ahead of its time at the call when a command without an answer is run.
const lateClock = int64(time.Hour / time.Millisecond)

// leases are the leases of a license by the rules alone. What the answers do not show is a span.
type leases struct {
	length     int64           // milliseconds; 0: devices are bound until they are removed
	longest    int64           // that a device may ask for
	ends       [leasePool]span // of the devices that have an entry
	seen       [leasePool]span // when these leases were given, or last renewed and stored, by the clock of a node
	leaseClock span            // as of licensing.License.LeaseClock
}

// lengthFor returns the length of the lease of a device that asks for a length; 0: it asks for none.
func (l *leases) lengthFor(asked int64) int64 { return cmp.Or(min(asked, l.longest), l.length) }

// leaseOut is the lease in an accepted answer.
type leaseOut struct {
	End, Left int64 `json:",omitempty"` // Left is from the time by which the node decided; 0: there is no lease
	Seen      int64 `json:",omitempty"` // when the device was last seen, as stored
}

func leaseOf(result *licensing.Result) (l leaseOut) {
	if result.LeaseLeft > 0 {
		l = leaseOut{milli(result.Device.LeaseEnd), result.LeaseLeft.Milliseconds(), milli(result.Device.LastSeenAt)}
	}
	return l
}

// ofLeases reports whether a question to a license with leases depends on them.
func (s state) ofLeases(in input) bool {
	switch in.Action {
	case activate, validate, remove, get:
		return s.exists && s.leases.length != 0
	}
	return false
}

// stepLeases is step for a license with leases.
func (s state) stepLeases(in input, out output) []state {
	at := span{max(out.Clock.from, s.leases.leaseClock.from), max(out.Clock.to, s.leases.leaseClock.to)}
	lost := out.Verdict == unknown
	if lost {
		at.to += lateClock
	}
	if l := out.Lease; l.Left > 0 {
		if decided := l.End - l.Left; decided < at.from || decided > at.to {
			return nil
		} else {
			at = span{decided, decided}
		}
	}
	bit := uint64(1) << in.Device
	bound, end := s.devices&bit != 0, s.leases.ends[in.Device]
	mayHold, mayNot := bound && end.to > at.from, !bound || end.from <= at.to
	var states []state
	leads := func(n state, reason, invalid licensing.Reason, removed bool) {
		switch {
		case lost:
			states = append(states, n)
		case (reason == "") == (out.Verdict == accepted) && reason == out.Reason && invalid == out.Invalid &&
			removed == out.Removed:
			if n, fits := n.fitsLeases(in, out, at); fits {
				states = append(states, n)
			}
		}
	}
	switch in.Action {
	case get:
		if !s.shows(out.Devices, at) || out.Facts.Current != bits.OnesCount64(out.Devices) {
			return nil
		}
		leads(s, "", "", false)
	case remove:
		n := s
		n.devices &^= bit
		for _, held := range times(mayHold, mayNot) {
			why, may := s.refusesKey(in, held), true
			if why == licensing.ReasonLicenseKeyReplaced && held {
				var mayNot bool
				if may, mayNot = s.givesBack(in); mayNot {
					leads(s, why, "", false)
				}
				why = ""
			}
			switch {
			case why != "":
				leads(s, why, "", false)
			case may:
				leads(n, "", "", held)
			}
		}
	case validate, activate:
		refused := func(held bool) bool {
			switch why := s.refusesKey(in, held); {
			case why == "":
				return false
			case in.Action == validate && why == licensing.ReasonLicenseKeyReplaced:
				leads(s, "", why, false)
			default:
				leads(s, why, "", false)
			}
			return true
		}
		if mayHold && !refused(true) {
			for _, n := range s.renewals(in, out, at, end) {
				leads(n, "", "", false)
			}
		}
		switch {
		case !mayNot || refused(false):
		case in.Action == validate:
			leads(s, "", licensing.NotBound, false)
		default:
			least, most := s.counted(at, leaseGuard, s.devices&^bit)
			if least < s.max {
				leads(s.leased(in, at, out), "", "", false)
			}
			if most >= s.max {
				n := s // lapsed leases may have gone, which shows by the lease clock only
				n.leases.leaseClock.to = max(n.leases.leaseClock.to, at.to)
				leads(n, licensing.ReasonDeviceLimitReached, "", false)
			}
		}
	}
	return states
}

// counted returns how many of some devices have leases that end later than a time less a guard.
func (s state) counted(at span, guard int64, devices uint64) (least, most int) {
	for ; devices != 0; devices &= devices - 1 {
		end := s.leases.ends[bits.TrailingZeros64(devices)]
		if end.from+guard > at.to {
			least++
		}
		if end.to+guard > at.from {
			most++
		}
	}
	return least, most
}

// shows reports whether a look may show these devices: those with leases.
func (s state) shows(devices uint64, at span) bool {
	if devices&^s.devices != 0 {
		return false
	}
	for left := s.devices; left != 0; left &= left - 1 {
		end, bit := s.leases.ends[bits.TrailingZeros64(left)], left&-left
		if devices&bit == 0 && end.from > at.to || devices&bit != 0 && end.to <= at.from {
			return false
		}
	}
	return true
}

// latest returns the latest time by which the node can have run a question.
func (out output) latest() int64 {
	if out.Verdict == unknown {
		return out.Clock.to + lateClock
	}
	return out.Clock.to
}

// refusesKey returns why the license refuses the key that a question presents; empty if it does not.
func (s state) refusesKey(in input, held bool) licensing.Reason {
	if !in.presents() {
		return ""
	}
	return s.replaced(in.Number, held)
}

// givesBack reports whether a key that a reissue has replaced may give back the lease of a device, and whether it may
// not: it does if the device could still use the key when the lease was given or last renewed.
func (s state) givesBack(in input) (may, mayNot bool) {
	seen := s.leases.seen[in.Device]
	may = true
	for n, k := range s.keys[:s.reissues()] {
		if n >= s.position(in.Number) && !k.overlap {
			may, mayNot = may && seen.from <= k.at.to, mayNot || seen.to > k.at.from
		}
	}
	return may, mayNot
}

// times lists true and false, each if it may be so.
func times(may, mayNot bool) (list []bool) {
	if may {
		list = append(list, true)
	}
	if mayNot {
		list = append(list, false)
	}
	return list
}

// renewals lists what becomes of a lease that is held: it moves by an eighth of its length at least, or stays. Of a
// lease that is shorter than the license's, an eighth of the license's counts, up to half of the lease.
func (s state) renewals(in input, out output, at, end span) (list []state) {
	length := s.leases.lengthFor(in.Lease)
	step := min(max(length, s.leases.length)/8, length/2)
	if at.to+length-end.from >= step {
		moved := s
		moved.leases.ends[in.Device] = span{at.from + length, at.to + length}
		moved.leases.leaseClock = at
		seen := &moved.leases.seen[in.Device]
		now := s.seenNow(out)
		*seen = span{max(seen.from, now.from), max(seen.to, now.to)}
		list = append(list, moved)
	}
	if least := at.from + length - step + 1; end.to >= least {
		same := s
		same.leases.ends[in.Device].from = max(end.from, least)
		list = append(list, same)
	}
	return list
}

// seenNow returns when a lease counts as given or renewed: by the clock of the node, and after the latest reissue.
func (s state) seenNow(out output) span {
	now := span{out.Clock.from, out.latest()}
	if n := s.reissues(); n > 0 {
		at := s.keys[n-1].at
		now.from = max(now.from, at.from+1)
		switch {
		case at.to < forever:
			now.to = max(now.to, at.to+1)
		default: // the outcome of the reissue is unknown, and the answer may show when it was
			now.to = max(now.to, now.from, out.Lease.Seen)
		}
	}
	return now
}

// TestSeenAfterLostReissue: a lease counts as given after the latest reissue. If the outcome of the reissue is unknown,
// its time is open, and an answer may show a later one, also by a clock that is behind the clock of the reissue.
func TestSeenAfterLostReissue(t *testing.T) {
	s := state{exists: true}
	s.keys[0] = key{number: 1, at: span{noon, forever}}
	out := output{Clock: span{noon - 10, noon - 5}, Lease: leaseOut{Seen: noon + 7}}
	if got, want := s.seenNow(out), (span{noon + 1, noon + 7}); got != want {
		t.Errorf("seen %+v, want %+v", got, want)
	}
	s.keys[0].at.to = noon
	if got, want := s.seenNow(out), (span{noon + 1, noon + 1}); got != want {
		t.Errorf("seen %+v, want %+v", got, want)
	}
}

// leased gives a new lease to a device.
func (s state) leased(in input, at span, out output) state {
	length := s.leases.lengthFor(in.Lease)
	s.devices |= 1 << in.Device
	s.leases.ends[in.Device] = span{at.from + length, at.to + length}
	s.leases.seen[in.Device] = s.seenNow(out)
	s.leases.leaseClock = at
	if s.activated == (span{}) {
		s.activated = out.Clock
		if out.Verdict == unknown {
			s.activated.to = forever
		}
	}
	return s
}

// fitsLeases reports whether the facts of an answer agree with the state after it, and returns the state that the
// answer may narrow.
func (s state) fitsLeases(in input, out output, at span) (state, bool) {
	f := out.Facts
	guard := int64(0)
	switch out.Reason {
	case "":
	case licensing.ReasonDeviceLimitReached:
		guard = leaseGuard
	default: // of the key
		return s, true
	}
	least, most := s.counted(at, guard, s.devices)
	if f.Max != s.max || f.Current < least || f.Current > most {
		return s, false
	}
	if out.Reason != "" {
		return s, true
	}
	if takes := in.Action == activate || in.Action == validate && out.Invalid == ""; takes {
		end := &s.leases.ends[in.Device]
		if out.Lease.Left <= 0 || out.Lease.End < end.from || out.Lease.End > end.to {
			return s, false
		}
		*end = span{out.Lease.End, out.Lease.End}
		seen := &s.leases.seen[in.Device]
		if at := out.Lease.Seen; at != 0 {
			if at < seen.from || at > seen.to {
				return s, false
			}
			*seen = span{at, at}
		}
	}
	if f.Activated != 0 {
		if f.Activated < s.activated.from || f.Activated > s.activated.to {
			return s, false
		}
		s.activated = span{f.Activated, f.Activated}
	}
	return s, f.Activated == s.activated.from && f.Expires == s.expires && f.Reissues == s.reissues() && !f.Revoked &&
		!f.Suspended
}

// modeled reports whether the model has the license: it has no sweeps of leases, and no times of the devices of large
// licenses.
func (l *license) modeled() bool {
	return (l.lease == 0 || !l.swept) && (!l.inactive || len(l.devices) <= leasePool)
}

// sweeps reports whether sweeps may remove leases of a license.
func (r *run) sweeps(ref licensing.Ref) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.licenses {
		if licensing.LicenseRef(l.key) == ref {
			return l.swept
		}
	}
	return false
}

// floatingPlans are the licenses with leases. Clocks are apart by minutes, so leases lapse when another node comes.
func floatingPlans() []plan {
	odds := []odd{{8, activate}, {3, validate}, {2, remove}, {1, get}}
	const length = 4 * time.Minute
	return []plan{
		{name: "floating", max: 2, pool: 4, clients: 5, each: 20, lease: length, odds: odds},
		{name: "floating, one slot", max: 1, pool: 3, clients: 4, each: 20, lease: length, odds: odds},
		{name: "floating, long leases", max: 3, pool: 5, clients: 5, each: 20, lease: 4 * length, odds: odds},
		{name: "floating, for days", max: 3, pool: 4, clients: 5, each: 20, lease: 24 * time.Hour,
			odds: []odd{{8, activate}, {3, validate}, {4, remove}, {1, get}}}, // their receipts outlast the run
		{name: "floating, reissued", max: 3, pool: 3, clients: 4, each: 4 * licensing.MaxReissues, lease: length,
			reissues: true, odds: odds},
		{name: "floating, swept", max: 2, pool: 5, clients: 6, each: 20, lease: length, swept: true, odds: odds},
		{name: "floating, spilled", max: 18, bound: 18, pool: 24, clients: 6, each: 20, lease: length, swept: true,
			odds: odds},
		{name: "floating, spilling", max: 20, bound: 15, pool: 24, clients: 6, each: 20, lease: length, swept: true,
			odds: odds},
	}
}

// givingBack is a question of the client that reissues a license with leases again and again: its device takes a lease,
// the license gets another key, with which the device may renew the lease, and the device gives the lease back with the
// key before.
func (l *license) givingBack(random *rand.Rand) input {
	in := input{Key: l.key, Action: activate, Number: l.latest[0]}
	switch l.turn++; l.turn % 4 {
	case 2:
		in.Action, in.Number = reissue, int(l.newest.Add(1))
		in.Overlap = random.IntN(4) == 0
	case 3:
		in.Lease = 2 * l.lease.Milliseconds() // so that a renewal is stored
		if random.IntN(2) == 0 {
			in = input{Key: l.key, Action: get}
		}
	case 0:
		in.Action, in.ByUser, in.Number = remove, true, l.latest[1]
	}
	return in
}

// leases: the end of a lease never moves back, nor does the lease clock. An entry goes only if an operation removes it,
// or if the swap's lease clock is at least its end plus the guard; see also changes. A device that comes again after
// its lease has lapsed gets another entry. No lease ends before the bound.
func (i *inspection) leases(key licensing.LicenseKey, states []*licenseAt) {
	var before *licenseAt
	for _, s := range states {
		if !s.leased {
			return
		}
		for id, end := range s.ends {
			if end < s.leasesUntil || s.leasesUntil == 0 {
				i.add("leases", "%s: the lease of %s ends at %d, before %d: %s", key, id, end, s.leasesUntil, s)
			}
			if before != nil && before.devices[id] == s.devices[id] && end < before.ends[id] {
				i.add("leases", "%s: the end of %s moved from %d to %d: %s", key, id, before.ends[id], end, s)
			}
		}
		if len(s.ends) != len(s.devices) {
			i.add("leases", "%s: %d of %d devices have leases: %s", key, len(s.ends), len(s.devices), s)
		}
		if before != nil && s.leaseClock < before.leaseClock {
			i.add("leases", "%s: the lease clock went from %d to %d: %s", key, before.leaseClock, s.leaseClock, s)
		}
		before = s
	}
}

// lapsed reports whether a device's entry may go in a revision although no operation removes it, or may be replaced
// because the device comes again: its lease has lapsed, or the device is inactive.
func (before *licenseAt) lapsed(id string, s *licenseAt) (may, again bool) {
	if s.inactiveAfter != 0 {
		inactive := s.leaseClock >= before.seen[id]+s.inactiveAfter+seenMargin
		return inactive, inactive
	}
	end := before.ends[id]
	return s.leased && s.leaseClock >= end+leaseGuard, s.leased && s.leaseClock >= end
}

// TestModelOfLeases shows the model small histories of a license with leases of ten minutes.
func TestModelOfLeases(t *testing.T) {
	const minute, length = int64(60_000), int64(600_000)
	type history = []porcupine.Operation
	floats := func(limit int) porcupine.Operation {
		return at(0, 0, input{Action: create, Max: limit, Lease: length}, output{Verdict: accepted})
	}
	// after is an answer by clocks at a time after noon; with a lease, the node decided at the earlier time.
	after := func(out output, from, to, end int64) output {
		out.Clock = span{noon + from, noon + to}
		if end != 0 {
			out.Lease = leaseOut{End: noon + end, Left: end - from}
		}
		return out
	}
	lease := func(current, limit int, from, end int64) output { return after(ok(current, limit), from, from, end) }
	first := at(1, 2, bind(0), lease(1, 1, 0, length))
	gone := length + leaseGuard
	reissuedOf := func(limit, current int, from int64) porcupine.Operation {
		out := after(keys(ok(current, limit), 1), from, from, 0)
		out.Reissued = noon + from
		return at(3, 4, renewed(1, false), out)
	}
	reissued := func(from int64) porcupine.Operation { return reissuedOf(1, 1, from) }
	rolls := func(length, longest int64) porcupine.Operation {
		return at(3, 4, input{Action: roll, Max: 1, Lease: length, Longest: longest},
			output{Verdict: accepted, Later: true})
	}
	givesBack := input{Action: remove, ByUser: true}
	later := func(f *facts) { f.Activated = noon + minute }
	for _, c := range []struct {
		name  string
		right bool
		ops   history
	}{
		{"a lease", true, history{floats(1), first}},
		{"a shorter lease", false, history{floats(1), at(1, 2, bind(0), lease(1, 1, 0, length-1))}},
		{"full", true, history{floats(1), first, at(3, 4, bind(1), after(full(1, 1), minute, minute, 0))}},
		{"above the limit", false, history{floats(1), first, at(3, 4, bind(1), lease(2, 1, minute, minute+length))}},
		{"renewed", true, history{floats(1), first, at(3, 4, bind(0), lease(1, 1, 2*minute, 2*minute+length))}},
		{"renewed too early", false, history{floats(1), first, at(3, 4, bind(0), lease(1, 1, minute, minute+length))}},
		{"as it was", true, history{floats(1), first, at(3, 4, bind(0), lease(1, 1, minute, length))}},
		{"not renewed", false, history{floats(1), first, at(3, 4, bind(0), lease(1, 1, 2*minute, length))}},
		{"renewed by a validation", true, history{floats(1), first, at(3, 4, valid(0),
			lease(1, 1, 2*minute, 2*minute+length))}},
		{"moved back", false, history{floats(1), first,
			at(3, 4, input{Action: activate, Lease: 2 * length}, lease(1, 1, minute, minute+2*length)),
			at(5, 6, bind(0), lease(1, 1, 4*minute, 4*minute+length))}},
		{"a slow clock", true, history{floats(2), at(1, 2, bind(0), lease(1, 2, 0, length)),
			at(3, 4, bind(1), after(ok(2, 2), 0, 0, length).with(func(f *facts) { f.Activated = noon }))}},
		{"a slot within the guard", false, history{floats(1), first,
			at(3, 4, bind(1), lease(1, 1, gone-1, gone-1+length))}},
		{"full within the guard", true, history{floats(1), first,
			at(3, 4, bind(1), after(full(1, 1), gone-1, gone-1, 0))}},
		{"a lapsed slot", true, history{floats(1), first, at(3, 4, bind(1), lease(1, 1, gone, gone+length)),
			at(5, 6, bind(0), after(full(1, 1), gone, gone, 0))}},
		{"full, but lapsed", false, history{floats(1), first, at(3, 4, bind(1), after(full(1, 1), gone, gone, 0))}},
		{"back by a slow clock", false, history{floats(1), first, at(3, 4, bind(1), lease(1, 1, gone, gone+length)),
			at(5, 6, bind(0), lease(1, 1, minute, minute+length))}},
		{"lapsed", true, history{floats(1), first,
			at(3, 4, valid(0), after(ok(0, 1).not(licensing.NotBound), length, length, 0)),
			at(5, 6, ask(get), after(ok(0, 1), length, length, 0))}},
		{"lapsed too early", false, history{floats(1), first,
			at(3, 4, valid(0), after(ok(0, 1).not(licensing.NotBound), length-1, length-1, 0))}},
		{"a validation of what has lapsed", false, history{floats(1), first,
			at(3, 4, valid(0), lease(1, 1, length, 2*length))}},
		{"given back", true, history{floats(1), first,
			at(3, 4, unbind(0), after(ok(0, 1).removed(), minute, minute, 0)),
			at(5, 6, bind(1), lease(1, 1, minute, minute+length))}},
		{"given back too late", true, history{floats(1), first,
			at(3, 4, unbind(0), after(ok(0, 1), length, length, 0)),
			at(5, 6, bind(1), lease(1, 1, length, 2*length))}},
		{"reissued after an activation has removed a lease", true, history{floats(2),
			at(1, 1, bind(0), lease(1, 2, 0, length)), at(2, 2, bind(1), lease(1, 2, gone, gone+length)),
			reissuedOf(2, 1, gone)}},
		{"reissued, with fewer leases than are held", false, history{floats(2),
			at(1, 2, bind(0), lease(1, 2, 0, length)), reissuedOf(2, 0, minute)}},
		{"reissued, with the leases within the guard", true, history{floats(2),
			at(1, 1, bind(0), lease(1, 2, 0, length)), at(2, 2, bind(1), lease(1, 2, gone-1, gone-1+length)),
			reissuedOf(2, 2, gone-1)}},
		{"reissued, without the leases within the guard", false, history{floats(2),
			at(1, 1, bind(0), lease(1, 2, 0, length)), at(2, 2, bind(1), lease(1, 2, gone-1, gone-1+length)),
			reissuedOf(2, 1, gone-1)}},
		{"reissued, which removes no lease", false, history{floats(2),
			at(1, 2, bind(0), lease(1, 2, 0, length)), reissuedOf(2, 0, gone)}},
		{"reissued, with a lease too many", false, history{floats(2),
			at(1, 2, bind(0), lease(1, 2, 0, length)), reissuedOf(2, 2, gone)}},
		{"given back with a replaced key", true, history{floats(1), first, reissued(minute),
			at(5, 6, givesBack, after(keys(ok(0, 1).removed(), 1), 2*minute, 2*minute, 0))}},
		{"not given back with a replaced key", false, history{floats(1), first, reissued(minute),
			at(5, 6, givesBack, after(no(licensing.ReasonLicenseKeyReplaced), 2*minute, 2*minute, 0))}},
		{"a replaced key, and a lease that the new key has renewed", true, history{floats(1), first,
			reissued(minute), at(5, 6, input{Action: activate, Number: 1},
				keys(lease(1, 1, 2*minute, 2*minute+length), 1)),
			at(7, 8, givesBack, after(no(licensing.ReasonLicenseKeyReplaced), 3*minute, 3*minute, 0))}},
		{"a replaced key ends a lease of the new key", false, history{floats(1), first, reissued(minute),
			at(5, 6, input{Action: activate, Number: 1}, keys(lease(1, 1, 2*minute, 2*minute+length), 1)),
			at(7, 8, givesBack, after(keys(ok(0, 1).removed(), 1), 3*minute, 3*minute, 0))}},
		{"longer leases after a rollout", true, history{floats(1), first, rolls(2*length, 3*length),
			at(5, 6, bind(0), lease(1, 1, minute, minute+2*length))}},
		{"the lease lasts as long as before the rollout", true, history{floats(1), first, rolls(2*length, 3*length),
			at(5, 6, valid(0), after(ok(0, 1).not(licensing.NotBound), length, length, 0))}},
		{"leases as before the rollout", false, history{floats(1), first, rolls(2*length, 3*length),
			at(5, 6, bind(0), lease(1, 1, 2*minute, 2*minute+length))}},
		{"a lease as long as a rollout allows", true, history{floats(1), rolls(length, length),
			at(5, 6, input{Action: activate, Lease: 2 * length}, lease(1, 1, minute, minute+length).with(later))}},
		{"a longer lease than a rollout allows", false, history{floats(1), rolls(length, length),
			at(5, 6, input{Action: activate, Lease: 2 * length}, lease(1, 1, minute, minute+2*length).with(later))}},
		{"a rollout does not shorten leases", false, history{floats(1), first, rolls(length/2, length/2),
			at(5, 6, bind(0), lease(1, 1, minute, minute+length/2))}},
		{"perhaps leased, full", true, history{floats(1), at(1, 2, bind(0), after(lost, 0, 0, 0)),
			at(3, 4, bind(1), after(full(1, 1), minute, minute, 0))}},
		{"perhaps leased, free", true, history{floats(1), at(1, 2, bind(0), after(lost, 0, 0, 0)),
			at(3, 4, bind(1),
				lease(1, 1, minute, minute+length).with(func(f *facts) { f.Activated = noon + minute }))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := porcupine.CheckOperationsTimeout(model(), c.ops, busyTime)
			if want := map[bool]porcupine.CheckResult{true: porcupine.Ok,
				false: porcupine.Illegal}[c.right]; got != want {
				t.Errorf("the checker says %s, want %s", got, want)
			}
		})
	}
}

// lapses counts the leases whose entries went, or were replaced, because they had lapsed.
func (t *timeline) lapses() (count int) {
	for _, states := range t.licenses {
		for n, s := range states[1:] {
			for id, at := range states[n].devices {
				if may, again := states[n].lapsed(id, s); s.devices[id] == 0 && may || s.devices[id] > at && again {
					count++
				}
			}
		}
	}
	return count
}

// lapsedAtOnce reports whether a new lease had lapsed when it was taken: another node's clock was ahead by more than
// the lease, and has left its lease clock. Another activation in the same turn may take the slot.
func (l *license) lapsedAtOnce(op operation, s *licenseAt) bool {
	return l.lease != 0 && s.leaseClock > op.BoundAt+cmp.Or(min(op.In.Lease, s.longest), s.lease)
}

// uncounted is a store whose node renews lapsed leases that are gone, as if they were still there.
func uncounted(s *store.Snapshot) {
	l := s.Record.License
	if !l.Lease.Leased() {
		return
	}
	for _, entry := range s.Record.Devices {
		if !entry.Bound && !l.LeaseClock.IsZero() {
			entry.Bound = true
			entry.Device.BoundAt, entry.Device.LastSeenAt = l.LeaseClock, l.LeaseClock
			entry.Device.LeaseEnd = l.LeaseClock.Add(time.Millisecond)
			l.CurrentDevices++
		}
	}
}

// hasty is a store whose node takes the leases of other devices as if its clock were an hour ahead.
func hasty(s *store.Snapshot) {
	l := s.Record.License
	if !l.Lease.Leased() || l.LeasesUntil.IsZero() {
		return
	}
	l.LeasesUntil = l.LeasesUntil.Add(-time.Hour)
	for _, entry := range s.Record.Devices {
		if entry.Bound {
			entry.Device.LeaseEnd = entry.Device.LeaseEnd.Add(-time.Hour)
		}
	}
}

// sameLeaseClock is a store that keeps a license's first lease clock: a fast clock leaves no trace.
type sameLeaseClock struct{ store.Store }

func (u sameLeaseClock) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if l := change.Writes[0].Record.License; l != nil && l.Lease.Leased() && !l.LeaseClock.IsZero() {
		l.LeaseClock = l.ActivatedAt
	}
	return u.Store.Commit(ctx, change)
}
