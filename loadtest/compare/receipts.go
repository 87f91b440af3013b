package main

import "context"

// receipts measures what an activation with a receipt costs more than an activation without one.
func (l *lab) receipts(ctx context.Context, b *bench) {
	l.bindRounds(ctx, b, "receipts", l.receiptsRound)
}

func (l *lab) receiptsRound(ctx context.Context, b *bench, _ int) {
	b.renewNode(ctx)
	plain := b.warmed(ctx, l.cfg.Licenses)
	asking := *plain
	asking.Beside = `,"receipt":true`
	l.compareBinds(ctx, b, "receipts",
		[2]bindSide{{"without a receipt", plain}, {"with a receipt", &asking}})
}
