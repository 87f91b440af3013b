package history

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"licet/licensing"
	"licet/node/store"
)

const (
	// inactiveAfter is how long a device of a license that loses inactive devices must be unseen, and seenMargin is how
	// much longer; seenKept is the age of a stored time from which on a newer one is stored before the answer. All in
	// milliseconds.
	inactiveAfter = 24 * hourInMilli
	seenMargin    = hourInMilli
	seenKept      = 59 * 60_000
	hourInMilli   = int64(time.Hour / time.Millisecond)
	// farAhead is how far the clocks of far nodes are ahead, and farStep is the step between the offsets that they can
	// have besides: with some of them, a device that was just seen by another node's clock is inactive.
	farAhead = 104 * 24 * time.Hour
	farStep  = 9 * time.Hour
	// lateFar is by how much a far clock can be away from its time at the call when a command without an answer is run.
	lateFar = 4 * 9 * hourInMilli
	// atLeast is how many components of a device that has changed are equal.
	atLeast = 2
)

// partsOf are the three components of the devices of licenses whose devices change, by their numbers.
var partsOf = [leasePool][3]int{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {1, 1, 1}, {2, 2, 2}}

// similar returns the devices that have enough components of a device, and are others.
func similar(device int) (set uint64) {
	for other := range partsOf {
		same := 0
		for n, part := range partsOf[device] {
			if partsOf[other][n] == part {
				same++
			}
		}
		if same >= atLeast && other != device {
			set |= 1 << other
		}
	}
	return set
}

// componentsOf returns the components of a device as a program names them.
func componentsOf(device int) licensing.Components {
	hashes := map[string]string{}
	for n, part := range partsOf[device] {
		sum := sha256.Sum256([]byte{byte(n), byte(part)})
		hashes[[]string{"disk", "board", "network"}[n]] = hex.EncodeToString(sum[:])
	}
	c, ok := licensing.NewComponents(hashes)
	if !ok {
		panic("malformed components")
	}
	return c
}

// changingPlans are the licenses whose devices change. changesPerMonth is how often.
func changingPlans(changesPerMonth int) []plan {
	odds := []odd{{10, activate}, {2, remove}, {1, get}, {1, validate}}
	return []plan{
		{name: "changing", max: 2, pool: 6, clients: 5, each: 20, changes: changesPerMonth, odds: odds},
		{name: "changing, three slots", max: 3, pool: 5, clients: 5, each: 20, changes: 1000, odds: odds},
		{name: "changing, operated", max: 3, pool: 5, clients: 5, each: 20, changes: 1000,
			odds: []odd{{10, activate}, {2, remove}, {1, suspend}, {2, reinstate}, {1, get}}},
	}
}

// changesPerMonth returns a limit that a license may reach, unless a month may end during the run.
func changesPerMonth(now time.Time) int {
	if now.Add(-time.Hour).UTC().Month() != now.Add(time.Hour).UTC().Month() {
		return 1000
	}
	return 6
}

// inactivePlans are the licenses that lose inactive devices. Far nodes work on them.
func inactivePlans() []plan {
	odds := []odd{{8, activate}, {2, validate}, {1, remove}, {1, get}}
	return []plan{
		{name: "inactive", max: 2, pool: 5, clients: 4, each: 20, inactive: true, odds: odds},
		{name: "inactive, three slots", max: 3, pool: 5, clients: 4, each: 20, inactive: true, odds: odds},
		{name: "inactive, spilled", max: 18, bound: 18, pool: 24, clients: 4, each: 20, inactive: true, odds: odds},
	}
}

// idle is what decides about inactive devices, by the rules alone. What the answers do not show is a span.
type idle struct {
	removed    bool            // they are removed
	seen       [leasePool]span // when the bound devices were last seen, as stored
	leaseClock span            // as of licensing.License.LeaseClock
}

// ofIdle reports whether a question to a license that loses inactive devices depends on them.
func (s state) ofIdle(in input) bool {
	switch in.Action {
	case activate, validate, remove, get:
		return s.exists && s.idle.removed
	}
	return false
}

