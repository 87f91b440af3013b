package main

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
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

// TestPaceHasEveryKillComeInTime lets operations run as fast as they can.
func TestPaceHasEveryKillComeInTime(t *testing.T) {
	const operations, kills = 1000, 9
	p := newPace(operations, kills)
	var begun atomic.Int64
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for begun.Add(1) <= operations {
				p.proceed(t.Context())
				p.operated()
			}
		})
	}
	for kill := 1; p.next(t.Context()); kill++ {
		if done := p.count(); done < p.dueAt(kill) || done > p.dueAt(kill+1)+4 {
			t.Errorf("kill %d came after %d operations, and was due at %d", kill, done, p.dueAt(kill))
		}
		p.restarted()
	}
	group.Wait()
	if p.killed != kills || p.count() != operations {
		t.Errorf("%d kills, %d operations", p.killed, p.count())
	}
}

// TestPaceEnds ends operations before the kills: waiting operations and kills give up.
func TestPaceEnds(t *testing.T) {
	p := newPace(100, 10)
	p.operated()
	p.finish()
	if p.next(t.Context()) {
		t.Error("a kill is due though there are no operations any more")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late := newPace(100, 10)
	for range 30 {
		late.operated()
	}
	late.proceed(ctx) // returns
	if late.next(ctx) {
		t.Error("a kill is due though everything ends")
	}
}
