package kv

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
)

const (
	// closeAfter is the age at which a node closes an epoch with events. It is about the delay of events in feeds.
	closeAfter = time.Second
	// closeBytes is how many bytes of changes with events this node writes into one epoch before it closes the epoch
	// early: a reader of an epoch must keep the list of all its events in memory.
	closeBytes = 4 << 20
	// closePause is the least age at which a node closes an epoch: every new epoch makes all nodes send their pending
	// requests again. So there are at most two epochs a second, and an epoch exceeds closeBytes by at most the writes
	// of closePause and closeScan.
	closePause = 500 * time.Millisecond
	// closeScan is the pause between checks whether an epoch is due: the node that would have closed the epoch may
	// have died.
	closeScan = 250 * time.Millisecond
)

// openEpoch is the epoch into which events are recorded.
type openEpoch struct {
	number  keyspace.Epoch
	written bool  // something was written into the store since the epoch began
	bytes   int64 // of the events that this store has written into the epoch
}

// KeepClosingEpochs starts to close epochs in the background, so that recorded events enter the feeds, until Close. All
// nodes close epochs; the first node to close an epoch closes the epoch for all.
func (s *Store) KeepClosingEpochs() {
	begun := make(chan struct{}, 1)
	s.guard.KeepIn(s.life, &s.background, "watch of epochs", func() {
		s.etcd.Watch(s.life, keyspace.EpochKey, func() {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	})
	s.guard.KeepIn(s.life, &s.background, "closing of epochs", func() {
		closer := epochCloser{
			read: s.readOpenEpoch, closeEpoch: s.closeEpoch, lag: s.metrics.EventFeedLag, log: s.log,
		}
		closer.run(s.life, begun)
	})
}

// epochCloser closes epochs that are due.
type epochCloser struct {
	read       func(context.Context) (openEpoch, error)
	closeEpoch func(context.Context, keyspace.Epoch) error
	lag        prometheus.Gauge
	log        zerolog.Logger
	age        epochAge
}

// run looks at the open epoch now and then, and at once when begun receives, until ctx ends. It closes the epoch when
// it is due.
func (s *epochCloser) run(ctx context.Context, begun <-chan struct{}) {
	s.age.readAt = time.Now() // not the node's clock: an age needs the monotonic clock
	for backoff.SleepUnless(ctx, backoff.Around(closeScan, 2), begun) {
		now := time.Now()
		epoch, err := s.read(ctx)
		if err != nil {
			continue // callers that need the store get the error
		}
		s.age.observe(epoch.number, now, time.Now())
		var lag time.Duration
		if epoch.written {
			lag = s.age.atMost(now)
		}
		s.lag.Set(lag.Seconds())
		if !s.age.due(epoch, now) {
			continue
		}
		if err := s.closeEpoch(ctx, epoch.number); err != nil && ctx.Err() == nil {
			s.log.Debug().Err(err).Msg("can't close the epoch of events; the node tries again")
		}
	}
}

// epochAge contains bounds of the age of an epoch, by the node's own clock.
type epochAge struct {
	number keyspace.Epoch
	readAt time.Time // the start of the last read of the epoch
	after  time.Time // the epoch began after this time: the start of the last read that did not return it
	before time.Time // the epoch began before this time: the end of the first read that returned it
}

// observe notes the epoch that a read has returned.
func (a *epochAge) observe(number keyspace.Epoch, began, ended time.Time) {
	if number != a.number {
		a.number, a.after, a.before = number, a.readAt, ended
	}
	a.readAt = began
}

// atMost returns the greatest possible age of the epoch.
func (a *epochAge) atMost(now time.Time) time.Duration { return now.Sub(a.after) }

// due reports whether the node should close the epoch.
func (a *epochAge) due(epoch openEpoch, now time.Time) bool {
	return epoch.written && now.Sub(a.before) >= closePause &&
		(a.atMost(now) >= closeAfter || epoch.bytes >= closeBytes)
}

// CloseEpoch closes the open epoch at once, so that feeds have every event that was recorded before the call. Nodes
// call KeepClosingEpochs instead.
func (s *feeds) CloseEpoch(ctx context.Context) error {
	epoch, err := s.readOpenEpoch(ctx)
	if err != nil {
		return err
	}
	return s.closeEpoch(ctx, epoch.number)
}

// readOpenEpoch reads the epoch into which events are recorded. It also learns which owners listen: a node that only
// refuses devices writes nothing, so no fence refuses its requests. And it finds out whether the store was restored.
func (s *feeds) readOpenEpoch(ctx context.Context) (openEpoch, error) {
	state, also, err := s.feedStateWith(ctx, keyspace.ListenKey, keyspace.WebhooksMark)
	if err != nil {
		return openEpoch{}, err
	}
	if err := s.noteListening(ctx, also[0], state.revision); err != nil {
		return openEpoch{}, etcd.Unavailable(err)
	}
	if mark := also[1]; mark != nil {
		if err := s.moveLeft(ctx, mark.ModRevision); err != nil {
			s.log.Debug().Err(err).Msg("can't look for requests to listen to activations; the node tries again")
		}
	}
	if err := s.keepOwners(ctx, keyspace.Epoch(state.revision)); err != nil {
		return openEpoch{}, etcd.Unavailable(err)
	}
	return openEpoch{
		number: state.epoch, written: state.revision > int64(state.epoch), bytes: s.fences.bytesIn(state.epoch),
	}, nil
}
