package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
	"licet/loadtest/trial"
)

const (
	failing = 0.2                   // the share of its calls that the unreliable endpoint fails
	slowest = 40 * time.Millisecond // the longest time that the unreliable endpoint takes for a call
	limit   = 45 * time.Minute      // of a whole run
)

// scene is one run: the service, the shop, and its receivers.
type scene struct {
	*trial.Scene
	cfg     *config
	plan    *plan
	journal *journal
	shop    *shop

	reliable, unreliable, hanging *receiver

	followed  []string     // ids of the events of the client that follows the feed
	delivered atomic.Int64 // events that live endpoints have got for the first time
	late      int          // kills while only deliveries were left
	hurried   int
}

// run plays everything, and checks the evidence.
func run(ctx context.Context, cfg *config, progress *rig.Progress) (r *trial.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s, err := newScene(ctx, cfg, progress)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	defer func() { err = errors.Join(err, s.Stage.KeepLogs(cfg.KeepLogs)) }()
	if err := s.play(ctx); err != nil {
		return nil, errors.Join(err, s.journal.Err())
	}
	e, err := s.evidence(ctx)
	if err != nil {
		return nil, errors.Join(err, s.journal.Err())
	}
	r = s.report(e)
	s.shut(ctx, r)
	return r, ctx.Err()
}

func newScene(ctx context.Context, cfg *config, progress *rig.Progress) (_ *scene, err error) {
	s := &scene{cfg: cfg, plan: newPlan(cfg.Seed, cfg.activations), journal: newJournal()}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	for _, one := range []struct {
		as     **receiver
		name   string
		answer answer
	}{
		{&s.reliable, "reliable", well},
		{&s.unreliable, "unreliable", unreliable(cfg.Seed, failing, cfg.failures, slowest)},
		{&s.hanging, "hanging", hanging()},
	} {
		if *one.as, err = newReceiver(one.name, one.answer); err != nil {
			return nil, err
		}
		(*one.as).first = func() { s.delivered.Add(1) }
	}
	s.hanging.live = false
	if s.Scene, err = cfg.NewScene(ctx, progress, programName, s.plan.operations, cfg.Kills/2,
		"--webhook-allow-networks", "127.0.0.0/8"); err != nil {
		return nil, err
	}
	s.shop = &shop{journal: s.journal, browser: stage.NewBrowser(s.Balancer), proceed: s.Pace.Proceed}
	// The clients do not give up while nodes may come back.
	if s.shop.desk, err = s.journal.Client(s.Balancer, 2*stage.Patience, s.APIKey); err != nil {
		return nil, err
	}
	s.shop.program, err = s.journal.Client(s.Balancer, 2*stage.Patience, "")
	return s, err
}

// receivers returns all endpoints.
func (s *scene) receivers() []*receiver {
	return []*receiver{s.reliable, s.unreliable, s.hanging}
}

// stop ends everything.
func (s *scene) stop() {
	s.Stop()
	for _, r := range s.receivers() {
		if r != nil {
			r.stop()
		}
	}
}

// play runs the load until all events are delivered.
func (s *scene) play(ctx context.Context) error {
	for _, r := range s.receivers() {
		if err := s.subscribe(ctx, r); err != nil {
			return err
		}
	}
	if err := s.shop.open(ctx); err != nil {
		return err
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	followed := make(chan error, 1)
	go func() { followed <- s.follow(following) }()
	err := s.operate(ctx)
	if err == nil {
		err = s.deliver(ctx)
	}
	if err == nil { // there may be events that should not be there: they get time to come
		rig.Rest(ctx, 3*time.Second)
	}
	unfollow()
	return errors.Join(err, <-followed, ctx.Err())
}

// subscribe makes the endpoint of a receiver, for all kinds of events.
func (s *scene) subscribe(ctx context.Context, r *receiver) error {
	made, err := s.shop.desk.CreateWebhook(ctx, client.NewWebhook{URL: r.url, Description: r.name})
	if err != nil {
		return fmt.Errorf("make the endpoint %s: %w", r.name, err)
	}
	r.id = made.ID
	return r.know(made.Secret)
}

// operate lets the customers act, while nodes are killed.
func (s *scene) operate(ctx context.Context) error {
	show := s.Progress.Long(s.plan.operations,
		"%d activations, and with orders and removals %d operations, while nodes are killed %d times",
		s.plan.activations, s.plan.operations, s.cfg.Kills/2)
	s.shop.operated = func() { show(s.Pace.Operated()) }
	var rotated error
	err := trial.Act(ctx, s.Scene, s.plan.customers, func(ctx context.Context, c customerPlan) {
		if c.n == len(s.plan.customers)/2 {
			rotated = s.rotate(ctx)
		}
		s.shop.play(ctx, c)
	})
	return errors.Join(err, rotated)
}

// rotate replaces a secret while everything goes on. Messages are signed with both secrets
// for an hour, and the receiver takes either.
func (s *scene) rotate(ctx context.Context) error {
	now, err := s.shop.desk.RotateWebhook(ctx, s.unreliable.id, client.Rotation{Overlap: new(time.Hour)})
	if err != nil {
		return fmt.Errorf("replace the secret of an endpoint: %w", err)
	}
	s.journal.Did("secrets of endpoints replaced")
	return s.unreliable.know(now.Secret)
}
