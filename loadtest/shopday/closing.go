package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
		broken:   s.balancer.broken.Load(),
		moved:    s.balancer.moved.Load(),
		lines:    compareSums(sumLedger(s.ledger, at), sumBooks(b)),
		problems: append(slices.Clone(s.ledger.problems), audit(s.ledger, b, at)...),
	}
	for i := range s.balancer.sent {
		r.sent = append(r.sent, s.balancer.sent[i].Load())
	}
	for i, n := range s.stage.nodes {
		if violations, err := invariantViolations(ctx, n.Metrics); err != nil || violations != 0 {
			r.problem("node %d has met %v licenses that contradict themselves: %v", i+1, violations, err)
		}
	}
	families, err := s.stage.verify(ctx, "--etcd-endpoints", s.stage.endpoints())
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
	r.note(s.stage.endAll())
	r.stop = s.stage.longestStop
	stored, err := s.stage.verify(ctx, "--etcd-endpoints", s.stage.endpoints())
	r.note(err)
	restored, err := s.stage.restored(ctx)
	r.note(err)
	r.problems = append(r.problems, unlike(stored, restored)...)
	for _, text := range s.stage.logs {
		for _, bug := range []string{"panic", "DATA RACE"} {
			if at := strings.Index(text, bug); at >= 0 {
				r.problem("a node's log has %q: %.2000s", bug, text[at:])
			}
		}
	}
}

// keepLogs writes the logs of nodes that have ended into a directory.
func (s *stage) keepLogs(dir string) error {
	var errs []error
	for i, text := range s.logs {
		errs = append(errs, os.WriteFile(filepath.Join(dir, fmt.Sprintf("node-%d.log", i+1)), []byte(text), 0o600))
	}
	return errors.Join(errs...)
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
