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
// memory the node holds.
func (l *lab) footprint(ctx context.Context, b *bench) error {
	n := l.cfg.Remembered
	l.progress.Step("granting %d licenses", n)
	list, err := b.grant(ctx, n, devicesEach)
	if err != nil {
		return err
	}
	before, err := factsOf(ctx, b.node)
	if err != nil {
		return err
	}
	count := l.progress.Long(devicesEach*n, "binding %d devices", devicesEach*n)
	for from := range uint64(devicesEach) {
		if _, err := bind(ctx, b.node, max(l.best.bind.workers, warmers), list, n, spread(n, from)); err != nil {
			return err
		}
		count(int(from+1) * n)
	}
	return l.memory(ctx, b, list, before.goroutines)
}

// memory reads what a node holds with remembered licenses and idle connections.
func (l *lab) memory(ctx context.Context, b *bench, list *rig.Keys, goroutinesBefore float64) error {
	l.progress.Step("an idle node, and %d idle connections", l.cfg.Connections)
	idle, err := l.quiet(ctx, b.node, goroutinesBefore)
	if err != nil {
		return err
	}
	memory, err := rig.MemoryOf(b.node.PID())
	if err != nil {
		return err
	}
	// One after the other: the row measures waiting connections, not a storm.
	for i := range l.cfg.Connections {
		c := newConn(b.node.Address)
		defer c.close()
		if code := activator(c, list, spread(list.Count(), 0))(i); code != 0 {
			return fmt.Errorf("an idle connection's one request: %s", codeName(code))
		}
	}
	rig.Rest(ctx, l.cfg.Quiet/10)
	with, err := rig.MemoryOf(b.node.PID())
	if err != nil {
		return err
	}
	crowded, err := factsOf(ctx, b.node)
	if err != nil {
		return err
	}
	l.report.add("memory", "RSS", float64(memory.Resident)/mebibyte)
	l.report.add("memory", "goroutines per idle license",
		perLicense(idle.goroutines-goroutinesBefore, l.cfg.Remembered))
	l.report.add("memory", "RSS more for 10,000 idle connections", float64(with.Resident-memory.Resident)/mebibyte)
	l.report.inform("memory: RSS of the node at its peak", "MiB", float64(memory.Peak)/mebibyte)
	l.report.inform("memory: goroutines of the idle node", "", idle.goroutines)
	l.report.inform("memory: goroutines with idle connections", "", crowded.goroutines)
	return nil
}

// quiet waits until the goroutines that served connections have ended: the HTTP server
// keeps idle ones for up to twenty seconds.
func (l *lab) quiet(ctx context.Context, n *rig.Node, before float64) (runtimeFacts, error) {
	for end := time.Now().Add(l.cfg.Quiet); ; rig.Rest(ctx, l.cfg.Quiet/20) {
		facts, err := factsOf(ctx, n)
		if err != nil || facts.goroutines <= before || time.Now().After(end) {
			return facts, err
		}
	}
}

// perLicense divides goroutines by licenses, cut to a thousandth: a handful more or less
// are the runtime's and the HTTP server's own.
func perLicense(goroutines float64, licenses int) float64 {
	return math.Max(0, math.Trunc(1000*goroutines/float64(licenses))/1000)
}
