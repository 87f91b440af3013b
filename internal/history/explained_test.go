package history

import (
	"testing"

	"licet/licensing"
)

// TestExplained: a device that becomes another one and comes back has one bound_at in three states. The activation that
// was answered with this time explains the last of the changes, and a lost activation the first.
func TestExplained(t *testing.T) {
	const boundAt = 1000
	l := &license{key: licensing.LicenseID{1}.Key("LIC"), devices: []string{"first", "second"}}
	state := func(revision int64, device string) *licenseAt {
		s := &licenseAt{revision: revision, matched: true, recordWritten: true, devices: map[string]int64{}}
		if device != "" {
			s.devices[device] = boundAt
		}
		return s
	}
	states := []*licenseAt{state(10, ""), state(20, "first"), state(30, "second"), state(40, "first")}
	activates := func(device int, v verdict, before, after int64) operation {
		op := operation{In: input{Key: l.key, Action: activate, Device: device}, Out: output{Verdict: v},
			Before: before, After: after}
		if v == accepted {
			op.BoundAt = boundAt
		}
		return op
	}
	ops := []operation{activates(0, unknown, 5, 15), activates(1, accepted, 20, 30), activates(0, accepted, 15, 40)}
	violations := func(ops ...operation) int {
		i := &inspection{run: &run{licenses: []*license{l}}}
		i.explained(l.key, states, ops)
		return len(i.list)
	}
	if n := violations(ops...); n != 0 {
		t.Errorf("%d changes have no cause, want 0", n)
	}
	for without := range ops {
		rest := append(append([]operation(nil), ops[:without]...), ops[without+1:]...)
		if n := violations(rest...); n != 1 {
			t.Errorf("without operation %d, %d changes have no cause, want 1", without, n)
		}
	}
}
