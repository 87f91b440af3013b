package history

import (
	"fmt"
	"math"
	"slices"

	"licet/licensing"
)

// violation is one thing that is not as it must be.
type violation struct {
	// linearizable, counts, acknowledged, explained, writers, facts, grace, doubt, revocations, orders, books, fees,
	// returns, subscriptions, disputes, keys, events, notices, feed or internal
	check string
	text  string
}

// inspection compares a run's history with the revisions that etcd had.
type inspection struct {
	run  *run
	list []violation
}

func (i *inspection) add(check, format string, args ...any) {
	i.list = append(i.list, violation{check, fmt.Sprintf(format, args...)})
}

// inspect checks every revision of every record.
func (r *run) inspect(t *timeline) []violation {
	i := &inspection{run: r}
	byKey := map[licensing.LicenseKey][]operation{}
	for _, op := range r.operations {
		byKey[op.In.Key] = append(byKey[op.In.Key], op)
		if op.Out.Reason == licensing.ReasonInternal {
			i.add("internal", "%s: %s answered an internal error", op.In.Key, op.In)
		}
	}
	for id, states := range t.licenses {
		key := id.Key("LIC")
		i.counts(key, states, byKey[key])
		i.writers(key.String(), licenseWriters(states))
		if states[0].trial != "" {
			i.trial(t, key, states)
			i.customers(key, states)
			continue
		}
		i.facts(key, states, byKey[key])
		i.terms(t, key, states)
		i.customers(key, states)
		i.leases(key, states)
		i.idle(key, states, byKey[key])
		i.graces(key, states)
		i.doubt(key, states)
		if !i.disputed(states[0].order) {
			i.explained(key, states, byKey[key])
		}
		i.revocations(t, key, states, byKey[key])
	}
	for _, l := range r.licenses {
		i.acknowledged(l, t.licenses[l.key.ID()], byKey[l.key])
		i.overlaps(l, t.licenses[l.key.ID()], byKey[l.key])
	}
	for number, states := range t.orders {
		i.order(number, states)
		i.writers(number, orderWriters(states))
	}
	i.writers("usage", usageWriters(t.usages))
	i.orders(t)
	i.aliases(t)
	i.trials(t)
	i.payments(t)
	i.fees(t)
	i.sandbox(t)
	i.rolledOut(t)
	i.books(t)
	i.checkouts(t)
	i.seconds(t)
	i.returns(t)
	i.subscriptions(t)
	i.changes(t)
	i.disputes(t)
	i.events(t)
	return i.list
}

// window is the revisions at which an operation can have had its effect:
// after from, up to to.
type window struct{ from, to int64 }

func (w window) holds(revision int64) bool { return w.from < revision && revision <= w.to }

// windowOf returns when an operation can have changed its license. One whose
// outcome is unknown can do so late, but only as the very next change: its
// swap was made for the state that there was when its caller was answered.
// Else it would bring back what was removed since. Only a command that its node
// sent to another one before it was killed goes on there, till its time is up.
func windowOf(op operation, states []*licenseAt) window {
	switch op.Out.Verdict {
	case accepted:
		return window{op.Before, op.After}
	case unknown:
		if op.Adrift {
			return window{op.Before, math.MaxInt64}
		}
		for _, s := range states {
			if s.revision > op.After && s.recordWritten {
				return window{op.Before, s.revision}
			}
		}
		return window{op.Before, math.MaxInt64}
	}
	return window{op.After, op.After} // empty
}

