package main

import (
	"context"
	"fmt"
	"maps"
)

// evidence collects what there is to judge by.
func (s *scene) evidence(ctx context.Context, followed *follower) (*evidence, error) {
	s.progress.Step("everything is read back, and compared")
	feed, err := readFeed(ctx, s.shop.desk)
	if err != nil {
		return nil, err
	}
	for _, r := range s.receivers() {
		if err := s.inspect(ctx, r); err != nil {
			return nil, err
		}
	}
	e := &evidence{changes: maps.Clone(s.journal.changes), feed: feed, followed: followed.ids}
	for _, r := range s.receivers() {
		e.endpoints = append(e.endpoints, r.books())
	}
	return e, nil
}

// inspect asks what the service says of an endpoint.
func (s *scene) inspect(ctx context.Context, r *receiver) error {
	now, err := s.shop.desk.Webhook(ctx, r.id)
	if err != nil {
		return fmt.Errorf("look the endpoint %s up: %w", r.name, err)
	}
	if now.Status != "enabled" || now.Delivery.Dead != 0 || !now.Delivery.SkippedAt.IsZero() {
		s.journal.problem("the endpoint %s is %s, with %d dead letters, and has skipped events at %v", r.name, now.Status, now.Delivery.Dead, now.Delivery.SkippedAt)
	}
	return nil
}

// report judges the evidence.
func (s *scene) report(e *evidence) *report {
	r := &report{
		seed: s.cfg.seed, done: maps.Clone(s.journal.done), traffic: s.balancer.Traffic(), kills: s.havoc.times, both: s.havoc.both,
		late: s.late, hurried: s.hurried, events: len(e.feed), problems: append(s.journal.troubles(), audit(e)...),
	}
	for _, one := range s.receivers() {
		r.lines = append(r.lines, one.figures())
		r.problems = append(r.problems, one.troubles()...)
	}
	if got, want := len(e.feed), s.plan.events; got != want {
		r.problem("%d events were planned, and the feed has %d", want, got)
	}
	// What is left to deliver in a small run may be gone before the next kill is due.
	if r.kills < s.pace.kills {
		r.problem("nodes were killed %d times of %d", r.kills, s.pace.kills)
	}
	if hanging := r.lines[2]; hanging.calls == 0 || hanging.events > 0 {
		r.problem("the hanging endpoint was called %d times, and took %d events", hanging.calls, hanging.events)
	}
	return r
}

// shut has the nodes end in order, and proves that what they leave behind is whole.
func (s *scene) shut(ctx context.Context, r *report) {
	s.progress.Step("the nodes end; licet verify")
	s.balancer.CloseIdleConnections()
	r.problems = append(r.problems, s.stage.Contradictions(ctx)...)
	s.hanging.stop() // else each node waits for it a while
	r.note(s.stage.EndAll())
	_, err := s.stage.Verify(ctx)
	r.note(err)
	r.problems = append(r.problems, s.stage.Bugs()...)
}
