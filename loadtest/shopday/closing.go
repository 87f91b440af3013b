package main

import (
	"context"
	"errors"
	"time"

	"licet/loadtest/trial"
)

// compare compares the ledger with the service, record by record and sum by sum.
func (s *day) compare(ctx context.Context) (*trial.Report, error) {
	s.progress.Step("closing: everything is read back, and compared")
	at := time.Now()
	b, err := s.readBooks(ctx)
	if err != nil {
		return nil, errors.Join(err, s.ledger.Err())
	}
	r := s.ledger.Report()
	r.Proven = "the ledger and the service agree"
	r.Problems = append(r.Problems, audit(s.ledger, b, at)...)
	r.Problems = append(r.Problems, s.stage.Contradictions(ctx)...)
	families, err := s.stage.Verify(ctx)
	r.Note(err)
	report(r, append(compareSums(sumLedger(s.ledger, at), sumBooks(b)), sumFamilies(s.ledger, families)...))
	return r, ctx.Err()
}

// report adds the totals of both sides to a report.
func report(r *trial.Report, totals []line) {
	r.Line("COUNTED", "LEDGER", "SERVICE", "")
	for _, total := range totals {
		mark := ""
		if total.ledger != total.service {
			mark = "DIFFERS"
			r.Problem("%s: %v by the ledger, %v by the service", total.what, total.ledger, total.service)
		}
		r.Line(total.what, total.ledger, total.service, mark)
	}
}

// shut ends the nodes in order, and verifies the store and a restored backup of it.
func (s *day) shut(ctx context.Context, r *trial.Report) {
	s.progress.Step("the nodes end; licet store verify, licet store backup, licet store restore, licet store verify")
	s.balancer.CloseIdleConnections()
	stored := r.Leave(ctx, s.stage)
	r.Count("longest orderly stop of a node", s.stage.LongestStop.Round(time.Millisecond))
	r.CountTraffic(s.balancer.Traffic())
	restored, err := s.stage.VerifyRestored(ctx)
	r.Note(err)
	r.Problems = append(r.Problems, unlike(stored, restored)...)
}
