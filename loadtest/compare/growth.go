package main

import (
	"context"
	"fmt"

	"licet/loadtest/rig"
)

// stride is a prime larger than any list of licenses: steps of it around the
// list come to every license once.
const stride = 7_368_787

// pageLimit is how many devices a page has: the API's default.
const pageLimit = 100

// devices compares a license that has very many devices with one that has
// some: what one more costs, and what the first page does. Both are asked by
// turns by one client.
func (l *lab) devices(ctx context.Context) error {
	b, err := l.bench(ctx, 1, usualRetention)
	if err != nil {
		return err
	}
	defer b.stop()
	workers := max(l.best.hot.workers, warmers)
	large, err := b.grant(ctx, 1, unlimited)
	if err != nil {
		return err
	}
	if err := l.fill(ctx, b, large, l.cfg.Large, workers); err != nil {
		return err
	}
	for number := range l.cfg.Rounds {
		l.progress.Step("one more device, round %d of %d", number+1, l.cfg.Rounds)
		small, err := b.grant(ctx, 1, unlimited)
		if err != nil {
			return err
		}
		if _, err := bind(ctx, b.node, workers, small, l.cfg.Small, onto(0)); err != nil {
			return err
		}
		if err := l.compareSizes(ctx, b, small, large, number); err != nil {
			return err
		}
	}
	return nil
}

// fill binds devices to a license, some thousands at a time.
func (l *lab) fill(ctx context.Context, b *bench, list *rig.Keys, devices, workers int) error {
	count := l.progress.Long(devices, "binding %d devices to one license", devices)
	const piece = 10_000
	for from := 0; from < devices; from += piece {
		if _, err := bind(ctx, b.node, workers, list, min(piece, devices-from), onto(from)); err != nil {
			return err
		}
		count(from + piece)
	}
	return nil
}

// compareSizes binds devices to both licenses by turns, then reads pages.
func (l *lab) compareSizes(ctx context.Context, b *bench, small, large *rig.Keys, number int) error {
	c := newConn(b.node.Address)
	defer c.close()
	for _, of := range []struct {
		check, what  string
		small, large worker
	}{
		{
			"binding it", "binding a device",
			activator(c, small, onto(l.cfg.Small)),
			activator(c, large, onto(l.cfg.Large+number*l.cfg.IdleOps)),
		},
		{"page 1 of each", "a page", pager(c, b.apiKey, small), pager(c, b.apiKey, large)},
	} {
		one, other := alternate(ctx, of.small, of.large, l.cfg.IdleOps)
		if err := both(one, other); err != nil {
			return fmt.Errorf("%s: %w", of.what, err)
		}
		p50 := func(o *outcome) float64 { return percentile(o.latencies, 0.5).Seconds() }
		l.report.add("devices", of.check, p50(other)/p50(one))
		l.report.inform("devices: p50 of "+of.what+" of the small license", "ms", 1000*p50(one))
		l.report.inform("devices: p50 of "+of.what+" of the large license", "ms", 1000*p50(other))
	}
	return nil
}

// pager reads the first page of a license's devices.
func pager(c *conn, apiKey string, list *rig.Keys) worker {
	request := pageRequest(list.At(0), apiKey, pageLimit)
	return func(int) int { return c.code(request) }
}

// licenses compares a store of very many licenses with one of few. Both run at
// once, each with an etcd and a node, and are asked by turns: groups of
// licenses that the node has never seen, then the same while it knows them.
func (l *lab) licenses(ctx context.Context) error {
	few, err := l.bench(ctx, 1, usualRetention)
	if err != nil {
		return err
	}
	defer few.stop()
	many, err := l.bench(ctx, 1, usualRetention)
	if err != nil {
		return err
	}
	defer many.stop()
	count := l.progress.Long(l.cfg.Many, "granting %d licenses", l.cfg.Many)
	all, err := rig.Grant(ctx, "http://"+many.seeder.Address, many.apiKey, l.cfg.Many, unlimited, count)
	if err != nil {
		return err
	}
	if l.cfg.Many != fullSettings().Many {
		l.report.note("licenses", fmt.Sprintf("the large store has %d licenses only", l.cfg.Many))
	}
	if err := l.informAbout(ctx, many); err != nil {
		return err
	}
	next := 0
	for number := range l.cfg.Rounds {
		l.progress.Step("%d licenses against %d, round %d of %d", l.cfg.Few, l.cfg.Many, number+1, l.cfg.Rounds)
		c := &contest{lab: l, shape: shape{workers: warmers}}
		for group := range l.cfg.Groups {
			sides := []*side{{bench: few, tally: &c.few}, {bench: many, tally: &c.many}}
			if sides[0].list, err = few.grant(ctx, l.cfg.Few, unlimited); err != nil {
				return err
			}
			if sides[1].list, err = scattered(all, &next, l.cfg.Few); err != nil {
				return err
			}
			if group%2 == 1 { // neither is always first
				sides[0], sides[1] = sides[1], sides[0]
			}
			if err := c.group(ctx, sides); err != nil {
				return err
			}
		}
		l.report.add("licenses", "cold", c.few.cold.rate()/c.many.cold.rate())
		l.report.add("licenses", "warm", c.few.warm.rate()/c.many.warm.rate())
		for _, line := range []struct {
			name string
			*outcome
		}{
			{"few, cold", &c.few.cold}, {"many, cold", &c.many.cold}, {"few, warm", &c.few.warm}, {"many, warm", &c.many.warm},
		} {
			l.report.inform("licenses: "+line.name, "/s", line.rate())
		}
	}
	return nil
}

