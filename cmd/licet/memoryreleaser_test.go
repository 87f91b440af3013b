package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

// TestMemoryReleaser checks that memory is returned after a load that left much of it, and only then.
func TestMemoryReleaser(t *testing.T) {
	const much, most = worthReturning, 1 << 40
	for _, c := range []struct {
		name  string
		looks []heapUse // allocated: since the look before
		given int
	}{
		{"after a load", []heapUse{{allocated: most}, {free: much}, {}}, 1},
		{"part of it garbage", []heapUse{{free: much / 2, garbage: much / 2}, {}}, 1},
		{"after each load", []heapUse{{free: much}, {allocated: most}, {free: much}}, 2},
		{"too little", []heapUse{{}, {free: much - 1}, {free: much - 1}}, 0},
		{"little by what is in use", []heapUse{{}, {live: 8 * much, free: much}, {live: 8 * much, free: much}}, 0},
		{"a load", []heapUse{{allocated: most, free: much}, {allocated: idleAllocation + 1, free: much}}, 0},
		{"what a process does for itself", []heapUse{{allocated: idleAllocation, free: much}, {}}, 1},
	} {
		given := 0
		var allocated uint64
		r := &memoryReleaser{release: func() { given++ }, setGOGC: func(int) {}}
		for _, use := range c.looks {
			allocated += use.allocated
			use.allocated = allocated
			r.read = func() heapUse { return use }
			r.check()
		}
		if given != c.given {
			t.Errorf("%s: given back %d times, want %d", c.name, given, c.given)
		}
	}
}

// TestMemoryReleaserSetsGOGC checks that a small live heap may have more garbage, and that small changes set nothing.
func TestMemoryReleaserSetsGOGC(t *testing.T) {
	var set []int
	r := &memoryReleaser{release: func() {}, setGOGC: func(percent int) { set = append(set, percent) }}
	for _, live := range []uint64{0, 1 << 20, 16 << 20, 17 << 20, 32 << 20, 64 << 20, 70 << 20, 1 << 30, 60 << 20,
		40 << 20} {
		r.read = func() heapUse { return heapUse{live: live} }
		r.check()
	}
	if want := []int{800, 400, 200, 100, 160}; !slices.Equal(set, want) {
		t.Errorf("set %v, want %v", set, want)
	}
}

// TestMemoryReleaserReturns checks that dropped memory counts as garbage, and is gone after the release.
func TestMemoryReleaserReturns(t *testing.T) {
	r := newMemoryReleaser(func(string) (string, bool) { return "", false })
	// Go must not collect in between.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	load := make([]byte, 4*worthReturning)
	load[len(load)-1] = 1
	runtime.KeepAlive(load)
	before := r.read()
	if before.garbage < worthReturning {
		t.Errorf("with %d bytes dropped: %+v", len(load), before)
	}
	r.release()
	if after := r.read(); after.garbage+after.free >= worthReturning || after.allocated < before.allocated {
		t.Errorf("given back: %+v", after)
	}
}

// TestMemoryReleaserIsOff checks that there is no releaser if the environment configures the collector.
func TestMemoryReleaserIsOff(t *testing.T) {
	for _, c := range []struct {
		variable, text string
		off            bool
	}{{"GOGC", "", false}, {"GOGC", "100", true}, {"GOGC", "off", true}, {"GOMEMLIMIT", "1GiB", true}, {"GODEBUG",
		"gctrace=1", false}} {
		r := newMemoryReleaser(func(name string) (string, bool) {
			if name == c.variable {
				return c.text, true
			}
			return "", false
		})
		if (r == nil) != c.off {
			t.Errorf("%s=%q: off %v, want %v", c.variable, c.text, r == nil, c.off)
		}
	}
}