// counts: the count is that of the entries and within the limit, or within
// what was bound when the limit was lowered, and then it never grows
// (invariant 1). Devices change only along with their license.
func (i *inspection) counts(key licensing.LicenseKey, states []*licenseAt, ops []operation) {
	var limits []window
	for _, op := range ops {
		if op.In.Action == setMax {
			limits = append(limits, windowOf(op, states))
		}
	}
	for n, s := range states {
		if s.current != len(s.devices) {
			i.add("counts", "%s: %d device entries: %s", key, len(s.devices), s)
		}
		if s.strayDeviceWritten && !s.recordWritten {
			i.add("counts", "%s: a device changed alone: %s", key, s)
		}
		over := s.max != 0 && s.current > s.max
		if over && s.allowedOver < s.current || !over && s.allowedOver != 0 {
			i.add("counts", "%s: over the limit: %s", key, s)
		}
		lowered := slices.ContainsFunc(limits, func(w window) bool { return w.holds(s.revision) })
		if over && !lowered && (n == 0 || states[n-1].current < s.current || states[n-1].allowedOver < s.allowedOver) {
			i.add("counts", "%s: grew over the limit: %s", key, s)
		}
	}
}

func licenseWriters(states []*licenseAt) [][]writer {
	var tables [][]writer
	for _, s := range states {
		if s.recordWritten {
			tables = append(tables, s.writers)
		}
	}
	return tables
}

func orderWriters(states []*orderAt) [][]writer {
	var tables [][]writer
	for _, s := range states {
		tables = append(tables, s.writers)
	}
	return tables
}

// writers: no swap is made twice (invariant 4), an incarnation's swaps are
// made in the order of their numbers, and the table says so: the writer in
// front, the others behind it, at most eight.
func (i *inspection) writers(record string, tables [][]writer) {
	last := map[string]uint64{}
	var before []writer
	for n, table := range tables {
		if len(table) == 0 {
			i.add("writers", "%s: a revision without a writer", record)
			return
		}
		if n == 0 { // a license that was paid for has its order's table
			before = table[1:]
		}
		front := table[0]
		if front.swap <= last[front.by] {
			i.add("writers", "%s: swap %d of %s was made after its swap %d", record, front.swap, front.by,
				last[front.by])
		}
		last[front.by] = front.swap
		want := []writer{front}
		for _, w := range before {
			if w.by != front.by && len(want) < 8 {
				want = append(want, w)
			}
		}
		if !slices.Equal(table, want) {
			i.add("writers", "%s: the table is %v, want %v", record, table, want)
		}
		before = table
	}
}

// facts: revoked is for good, and the time of the first activation and of each
// binding stay (invariant 5).
func (i *inspection) facts(key licensing.LicenseKey, states []*licenseAt, ops []operation) {
	var before *licenseAt
	for _, s := range states {
		if s.current > 0 && s.activated == 0 {
			i.add("facts", "%s: devices without activated_at: %s", key, s)
		}
		if before != nil {
			if before.revoked != 0 && s.revoked != before.revoked {
				i.add("facts", "%s: no longer revoked: %s", key, s)
			}
			if s.endRecorded != 0 && s.endRecorded != before.endRecorded && s.endRecorded != s.expires &&
				s.endRecorded != before.expires {
				i.add("facts", "%s: an end was recorded that it has not: %d: %s", key, s.endRecorded, s)
			}
			if before.activated != 0 && s.activated != before.activated {
				i.add("facts", "%s: activated_at was %d: %s", key, before.activated, s)
			}
			if before.order != s.order || before.spilled && !s.spilled {
				i.add("facts", "%s: was of order %q, spilled %v: %s", key, before.order, before.spilled, s)
			}
			for id, at := range s.devices {
				if was, bound := before.devices[id]; before.revoked != 0 && !bound {
					i.add("facts", "%s: %s was bound after the license was revoked: %s", key, id, s)
				} else if _, again := before.lapsed(id, s); bound && was != at && !again &&
					!before.matched && !i.run.removedAt(ops, states, s.revision, id) {
					i.add("facts", "%s: %s was bound at %d and is now bound at %d: %s", key, id, was, at, s)
				}
			}
		}
		before = s
	}
}

// removedAt reports whether an operation can have removed a device in a revision.
func (r *run) removedAt(ops []operation, states []*licenseAt, revision int64, id string) bool {
	return slices.ContainsFunc(ops, func(op operation) bool {
		return op.In.Action == remove && r.deviceOf(op) == id && windowOf(op, states).holds(revision)
	})
}

