package main

import (
	"context"
	"fmt"
	"maps"

	"licet/loadtest/trial"
)

// evidence collects what the audit compares.
func (s *scene) evidence(ctx context.Context) (*evidence, error) {
	s.Progress.Step("everything is read back, and compared")
	feed, err := readFeed(ctx, s.shop.desk)
	if err != nil {
		return nil, err
	}
	for _, r := range s.receivers() {
		if err := s.inspect(ctx, r); err != nil {
			return nil, err
		}
	}
	e := &evidence{changes: maps.Clone(s.journal.changes), feed: feed, followed: s.followed}
	for _, r := range s.receivers() {
		e.endpoints = append(e.endpoints, r.books())
	}
	return e, nil
}

// inspect checks the status of an endpoint.
func (s *scene) inspect(ctx context.Context, r *receiver) error {
	now, err := s.shop.desk.Webhook(ctx, r.id)
	if err != nil {
		return fmt.Errorf("look the endpoint %s up: %w", r.name, err)
	}
	if now.Status != "enabled" || now.Delivery.Dead != 0 || !now.Delivery.SkippedAt.IsZero() {
		s.journal.Problem("the endpoint %s is %s, with %d dead letters, and has skipped events at %v", r.name,
			now.Status, now.Delivery.Dead, now.Delivery.SkippedAt)
	}
	return nil
}

// report compares the evidence, and reports problems.
func (s *scene) report(e *evidence) *trial.Report {
	r := s.Report(&s.journal.Tally, "every event was delivered, and none was made up")
	r.Count("kills while only deliveries were left", s.late)
	r.Count("times that the unreliable endpoint was enabled again", s.hurried)
	r.Count("events in the feed", len(e.feed))
	r.Problems = append(r.Problems, audit(e)...)
	r.Line("ENDPOINT", "CALLS", "NOT ANSWERED WELL", "EVENTS TAKEN", "TAKEN ONCE MORE")
	for _, one := range s.receivers() {
		d := one.figures()
		r.Line(d.name, d.calls, d.failed, d.events, d.repeats)
		r.Problems = append(r.Problems, one.troubles()...)
	}
	if got, want := len(e.feed), s.plan.events; got != want {
		r.Problem("%d events were planned, and the feed has %d", want, got)
	}
	if d := s.hanging.figures(); d.calls == 0 || d.events > 0 {
		r.Problem("the hanging endpoint was called %d times, and took %d events", d.calls, d.events)
	}
	return r
}

// shut ends the nodes in order, and verifies the store.
func (s *scene) shut(ctx context.Context, r *trial.Report) {
	s.hanging.stop() // otherwise each node waits for it
	s.Shut(ctx, r)
}
