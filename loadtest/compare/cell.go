package main

import (
	"context"
	"fmt"
	"time"

	"licet/loadtest/rig"
)

// cell is one etcd with one node, that is filled and then looked after as
// whoever runs it would.
type cell struct {
	cfg      *capacityConfig
	dir      string
	licet    *rig.Licet
	report   *report
	progress *rig.Progress

	etcd   *cluster
	node   *rig.Node
	filler *filler
	probed uint64 // probes so far
	extra  int    // devices that they have bound besides the filler's
	growth []fillPoint
	rate   float64 // at which latencies are measured, in the small store and in the full store

	smallCold, smallWarm float64 // rates in the small store
}

func (c *cell) start(ctx context.Context) (err error) {
	if c.etcd, err = startEtcd(ctx, c.dir, 1, c.cfg.Retention); err != nil {
		return err
	}
	apiKey, err := c.licet.CreateKey(ctx, c.etcd.Cluster, accountName)
	if err != nil {
		return err
	}
	if c.node, err = c.licet.StartNode(ctx, c.etcd.Cluster); err != nil {
		return err
	}
	c.filler = &filler{node: c.node, apiKey: apiKey, each: c.cfg.PerLicense, list: &rig.Keys{}}
	return nil
}

func (c *cell) stop() {
	if c.node != nil {
		c.node.Kill()
	}
	if c.etcd != nil {
		c.etcd.Stop()
	}
}

// bound is how many devices there are.
func (c *cell) bound() int { return c.filler.bound() + c.extra }

func (c *cell) measure(ctx context.Context) error {
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"fill", c.fill},
		{"restart with history", c.restartWithHistory},
		{"activate in the full store", func(ctx context.Context) error { return c.activate(ctx, "full store") }},
		{"compact", c.compact},
		{"defragment", c.defragment},
		{"restart", c.restart},
		{"verify", c.verify},
		{"back up", c.backUp},
	} {
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// fill binds all devices, and measures activations while the store is small.
func (c *cell) fill(ctx context.Context) error {
	small, all := c.cfg.small(), c.cfg.licenses()
	began := time.Now()
	count := c.progress.Long(all*c.cfg.PerLicense, "binding %d devices, %d to a license", all*c.cfg.PerLicense, c.cfg.PerLicense)
	if err := c.filler.to(ctx, small, count); err != nil {
		return err
	}
	if err := c.restartNode(ctx, "node: start before the small store"); err != nil {
		return err
	}
	if err := c.activate(ctx, "small store"); err != nil {
		return err
	}
	count = c.progress.Long(all*c.cfg.PerLicense, "going on")
	const parts = 10
	last := 0
	for part := 1; part <= parts; part++ {
		if err := c.filler.to(ctx, max(small, all*part/parts), count); err != nil {
			return err
		}
		p, err := look(ctx, c.etcd, c.node)
		if err != nil {
			return err
		}
		p.Devices, p.Licenses, p.Seconds = c.bound(), c.filler.list.Count(), time.Since(began).Seconds()
		p.Rate = float64(c.filler.bound()-last) / c.filler.spent.Seconds()
		last, c.filler.spent = c.filler.bound(), 0
		c.growth = append(c.growth, p)
		c.progress.Say("%s", &p)
	}
	full := c.growth[len(c.growth)-1]
	c.informDatabase("filled, with its history", full)
	c.report.inform("filling", "min", time.Since(began).Minutes())
	c.report.add("share", "", c.share(full.Database))
	c.report.add("bytes", "with its history", float64(full.Database)/float64(c.bound()))
	if full.Devices < claimedDevices {
		c.report.note("share", fmt.Sprintf("projected from %d devices: only a run with %d proves it", full.Devices, claimedDevices))
	}
	if c.filler.retries > 0 {
		c.report.note("share", fmt.Sprintf("while filling, %d pieces were tried again", c.filler.retries))
	}
	return nil
}

// share is how much of the quota a database takes, in percent. A store with
// fewer devices than claimed is taken for a part of one with all.
func (c *cell) share(database int64) float64 {
	scale := max(1, claimedDevices/float64(c.bound()))
	return 100 * scale * float64(database) / float64(c.cfg.Quota)
}

// activate measures activations on licenses that the node hasn't seen for
// long, if ever, taken from all over the store. The rate that latencies are
// measured at is the same in the small store and in the full one: what that is
// for the full one shows in them.
func (c *cell) activate(ctx context.Context, where string) error {
	c.progress.Step("activations in the %s", where)
	p := c.probe()
	cold, warm, err := p.rates(ctx, max(2*c.cfg.small()/5, 1))
	if err != nil {
		return err
	}
	if c.rate == 0 {
		c.rate, c.smallCold, c.smallWarm = cold.rate()/2, cold.rate(), warm.rate()
		c.report.inform("activations a second for the latencies", "/s", c.rate)
	} else {
		c.report.add("licenses", "cold licenses", c.smallCold/cold.rate())
		c.report.add("licenses", "warm licenses", c.smallWarm/warm.rate())
	}
	o, err := p.latencies(ctx, c.rate, c.cfg.Span, nil)
	if err != nil {
		return err
	}
	c.learn(p)
	c.report.inform(where+": new devices, licenses cold", "/s", cold.rate())
	c.report.inform(where+": new devices, licenses warm", "/s", warm.rate())
	c.informLatencies(where, o)
	return nil
}

// probe makes a supply of new devices for all licenses so far.
func (c *cell) probe() *probe {
	c.probed++ // no two share a salt, with each other or with the filler
	return &probe{node: c.node, list: c.filler.list, n: c.filler.list.Count(), salt: c.probed * saltsOfProbe}
}

// learn takes over what a probe has done.
func (c *cell) learn(p *probe) {
	c.extra += p.bound
	for _, text := range p.notes {
		c.report.note("share", text)
	}
}

func (c *cell) informLatencies(where string, o *outcome) {
	waits := o.waits()
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p99", 0.99}} {
		c.report.inform(where+": "+q.name+" of an activation", "ms", 1000*percentile(waits, q.share).Seconds())
	}
}
