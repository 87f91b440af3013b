package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"licet/loadtest/rig"
)

// runtimeFacts is what the Go runtime of a node reports, and its processor time.
type runtimeFacts struct {
	goroutines  float64
	allocations float64       // objects, since the start
	gc          time.Duration // processor time of the garbage collector, since the start
	cpu         time.Duration // processor time of the process, since the start
}

// factsOf reads the facts of a node.
func factsOf(ctx context.Context, n *rig.Node) (f runtimeFacts, err error) {
	metrics, err := n.Scrape(ctx)
	if err != nil {
		return f, err
	}
	if f.goroutines, err = metrics.Value("go_goroutines"); err != nil {
		return f, err
	}
	if f.allocations, err = metrics.Value("go_memstats_mallocs_total"); err != nil {
		return f, err
	}
	log, err := n.Log()
	if err != nil {
		return f, err
	}
	f.gc = gcTime(log)
	f.cpu, err = rig.CPUTime(n.PID())
	return f, err
}

// gcTime sums up the time of all collections in a log of GODEBUG=gctrace=1. Like Go's own
// share it leaves out the fourth of the five times: that of threads which had nothing else
// to do.
//
//	gc 7 @1.2s 3%: 0.1+2.6+0.01 ms clock, 0.95+0.1/0.59/2.5+0.007 ms cpu, …
func gcTime(log string) time.Duration {
	var milliseconds float64
	for line := range strings.Lines(log) {
		_, times, found := strings.Cut(line, " ms clock, ")
		if !found || !strings.HasPrefix(line, "gc ") {
			continue
		}
		times, _, _ = strings.Cut(times, " ms cpu")
		fields := strings.FieldsFunc(times, func(r rune) bool { return r == '+' || r == '/' })
		for i, field := range fields {
			if value, err := strconv.ParseFloat(field, 64); err == nil && i != 3 {
				milliseconds += value
			}
		}
	}
	return time.Duration(milliseconds * float64(time.Millisecond))
}
