package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// nodeCounts returns how many nodes share the work, besides one node alone.
func nodeCounts() []int { return []int{3, 6} }

// nodeGroup is some nodes on one etcd. A load uses the first few of them.
type nodeGroup struct {
	*lab
	bench *bench
	nodes []*rig.Node
	hot   map[int]shape // the best number of connections to so many nodes
	cold  map[int]shape // the same for distinct licenses
}

// placement compares several nodes with one: first all nodes get requests for the same license, and then each node gets
// requests for any license. All share the same cores, so more nodes can't do more; the row measures how much less they
// do.
func (l *lab) placement(ctx context.Context, b *bench) error {
	c := &nodeGroup{lab: l, bench: b, hot: make(map[int]shape), cold: make(map[int]shape)}
	defer c.stop()
	return l.eachRound("one license on one node and on several, which know of each other or not",
		func(int) error { return c.round(ctx) })
}

func (c *nodeGroup) stop() {
	for _, n := range c.nodes {
		n.Kill()
	}
	c.nodes = nil
}

// renew replaces all nodes by new ones. together means that they know of each other.
func (c *nodeGroup) renew(ctx context.Context, together bool) error {
	c.stop()
	var more []string
	if together {
		more = stage.Together()
	}
	for range nodeCounts()[len(nodeCounts())-1] {
		n, err := c.bench.Licet.StartNode(ctx, c.bench.Etcd, more...)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

func (c *nodeGroup) round(ctx context.Context) error {
	if err := c.renew(ctx, true); err != nil {
		return err
	}
	alone, err := c.stormed(ctx, 1)
	if err != nil {
		return err
	}
	c.inform("one license: on 1 node", alone)
	for _, count := range nodeCounts() {
		o, err := c.stormed(ctx, count)
		if err != nil {
			return err
		}
		c.report.add("placement", fmt.Sprintf("one hot license on %d nodes ÷ on 1", count), o.rate()/alone.rate())
		c.inform(fmt.Sprintf("one license: on %d nodes", count), o)
	}
	if err := c.distinct(ctx); err != nil {
		return err
	}
	// For information: the same without.
	if err := c.renew(ctx, false); err != nil {
		return err
	}
	for _, count := range nodeCounts() {
		o, err := c.stormed(ctx, count)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("one license: on %d nodes that know nothing of each other", count)
		c.report.inform(name+" ÷ on 1", "", o.rate()/alone.rate())
		c.inform(name, o)
	}
	return nil
}

func (c *nodeGroup) addresses(count int) []string {
	var list []string
	for _, n := range c.nodes[:count] {
		list = append(list, n.Address)
	}
	return list
}

// share is the result of a load on some nodes.
type share struct {
	*outcome
	connections int
	counts      map[string]float64 // what was counted meanwhile
}

// each returns what was counted for each operation that succeeded.
func (s *share) each(what string) float64 { return s.counts[what] / float64(max(s.ok, 1)) }

// load sends a load to the first nodes, and notes failures.
func (c *nodeGroup) load(
	ctx context.Context, count, connections int, list *rig.Keys, pick func(int) (int, device), most int,
	limit time.Duration,
) (*share, error) {
	f := bindersAt(c.addresses(count), connections, list, pick)
	defer f.close()
	if err := f.open(); err != nil {
		return nil, err
	}
	before, err := c.count(ctx)
	if err != nil {
		return nil, err
	}
	s := &share{outcome: f.closedLoop(ctx, most, limit), connections: connections}
	if s.counts, err = c.count(ctx); err != nil {
		return nil, err
	}
	for what, value := range before {
		s.counts[what] -= value
	}
	if text := s.describe(); text != "" {
		c.report.note("placement", fmt.Sprintf("%d nodes: %s", count, text))
	}
	return s, ctx.Err()
}

// count returns what nodes, etcd and machine have counted so far. Processor times are in
// microseconds.
func (c *nodeGroup) count(ctx context.Context) (map[string]float64, error) {
	all := map[string]float64{}
	var pids []int
	for _, n := range c.nodes {
		pids = append(pids, n.PID())
		metrics, err := n.Scrape(ctx)
		if err != nil {
			return nil, err
		}
		all["hops"] += metrics.Sum("licet_hops_total")
		all["hops not taken"] += metrics.Sum("licet_hops_total", "outcome", "not_taken")
		all["commands that hopped"] += metrics.Sum("licet_hop_commands_total")
		all["swaps lost"] += metrics.Sum("licet_swaps_total", "outcome", "lost")
	}
	nodes, err := rig.CPUTime(pids...)
	if err != nil {
		return nil, err
	}
	etcd, err := rig.CPUTime(c.bench.Etcd.PIDs()...)
	if err != nil {
		return nil, err
	}
	all["CPU of the nodes"], all["CPU of etcd"] = float64(nodes.Microseconds()), float64(etcd.Microseconds())
	all["context switches"], err = contextSwitches()
	return all, err
}

// inform reports how a load on some nodes went.
func (c *nodeGroup) inform(name string, s *share) {
	c.report.inform(name, "/s", s.rate())
	c.report.inform(name+": connections", "", float64(s.connections))
	c.report.inform(name+": context switches", "", s.each("context switches"))
	c.report.inform(name+": CPU of the nodes", "µs", s.each("CPU of the nodes"))
	c.report.inform(name+": CPU of etcd", "µs", s.each("CPU of etcd"))
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
func (c *nodeGroup) stormed(ctx context.Context, count int) (*share, error) {
	one, err := c.bench.grant(ctx, 1, unlimited)
	if err != nil {
		return nil, err
	}
	from := 0
	try := func(s shape, span time.Duration) (*share, error) {
		o, err := c.load(ctx, count, s.workers, one, onto(from), 0, span)
		if err == nil {
			from += o.made
		}
		return o, err
	}
	best, err := c.best(c.hot, count, func(s shape) (*share, error) { return try(s, c.cfg.SweepSpan) })
	if err != nil {
		return nil, err
	}
	return try(best, c.cfg.Span)
}

// distinct binds the first device of licenses, and then two more: through one node, and through all nodes, each of
// which gets requests for any license. At the first device no node knows the license. At the later devices a single
// node knows it; of several nodes, mostly another node than the receiver of the request.
func (c *nodeGroup) distinct(ctx context.Context) error {
	all := len(c.nodes)
	cold, warm := map[int]*share{}, map[int]*share{}
	before, err := c.count(ctx)
	if err != nil {
		return err
	}
	activations := 0
	for _, count := range []int{1, all} {
		best, err := c.bestDistinct(ctx, count)
		if err != nil {
			return err
		}
		list, err := c.bench.grant(ctx, c.cfg.Licenses, unlimited)
		if err != nil {
			return err
		}
		n := list.Count()
		if cold[count], err = c.load(ctx, count, best.workers, list, spread(n, 0), n, 0); err != nil {
			return err
		}
		if warm[count], err = c.load(ctx, count, best.workers, list, spread(n, 1), 2*n, 0); err != nil {
			return err
		}
		activations += cold[count].made + warm[count].made
		c.inform(fmt.Sprintf("distinct licenses: on %d nodes", count), cold[count])
	}
	after, err := c.count(ctx)
	if err != nil {
		return err
	}
	c.report.add("placement", fmt.Sprintf("distinct licenses on %d nodes ÷ on 1", all),
		cold[all].rate()/cold[1].rate())
	c.report.inform(fmt.Sprintf("second and third devices of distinct licenses on %d nodes ÷ on 1, which knows them",
		all), "", warm[all].rate()/warm[1].rate())
	c.report.add("placement", "hops of a distinct activation",
		(after["commands that hopped"]-before["commands that hopped"])/float64(activations))
	return nil
}

// bestDistinct returns the number of connections with which so many nodes bind the first
// device of licenses fastest.
func (c *nodeGroup) bestDistinct(ctx context.Context, count int) (shape, error) {
	return c.best(c.cold, count, func(s shape) (*share, error) {
		list, err := c.bench.grant(ctx, c.cfg.Licenses, unlimited)
		if err != nil {
			return nil, err
		}
		return c.load(ctx, count, s.workers, list, spread(list.Count(), 0), list.Count(), c.cfg.SweepSpan)
	})
}

// best returns the number of connections with which so many nodes do most. It is looked
// for once.
func (c *nodeGroup) best(known map[int]shape, count int, try func(shape) (*share, error)) (best shape, err error) {
	if best, found := known[count]; found {
		return best, nil
	}
	// Twice, since nodes that have just started have not found each other yet.
	rates := make(map[shape]float64)
	for range 2 {
		for _, workers := range c.cfg.Sweep {
			s := shape{workers: workers}
			o, err := try(s)
			if err != nil {
				return best, err
			}
			if rates[s] += o.rate(); rates[s] > rates[best] {
				best = s
			}
		}
	}
	known[count] = best
	return best, nil
}
