package licet_test

import (
	"testing"

	"licet"
)

// TestNobodyListensForNothing: where nobody listens, events of activations cost an
// activation no memory at all.
func TestNobodyListensForNothing(t *testing.T) {
	r := licensed(func(l *licet.License) { l.MaxDevices = 1 })
	commands := []licet.Command{
		licet.Activate{Target: ours, Device: "phone", Name: "My Phone", Named: true},
		licet.Activate{Target: ours, Device: "laptop"}, // full
		licet.RemoveDevice{Target: ours, Device: "phone"},
	}
	full := 0
	allocated := testing.AllocsPerRun(100, func() {
		for _, c := range commands {
			if _, err := licet.Apply(&r, c, noon); err != nil {
				full++
			}
		}
	})
	// The refusal is an error of its own.
	refusal := testing.AllocsPerRun(100, func() {
		_, _ = licet.Apply(&r, licet.Activate{Target: ours, Device: "phone"}, noon)
		_, _ = licet.Apply(&r, commands[1], noon)
	})
	if full != 101 || len(r.Events) != 0 || allocated > refusal {
		t.Errorf("full %d times, told %+v, %v allocations, of which %v for the refusal", full, r.Events, allocated, refusal)
	}
}