// change is a difference between two states that needs an operation as its cause.
type change struct {
	in       input // without the key
	device   string
	revision int64
	boundAt  int64 // of a device that was bound
	was      int64 // the end before it was moved
}

// changes lists what a revision has changed.
func changes(before, s *licenseAt) []change {
	var list []change
	add := func(c change) {
		c.revision = s.revision
		list = append(list, c)
	}
	for id, at := range s.devices {
		was, bound := before.devices[id]
		_, again := before.lapsed(id, s)
		if _, changed := before.changed(id, s); bound && was != at && !again && !changed {
			add(change{in: input{Action: remove}, device: id})
		}
		if !bound || was != at {
			add(change{in: input{Action: activate}, device: id, boundAt: at})
		}
	}
	for id := range before.devices {
		_, bound := s.devices[id]
		may, _ := before.lapsed(id, s)
		if _, changed := before.changed(id, s); !bound && !may && !changed {
			add(change{in: input{Action: remove}, device: id})
		}
	}
	if before.suspended != s.suspended {
		if before.suspended != 0 {
			add(change{in: input{Action: reinstate}})
		}
		if s.suspended != 0 {
			add(change{in: input{Action: suspend}})
		}
	}
	if before.revoked != s.revoked {
		add(change{in: input{Action: revoke}})
	}
	if before.max != s.max {
		add(change{in: input{Action: setMax, Max: s.max}})
	}
	if before.expires != s.expires {
		add(change{in: input{Action: renew, Expires: s.expires}, was: before.expires})
	}
	return list
}

// explained: whatever changed was asked for by an operation that could have
// done it then, and that did nothing else (invariants 3 and 4). Several
// operations may fit a change, and an operation several changes: a device that
// becomes another one keeps its bound_at. So the search gives an operation that
// explains a change already to the next one, if another operation explains the
// first.
func (i *inspection) explained(key licensing.LicenseKey, states []*licenseAt, ops []operation) {
	type candidate struct {
		operation
		window
		explains *change // nil: none yet
	}
	var candidates []*candidate
	for _, op := range ops {
		w := windowOf(op, states)
		// A lapsed lease counts as removed before, and its entry still goes.
		if op.In.Action == remove && op.Out.Verdict == accepted && !op.Out.Removed && !states[0].leased {
			continue
		}
		if w.to > w.from {
			candidates = append(candidates, &candidate{operation: op, window: w})
		}
	}
	// The one whose window closes first can wait least.
	slices.SortStableFunc(candidates, func(a, b *candidate) int { return int(min(a.to, 1<<60) - min(b.to, 1<<60)) })
	fits := func(c *candidate, ch change) bool {
		in := c.In
		in.Key, in.Device, in.ByUser, in.Note, in.Keyed = licensing.LicenseKey{}, 0, false, 0, false
		in.Number, in.Lease, in.Longest, in.Changes, in.Inactive, in.Grace = 0, 0, 0, 0, false, 0
		in.Receipt = false
		if in.Action == roll {
			in.Action = setMax
		}
		if in.Action == extend {
			in = input{Action: renew, Expires: ch.was + dayInMilli}
		}
		if !c.holds(ch.revision) || in != ch.in || i.run.deviceOf(c.operation) != ch.device {
			return false
		}
		return ch.boundAt == 0 || c.Out.Verdict != accepted || c.BoundAt == ch.boundAt
	}
	var explain func(*change, map[*candidate]bool) bool
	explain = func(ch *change, asked map[*candidate]bool) bool {
		for _, c := range candidates {
			if asked[c] || !fits(c, *ch) {
				continue
			}
			asked[c] = true
			if c.explains == nil || explain(c.explains, asked) {
				c.explains = ch
				return true
			}
		}
		return false
	}
	for n, s := range states[1:] {
		for _, ch := range changes(states[n], s) {
			became := func(c *candidate) bool {
				return c.holds(ch.revision) && (c.In.Action == activate || c.In.Action == remove)
			}
			if s.matched && ch.in.Action == remove && slices.ContainsFunc(candidates, became) {
				continue // it may have become another device, which was removed in the same swap
			}
			if !explain(&ch, make(map[*candidate]bool)) {
				i.add("explained", "%s: no operation can have caused %q %s: %s", key, ch.in, ch.device, s)
			}
		}
	}
}

