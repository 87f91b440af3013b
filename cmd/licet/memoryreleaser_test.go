package main

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

// TestThrift: memory is given back where a load has left much of it and is over,
// and only then.
func TestThrift(t *testing.T) {
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
		{"a load", []heapUse{{allocated: most, free: much}, {allocated: restful + 1, free: much}}, 0},
		{"what a process does for itself", []heapUse{{allocated: restful, free: much}, {}}, 1},
	} {
		given := 0
		var allocated uint64
		thrift := &thrift{giveBack: func() { given++ }, letGrow: func(int) {}}
		for _, use := range c.looks {
			allocated += use.allocated
			use.allocated = allocated
			thrift.read = func() heapUse { return use }
			thrift.look()
		}
		if given != c.given {
			t.Errorf("%s: given back %d times, want %d", c.name, given, c.given)
		}
	}
}

// TestThriftLetsGrow: where little is in use, garbage may come to more than that;
// and the collector is told so only where it matters.
func TestThriftLetsGrow(t *testing.T) {
	var told []int
	thrift := &thrift{giveBack: func() {}, letGrow: func(percent int) { told = append(told, percent) }}
	for _, live := range []uint64{0, 1 << 20, 16 << 20, 17 << 20, 32 << 20, 64 << 20, 70 << 20, 1 << 30, 60 << 20, 40 << 20} {
		thrift.read = func() heapUse { return heapUse{live: live} }
		thrift.look()
	}
	if want := []int{800, 400, 200, 100, 160}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// TestThriftReturns: what is dropped counts as worth giving back, and is gone
// once it is given back.
func TestThriftReturns(t *testing.T) {
	thrift := newThrift(func(string) (string, bool) { return "", false })
	// No collection of Go's own may come in between.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	load := make([]byte, 4*worthReturning)
	load[len(load)-1] = 1
	runtime.KeepAlive(load)
	before := thrift.read()
	if before.garbage < worthReturning {
		t.Errorf("with %d bytes dropped: %+v", len(load), before)
	}
	thrift.giveBack()
	if after := thrift.read(); after.garbage+after.free >= worthReturning || after.allocated < before.allocated {
		t.Errorf("given back: %+v", after)
	}
}

// TestThriftHeedsTheEnvironment: who says how the collector shall work is left
// alone.
func TestThriftHeedsTheEnvironment(t *testing.T) {
	for _, c := range []struct {
		variable, text string
		off            bool
	}{{"GOGC", "", false}, {"GOGC", "100", true}, {"GOGC", "off", true}, {"GOMEMLIMIT", "1GiB", true}, {"GODEBUG", "gctrace=1", false}} {
		thrift := newThrift(func(name string) (string, bool) {
			if name == c.variable {
				return c.text, true
			}
			return "", false
		})
		if (thrift == nil) != c.off {
			t.Errorf("%s=%q: off %v, want %v", c.variable, c.text, thrift == nil, c.off)
		}
	}
}
