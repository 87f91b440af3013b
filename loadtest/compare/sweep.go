package main

import (
	"context"

	"licet/loadtest/rig"
)

// sweepPuts finds the number of clients and of operations at a time with which etcd makes the most puts.
func (l *lab) sweepPuts(ctx context.Context, b *bench) (shape, error) {
	return l.sweepClients("puts", func(s shape) (*sample, error) {
		return b.put(ctx, s, closed(ctx, 0, l.cfg.SweepSpan))
	})
}

func (l *lab) sweepGets(ctx context.Context, b *bench) (shape, error) {
	return l.sweepClients("gets", func(s shape) (*sample, error) {
		return b.measure(ctx, b.base.gets(ctx, s), closed(ctx, 0, l.cfg.SweepSpan))
	})
}

func (l *lab) sweepClients(what string, try func(shape) (*sample, error)) (best shape, err error) {
	l.progress.Step("finding the best concurrency of etcd's %s", what)
	var top float64
	for _, clients := range l.cfg.Clients {
		for _, workers := range l.cfg.Sweep {
			s := shape{clients: clients, workers: workers}
			measured, err := try(s)
			if err != nil {
				return best, err
			}
			if rate := measured.rate(); rate > top {
				best, top = s, rate
			}
		}
	}
	l.progress.Step("etcd's %s: %s (connections × operations), %.0f/s", what, best, top)
	return best, nil
}

// sweepNode finds the number of connections with which a node makes the most operations of a kind without refusing any.
func (l *lab) sweepNode(what string, try func(s shape, number int) (*sample, error)) (best shape, err error) {
	l.progress.Step("finding the best concurrency of %s", what)
	var top float64
	for i, workers := range l.cfg.Sweep {
		s := shape{workers: workers}
		measured, err := try(s, i)
		if err != nil {
			return best, err
		}
		if rate := measured.rate(); rate > top && (measured.describe() == "" || top == 0) {
			best, top = s, rate
		}
	}
	l.progress.Step("%s: %s connections, %.0f/s", what, best, top)
	return best, nil
}

// bindRounds measures rounds of a row, with as many workers as bind new devices fastest.
func (l *lab) bindRounds(
	ctx context.Context, b *bench, what string, round func(ctx context.Context, b *bench, number int) error,
) error {
	if err := l.findBestBind(ctx, b); err != nil {
		return err
	}
	return l.eachRound(what, func(number int) error { return round(ctx, b, number) })
}

// findBestBind finds how many workers bind new devices fastest, unless an earlier row has found that.
func (l *lab) findBestBind(ctx context.Context, b *bench) (err error) {
	if l.best.bind.workers == 0 {
		l.best.bind, _, err = l.sweepBinds(ctx, b)
	}
	return err
}

// sweepBinds is sweepNode for new devices on warm distinct licenses.
func (l *lab) sweepBinds(ctx context.Context, b *bench) (shape, *rig.Keys, error) {
	list, err := b.warmed(ctx, l.cfg.Licenses)
	if err != nil {
		return shape{}, nil, err
	}
	n := list.Count()
	best, err := l.sweepNode("new devices on distinct licenses", func(s shape, number int) (*sample, error) {
		return b.activate(ctx, s, list, spread(n, uint64(1+number)), closed(ctx, n, l.cfg.SweepSpan))
	})
	return best, list, err
}

// sweep finds all shapes that the rounds need.
func (l *lab) sweep(ctx context.Context, b *bench) (err error) {
	if l.best.put, err = l.sweepPuts(ctx, b); err != nil {
		return err
	}
	if l.best.get, err = l.sweepGets(ctx, b); err != nil {
		return err
	}
	var list *rig.Keys
	if l.best.bind, list, err = l.sweepBinds(ctx, b); err != nil {
		return err
	}
	n := list.Count()
	if l.best.renew, err = l.sweepNode("re-activations", func(s shape, _ int) (*sample, error) {
		return b.activate(ctx, s, list, spread(n, 0), closed(ctx, n, l.cfg.SweepSpan))
	}); err != nil {
		return err
	}
	one, from, err := l.sweepHot(ctx, b)
	if err != nil {
		return err
	}
	bound := from
	l.best.mix, err = l.sweepNode("bound and new devices on one license", func(s shape, _ int) (*sample, error) {
		measured, err := b.activate(ctx, s, one, mixed(bound, from), closed(ctx, 0, l.cfg.SweepSpan))
		if err == nil {
			from += measured.made
		}
		return measured, err
	})
	return err
}

// sweepHot is sweepNode for new devices on one license. It returns the license, and how
// many devices it has.
func (l *lab) sweepHot(ctx context.Context, b *bench) (one *rig.Keys, bound int, err error) {
	if one, err = b.grant(ctx, 1, unlimited); err != nil {
		return nil, 0, err
	}
	l.best.hot, err = l.sweepNode("new devices on one license", func(s shape, _ int) (*sample, error) {
		measured, err := b.activate(ctx, s, one, onto(bound), closed(ctx, 0, l.cfg.SweepSpan))
		if err == nil {
			bound += measured.made
		}
		return measured, err
	})
	return one, bound, err
}

// sweepDevices finds the shapes that new devices need, unless they are known.
func (l *lab) sweepDevices(ctx context.Context, b *bench) (err error) {
	if l.best.hot.workers > 0 {
		return nil
	}
	if l.best.bind, _, err = l.sweepBinds(ctx, b); err != nil {
		return err
	}
	_, _, err = l.sweepHot(ctx, b)
	return err
}
