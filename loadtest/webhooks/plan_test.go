package main

import (
	"reflect"
	"testing"
)

// TestPlan counts the operations and events of plans of several sizes, and makes plans from equal and other seeds.
func TestPlan(t *testing.T) {
	for _, size := range []int{50, 51, 2_500} {
		p := newPlan(7, size)
		activations, operations, events, licenses := 0, 0, sharedLicenses, map[int]bool{}
		for _, s := range p.customers {
			activations += s.devices
			operations += s.operations()
			events += s.events()
			if s.removals > s.devices || s.devices > maxDevices || s.ordered && (s.fate == paid) != (s.devices > 0) {
				t.Errorf("%d activations: %+v", size, s)
			}
			if !s.ordered {
				licenses[s.shared] = true
			}
		}
		if activations != size || p.activations != size || p.operations != operations ||
			p.events != events+len(licenses) {
			t.Errorf("%d activations planned, want %d; %d operations of %d; %d events of %d",
				activations, size, p.operations, operations, p.events, events+len(licenses))
		}
		if !reflect.DeepEqual(p, newPlan(7, size)) || reflect.DeepEqual(p, newPlan(8, size)) {
			t.Error("the same seed makes different plans, or different seeds make the same plan")
		}
	}
}
