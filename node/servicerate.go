package node

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// assumedRate is the rate that a node assumes, in commands a second, until it was busy.
	assumedRate = 20_000
	// rateWindow is the time of one measurement.
	rateWindow = 100 * time.Millisecond
	// rateMemory is how long a rate counts after the node was last busy.
	rateMemory = 5 * time.Second
)

// serviceRate measures how many commands a second the node can serve, window by window. The commands served in a
// window are the rate only if the node was busy: if there were more commands than the store works on at a time.
// Otherwise the rate is at least that.
//
// A lower rate counts at once, a higher rate by half in each window: a rate that is too low for a moment costs
// nothing, since the least limit keeps the store busy; a rate that is too high makes a queue.
type serviceRate struct {
	served  atomic.Int64  // in this window
	wasBusy atomic.Bool   // in this window
	ends    atomic.Int64  // when this window ends, in nanoseconds since birth
	bits    atomic.Uint64 // the rate, as math.Float64bits
	slow    atomic.Uint64 // the rate over a longer time, in the same unit

	birth time.Time // never changed
	mu    sync.Mutex
	last  time.Duration // when the latest busy window ended, since birth; guarded by mu
}

func (r *serviceRate) begin(now time.Time) {
	r.birth = now
	r.bits.Store(math.Float64bits(assumedRate))
	r.slow.Store(math.Float64bits(assumedRate))
	r.ends.Store(int64(rateWindow))
}

// value returns the rate, in commands a second.
func (r *serviceRate) value() float64 { return math.Float64frombits(r.bits.Load()) }

// steady returns the rate over the last busy second or two. A store may answer in bursts, with nothing between.
func (r *serviceRate) steady() float64 { return math.Float64frombits(r.slow.Load()) }

// busy notes that commands are waiting for others to be served.
func (r *serviceRate) busy() {
	// All callers but the first of a window only read, so they share the cache line.
	if !r.wasBusy.Load() {
		r.wasBusy.Store(true)
	}
}

// observe ends the window if its time has come, and reports whether the rate may have changed.
func (r *serviceRate) observe(now time.Time) bool {
	at := now.Sub(r.birth)
	if r.within(at) || !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	if r.within(at) {
		return false // another caller was faster
	}
	late := at - time.Duration(r.ends.Load())
	r.ends.Store(int64(at + rateWindow))
	served, busy := r.served.Swap(0), r.wasBusy.Swap(false)
	if busy || r.last > at {
		r.last = at
	}
	// If no command came for a while, or the clock was set back, a part of the window has no measurement.
	whole := late >= 0 && late <= rateWindow
	measured := float64(served) / (late + rateWindow).Seconds()
	rate, steady := r.value(), r.steady()
	switch {
	case whole && busy:
		steady += (measured - steady) / 16
	case whole:
		steady = max(steady, measured)
	}
	switch {
	case whole && measured > rate:
		rate += (measured - rate) / 2
	case whole && busy:
		rate = measured
	case at-r.last >= rateMemory:
		rate, steady = assumedRate, assumedRate
	}
	r.bits.Store(math.Float64bits(rate))
	r.slow.Store(math.Float64bits(steady))
	return true
}

// within reports whether a time since birth lies in the window.
func (r *serviceRate) within(at time.Duration) bool {
	left := time.Duration(r.ends.Load()) - at
	return left > 0 && left <= rateWindow
}
