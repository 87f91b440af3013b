package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// receipts measures what an activation with a receipt costs more than an activation without one: in rates, and in
// Ed25519 signatures.
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
	l.report.add("receipts", "of a bound device, in signatures", must(signaturesOfReceipt(ctx)))
}

// signaturesOfReceipt runs BenchmarkReceipt of package handlers: a server without a network and a store. Beside etcd
// and the load generator, the difference between two loads says little about a signature. The module is that of the
// working directory.
func signaturesOfReceipt(ctx context.Context) (float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^BenchmarkReceipt$", "-benchtime=5000x",
		"licet/handlers")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("run BenchmarkReceipt: %w\n%s", err, out)
	}
	before, _, found := strings.Cut(string(out), " signatures")
	if !found {
		return 0, fmt.Errorf("BenchmarkReceipt says nothing of signatures: %s", out)
	}
	words := strings.Fields(before)
	return strconv.ParseFloat(words[len(words)-1], 64)
}
