package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	f := func(q float64, want time.Duration, values ...time.Duration) {
		t.Helper()
		if got := percentile(values, q); got != want {
			t.Errorf("%v of %v: got %v, want %v", q, values, got, want)
		}
	}
	f(0.5, 0)
	f(0.5, 7, 7)
	f(0.99, 7, 7)
	f(0.5, 2, 1, 2, 3)
	f(0.5, 2, 1, 2, 3, 4)
	f(0.99, 4, 1, 2, 3, 4)
	f(0, 1, 1, 2)
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	f(0.99, 99, hundred...)
	f(1, 100, hundred...)
}

func TestClosedLoopMakesEachOperationOnce(t *testing.T) {
	const count = 1000
	var made [count]atomic.Int32
	all := make(workers, 7)
	for w := range all {
		all[w] = func(i int) int {
			made[i].Add(1)
			if i%10 == 0 {
				return 40901
			}
			return 0
		}
	}
	o := all.closedLoop(t.Context(), count, 0)
	if o.made != count || o.ok != 900 || o.failed[40901] != 100 || o.failures() != 100 {
		t.Errorf("got %+v", o)
	}
	for i := range made {
		if n := made[i].Load(); n != 1 {
			t.Errorf("operation %d was made %d times", i, n)
		}
	}
	if o.describe() != "100 × 40901" || o.describeBut(40901) != "" {
		t.Errorf("got %q", o.describe())
	}
}

func TestClosedLoopEndsInTime(t *testing.T) {
	slow := workers{func(int) int { time.Sleep(time.Millisecond); return 0 }}
	o := slow.closedLoop(t.Context(), 0, 50*time.Millisecond)
	if o.ok == 0 || o.elapsed < 50*time.Millisecond {
		t.Errorf("got %+v", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := slow.closedLoop(ctx, 0, 0); o.made > 0 {
		t.Errorf("after the end: %+v", o)
	}
}

// One worker takes far longer than the time between arrivals: operations that wait for the worker must look slow, and
// operations that never reached it must be reported.
func TestOpenLoopOmitsNothing(t *testing.T) {
	const took = 20 * time.Millisecond
	slow := workers{func(int) int { time.Sleep(took); return 0 }}
	o := slow.openLoop(t.Context(), arrivals{rate: 500, span: 300 * time.Millisecond, keep: true})
	came := o.made + o.failed[codeUnsent]
	// The numbers are wide: a busy machine must not fail this.
	if came < 75 || came > 250 {
		t.Errorf("%d came, and about 150 should have", came)
	}
	if o.made > 16 || o.failed[codeUnsent] < came/2 {
		t.Errorf("got %+v", o)
	}
	if len(o.waits()) != came {
		t.Errorf("%d of %d that came are in the waits", len(o.waits()), came)
	}
	if p := percentile(o.latencies, 0.9); p < 150*time.Millisecond {
		t.Errorf("the 90th percentile is %v: waiting was left out", p)
	}
}

func TestOpenLoopMakesAllArrivals(t *testing.T) {
	var made atomic.Int64
	all := make(workers, 50)
	for w := range all {
		all[w] = func(i int) int { made.Add(int64(i)); return 0 }
	}
	o := all.openLoop(t.Context(), arrivals{rate: 2000, span: 200 * time.Millisecond, keep: true})
	n := int64(o.made)
	if n == 0 || made.Load() != n*(n-1)/2 || o.failures() != o.failed[codeUnsent] || len(o.latencies) != o.made {
		t.Errorf("got %d operations with sum %d, %+v", n, made.Load(), o.failed)
	}
}

func TestAlternate(t *testing.T) {
	var order []int
	side := func(name int) worker {
		return func(i int) int { order = append(order, name); return name * i }
	}
	one, other := alternate(t.Context(), side(0), side(1), 3)
	if want := []int{0, 1, 0, 1, 0, 1}; len(order) != 6 || order[0] != want[0] || order[1] != want[1] ||
		order[5] != want[5] {
		t.Errorf("order %v", order)
	}
	if one.ok != 3 || other.ok != 1 || other.failures() != 2 || len(one.latencies) != 3 {
		t.Errorf("got %+v and %+v", one, other)
	}
	if both(one, one) != nil || both(one, other) == nil {
		t.Error("a side that failed counts")
	}
}
