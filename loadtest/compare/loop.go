package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// driver makes a load. Clients of etcd are goroutines, each with a worker. One thread
// drives all connections to a node: processor time that the load generator takes is
// missing for the node.
type driver interface {
	// open prepares everything, so that nothing connects during the measurement.
	open() error
	// closedLoop has every client make one operation after the other, until count of
	// them have begun or the time is up. Zero means no such bound.
	closedLoop(ctx context.Context, count int, limit time.Duration) *outcome
	// openLoop begins each operation at its own moment if a client is free, else as soon
	// as one is. A latency counts from the moment when the operation was due, so waiting
	// for a client counts. An operation that finds no client before the end of the span
	// is not sent, and counts as codeUnsent. elapsed is the span, and ok counts what
	// succeeded within it. The end of ctx ends the span.
	openLoop(ctx context.Context, a arrivals) *outcome
	close()
}

// arrivals are the operations of an open loop.
type arrivals struct {
	rate float64 // a second
	span time.Duration
	keep bool // keep latencies
}

// worker makes operation number i, and returns its code. It makes one operation at a time.
type worker func(i int) int

// workers make a load, each in a goroutine of its own.
type workers []worker

func (workers) open() error { return nil }

func (workers) close() {}

// outcome is the result of many operations.
type outcome struct {
	made      int // operations that were begun
	ok        int
	failed    map[int]int // by code
	elapsed   time.Duration
	latencies []time.Duration // of successes, sorted; only if they are kept
	unsent    []time.Duration // how long each operation waited that was never sent
}

// rate returns how many operations succeeded in a second.
func (o *outcome) rate() float64 {
	if o.elapsed <= 0 {
		return 0
	}
	return float64(o.ok) / o.elapsed.Seconds()
}

func (o *outcome) failures() (n int) {
	for _, count := range o.failed {
		n += count
	}
	return n
}

func (o *outcome) fail(code int) {
	if o.failed == nil {
		o.failed = map[int]int{}
	}
	o.failed[code]++
}

func (workers workers) closedLoop(ctx context.Context, count int, limit time.Duration) *outcome {
	var next atomic.Int64
	if count == 0 {
		count = math.MaxInt
	}
	parts := make([]outcome, len(workers))
	var group sync.WaitGroup
	began := time.Now()
	for w := range workers {
		group.Go(func() {
			part := outcome{} // its own: neighbors in a slice share cache lines
			for ctx.Err() == nil && (limit == 0 || time.Since(began) < limit) {
				i := int(next.Add(1) - 1)
				if i >= count {
					break
				}
				part.made++
				if code := workers[w](i); code == 0 {
					part.ok++
				} else {
					part.fail(code)
				}
			}
			parts[w] = part
		})
	}
	group.Wait()
	return sum(parts, time.Since(began))
}

// sum adds up what each worker has done.
func sum(parts []outcome, elapsed time.Duration) *outcome {
	all := &outcome{elapsed: elapsed, failed: map[int]int{}}
	for i := range parts {
		all.ok += parts[i].ok
		all.made += parts[i].made
		for code, n := range parts[i].failed {
			all.failed[code] += n
		}
		all.latencies = append(all.latencies, parts[i].latencies...)
		all.unsent = append(all.unsent, parts[i].unsent...)
	}
	slices.Sort(all.latencies)
	return all
}

// alternate makes n operations of each of two workers, in turns, so that whatever slows
// the machine down slows both. It returns the latencies of each.
func alternate(ctx context.Context, one, other worker, n int) (first, second *outcome) {
	first, second = &outcome{}, &outcome{}
	for i := range n {
		for _, side := range []struct {
			worker  worker
			outcome *outcome
		}{{one, first}, {other, second}} {
			if ctx.Err() != nil {
				return first, second
			}
			began := time.Now()
			code := side.worker(i)
			side.outcome.took(time.Since(began), code)
		}
	}
	slices.Sort(first.latencies)
	slices.Sort(second.latencies)
	return first, second
}

func (o *outcome) took(latency time.Duration, code int) {
	o.elapsed += latency
	o.made++
	if code != 0 {
		o.fail(code)
		return
	}
	o.ok++
	o.latencies = append(o.latencies, latency)
}

// drop records an arrival that is not sent any more.
func (o *outcome) drop(a arrival, end time.Time) {
	o.fail(codeUnsent)
	o.unsent = append(o.unsent, end.Sub(a.due))
}

// waits returns the latencies, and how long arrivals waited that were never sent: they
// would have taken that long at least.
func (o *outcome) waits() []time.Duration {
	return slices.Sorted(slices.Values(slices.Concat(o.latencies, o.unsent)))
}

// percentile returns the smallest of the sorted values that a share q of all values does
// not exceed.
func percentile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	at := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

func milliseconds(sorted []time.Duration, q float64) float64 {
	return 1000 * percentile(sorted, q).Seconds()
}

// p50 returns the median of the latencies, in milliseconds.
func (o *outcome) p50() float64 { return milliseconds(o.latencies, 0.5) }

// p99 returns the 99th percentile of the waits, in milliseconds.
func (o *outcome) p99() float64 { return milliseconds(o.waits(), 0.99) }

// openLoop hands arrivals to the workers through a queue with room for all of them.
func (workers workers) openLoop(ctx context.Context, a arrivals) *outcome {
	queue := make(chan arrival, 1000+int(2*a.rate*a.span.Seconds()))
	// The thread that sleeps until the next arrival occupies one of the runtime's
	// processors. The clients keep the number that they have otherwise.
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(procs + 1)
	defer runtime.GOMAXPROCS(procs)
	began := time.Now()
	end := began.Add(a.span)
	parts := make([]outcome, len(workers))
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			part := outcome{} // neighbors in a slice share cache lines
			for due := range queue {
				if time.Now().After(end) {
					part.drop(due, end)
					continue
				}
				part.made++
				code := workers[w](due.number)
				now := time.Now()
				if code != 0 {
					part.fail(code)
					continue
				}
				if a.keep {
					part.latencies = append(part.latencies, now.Sub(due.due))
				}
				if now.Before(end) {
					part.ok++
				}
			}
			parts[w] = part
		})
	}
	for s := newSchedule(began, a.rate); ctx.Err() == nil && !s.due.After(end); s.next() {
		sleepUntil(s.due)
		queue <- arrival{s.number, s.due}
	}
	close(queue)
	group.Wait()
	return sum(parts, a.span)
}

// schedule is when arrivals are due: a Poisson process, as many independent clients make
// it. The same rate always has the same gaps.
type schedule struct {
	number int
	due    time.Time
	gaps   *rand.Rand
	rate   float64
}

func newSchedule(began time.Time, rate float64) *schedule {
	s := &schedule{number: -1, due: began, gaps: rand.New(rand.NewPCG(1, uint64(rate))), rate: rate}
	s.next()
	return s
}

func (s *schedule) next() {
	s.number++
	s.due = s.due.Add(time.Duration(s.gaps.ExpFloat64() / s.rate * float64(time.Second)))
}

// describe lists what failed, for a note. It is empty if nothing failed.
func (o *outcome) describe() string { return o.describeBut(0) }

// describeBut leaves out a code that is reported elsewhere.
func (o *outcome) describeBut(known int) string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(o.failed)) {
		if code != known {
			parts = append(parts, fmt.Sprintf("%d × %s", o.failed[code], codeName(code)))
		}
	}
	return strings.Join(parts, ", ")
}
