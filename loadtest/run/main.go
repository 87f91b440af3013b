package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"licet/loadtest/rig"
)

func main() { rig.Main(command) }

// command runs the program, and returns its exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseConfig(args, stderr)
	if err != nil {
		return rig.UsageError(stderr, "run", err)
	}
	if err := run(ctx, cfg, stdout, rig.NewProgress(stderr)); err != nil {
		fmt.Fprintf(stderr, "run: %s: FAILED: %v\n", cfg.name, err)
		return rig.ExitFailed
	}
	return rig.ExitOK
}

// run is one scenario, from an empty store to the proof.
func run(ctx context.Context, cfg *config, stdout io.Writer, progress *rig.Progress) (err error) {
	defer progress.Clear()
	out, err := newResults(cfg)
	if err != nil {
		return err
	}
	progress.Step("building k6: a minute or two, the first time")
	k6, err := findK6(ctx, cfg)
	if err != nil {
		return err
	}
	s, err := newService(ctx, cfg, progress)
	if err != nil {
		return err
	}
	defer s.stop()
	if s.stage != nil {
		defer func() { err = errors.Join(err, s.stage.KeepLogs(out.dir)) }()
	}
	seeds, err := s.seed(ctx, cfg, progress)
	if err != nil {
		return err
	}
	if err := out.writeLicenses(seeds); err != nil {
		return err
	}
	director, err := newDirector(ctx, cfg, s, progress)
	if err != nil {
		return err
	}
	defer director.stop()

	progress.Step("%s: %g arrivals a second for %v", cfg.name, cfg.rate, cfg.duration)
	failedLoad := k6.run(ctx, cfg, s, out, director.url(), stdout)
	failedEvents := director.finish()
	if ctx.Err() != nil {
		return ctx.Err()
	}

	progress.Step("comparing what was acknowledged with what is stored")
	proof, err := prove(ctx, s, seeds, out, progress)
	if err != nil {
		return errors.Join(failedLoad, failedEvents, err)
	}
	if err := out.writeProof(stdout, proof, failedLoad, failedEvents); err != nil {
		return err
	}
	return errors.Join(failedLoad, failedEvents, proof.err())
}