// stepIdle is step for a license that loses inactive devices.
func (s state) stepIdle(in input, out output) (states []state) {
	now, lost := out.Clock, out.Verdict == unknown
	if lost {
		now = span{now.from - lateFar, now.to + lateFar}
	}
	at := span{max(now.from, s.idle.leaseClock.from), max(now.to, s.idle.leaseClock.to)}
	bit := uint64(1) << in.Device
	leads := func(n state, reason, invalid licensing.Reason, removed bool) {
		switch {
		case lost:
			states = append(states, n)
		case (reason == "") == (out.Verdict == accepted) && reason == out.Reason && invalid == out.Invalid &&
			removed == out.Removed:
			if n, fits := n.fitsIdle(out); fits {
				states = append(states, n)
			}
		}
	}
	bound := s.devices&bit != 0
	switch {
	case in.Action == get:
		if out.Devices == s.devices {
			leads(s, "", "", false)
		}
	case in.Action == remove:
		n := s
		n.devices &^= bit
		leads(n, "", "", bound)
	case bound:
		seen := &s.idle.seen[in.Device]
		if seen.to = max(seen.to, now.to); !lost {
			seen.from = max(seen.from, now.from-seenKept)
		}
		leads(s, "", "", false)
	case in.Action == validate:
		leads(s, "", licensing.NotBound, false)
	case out.Doubt: // such a node knows no other clock, and binds no device
		if lost {
			states = append(states, s)
		}
	case s.count() < s.max:
		leads(s.takes(in.Device, now, out), "", "", false)
	default:
		since := span{at.from - inactiveAfter - seenMargin, at.to - inactiveAfter - seenMargin}
		others := s.devices
		none := true
		for left := s.devices; left != 0; left &= left - 1 {
			d := bits.TrailingZeros64(left)
			none = none && s.idle.seen[d].to > since.from
			if s.idle.seen[d].from <= since.to && s.longest(d) {
				n := s
				n.devices = others &^ (1 << d)
				n.idle.leaseClock = at
				leads(n.takes(in.Device, now, out), "", "", false)
			}
		}
		if none {
			s.idle.leaseClock.to = max(s.idle.leaseClock.to, at.to) // perhaps it was looked at
			leads(s, licensing.ReasonDeviceLimitReached, "", false)
		}
	}
	return states
}

// longest reports whether a device may be the device unseen for longest.
func (s state) longest(device int) bool {
	for left := s.devices; left != 0; left &= left - 1 {
		if s.idle.seen[bits.TrailingZeros64(left)].to < s.idle.seen[device].from {
			return false
		}
	}
	return true
}

// takes binds a device to a free slot.
func (s state) takes(device int, now span, out output) state {
	s.devices |= 1 << device
	s.idle.seen[device] = now
	if s.activated == (span{}) {
		s.activated = now
		if out.Verdict == unknown {
			s.activated.to = forever
		}
	}
	return s
}

// fitsIdle reports whether the facts of an answer agree with the state after it, and returns the state that the answer
// may narrow.
func (s state) fitsIdle(out output) (state, bool) {
	f := out.Facts
	if f.Max != s.max || f.Current != s.count() || out.Reason != "" {
		return s, f.Max == s.max && f.Current == s.count()
	}
	if f.Activated != 0 {
		if f.Activated < s.activated.from || f.Activated > s.activated.to {
			return s, false
		}
		s.activated = span{f.Activated, f.Activated}
	}
	return s, f.Activated == s.activated.from && f.Expires == s.expires && !f.Revoked && !f.Suspended
}

// change gives the slot of a bound device to another device that has enough of its components, if no other bound device
// has.
func (s state) change(device int) (state, bool) {
	from := s.devices & similar(device)
	if s.changes >= s.mostChanges || bits.OnesCount64(from) != 1 {
		return s, false
	}
	s.devices = s.devices&^from | 1<<device
	s.changes++
	return s, true
}

// idle: no device was last seen before the time that the license says, and neither that time of a device nor the lease
// clock moves back. The device that goes because it is inactive was not seen for longest; lapsed compares the time.
func (i *inspection) idle(key licensing.LicenseKey, states []*licenseAt, ops []operation) {
	for n, s := range states {
		if s.inactiveAfter == 0 {
			return
		}
		for id, at := range s.devices {
			if s.seen[id] < s.seenFrom {
				i.add("idle", "%s: %s was seen at %d, and none before %d: %s", key, id, s.seen[id], s.seenFrom, s)
			}
			if n > 0 && states[n-1].devices[id] == at && s.seen[id] < states[n-1].seen[id] {
				i.add("idle", "%s: %s was seen at %d, and then at %d: %s", key, id, states[n-1].seen[id], s.seen[id],
					s)
			}
		}
		if n == 0 {
			continue
		}
		before := states[n-1]
		if s.leaseClock < before.leaseClock {
			i.add("idle", "%s: the lease clock went from %d to %d: %s", key, before.leaseClock, s.leaseClock, s)
		}
		for gone := range before.devices {
			if s.devices[gone] != 0 || i.run.removedAt(ops, states, s.revision, gone) {
				continue
			}
			for id, at := range s.devices {
				if before.devices[id] == at && s.seen[id] < before.seen[gone] {
					i.add("idle", "%s: %s, seen at %d, went before %s, seen at %d: %s", key, gone, before.seen[gone],
						id, s.seen[id], s)
				}
			}
		}
	}
}

