package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// lab measures all rows.
type lab struct {
	cfg      *config
	setup    rig.Setup // of each bench
	report   *report
	progress *rig.Progress

	best shapes // what the sweeps found
}

// shapes are the best number of operations at a time for each load.
type shapes struct {
	put, get              shape
	bind, hot, mix, renew shape // connections to the node
}

// bench is a store with the node that is measured on it. Another node, the seeder, grants
// licenses, so that the measured node does not know them.
type bench struct {
	*stage.Stage
	flags  []string  // of the nodes
	node   *rig.Node // the measured node
	seeder *rig.Node
	group  []*rig.Node // nodes that are measured in place of node; nil: node
	base   *baseline
	apiKey string
}

const accountName = "compare"

// manyClients returns the flags of nodes that give this machine's address the connections of many
// clients. By default one address gets as many as are still free.
func manyClients() []string { return []string{"--trusted-proxies", "127.0.0.1"} }

// bench starts etcd and two nodes, with these flags besides the usual ones. They end
// with stop, which removes the store, so that what is measured next gets an empty disk.
func (l *lab) bench(ctx context.Context, members int, flags ...string) *bench {
	on := must(stage.New(ctx,
		&stage.Config{Setup: l.setup, Name: accountName, Members: members, Nodes: 2, Flags: flags}))
	b := &bench{Stage: on, flags: flags, seeder: on.Nodes[0], node: on.Nodes[1]}
	var err error
	if b.apiKey, err = b.Licet.CreateKey(ctx, b.Etcd, accountName); err == nil {
		b.base, err = newBaseline(b.Etcd)
	}
	if err != nil {
		b.Stop()
	}
	stopIf(err)
	return b
}

// renew replaces a node of the bench by a new one, which knows no license.
func (b *bench) renew(ctx context.Context, n **rig.Node, flags ...string) {
	(*n).Kill()
	fresh := must(b.Licet.StartNode(ctx, b.Etcd, flags...))
	*n, b.Nodes = fresh, append(b.Nodes, fresh)
}

// renewNode replaces the measured node. All rounds together have more licenses than a node remembers, and no round may
// profit from the rounds before.
func (b *bench) renewNode(ctx context.Context) { b.renew(ctx, &b.node, b.flags...) }

// alone leaves the measured node as the only node.
func (b *bench) alone() {
	b.seeder.Kill()
	b.seeder = b.node
}

func (b *bench) stop() {
	b.base.close()
	b.Stop()
}

// eachRound measures the rounds of a row, whose numbers begin with 0.
func (l *lab) eachRound(what string, measure func(number int)) {
	for number := range l.cfg.Rounds {
		l.progress.Step("%s, round %d of %d", what, number+1, l.cfg.Rounds)
		named(fmt.Sprintf("round %d", number+1), func() { measure(number) })
	}
}

// grant makes licenses through the seeder.
func (b *bench) grant(ctx context.Context, count, maxDevices int) *rig.Keys {
	return must(grant(ctx, b.seeder, b.apiKey, count, maxDevices))
}

// sample is the result of a load, and what it cost.
type sample struct {
	*outcome
	costs
}

// costs are what the measured node and etcd have used so far, or for a load.
type costs struct {
	node, etcd, own time.Duration // processor time; own is that of this process
	allocations     float64       // objects of the node
}

// perOperation returns a processor time for each operation, in microseconds.
func (s *sample) perOperation(cpu time.Duration) float64 {
	return float64(cpu.Nanoseconds()) / 1000 / float64(max(s.ok, 1))
}

// measure runs a load and measures its costs. It closes the driver.
func (b *bench) measure(ctx context.Context, d driver, run func(driver) *outcome) *sample {
	defer d.close()
	stopIf(d.open())
	before := b.costs(ctx)
	s := &sample{outcome: run(d)}
	after := b.costs(ctx)
	if s.ok == 0 && len(s.latencies) == 0 { // in an open loop all may be late
		stopIf(fmt.Errorf("nothing succeeded: %s", s.describe()))
	}
	s.costs = costs{after.node - before.node, after.etcd - before.etcd, after.own - before.own,
		after.allocations - before.allocations}
	stopIf(ctx.Err())
	return s
}

func (b *bench) costs(ctx context.Context) costs {
	c := costs{etcd: must(rig.CPUTime(b.Etcd.PIDs()...)), own: must(ownCPUTime())}
	nodes := b.group
	if nodes == nil {
		nodes = []*rig.Node{b.node}
	}
	for _, n := range nodes {
		c.node += must(rig.CPUTime(n.PID()))
		c.allocations += nodeMetric(ctx, n, "go_memstats_mallocs_total")
	}
	return c
}

// nodeMetric returns the value of a metric that a node has once.
func nodeMetric(ctx context.Context, n *rig.Node, name string) float64 {
	return must(must(n.Scrape(ctx)).Value(name))
}

// goroutines returns how many goroutines a node has.
func goroutines(ctx context.Context, n *rig.Node) float64 { return nodeMetric(ctx, n, "go_goroutines") }

// closed is a load without pauses, for a number of operations or a time.
func closed(ctx context.Context, count int, limit time.Duration) func(driver) *outcome {
	return func(d driver) *outcome { return d.closedLoop(ctx, count, limit) }
}

// opened is a load with arrivals.
func opened(ctx context.Context, rate float64, span time.Duration) func(driver) *outcome {
	return func(d driver) *outcome { return d.openLoop(ctx, arrivals{rate: rate, span: span, keep: true}) }
}

// put measures the baseline.
func (b *bench) put(ctx context.Context, s shape, run func(driver) *outcome) *sample {
	measured := b.measure(ctx, b.base.puts(ctx, s), run)
	b.base.wrote(measured.outcome)
	return measured
}

// activate measures activations on the node.
func (b *bench) activate(
	ctx context.Context, s shape, list *rig.Keys, pick func(int) (int, device), run func(driver) *outcome,
) *sample {
	return b.measure(ctx, binder(b.node.Address, s.workers, list, pick), run)
}

// checkSample notes the failures of a load below the table.
func (l *lab) checkSample(row, what string, s *sample) {
	if text := s.describe(); text != "" {
		l.report.note(row, what+": "+text)
	}
}
