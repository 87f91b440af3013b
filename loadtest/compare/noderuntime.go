package main

import (
	"context"
	"time"

	"licet/loadtest/rig"
)

// runtimeFacts is what the Go runtime of a node reports, and its processor time.
type runtimeFacts struct {
	goroutines  float64
	allocations float64       // objects, since the start
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
	f.cpu, err = rig.CPUTime(n.PID())
	return f, err
}
