package main

import (
	"context"

	"licet/loadtest/rig"
)

// connections returns the numbers of connections to nodes that sweeps try.
func (l *lab) connections() (all []shape) {
	for _, workers := range l.cfg.Sweep {
		all = append(all, shape{workers: workers})
	}
	return all
}

// fastest returns the shape with which most operations of a kind succeed in a second. A shape with a refused operation
// counts only if each shape has one.
func (l *lab) fastest(what string, shapes []shape, try func(s shape, number int) *sample) (best shape) {
	l.progress.Step("finding the best concurrency of %s", what)
	var top float64
	clean := false // no operation of the best shape was refused
	for i, s := range shapes {
		measured := try(s, i)
		rate, passes := measured.rate(), measured.describe() == ""
		if passes && !clean || passes == clean && rate > top {
			best, top, clean = s, rate, passes
		}
	}
	l.progress.Step("%s: %s at a time, %.0f/s", what, best, top)
	return best
}

// sweepEtcd finds the best shape of operations of etcd's own client.
func (l *lab) sweepEtcd(what string, try func(s shape, number int) *sample) shape {
	var all []shape
	for _, clients := range l.cfg.Clients {
		for _, workers := range l.cfg.Sweep {
			all = append(all, shape{clients, workers})
		}
	}
	return l.fastest("etcd's "+what, all, try)
}

func (l *lab) sweepPuts(ctx context.Context, b *bench) shape {
	return l.sweepEtcd("puts", func(s shape, _ int) *sample { return b.put(ctx, s, closed(ctx, 0, l.cfg.SweepSpan)) })
}

// bindRounds measures rounds of a row, with as many workers as bind new devices fastest.
func (l *lab) bindRounds(ctx context.Context, b *bench, what string, round func(context.Context, *bench, int)) {
	l.findBestBind(ctx, b)
	l.eachRound(what, func(number int) { round(ctx, b, number) })
}

// findBestBind finds how many workers bind new devices fastest, unless an earlier row has found that.
func (l *lab) findBestBind(ctx context.Context, b *bench) {
	if l.best.bind.workers == 0 {
		l.best.bind, _ = l.sweepBinds(ctx, b)
	}
}

// sweepBinds finds the best number of connections for new devices on warm distinct licenses.
func (l *lab) sweepBinds(ctx context.Context, b *bench) (shape, *rig.Keys) {
	list := b.warmed(ctx, l.cfg.Licenses)
	n := list.Count()
	return l.fastest("new devices on distinct licenses", l.connections(), func(s shape, number int) *sample {
		return b.activate(ctx, s, list, spread(n, uint64(1+number)), closed(ctx, n, l.cfg.SweepSpan))
	}), list
}

// sweep finds all shapes that the rounds need.
func (l *lab) sweep(ctx context.Context, b *bench) {
	l.best.put = l.sweepPuts(ctx, b)
	l.best.get = l.sweepEtcd("gets", func(s shape, _ int) *sample {
		return b.measure(ctx, b.base.gets(ctx, s), closed(ctx, 0, l.cfg.SweepSpan))
	})
	var list *rig.Keys
	l.best.bind, list = l.sweepBinds(ctx, b)
	n := list.Count()
	l.best.renew = l.fastest("re-activations", l.connections(), func(s shape, _ int) *sample {
		return b.activate(ctx, s, list, spread(n, 0), closed(ctx, n, l.cfg.SweepSpan))
	})
	one, from := l.sweepHot(ctx, b)
	bound := from
	l.best.mix = l.fastest("bound and new devices on one license", l.connections(), func(s shape, _ int) *sample {
		measured := b.activate(ctx, s, one, mixed(bound, from), closed(ctx, 0, l.cfg.SweepSpan))
		from += measured.made
		return measured
	})
}

// sweepHot finds the best number of connections for new devices on one license. It returns the license, and how many
// devices the license has.
func (l *lab) sweepHot(ctx context.Context, b *bench) (one *rig.Keys, bound int) {
	one = b.grant(ctx, 1, unlimited)
	l.best.hot = l.fastest("new devices on one license", l.connections(), func(s shape, _ int) *sample {
		measured := b.activate(ctx, s, one, onto(bound), closed(ctx, 0, l.cfg.SweepSpan))
		bound += measured.made
		return measured
	})
	return one, bound
}

// sweepDevices finds the shapes that new devices need, unless they are known.
func (l *lab) sweepDevices(ctx context.Context, b *bench) {
	if l.best.hot.workers == 0 {
		l.best.bind, _ = l.sweepBinds(ctx, b)
		l.sweepHot(ctx, b)
	}
}
