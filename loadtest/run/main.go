package main

import (
	"context"
	"errors"
	"os"
	"time"

	"licet/loadtest/rig"
	"licet/loadtest/trial"
	"licet/loadtest/webhooks"
)

const programName = "run"

func main() { rig.Main(program().Command) }

func program() *trial.Program[*config] {
	return &trial.Program[*config]{Name: programName, Parse: parseConfig, Run: run}
}

// run is one scenario, from an empty store to the proof.
func run(ctx context.Context, cfg *config, progress *rig.Progress) (_ *trial.Report, err error) {
	began := time.Now()
	out, err := newResults(cfg)
	if err != nil {
		return nil, err
	}
	progress.Step("building k6: a minute or two, the first time")
	k6, err := findK6(ctx, cfg, out)
	if err != nil {
		return nil, err
	}
	defer os.Remove(out.path("k6")) // if findK6 has built it
	s, seeds, err := begin(ctx, cfg, out, progress)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if s.Scene != nil {
		defer func() { err = errors.Join(err, s.Stage.KeepLogs(out.dir)) }()
	}
	failed := load(ctx, cfg, k6, s, seeds, out, progress)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	progress.Step("comparing what was acknowledged with what is stored")
	p, err := prove(ctx, s, seeds, out)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	p.Seed, p.Proven = cfg.Seed, "PASSED: nothing was lost, nothing is wrong"
	p.Note(failed)
	p.Line("ACKNOWLEDGED", "UNCERTAIN", "STORED", "OF WHAT")
	for _, f := range p.Facts {
		p.Line(f.Acknowledged, f.Uncertain, f.Stored, f.What)
	}
	progress.Say("reports: %s", out.dir)
	return &p.Report, out.writeProof(p, time.Since(began))
}

// begin starts the service, and grants the licenses that the load needs.
func begin(ctx context.Context, cfg *config, out *results, progress *rig.Progress) (*service, []*seeded, error) {
	s, err := newService(ctx, cfg, progress)
	if err != nil {
		return nil, nil, err
	}
	seeds, err := s.seed(ctx, cfg, progress)
	if err == nil {
		err = out.writeLicenses(seeds)
	}
	if err != nil {
		s.stop()
	}
	return s, seeds, err
}

// load has k6 run the scenario, while its events happen, and waits until all webhooks are delivered.
func load(
	ctx context.Context, cfg *config, k6 *k6, s *service, seeds []*seeded, out *results, progress *rig.Progress,
) error {
	director := newDirector(ctx, cfg, s, progress)
	defer director.server.Close()
	progress.Step("%s: %g arrivals a second for %v", cfg.name, cfg.rate, cfg.duration)
	err := errors.Join(k6.run(ctx, cfg, s, out, director.server.URL), director.finish())
	if s.hooks == nil || ctx.Err() != nil {
		return err
	}
	j, unread := readJournal(seeds, out)
	if unread != nil {
		return errors.Join(err, unread)
	}
	return errors.Join(err, s.hooks.Deliver(ctx, webhooks.Delivery{Progress: progress, Havoc: s.Havoc,
		Changes: changesOf(j, &stored{}), Kills: cfg.Kills, Impatience: cfg.impatience}))
}
