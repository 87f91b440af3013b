package main

import (
	"context"
	"crypto/ed25519"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// receipts measures how many Ed25519 signatures an activation with a receipt costs the node more than an activation
// without one.
func (l *lab) receipts(ctx context.Context, b *bench) {
	l.bindRounds(ctx, b, "receipts", l.receiptsRound)
}

func (l *lab) receiptsRound(ctx context.Context, b *bench, _ int) {
	b.renewNode(ctx)
	plain := b.warmed(ctx, l.cfg.Licenses)
	asking := *plain
	asking.Beside = `,"receipt":true`
	l.compareBinds(ctx, b, "receipts", [2]bindSide{{"without a receipt", plain}, {"with a receipt", &asking}},
		func(load string, faster, dearer float64) {
			signature := signatureTime(l.cfg.Span / 4)
			l.report.inform("receipts: a signature", "µs", signature)
			l.report.inform("receipts, "+load+": without ÷ with a receipt", "", faster)
			l.report.add("receipts", load, dearer/signature)
		})
}

// signatureTime returns how many microseconds of processor time an Ed25519 signature of a text as long as a receipt
// takes, while all cores are busy as under a load.
func signatureTime(span time.Duration) float64 {
	before := must(ownCPUTime())
	end := time.Now().Add(span)
	var made atomic.Int64
	var busy sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
			text := make([]byte, 900)
			for time.Now().Before(end) {
				ed25519.Sign(key, text)
				made.Add(1)
			}
		})
	}
	busy.Wait()
	return float64((must(ownCPUTime()) - before).Nanoseconds()) / 1000 / float64(made.Load())
}
