package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// receipts measures how many Ed25519 signatures a receipt costs, by BenchmarkReceipt of package handlers: a server
// without a network and a store. Beside etcd and the load generator, the difference between two loads says too little.
func (l *lab) receipts(ctx context.Context, _ *bench) {
	l.eachRound("receipts", func(int) {
		l.report.add("receipts", "", must(signaturesOfReceipt(ctx)))
	})
}

// signaturesOfReceipt runs the benchmark in the module of the working directory.
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