// changed returns the device that has the slot of a device since a revision; false if there is none.
func (before *licenseAt) changed(id string, s *licenseAt) (to string, ok bool) {
	if !before.matched || s.devices[id] == before.devices[id] {
		return "", false
	}
	for other, at := range s.devices {
		if at == before.devices[id] && before.devices[other] != at {
			return other, true
		}
	}
	return "", false
}

// unseen takes devices that were seen recently for inactive.
func unseen(s *store.Snapshot) {
	l, devices := s.Record.License, s.Record.Devices
	if l.InactiveAfter.IsZero() {
		return
	}
	l.SeenFrom = l.CreatedAt
	for _, entry := range devices {
		entry.Device.LastSeenAt = entry.Device.LastSeenAt.Add(-48 * time.Hour)
	}
}

// anyUnseen takes any device for the device unseen for longest.
func anyUnseen(s *store.Snapshot) {
	l, devices := s.Record.License, s.Record.Devices
	if l.InactiveAfter.IsZero() || len(devices) == 0 {
		return
	}
	for _, entry := range devices {
		if entry.Bound && rand.IntN(2) == 0 {
			entry.Device.LastSeenAt = entry.Device.LastSeenAt.Add(-1000 * time.Hour)
		}
	}
}

// unmatched finds no components of devices, now and then: a device that has changed takes another slot.
func unmatched(s *store.Snapshot) {
	l, devices := s.Record.License, s.Record.Devices
	if l.Match.AtLeast > 0 && rand.IntN(3) == 0 {
		for _, entry := range devices {
			entry.Device.Components = ""
		}
	}
}

// guessing finds the components of one device only, now and then, so that it takes one of two that can be meant.
func guessing(s *store.Snapshot) {
	l, devices := s.Record.License, s.Record.Devices
	if l.Match.AtLeast == 0 || rand.IntN(2) == 0 {
		return
	}
	found := false
	for _, entry := range devices { // in any order
		if entry.Bound && found {
			entry.Device.Components = ""
		}
		found = found || entry.Bound
	}
}

// unkept stores when a device was bound, and not when it was seen since.
type unkept struct{ store.Store }

func (u unkept) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	if r := &change.Writes[0].Record; r.License != nil && !r.License.InactiveAfter.IsZero() {
		for _, entry := range r.Devices {
			entry.Device.LastSeenAt = entry.Device.BoundAt
		}
	}
	return u.Store.Commit(ctx, change)
}

