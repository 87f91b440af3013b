package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node"
	"licet/node/clocks"
	"licet/node/store"
)

// Chore is periodic work of a node.
type Chore struct {
	Name  string // for the log, such as "the sweep of old claims"
	Label string // for the metrics, such as "claims"
	Once  func(context.Context) error
}

// Chores returns the chores of every node: remove expired claims of Idempotency-Keys, record the end
// of orders and licenses, give notices before the end of licenses, remove old trials, issue the licenses that paid
// orders lack, change the licenses of refunded and disputed orders, continue rollouts, and remove expired events and
// the remains of deleted webhook endpoints.
func (s *Sweeps) Chores() []Chore {
	return []Chore{
		{"the sweep of old claims", "claims", s.SweepClaims},
		{"the recording of expired orders", "order_ends", s.RecordOrderEnds},
		{"the recording of expired licenses", "license_ends", s.RecordLicenseEnds},
		{"the recording of licenses that end soon", "license_notices", s.GiveNotices},
		{"the sweep of old trials", "trials", s.SweepTrials},
		{"the issue and the change of licenses of orders for several", "issue", s.IssueLicensesDue},
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

// passes contains the metrics of the passes of one chore.
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

// A node sweeps only some of the slots in which work is due: the nodes that are up divide the slots by rendezvous
// hashing. For each slot a node has a rank, a hash of the node, the slot and the period, and the node with the highest
// rank sweeps the slot. So if a node comes or goes, only slots of this node change hands. Nodes that know of different
// nodes for a moment sweep some slots twice, which is harmless, or not at all until the next pass.
//
// A period is a span of time in which each node makes at least two passes. The nodes divide the slots again for each
// period, so a node that is up and can't sweep, such as a node with a wrong clock, keeps no slot waiting for longer.

// passesPerPeriod is how many times a period is longer than the average time between two passes.
const passesPerPeriod = 4

// ownSlots returns the slots that this node sweeps at a time. A node sweeps all slots if it is not registered among the
// nodes that are up, or knows of none.
func (s *core) ownSlots(slots []licensing.Slot, now time.Time) []licensing.Slot {
	nodes := s.cfg.Clocks.Nodes()
	if !slices.Contains(nodes, s.cfg.Self) {
		return slots
	}
	period := now.UnixNano() / int64(passesPerPeriod*s.cfg.SweepEvery)
	return slices.DeleteFunc(slots, func(slot licensing.Slot) bool {
		return nodeOf(slot, period, nodes) != s.cfg.Self
	})
}

// nodeOf returns the node that sweeps a slot in a period.
func nodeOf(slot licensing.Slot, period int64, nodes []store.Incarnation) store.Incarnation {
	return slices.MaxFunc(nodes, func(a, b store.Incarnation) int {
		x, y := rankOf(a, slot, period), rankOf(b, slot, period)
		return bytes.Compare(x[:], y[:])
	})
}

func rankOf(node store.Incarnation, slot licensing.Slot, period int64) [sha256.Size]byte {
	input := append(make([]byte, 0, 32), node[:]...)
	input = binary.BigEndian.AppendUint16(input, uint16(slot))
	return sha256.Sum256(binary.BigEndian.AppendUint64(input, uint64(period)))
}
