package licensing_test

import (
	"testing"

	"licet/licensing"
)

// TestUnheardEventsAllocateNothing: if the owner does not listen, events of activations allocate no memory.
func TestUnheardEventsAllocateNothing(t *testing.T) {
	r := licensed(func(l *licensing.License) { l.MaxDevices = 1 })
	commands := []licensing.Command{
		licensing.Activate{Target: ours, Device: "phone", Name: "My Phone", Named: true},
		licensing.Activate{Target: ours, Device: "laptop"}, // full
		licensing.RemoveDevice{Target: ours, Device: "phone"},
	}
	full := 0
	allocated := testing.AllocsPerRun(100, func() {
		for _, c := range commands {
			if _, err := licensing.Apply(&r, c, noon); err != nil {
				full++
			}
		}
	})
	// The refusal is an error of its own.
	refusal := testing.AllocsPerRun(100, func() {
		_, _ = licensing.Apply(&r, licensing.Activate{Target: ours, Device: "phone"}, noon)
		_, _ = licensing.Apply(&r, commands[1], noon)
	})
	if full != 101 || len(r.Events) != 0 || allocated > refusal {
		t.Errorf("full %d times, events %+v, %v allocations, of which %v for the refusal", full, r.Events, allocated,
			refusal)
	}
}
