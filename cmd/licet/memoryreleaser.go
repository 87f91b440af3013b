package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// releaseInterval is how often the releaser checks whether the process is idle.
	releaseInterval = time.Second
	// idleAllocation is how many bytes an idle process allocates at most within releaseInterval. Background work
	// allocates about a tenth of that.
	idleAllocation = 1 << 20
	// worthReturning is how many bytes must be free or garbage before the releaser returns memory. With a large heap it
	// is a quarter of the live bytes: a process that is rarely idle takes long to produce that much garbage again.
	worthReturning = 16 << 20
	// roomForGarbage is how many bytes of garbage a load may produce between two collections, at least. By default Go
	// collects when the garbage equals the live heap: a node with a small heap would collect many times a second, for
	// up
	// to a third of its processor time.
	roomForGarbage = 64 << 20
	// usualPercent and mostPercent bound GOGC: garbage in percent of the live heap.
	usualPercent = 100
	mostPercent  = 800
)

// memoryReleaser returns memory to the system after a load. Allocation triggers Go's collector: after a load nothing
// allocates, so the garbage stays. Collecting in an idle process costs no request any time, while keeping less garbage
// at all times would. For that reason a load may always produce roomForGarbage.
type memoryReleaser struct {
	read      func() heapUse
	release   func()
	setGOGC   func(percent int)
	allocated uint64 // at the last check
	percent   int    // the GOGC that was set last; 0: none yet
}

// heapUse is the state of the heap, in bytes.
type heapUse struct {
	allocated uint64 // since the start of the process
	live      uint64 // in use at the last collection
	garbage   uint64 // allocated since then, or unused
	free      uint64 // unused, but not returned to the system
}

// newMemoryReleaser returns nil if the environment configures Go's collector.
func newMemoryReleaser(lookup func(string) (string, bool)) *memoryReleaser {
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		if text, _ := lookup(variable); text != "" {
			return nil
		}
	}
	return &memoryReleaser{read: readHeapUse, release: debug.FreeOSMemory,
		setGOGC: func(percent int) { debug.SetGCPercent(percent) }}
}

// run checks the heap every releaseInterval until ctx ends.
func (r *memoryReleaser) run(ctx context.Context) {
	ticker := time.NewTicker(releaseInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.check()
		}
	}
}

// check adapts GOGC to the live heap, and returns memory if the process is idle.
func (r *memoryReleaser) check() {
	now := r.read()
	// Setting GOGC stops the world for a moment, so small changes are skipped.
	if percent := percentFor(now.live); percent > r.percent*5/4 || percent < r.percent*4/5 {
		r.percent = percent
		r.setGOGC(percent)
	}
	idle := now.allocated-r.allocated <= idleAllocation
	r.allocated = now.allocated
	if idle && now.garbage+now.free >= max(worthReturning, now.live/4) {
		r.release()
	}
}

// percentFor returns the GOGC for a live heap.
func percentFor(live uint64) int {
	return int(min(max(100*roomForGarbage/max(live, 1), usualPercent), mostPercent))
}

// readHeapUse reads the state of the heap from the runtime.
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