// TestModelOfDevices shows the model small histories of licenses whose devices change, and that lose inactive devices.
func TestModelOfDevices(t *testing.T) {
	const day = 24 * hourInMilli
	type history = []porcupine.Operation
	after := func(out output, from int64) output {
		out.Clock = span{noon + from, noon + from}
		return out
	}
	matches := func(limit, changes int) porcupine.Operation {
		return at(0, 0, input{Action: create, Max: limit, Changes: changes}, output{Verdict: accepted})
	}
	doubtful := func(out output, from int64) output {
		out = after(out, from)
		out.Doubt = true
		return out
	}
	loses := func(limit int) porcupine.Operation {
		return at(0, 0, input{Action: create, Max: limit, Inactive: true}, output{Verdict: accepted})
	}
	const gone = day + hourInMilli
	for _, c := range []struct {
		name  string
		right bool
		ops   history
	}{
		{"changed", true, history{matches(1, 1), at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(1), ok(1, 1)),
			at(5, 6, ask(get), ok(1, 1).listing(2))}},
		{"a second slot", false, history{matches(2, 1), at(1, 2, bind(0), ok(1, 2)), at(3, 4, bind(1), ok(2, 2))}},
		{"another device", true, history{matches(2, 1), at(1, 2, bind(0), ok(1, 2)), at(3, 4, bind(4), ok(2, 2))}},
		{"another device that takes the slot", false,
			history{matches(1, 1), at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(4), ok(1, 1))}},
		{"changed too often", true, history{matches(1, 1), at(1, 2, bind(0), ok(1, 1)), at(3, 4, bind(1), ok(1, 1)),
			at(5, 6, bind(0), full(1, 1))}},
		{"changed above the limit", false, history{matches(1, 1), at(1, 2, bind(0), ok(1, 1)),
			at(3, 4, bind(1), ok(1, 1)), at(5, 6, bind(0), ok(1, 1))}},
		{"ambiguous", true, history{matches(3, 9), at(1, 2, bind(1), ok(1, 3)), at(3, 4, bind(2), ok(2, 3)),
			at(5, 6, bind(0), ok(3, 3))}},
		{"ambiguous, and taken", false, history{matches(3, 9), at(1, 2, bind(1), ok(1, 3)),
			at(3, 4, bind(2), ok(2, 3)), at(5, 6, bind(0), ok(2, 3))}},
		{"seen within the period", true, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), after(full(1, 1), gone-1))}},
		{"removed within the period", false, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), after(ok(1, 1), gone-1))}},
		{"removed after the period", true, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), after(ok(1, 1), gone)), at(5, 6, valid(0), ok(1, 1).not(licensing.NotBound))}},
		{"full after the period", false, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), after(full(1, 1), gone))}},
		{"removed by a clock in doubt", false, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), doubtful(ok(1, 1), gone))}},
		{"full by a clock in doubt", false, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), doubtful(full(1, 1), gone))}},
		{"bound by a clock in doubt", false, history{loses(2), at(1, 2, bind(0), after(ok(1, 2), 0)),
			at(3, 4, bind(1), doubtful(ok(2, 2), 0))}},
		{"seen by a clock in doubt", true, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(0), doubtful(ok(1, 1), gone)), at(5, 6, valid(0), doubtful(ok(1, 1), gone)),
			at(7, 8, bind(1), after(full(1, 1), gone))}},
		{"seen again", true, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, valid(0), after(ok(1, 1), day)), at(5, 6, bind(1), after(full(1, 1), 2*day))}},
		{"removed although seen again", false, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, valid(0), after(ok(1, 1), day)), at(5, 6, bind(1), after(ok(1, 1), 2*day))}},
		{"the other device", true, history{loses(2), at(1, 2, bind(0), after(ok(1, 2), 0)),
			at(3, 4, bind(1), after(ok(2, 2), 1)), at(5, 6, bind(2), after(ok(2, 2), 2*day)),
			at(7, 8, ask(get), after(ok(2, 2).listing(6), 2*day))}},
		{"a device that was seen later", false, history{loses(2), at(1, 2, bind(0), after(ok(1, 2), 0)),
			at(3, 4, bind(1), after(ok(2, 2), 1)), at(5, 6, bind(2), after(ok(2, 2), 2*day)),
			at(7, 8, ask(get), after(ok(2, 2).listing(5), 2*day))}},
		{"by the lease clock", true, history{loses(1), at(1, 2, bind(0), after(ok(1, 1), 0)),
			at(3, 4, bind(1), after(ok(1, 1), 3*day)), at(5, 6, bind(0), after(full(1, 1), 3*day)),
			at(7, 8, unbind(1), after(ok(0, 1).removed(), 0)), at(9, 10, bind(0), after(ok(1, 1), day)),
			at(11, 12, bind(1), after(ok(1, 1), day))}},
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

// startFar makes the nodes that work on licenses with inactive devices. Their clocks are ahead by months, and apart by
// hours.
func (r *run) startFar(random *rand.Rand) error {
	for range 2 {
		s := &slot{clock: &clock{epoch: r.started}, far: true}
		s.step(random)
		p, err := r.start(s)
		if err != nil {
			return fmt.Errorf("start a far node: %w", err)
		}
		r.keepBusy(p)
		s.process = p
		r.far, r.processes = append(r.far, s), append(r.processes, p)
	}
	return nil
}

// slotsFor returns the places of the nodes that work on a license.
func (r *run) slotsFor(l *license) []*slot {
	slots := r.slots
	if l.inactive {
		slots = r.far
	}
	if l.doubt {
		slots = append(slices.Clone(slots), r.doubtful)
	}
	return slots
}

// overtaken reports whether an activation of another device at the same time may have taken the slot of an operation's
// device before that was stored; see undone.
func (r *run) overtaken(op operation, l *license, ops []operation) bool {
	return (l.inactive || l.changes > 0) && r.activatedMeanwhile(op, ops)
}

// activatedMeanwhile reports whether a device was activated at the same time, so perhaps in the same turn.
func (r *run) activatedMeanwhile(op operation, ops []operation) bool {
	return slices.ContainsFunc(ops, func(other operation) bool {
		return other.In.Action == activate && (other.Process == op.Process || r.way.on) &&
			other.Call <= op.Return && (other.Return >= op.Call || other.Adrift)
	})
}
