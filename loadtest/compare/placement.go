package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

// nodeCounts are how many nodes share the work, besides one alone.
func nodeCounts() []int { return []int{3, 6} }

// crowd is some nodes on one etcd, of which a load uses the first few.
type crowd struct {
	*lab
	bench *bench
	nodes []*rig.Node
	hot   map[int]shape // the best number of connections to so many nodes
	cold  map[int]shape // the same for distinct licenses
}

// placement compares several nodes with one, where all of them are asked for the
// same license, and where each is asked for any. All share the same cores, so
// more nodes can't do more; what is measured is how much less.
func (l *lab) placement(ctx context.Context) error {
	l.progress.Step("starting etcd and %d nodes", nodeCounts()[1])
	b, err := l.bench(ctx, 1, usualRetention)
	if err != nil {
		return err
	}
	defer b.stop()
	c := &crowd{lab: l, bench: b, hot: make(map[int]shape), cold: make(map[int]shape)}
	defer c.stop()
	for number := range l.cfg.Rounds {
		l.progress.Step("round %d of %d: one license on one node and on several, which know of each other or not", number+1, l.cfg.Rounds)
		if err := c.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", number+1, err)
		}
	}
	return nil
}

func (c *crowd) stop() {
	for _, n := range c.nodes {
		n.Kill()
	}
	c.nodes = nil
}

// renew starts all nodes anew; together: they know of each other.
func (c *crowd) renew(ctx context.Context, together bool) error {
	c.stop()
	var more []string
	if together {
		more = []string{"--internal-listen", "127.0.0.1:0"}
	}
	for range nodeCounts()[len(nodeCounts())-1] {
		n, err := c.licet.StartNode(ctx, c.bench.etcd, more...)
		if err != nil {
			return err
		}
		c.nodes = append(c.nodes, n)
	}
	return nil
}

func (c *crowd) round(ctx context.Context) error {
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

func (c *crowd) addresses(count int) []string {
	var list []string
	for _, n := range c.nodes[:count] {
		list = append(list, n.Address)
	}
	return list
}

// load drives the first nodes, and notes what failed.
func (c *crowd) load(ctx context.Context, count, connections int, list *rig.Keys, pick func(int) (int, device), most int, limit time.Duration) (*share, error) {
	f := bindersAt(c.addresses(count), connections, list, pick)
	defer f.close()
	if err := f.open(); err != nil {
		return nil, err
	}
	nodes, etcd, err := c.cpu()
	if err != nil {
		return nil, err
	}
	before, err := c.count(ctx)
	if err != nil {
		return nil, err
	}
	switches, err := contextSwitches()
	if err != nil {
		return nil, err
	}
	o := f.closedLoop(ctx, most, limit)
	switchesAfter, err := contextSwitches()
	if err != nil {
		return nil, err
	}
	nodesAfter, etcdAfter, err := c.cpu()
	if err != nil {
		return nil, err
	}
	after, err := c.count(ctx)
	if err != nil {
		return nil, err
	}
	if text := o.describe(); text != "" {
		c.report.note("placement", fmt.Sprintf("%d nodes: %s", count, text))
	}
	perOperation := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(max(o.ok, 1)) }
	return &share{
		outcome: o, connections: float64(connections), switches: (switchesAfter - switches) / float64(max(o.ok, 1)), nodes: perOperation(nodesAfter - nodes), etcd: perOperation(etcdAfter - etcd),
		hopped:  (after.hopped - before.hopped) / float64(max(o.ok, 1)),
		ofHop:   (after.hopped - before.hopped) / max(after.hops-before.hops, 1),
		refused: after.refused - before.refused,
		lost:    1000 * (after.lost - before.lost) / float64(max(o.ok, 1)),
	}, ctx.Err()
}

// share is what came of a load, and what an operation of it cost, in microseconds
// of all nodes together and of etcd.
type share struct {
	*outcome
	connections   float64
	switches      float64 // from one thread to another, of the whole machine
	nodes, etcd   float64
	hopped, ofHop float64 // hops of an operation, and operations of a hop
	lost          float64 // swaps, of a thousand operations
	refused       float64 // hops
}

func (c *crowd) cpu() (nodes, etcd time.Duration, err error) {
	pids := make([]int, 0, len(c.nodes))
	for _, n := range c.nodes {
		pids = append(pids, n.PID())
	}
	if nodes, err = cpuTimes(pids); err != nil {
		return 0, 0, err
	}
	etcd, err = cpuTimes(c.bench.etcd.PIDs())
	return nodes, etcd, err
}

// inform tells how a load on some nodes went.
func (c *crowd) inform(name string, s *share) {
	c.report.inform(name, "/s", s.rate())
	c.report.inform(name+": connections", "", s.connections)
	c.report.inform(name+": context switches", "", s.switches)
	c.report.inform(name+": CPU of the nodes", "µs", s.nodes)
	c.report.inform(name+": CPU of etcd", "µs", s.etcd)
	if s.hopped == 0 {
		return
	}
	c.report.inform(name+": share that hops", "%", 100*s.hopped)
	c.report.inform(name+": commands of a hop", "", s.ofHop)
	c.report.inform(name+": hops not taken", "", s.refused)
	c.report.inform(name+": swaps lost by 1,000", "", s.lost)
}

// stormed binds new devices to one license through so many nodes, with as many
// connections as are best for that.
func (c *crowd) stormed(ctx context.Context, count int) (*share, error) {
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

// distinct binds the first device of licenses, and then two more: through one
// node, and through all, each of which is asked for any of them. Of the first
// device no node knows anything, so those are alike; of the others one node alone
// knows the licenses, and of several mostly another one does.
func (c *crowd) distinct(ctx context.Context) error {
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
	c.report.add("placement", fmt.Sprintf("distinct licenses on %d nodes ÷ on 1", all), cold[all].rate()/cold[1].rate())
	c.report.inform(fmt.Sprintf("second and third devices of distinct licenses on %d nodes ÷ on 1, which knows them", all), "", warm[all].rate()/warm[1].rate())
	c.report.add("placement", "hops of a distinct activation", (after.hopped-before.hopped)/float64(activations))
	return nil
}

// bestDistinct looks for the number of connections with which so many nodes bind
// the first device of licenses fastest.
func (c *crowd) bestDistinct(ctx context.Context, count int) (shape, error) {
	return c.best(c.cold, count, func(s shape) (*share, error) {
		list, err := c.bench.grant(ctx, c.cfg.Licenses, unlimited)
		if err != nil {
			return nil, err
		}
		return c.load(ctx, count, s.workers, list, spread(list.Count(), 0), list.Count(), c.cfg.SweepSpan)
	})
}

// best is the number of connections to so many nodes with which most is done. It
// is looked for once.
func (c *crowd) best(known map[int]shape, count int, try func(shape) (*share, error)) (best shape, err error) {
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

// counted is what the nodes have counted since they started, all together.
type counted struct {
	hops, hopped, lost float64 // hops, the commands in them, and swaps lost
	refused            float64 // hops that were not taken
}

func (c *crowd) count(ctx context.Context) (all counted, err error) {
	for _, n := range c.nodes {
		text, err := scrape(ctx, n)
		if err != nil {
			return all, err
		}
		for name, sum := range map[string]*float64{
			"licet_hops_total": &all.hops, "licet_hop_commands_total": &all.hopped, `licet_swaps_total{outcome="lost"}`: &all.lost,
			`licet_hops_total{outcome="not_taken"}`: &all.refused,
		} {
			value, err := sumOf(text, name)
			if err != nil {
				return all, err
			}
			*sum += value
		}
	}
	return all, nil
}
