package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// compare holds the ledger against all that the service says, thing by thing
// and sum by sum.
func (s *shop) compare(ctx context.Context) (*report, error) {
	s.progress.Step("closing: everything is read back, and compared")
	at := time.Now()
	b, err := s.readBooks(ctx)
	if err != nil {
		return nil, errors.Join(err, s.ledger.troubles())
	}
	r := &report{
		done:     maps.Clone(s.ledger.done),
		traffic:  s.balancer.Traffic(),
		lines:    compareSums(sumLedger(s.ledger, at), sumBooks(b)),
		problems: append(slices.Clone(s.ledger.problems), audit(s.ledger, b, at)...),
	}
	r.problems = append(r.problems, s.stage.Contradictions(ctx)...)
	families, err := s.stage.Verify(ctx)
	r.note(err)
	r.lines = append(r.lines, sumFamilies(s.ledger, families)...)
	for _, line := range r.lines {
		if !line.agrees() {
			r.problem("%s: %v by the ledger, %v by the service", line.what, line.ledger, line.service)
		}
	}
	return r, ctx.Err()
}

// shut has the nodes end in order, and proves that what they leave behind is
// whole, and in a backup as well.
func (s *shop) shut(ctx context.Context, r *report) {
	s.progress.Step("the nodes end; licet verify, licet backup, licet restore, licet verify")
	s.balancer.CloseIdleConnections()
	r.note(s.stage.EndAll())
	r.stop = s.stage.LongestStop
	stored, err := s.stage.Verify(ctx)
	r.note(err)
	restored, err := s.stage.VerifyRestored(ctx)
	r.note(err)
	r.problems = append(r.problems, unlike(stored, restored)...)
	r.problems = append(r.problems, s.stage.Bugs()...)
}

// troubles are the problems so far, as an error.
func (l *ledger) troubles() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, p := range l.problems {
		errs = append(errs, errors.New(p))
	}
	return errors.Join(errs...)
}