// informAbout tells what the large store costs.
func (l *lab) informAbout(ctx context.Context, b *bench) error {
	size, err := b.etcd.size(ctx)
	if err != nil {
		return err
	}
	resident, err := rig.ResidentMemory(b.etcd.PIDs()[0])
	if err != nil {
		return err
	}
	l.report.inform("licenses: database of the large store", "MiB", float64(size)/(1<<20))
	l.report.inform("licenses: RSS of its etcd", "MiB", float64(resident)/(1<<20))
	return nil
}

// scattered takes licenses from all over the list: neighbors in it were stored
// together, and would be found together.
func scattered(all *rig.Keys, next *int, count int) (*rig.Keys, error) {
	n := all.Count()
	if *next+count > n {
		return nil, fmt.Errorf("%d licenses are too few for that many rounds", n)
	}
	part := &rig.Keys{}
	for ; count > 0; count-- {
		if err := part.Add(all.At(*next * stride % n)); err != nil {
			return nil, err
		}
		*next++
	}
	return part, nil
}

// contest adds up what one round of few against many came to.
type contest struct {
	*lab
	shape     shape
	few, many tally
}

type tally struct{ cold, warm outcome }

type side struct {
	*bench
	*tally
	list *rig.Keys
}

func (c *contest) group(ctx context.Context, sides []*side) error {
	for _, pass := range []struct {
		from  uint64
		times int
		of    func(*tally) *outcome
	}{
		{0, 1, func(t *tally) *outcome { return &t.cold }},
		{1, 2, func(t *tally) *outcome { return &t.warm }},
	} {
		for _, s := range sides {
			n := s.list.Count()
			o, err := bind(ctx, s.node, c.shape.workers, s.list, pass.times*n, spread(n, pass.from))
			if err != nil {
				return err
			}
			total := pass.of(s.tally)
			total.ok += o.ok
			total.elapsed += o.elapsed
		}
	}
	return nil
}

// members measures new devices on distinct licenses before a cluster of three,
// all on these cores.
func (l *lab) members(ctx context.Context) error {
	l.progress.Step("starting etcd with three members, and two nodes")
	b, err := l.bench(ctx, 3, usualRetention)
	if err != nil {
		return err
	}
	defer b.stop()
	put, err := l.sweepPuts(ctx, b)
	if err != nil {
		return err
	}
	connections, _, err := l.sweepBinds(ctx, b)
	if err != nil {
		return err
	}
	for number := range l.cfg.Rounds {
		l.progress.Step("three members, round %d of %d", number+1, l.cfg.Rounds)
		list, err := b.grant(ctx, l.cfg.Licenses, unlimited)
		if err != nil {
			return err
		}
		n := list.Count()
		if _, err := bind(ctx, b.node, warmers, list, n, spread(n, 0)); err != nil {
			return err
		}
		before, err := b.put(ctx, put, closed(ctx, 0, l.cfg.Span/2))
		if err != nil {
			return err
		}
		warm, err := b.activate(ctx, connections, list, spread(n, 1), closed(ctx, 2*n, 0))
		if err != nil {
			return err
		}
		after, err := b.put(ctx, put, closed(ctx, 0, l.cfg.Span/2))
		if err != nil {
			return err
		}
		l.checkSample("members", "warm", warm)
		base := (before.rate() + after.rate()) / 2
		l.report.add("members", "", warm.rate()/base)
		l.report.inform("members: single puts", "/s", base)
		l.inform("members", warm)
	}
	return nil
}
