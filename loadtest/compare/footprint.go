package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"licet/loadtest/rig"
)

const mebibyte = 1 << 20

// devicesEach is the usual number of devices of a license.
const devicesEach = 3

// footprint binds devices to many licenses on a new store, and then reads how much
// memory the node uses.
func (l *lab) footprint(ctx context.Context, b *bench) {
	n := l.cfg.Remembered
	l.progress.Step("granting %d licenses", n)
	list := b.grant(ctx, n, devicesEach)
	before := goroutines(ctx, b.node)
	count := l.progress.Long(devicesEach*n, "binding %d devices", devicesEach*n)
	for from := range uint64(devicesEach) {
		must(bind(ctx, b.node, max(l.best.bind.workers, warmers), list, n, spread(n, from)))
		count(int(from+1) * n)
	}
	l.memory(ctx, b, list, before)
}

// memory reads what a node uses with remembered licenses and idle connections.
func (l *lab) memory(ctx context.Context, b *bench, list *rig.Keys, goroutinesBefore float64) {
	l.progress.Step("an idle node, and %d idle connections", l.cfg.Connections)
	idle := l.quiet(ctx, b.node, goroutinesBefore)
	memory := must(rig.MemoryOf(b.node.PID()))
	// One after the other: the row measures waiting connections, not a storm.
	clients := binder(b.node.Address, l.cfg.Connections, list, spread(list.Count(), 0))
	defer clients.close()
	stopIf(clients.open())
	for i := range l.cfg.Connections { // a node waits five seconds for the first request of a connection
		clients.hangUp(i)
		if code := clients.single(i, i, clients.build); code != 0 {
			stopIf(fmt.Errorf("an idle connection's one request: %s", codeName(code)))
		}
	}
	rig.Rest(ctx, l.cfg.Quiet/10)
	with := must(rig.MemoryOf(b.node.PID()))
	connected := goroutines(ctx, b.node)
	l.report.add("memory", "RSS", float64(memory.Resident)/mebibyte)
	l.report.add("memory", "goroutines per idle license",
		perLicense(idle-goroutinesBefore, l.cfg.Remembered))
	l.report.add("memory", "RSS more for 10,000 idle connections", float64(with.Resident-memory.Resident)/mebibyte)
	l.report.inform("memory: RSS of the node at its peak", "MiB", float64(memory.Peak)/mebibyte)
	l.report.inform("memory: goroutines of the idle node", "", idle)
	l.report.inform("memory: goroutines with idle connections", "", connected)
}

// quiet waits until the goroutines that served connections have ended: the HTTP server
// keeps idle ones for up to twenty seconds.
func (l *lab) quiet(ctx context.Context, n *rig.Node, before float64) float64 {
	for end := time.Now().Add(l.cfg.Quiet); ; rig.Rest(ctx, l.cfg.Quiet/20) {
		now := goroutines(ctx, n)
		if now <= before || time.Now().After(end) {
			return now
		}
	}
}

// perLicense divides goroutines by licenses, cut to a thousandth: a handful more or less
// are the runtime's and the HTTP server's own.
func perLicense(goroutines float64, licenses int) float64 {
	return math.Max(0, math.Trunc(1000*goroutines/float64(licenses))/1000)
}
