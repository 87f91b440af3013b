package main

import "context"

// receipts measures what an activation with a receipt costs more than an activation without one.
func (l *lab) receipts(ctx context.Context, b *bench) error {
	return l.bindRounds(ctx, b, "receipts", l.receiptsRound)
}

func (l *lab) receiptsRound(ctx context.Context, b *bench, _ int) error {
	if err := b.renewNode(ctx); err != nil {
		return err
	}
	plain, err := b.warmed(ctx, l.cfg.Licenses)
	if err != nil {
		return err
	}
	asking := *plain
	asking.Beside = `,"receipt":true`
	return l.compareBinds(ctx, b, "receipts",
		[2]bindSide{{"without a receipt", plain}, {"with a receipt", &asking}})
}
