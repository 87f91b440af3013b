package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"licet/loadtest/rig"
)

// metricsCost compares new devices with what they are of the same program, built so that
// its instruments do nothing. Both still look at the clock, as they do for the log.
func (l *lab) metricsCost(ctx context.Context) error {
	l.progress.Step("building licet without metrics")
	silent, err := l.uncounted(ctx)
	if err != nil {
		return err
	}
	return l.againstProgram(ctx, "metrics", silent, "without metrics", "with metrics")
}

// uncounted is the program without metrics: given, or built.
func (l *lab) uncounted(ctx context.Context) (*rig.Licet, error) {
	dir := filepath.Join(l.dir, "uncounted")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	setup := l.cfg.Setup
	setup.Binary = l.cfg.Uncounted
	setup.BuildFlags = strings.TrimSpace(setup.BuildFlags + " -tags=nometrics")
	built, err := rig.BuildLicet(ctx, dir, &setup)
	if err != nil {
		return nil, fmt.Errorf("without metrics: %w", err)
	}
	return built, nil
}
