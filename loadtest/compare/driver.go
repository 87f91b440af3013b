package main

import (
	"context"
	"time"
)

// driver makes a load. Clients of etcd are goroutines, each with a worker;
// connections to a node are all driven by one thread, since what the load
// generator uses of the processors, the node can't have.
type driver interface {
	// open makes everything ready, so that nothing is connected while it is
	// measured.
	open() error
	// closedLoop has every client make one operation after the other, until
	// count of them are begun or the time is up. Zero stands for no such bound.
	closedLoop(ctx context.Context, count int, limit time.Duration) *outcome
	// openLoop begins each operation at its own moment, whatever became of those
	// before, if a client is free; else as soon as one is. A latency counts from
	// the moment when the operation was due, so that what had to wait for a free
	// client is not made to look fast. Clients that were busy last are used
	// first, so that no more of them are in use than it takes.
	//
	// What was due in the span but found no client until its end is not sent any
	// more; it is counted under codeUnsent. elapsed is the span, and ok what
	// succeeded within it; what is answered later has its latency counted.
	openLoop(ctx context.Context, a arrivals) *outcome
	close()
}

var (
	_ driver = workers(nil)
	_ driver = (*fleet)(nil)
)

// arrivals are the operations of an open loop: they come at moments that do
// not depend on how the earlier ones went.
type arrivals struct {
	rate float64 // a second
	span time.Duration
	keep bool // keep latencies
}