// acknowledged: what was answered was so at some revision between the call and
// the return (invariant 2). A command that another one of the same node undid
// in the same swap was never to be seen.
func (i *inspection) acknowledged(l *license, states []*licenseAt, ops []operation) {
	for _, op := range ops {
		if op.Out.Verdict != accepted || op.Before == 0 {
			continue
		}
		held := func(is func(*licenseAt) bool) bool {
			for n, s := range states {
				ends := int64(math.MaxInt64)
				if n+1 < len(states) {
					ends = states[n+1].revision
				}
				if s.revision <= op.After && ends > op.Before && is(s) {
					return true
				}
			}
			return false
		}
		id := i.run.deviceOf(op)
		switch op.In.Action {
		case activate:
			stands := func(s *licenseAt) bool { return s.devices[id] == op.BoundAt && s.ends[id] >= op.Out.Lease.End }
			lapsed := func(s *licenseAt) bool { return l.lapsedAtOnce(op, s) && i.run.activatedMeanwhile(op, ops) }
			if !held(stands) && !held(lapsed) && !i.run.canBeUndone(op, remove, ops) && !i.run.overtaken(op, l, ops) {
				i.add("acknowledged", "%s: %s was bound at %d, but not between revisions %d and %d", l.key, id,
					op.BoundAt, op.Before, op.After)
			}
		case remove:
			if !held(func(s *licenseAt) bool { return s.devices[id] == 0 }) && !i.run.canBeUndone(op, activate, ops) &&
				!i.run.overtaken(op, l, ops) {
				i.add("acknowledged", "%s: %s was removed, but not between revisions %d and %d", l.key, id, op.Before,
					op.After)
			}
		case validate:
			if op.Out.Invalid != "" && op.Out.Invalid != licensing.NotBound {
				continue // the time may matter; the model has it
			}
			bound := op.Out.Invalid == ""
			lapsed := func(s *licenseAt) bool { return s.leased && s.ends[id] <= max(op.Out.Clock.to, s.leaseClock) }
			if !held(func(s *licenseAt) bool { return (s.devices[id] != 0) == bound || !bound && lapsed(s) }) &&
				!i.run.canBeUndone(op, activate, ops) && !i.run.canBeUndone(op, remove, ops) &&
				!i.run.overtaken(op, l, ops) {
				i.add("acknowledged", "%s: %s was %s, which it never was between revisions %d and %d", l.key, id,
					op.Out, op.Before, op.After)
			}
		case get:
			if l.lease == 0 && !held(func(s *licenseAt) bool {
				return l.set(s.devices) == op.Out.Devices &&
					s.max == op.Out.Facts.Max
			}) {
				i.add("acknowledged", "%s: looked up as %s, which it never was between revisions %d and %d", l.key,
					op.Out, op.Before, op.After)
			}
		}
	}
}

// canBeUndone reports whether an operation on the same device at the same time can have undone op before op was
// stored: at the same process, or, if commands hop, at any process. A command adrift goes on after its caller has its
// answer.
func (r *run) canBeUndone(op operation, by action, ops []operation) bool {
	return slices.ContainsFunc(ops, func(other operation) bool {
		return other.In.Action == by && other.In.Device == op.In.Device && (other.Process == op.Process || r.way.on) &&
			other.Call <= op.Return && (other.Return >= op.Call || other.Adrift)
	})
}

// set returns the model's set of some devices.
func (l *license) set(devices map[string]int64) uint64 {
	var bits uint64
	for id := range devices {
		bits |= l.bit(id)
	}
	return bits
}

// deviceOf names the device of an operation, or is empty.
func (r *run) deviceOf(op operation) string {
	if op.In.Action != activate && op.In.Action != remove && op.In.Action != validate {
		return ""
	}
	for _, l := range r.licenses {
		if l.key == op.In.Key {
			return l.devices[op.In.Device]
		}
	}
	return ""
}
