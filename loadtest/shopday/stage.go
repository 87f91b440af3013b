package main

import (
	"context"
	"time"

	"licet/loadtest/stage"
)

const (
	nodeCount = 2

	// shortLife is how long an order of the morning can be paid.
	shortLife = 3 * time.Second
	// longLife is how long any other can be.
	longLife = 24 * time.Hour
)

// newStage sets up what the day is played on.
func newStage(ctx context.Context, cfg *config) (*stage.Stage, error) {
	return stage.New(ctx, &stage.Config{
		Setup: cfg.Setup, Name: "shopday", Members: cfg.members, Nodes: nodeCount,
		Flags: []string{"--test-order-lifetime", shortLife.String()},
	})
}
