package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// nodeCounts returns how many nodes share the work, besides one node alone.
func nodeCounts() []int { return []int{3, 6} }

// nodeGroup is some nodes on one etcd. A load uses the first few of them.
type nodeGroup struct {
	*lab
	*bench
	hot  map[int]shape // the best number of connections to so many nodes
	cold map[int]shape // the same for distinct licenses
}

// placement compares several nodes with one: first all nodes get requests for the same license, and then each node gets
// requests for any license. All share the same cores, so more nodes can't do more; the row measures how much less they
// do.
func (l *lab) placement(ctx context.Context, b *bench) {
	c := &nodeGroup{lab: l, bench: b, hot: make(map[int]shape), cold: make(map[int]shape)}
	l.eachRound("one license on one node and on several, which know of each other or not",
		func(int) { c.round(ctx) })
}

// renewAll replaces the measured nodes by new ones.
func (c *nodeGroup) renewAll(ctx context.Context, flags ...string) {
	for _, n := range c.group {
		n.Kill()
	}
	c.group = nil
	for range nodeCounts()[len(nodeCounts())-1] {
		c.group = append(c.group, must(c.Licet.StartNode(ctx, c.Etcd, flags...)))
		c.Nodes = append(c.Nodes, c.group[len(c.group)-1])
	}
}

func (c *nodeGroup) round(ctx context.Context) {
	c.renewAll(ctx, stage.Together()...)
	alone := c.stormed(ctx, 1)
	c.inform("one license: on 1 node", alone)
	for _, count := range nodeCounts() {
		o := c.stormed(ctx, count)
		c.report.add("placement", fmt.Sprintf("one hot license on %d nodes ÷ on 1", count), o.rate()/alone.rate())
		c.inform(fmt.Sprintf("one license: on %d nodes", count), o)
	}
	c.distinct(ctx)
	// For information: the same without.
	c.renewAll(ctx)
	for _, count := range nodeCounts() {
		o := c.stormed(ctx, count)
		name := fmt.Sprintf("one license: on %d nodes that know nothing of each other", count)
		c.report.inform(name+" ÷ on 1", "", o.rate()/alone.rate())
		c.inform(name, o)
	}
}

// share is the result of a load on some nodes.
type share struct {
	*sample
	connections int
	counts      map[string]float64 // what was counted meanwhile
}

// each returns what was counted for each operation that succeeded.
func (s *share) each(what string) float64 { return s.counts[what] / float64(max(s.ok, 1)) }

// load sends a load to the first nodes, and notes failures.
func (c *nodeGroup) load(
	ctx context.Context, count, connections int, list *rig.Keys, pick func(int) (int, device), most int,
	limit time.Duration,
) *share {
	var addresses []string
	for _, n := range c.group[:count] {
		addresses = append(addresses, n.Address)
	}
	before := c.count(ctx)
	s := &share{connections: connections,
		sample: c.measure(ctx, bindersAt(addresses, connections, list, pick), closed(ctx, most, limit))}
	s.counts = c.count(ctx)
	for what, value := range before {
		s.counts[what] -= value
	}
	c.checkSample("placement", fmt.Sprintf("%d nodes", count), s.sample)
	return s
}

// count returns what nodes and machine have counted so far.
func (c *nodeGroup) count(ctx context.Context) map[string]float64 {
	all := map[string]float64{"context switches": must(contextSwitches())}
	for _, n := range c.group {
		metrics := must(n.Scrape(ctx))
		all["hops"] += metrics.Sum("licet_hops_total")
		all["hops not taken"] += metrics.Sum("licet_hops_total", "outcome", "not_taken")
		all["commands that hopped"] += metrics.Sum("licet_hop_commands_total")
		all["swaps lost"] += metrics.Sum("licet_swaps_total", "outcome", "lost")
	}
	return all
}

// inform reports how a load on some nodes went.
func (c *nodeGroup) inform(name string, s *share) {
	c.lab.inform(name, s.sample)
	c.report.inform(name+": connections", "", float64(s.connections))
	c.report.inform(name+": context switches", "", s.each("context switches"))
	if s.counts["commands that hopped"] == 0 {
		return
	}
	c.report.inform(name+": share that hops", "%", 100*s.each("commands that hopped"))
	c.report.inform(name+": commands of a hop", "", s.counts["commands that hopped"]/max(s.counts["hops"], 1))
	c.report.inform(name+": hops not taken", "", s.counts["hops not taken"])
	c.report.inform(name+": swaps lost by 1,000", "", 1000*s.each("swaps lost"))
}

// stormed binds new devices to one license through so many nodes, with the best number of
// connections for that.
func (c *nodeGroup) stormed(ctx context.Context, count int) *share {
	one := c.grant(ctx, 1, unlimited)
	from := 0
	try := func(s shape, span time.Duration) *share {
		o := c.load(ctx, count, s.workers, one, onto(from), 0, span)
		from += o.made
		return o
	}
	best := c.best(c.hot, count, func(s shape, _ int) *sample { return try(s, c.cfg.SweepSpan).sample })
	return try(best, c.cfg.Span)
}

// distinct binds the first device of licenses, and then two more: through one node, and through all nodes, each of
// which gets requests for any license. At the first device no node knows the license. At the later devices a single
// node knows it; of several nodes, mostly another node than the receiver of the request.
func (c *nodeGroup) distinct(ctx context.Context) {
	all := len(c.group)
	cold, warm := map[int]*share{}, map[int]*share{}
	before := c.count(ctx)
	activations := 0
	for _, count := range []int{1, all} {
		best := c.bestDistinct(ctx, count)
		list := c.grant(ctx, c.cfg.Licenses, unlimited)
		n := list.Count()
		cold[count] = c.load(ctx, count, best.workers, list, spread(n, 0), n, 0)
		warm[count] = c.load(ctx, count, best.workers, list, spread(n, 1), 2*n, 0)
		activations += cold[count].made + warm[count].made
		c.inform(fmt.Sprintf("distinct licenses: on %d nodes", count), cold[count])
	}
	after := c.count(ctx)
	c.report.add("placement", fmt.Sprintf("distinct licenses on %d nodes ÷ on 1", all),
		cold[all].rate()/cold[1].rate())
	c.report.inform(fmt.Sprintf("second and third devices of distinct licenses on %d nodes ÷ on 1, which knows them",
		all), "", warm[all].rate()/warm[1].rate())
	c.report.add("placement", "hops of a distinct activation",
		(after["commands that hopped"]-before["commands that hopped"])/float64(activations))
}

// bestDistinct returns the number of connections with which so many nodes bind the first
// device of licenses fastest.
func (c *nodeGroup) bestDistinct(ctx context.Context, count int) shape {
	return c.best(c.cold, count, func(s shape, _ int) *sample {
		list := c.grant(ctx, c.cfg.Licenses, unlimited)
		return c.load(ctx, count, s.workers, list, spread(list.Count(), 0), list.Count(), c.cfg.SweepSpan).sample
	})
}

// best returns the number of connections with which so many nodes do most. It is looked
// for once.
func (c *nodeGroup) best(known map[int]shape, count int, try func(s shape, number int) *sample) shape {
	if _, found := known[count]; !found {
		// Twice, since nodes that have just started have not found each other yet.
		known[count] = c.fastest(fmt.Sprintf("%d nodes", count), slices.Repeat(c.connections(), 2), try)
	}
	return known[count]
}
