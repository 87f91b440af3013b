package main

import "context"

// receipts measures what an activation that asks for a receipt costs more than one that does not.
func (l *lab) receipts(ctx context.Context) error {
	return l.bindRounds(ctx, "receipts", l.receiptsRound)
}

func (l *lab) receiptsRound(ctx context.Context, b *bench, round int) error {
	if err := b.renewNode(ctx); err != nil {
		return err
	}
	n := l.cfg.Licenses
	plain, _, err := b.grantExternal(ctx, n, round)
	if err != nil {
		return err
	}
	if _, err := bind(ctx, b.node, warmers, plain, n, spread(n, 0)); err != nil {
		return err
	}
	asking := *plain
	asking.Beside = `,"receipt":true`
	for _, load := range []struct {
		check string
		pick  func(turn int) func(int) (int, device)
		run   func(driver) *outcome
	}{
		{"of a new device", func(turn int) func(int) (int, device) { return spread(n, uint64(1+turn)) },
			closed(ctx, n, 0)},
		{"of a bound device", func(int) func(int) (int, device) { return bound(n, 1+4) },
			closed(ctx, 0, l.cfg.Span)},
	} {
		var rates [2]float64
		for turn, at := range []int{0, 1, 1, 0} {
			list, what := plain, "without a receipt"
			if at == 1 {
				list, what = &asking, "with a receipt"
			}
			s, err := b.activate(ctx, l.best.bind, list, load.pick(turn), load.run)
			if err != nil {
				return err
			}
			l.checkSample("receipts", what, s)
			l.inform("receipts, "+load.check+", "+what, s)
			rates[at] += s.rate()
		}
		l.report.add("receipts", load.check, rates[0]/rates[1])
	}
	return nil
}
