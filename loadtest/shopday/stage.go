package main

import (
	"context"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

const (
	nodeCount = 2

	// shortLife is how long an order of the morning can be paid.
	shortLife = 3 * time.Second
	// longLife is how long any other can be.
	longLife = 24 * time.Hour
)

// newStage starts etcd and the nodes.
func newStage(ctx context.Context, cfg *config, progress *rig.Progress) (*stage.Stage, error) {
	return cfg.Stage(ctx, progress, programName, nodeCount, "--test-order-lifetime", shortLife.String())
}
