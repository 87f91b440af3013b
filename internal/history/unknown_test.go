package history

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"licet/licensing"
)

// A search for an order of a license's operations tries an operation of unknown outcome at every place from its call
// on, so each such operation can double the time of the search. On a slow machine half of all operations have an
// unknown outcome, and few of them had an effect. The revisions that etcd has had tell these few.

// mayHaveHappened reports whether an operation of unknown outcome can have changed its license: in the window of the
// operation is a change that can be its effect. run.explained checks all changes against the same windows. ops are the
// operations on the license.
func (r *run) mayHaveHappened(op operation, l *license, ops []operation) bool {
	states := r.timeline.licenses[op.In.Key.ID()]
	w := windowOf(op, states)
	before := &licenseAt{}
	for _, s := range states {
		shows := !l.showsDevices() || op.Adrift || showsEffect(op, l, before, s)
		if s.recordWritten && w.holds(s.revision) && shows {
			return true
		}
		before = s
	}
	// One swap may bind a device and remove it again.
	return op.In.Action == activate && r.canBeUndone(op, remove, ops) ||
		op.In.Action == remove && r.canBeUndone(op, activate, ops)
}

// showsDevices reports whether only activations bind the license's devices, only removals remove them, and each of both
// shows in the revisions: if a device does not come and go by time, and does not replace another one.
func (l *license) showsDevices() bool { return l.lease == 0 && l.changes == 0 && !l.inactive }

// showsEffect reports whether the effect of an operation can be a part of what a revision has changed. What an operator
// does may show in no revision, if the same swap has undone it.
func showsEffect(op operation, l *license, before, s *licenseAt) bool {
	if op.In.Action != activate && op.In.Action != remove {
		return true
	}
	id := l.devices[op.In.Device]
	was, is := before.devices[id], s.devices[id]
	if op.In.Action == remove {
		return was != 0 && is != was
	}
	return is != 0 && is != was
}

// modeled returns the licenses that the model has, by their keys.
func (r *run) modeled() map[licensing.LicenseKey]*license {
	list := map[licensing.LicenseKey]*license{}
	for _, l := range r.licenses {
		if l.modeled() {
			list[l.key] = l
		}
	}
	return list
}

// byHand is a history of a license with operations of unknown outcome, which is written by hand. The license has device
// 0. A number of activations of other devices, and of removals of these, follow: each of them has no effect, and a
// change comes after it.
func byHand(number int) *run {
	r := newRun(1, bug{})
	l := newLicense(plan{name: "by hand", pool: 60}, mint(r.owner))
	r.licenses, r.timeline = []*license{l}, &timeline{licenses: map[licensing.LicenseID][]*licenseAt{}}
	devices := map[string]int64{}
	ask := func(in input, out output, writes bool) {
		in.Key = l.key
		op := operation{Process: 1, In: in, Out: out, Before: int64(len(r.timeline.licenses[l.key.ID()])),
			Call: time.Duration(3*len(r.operations) + 1), Return: time.Duration(3*len(r.operations) + 2)}
		if op.After = op.Before; writes {
			op.After++
			r.timeline.licenses[l.key.ID()] = append(r.timeline.licenses[l.key.ID()],
				&licenseAt{revision: op.After, recordWritten: true, devices: maps.Clone(devices)})
		}
		r.note(op)
	}
	later := output{Verdict: accepted, Later: true}
	ask(input{Action: create}, later, true)
	devices[l.devices[0]] = noon
	ask(input{Action: activate}, lost, true)
	for n := range number {
		ask(input{Action: activate, Device: n + 1}, lost, false)
		ask(input{Action: setNote, Note: n + 1}, later, true)
		ask(input{Action: setNote, Note: n + 2}, later, true)
	}
	return r
}

// TestUnknownOutcomes: the search has the operations of unknown outcome that etcd shows a possible effect of.
func TestUnknownOutcomes(t *testing.T) {
	r := byHand(3)
	l := r.licenses[0]
	unknowns := func() (got []int) {
		for _, op := range r.history() {
			if op.Output.(output).Verdict == unknown {
				got = append(got, op.Input.(input).Device)
			}
		}
		return got
	}
	if got := unknowns(); !slices.Equal(got, []int{0}) {
		t.Errorf("activations of %v, want of 0", got)
	}
	// The removal may have been in one swap with the activation of device 1. The activation of device 2 may still run
	// at another node, and another node may have stored nothing for the activation of device 3.
	removes := r.operations[2]
	removes.In.Action, removes.Out = remove, ok(1, 0).removed()
	r.note(removes)
	r.operations[5].Adrift = true
	if got := unknowns(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("activations of %v, want of 0, 1 and 2", got)
	}
	// Devices with leases come and go by time.
	l.lease = time.Minute
	if got := unknowns(); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("with leases, activations of %v, want of 0, 1, 2 and 3", got)
	}
}

// TestSearchIsShort: it takes few steps to find that no order explains a history, although many operations have an
// unknown outcome.
func TestSearchIsShort(t *testing.T) {
	const number, most = 25, 20_000
	r := byHand(number)
	r.note(operation{Process: 1, In: input{Key: r.licenses[0].key, Action: get}, Out: ok(7, 0), Call: time.Minute,
		Return: time.Minute + 1})
	m, steps := model(), 0
	step := m.Step
	m.Step = func(s, in, out any) (bool, any) {
		if steps++; steps > most {
			return false, s
		}
		return step(s, in, out)
	}
	if verdict := porcupine.CheckOperationsTimeout(m, r.history(), 0); verdict != porcupine.Illegal || steps > most {
		t.Errorf("the checker says %s after %d steps, want Illegal after %d at most", verdict, steps, most)
	}
}
