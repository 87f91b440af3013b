package main

import "context"

// receipts measures what an activation with a receipt costs more than an activation without one.
func (l *lab) receipts(ctx context.Context, b *bench) error {
	return l.bindRounds(ctx, b, "receipts", l.receiptsRound)
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
	return l.compareBinds(ctx, b, "receipts",
		[2]bindSide{{"without a receipt", plain}, {"with a receipt", &asking}})
}
