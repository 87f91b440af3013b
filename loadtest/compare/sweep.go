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

// sweep finds the best shapes of the loads on a bench. It keeps them in best.
type sweep struct {
	*lab
	*bench
}

// etcd finds the best shape of operations of etcd's own client.
func (w sweep) etcd(what string, try func(s shape, number int) *sample) shape {
	var all []shape
	for _, clients := range w.cfg.Clients {
		for _, workers := range w.cfg.Sweep {
			all = append(all, shape{clients, workers})
		}
	}
	return w.fastest("etcd's "+what, all, try)
}

func (w sweep) puts(ctx context.Context) shape {
	return w.etcd("puts", func(s shape, _ int) *sample { return w.put(ctx, s, closed(ctx, 0, w.cfg.SweepSpan)) })
}

// bindOnce finds how many workers bind new devices fastest, unless an earlier row has found that.
func (w sweep) bindOnce(ctx context.Context) {
	if w.best.bind.workers == 0 {
		w.best.bind, _ = w.binds(ctx)
	}
}

// binds finds the best number of connections for new devices on warm distinct licenses.
func (w sweep) binds(ctx context.Context) (shape, *rig.Keys) {
	list := w.warmed(ctx, w.cfg.Licenses)
	n := list.Count()
	return w.fastest("new devices on distinct licenses", w.connections(), func(s shape, number int) *sample {
		return w.activate(ctx, s, list, spread(n, uint64(1+number)), closed(ctx, n, w.cfg.SweepSpan))
	}), list
}

// all finds all shapes that the rounds need.
func (w sweep) all(ctx context.Context) {
	w.best.put = w.puts(ctx)
	w.best.get = w.etcd("gets", func(s shape, _ int) *sample {
		return w.measure(ctx, w.base.gets(ctx, s), closed(ctx, 0, w.cfg.SweepSpan))
	})
	var list *rig.Keys
	w.best.bind, list = w.binds(ctx)
	n := list.Count()
	w.best.renew = w.fastest("re-activations", w.connections(), func(s shape, _ int) *sample {
		return w.activate(ctx, s, list, spread(n, 0), closed(ctx, n, w.cfg.SweepSpan))
	})
	one, from := w.newOnOne(ctx)
	bound := from
	w.best.mix = w.fastest("bound and new devices on one license", w.connections(), func(s shape, _ int) *sample {
		measured := w.activate(ctx, s, one, mixed(bound, from), closed(ctx, 0, w.cfg.SweepSpan))
		from += measured.made
		return measured
	})
}

// newOnOne finds the best number of connections for new devices on one license. It returns the license, and how many
// devices the license has.
func (w sweep) newOnOne(ctx context.Context) (one *rig.Keys, bound int) {
	one = w.grant(ctx, 1, unlimited)
	w.best.hot = w.fastest("new devices on one license", w.connections(), func(s shape, _ int) *sample {
		measured := w.activate(ctx, s, one, onto(bound), closed(ctx, 0, w.cfg.SweepSpan))
		bound += measured.made
		return measured
	})
	return one, bound
}

// devicesOnce finds the shapes that new devices need, unless they are known.
func (w sweep) devicesOnce(ctx context.Context) {
	if w.best.hot.workers == 0 {
		w.best.bind, _ = w.binds(ctx)
		w.newOnOne(ctx)
	}
}

// bindRounds measures rounds of a row, with as many workers as bind new devices fastest.
func (l *lab) bindRounds(ctx context.Context, b *bench, what string, round func(context.Context, *bench, int)) {
	sweep{l, b}.bindOnce(ctx)
	l.eachRound(what, func(number int) { round(ctx, b, number) })
}
