package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// thriftEvery is how often it is looked whether the process is at rest.
	thriftEvery = time.Second
	// restful is how many bytes are allocated at most between two looks at a
	// process at rest; what it does for itself is some tenth of that.
	restful = 1 << 20
	// worthReturning is how many bytes there must be to give back, and where much
	// is in use, a quarter of that. A process that is never quite at rest takes
	// long to make so much garbage again.
	worthReturning = 16 << 20
	// roomForGarbage is how much garbage a load may make at least between two
	// collections. Go's collector takes as much as is in use, and a node that
	// remembers little would collect many times a second, for up to a third of its
	// processor time.
	roomForGarbage = 64 << 20
	// usualPercent and mostPercent bound the garbage, in percent of what is in use.
	usualPercent = 100
	mostPercent  = 800
)

// thrift gives memory back that a load has left behind. Go's collector lets the
// heap grow to twice what is in use before it runs, and runs by how much is
// allocated: after a load nothing calls for it, and what was garbage then stays.
// Collecting while nobody waits costs a load nothing, and less garbage at all
// times would. So under load there may be some, however little is in use.
type thrift struct {
	read      func() heapUse
	giveBack  func()
	letGrow   func(percent int)
	allocated uint64 // as of the last look
	percent   int    // as Go's collector was told; 0: nothing yet
}

// heapUse is what the runtime tells of its heap, in bytes.
type heapUse struct {
	allocated uint64 // since the process began
	live      uint64 // found in use by the last collection
	garbage   uint64 // the rest, though some of it may be in use
	free      uint64 // kept from the system, and in no use
}

// newThrift gives nil where the environment says how Go's collector shall work:
// then nothing else does.
func newThrift(lookup func(string) (string, bool)) *thrift {
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		if text, _ := lookup(variable); text != "" {
			return nil
		}
	}
	return &thrift{read: readHeapUse, giveBack: debug.FreeOSMemory, letGrow: func(percent int) { debug.SetGCPercent(percent) }}
}

// keep looks until ctx ends.
func (t *thrift) keep(ctx context.Context) {
	ticker := time.NewTicker(thriftEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.look()
		}
	}
}

func (t *thrift) look() {
	now := t.read()
	// Telling Go's collector stops all else for a moment, so small changes wait.
	if percent := percentFor(now.live); percent > t.percent*5/4 || percent < t.percent*4/5 {
		t.percent = percent
		t.letGrow(percent)
	}
	rests := now.allocated-t.allocated <= restful
	t.allocated = now.allocated
	if rests && now.garbage+now.free >= max(worthReturning, now.live/4) {
		t.giveBack()
	}
}

// percentFor is how much garbage there may be in percent of what is in use.
func percentFor(live uint64) int {
	return int(min(max(100*roomForGarbage/max(live, 1), usualPercent), mostPercent))
}

func readHeapUse() heapUse {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	use := heapUse{allocated: value(0), live: value(1), free: value(3)}
	if objects := value(2); objects > use.live {
		use.garbage = objects - use.live
	}
	return use
}
