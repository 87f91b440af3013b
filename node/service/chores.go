package service

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node"
	"licet/node/clocks"
)

// Chore is periodic work of a node.
type Chore struct {
	Name  string // for the log, such as "the sweep of old claims"
	Label string // for the metrics, such as "claims"
	Once  func(context.Context) error
}

// Chores returns the chores of every node: remove expired claims of Idempotency-Keys, record the end
// of orders and licenses, give notices before the end of licenses, remove old trials, issue the licenses that paid
// orders lack, continue rollouts, and remove expired events and the remains of deleted webhook endpoints.
func (s *Sweeps) Chores() []Chore {
	return []Chore{
		{"the sweep of old claims", "claims", s.SweepClaims},
		{"the recording of expired orders", "order_ends", s.RecordOrderEnds},
		{"the recording of expired licenses", "license_ends", s.RecordLicenseEnds},
		{"the recording of licenses that end soon", "license_notices", s.GiveNotices},
		{"the sweep of old trials", "trials", s.SweepTrials},
		{"the issue of licenses that paid orders lack", "issue", s.IssueLicensesDue},
		{"the start of rollouts that no node runs", "rollouts", s.ContinueRollouts},
		{"the sweep of old events", "events", s.SweepEvents},
		{"the sweep of old revocations", "revocations", s.SweepRevocations},
		{"the sweep of deleted webhook endpoints", "webhooks", s.SweepWebhooks},
	}
}

// Sweep runs the chores one after the other, about every Config.SweepEvery, until ctx ends. Any number
// of nodes may run the same chores: each skips the work that another has done.
func (s *Sweeps) Sweep(ctx context.Context, chores ...Chore) {
	s.repeat(ctx, s.cfg.SweepEvery, chores...)
}

// SweepLeases removes lapsed leases until ctx ends: twice as often as the other chores and apart from them, so that
// within a minute from its end a lease is gone.
func (s *Sweeps) SweepLeases(ctx context.Context) {
	s.repeat(ctx, s.cfg.SweepEvery/2, Chore{"the sweep of lapsed leases", "leases", s.RemoveLapsedLeases})
}

// SweepSandbox runs ask each second until ctx ends, or as often as the other chores if they run more often.
func (s *Sweeps) SweepSandbox(ctx context.Context, ask func(context.Context) error) {
	s.repeat(ctx, min(time.Second, s.cfg.SweepEvery), Chore{"the renewals in the sandbox", "sandbox", ask})
}

// repeat runs chores one after the other, about every so often, until ctx ends.
func (s *Sweeps) repeat(ctx context.Context, every time.Duration, chores ...Chore) {
	counts := make([]passes, len(chores))
	for i, chore := range chores {
		counts[i] = s.countPasses(chore.Label)
	}
	for {
		if !backoff.Sleep(ctx, backoff.Around(every, 2)) {
			return
		}
		for i, chore := range chores {
			began := s.cfg.Clock()
			err := s.doChore(ctx, chore)
			if err != nil && ctx.Err() != nil {
				return // the pass was interrupted, so its error says nothing
			}
			counts[i].add(began, s.cfg.Clock(), err)
			if err != nil && !putOff(err) {
				s.cfg.Log.Warn().Err(err).Msg(chore.Name + " failed; the node continues later")
			}
		}
	}
}

// putOff reports whether a pass ended because the node has much else to do, or because its clock is not
// known to agree with the other nodes' clocks. Metrics and the log of clocks show either.
func putOff(err error) bool { return errors.Is(err, node.ErrNoRoom) || clocks.IsUntrusted(err) }

// doChore runs a chore once. If the chore panics, only this pass fails: other chores and later passes
// run.
func (s *Sweeps) doChore(ctx context.Context, chore Chore) (err error) {
	if !s.guard.Do(chore.Name, func() { err = chore.Once(ctx) }) {
		return licensing.ErrInternal
	}
	return err
}

// passes holds the metrics of the passes of one chore.
type passes struct {
	ok, failed, putOff prometheus.Counter
	duration           prometheus.Observer
	success            prometheus.Gauge
}

func (s *Sweeps) countPasses(label string) passes {
	m := s.cfg.Metrics
	return passes{
		ok:       m.Sweeps.WithLabelValues(label, "ok"),
		failed:   m.Sweeps.WithLabelValues(label, "failed"),
		putOff:   m.Sweeps.WithLabelValues(label, "put_off"),
		duration: m.SweepDuration.WithLabelValues(label),
		success:  m.SweepSuccess.WithLabelValues(label),
	}
}

// add counts a finished pass.
func (p *passes) add(began, ended time.Time, err error) {
	p.duration.Observe(ended.Sub(began).Seconds())
	switch {
	case err == nil:
		p.ok.Inc()
		p.success.Set(float64(ended.UnixMilli()) / 1000)
	case putOff(err):
		p.putOff.Inc()
	default:
		p.failed.Inc()
	}
}
