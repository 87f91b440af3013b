package delivery

import (
	"context"
	"testing"
	"time"

	"licet/node/store"
)

// storeDead stores that messages to an endpoint are dead, as an earlier holder would have.
func (s *testNode) storeDead(endpoint string, events []string) {
	s.cluster.t.Helper()
	e := s.endpoint(endpoint)
	done := store.Checkpoint{Progress: store.DeliveryProgress{Place: store.FeedPosition(e.Since), SeenAt: e.ResetAt}}
	for _, id := range events {
		done.Dead = append(done.Dead, store.Delivery{EventID: id, Type: e.Types[0], Status: store.DeliveryDead})
	}
	err := s.deliveries.Work(s.cluster.ctx(), func(ctx context.Context, w store.DeliveryWorker) error {
		lease, ok, err := w.Acquire(ctx, s.cluster.owner, endpoint)
		if err != nil || !ok {
			s.cluster.t.Fatalf("acquire: %v, %v", ok, err)
		}
		if _, err := lease.Resume(ctx); err != nil {
			return err
		}
		if err := lease.Checkpoint(ctx, done); err != nil {
			return err
		}
		return lease.Release(ctx)
	})
	if err != nil {
		s.cluster.t.Fatal(err)
	}
}

func (s *testNode) waitForReplays(endpoint string) {
	s.cluster.t.Helper()
	s.cluster.waitUntil("the replays are done", func() bool {
		jobs, err := s.jobs(endpoint)
		return err == nil && len(jobs) == 0
	})
}

// TestReplayOfManyDeadLetters: each dead message arrives once, whatever a checkpoint contains.
func TestReplayOfManyDeadLetters(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	s.grant(130)
	events := s.waitForEvents(130)
	endpoint := s.subscribe(r)
	s.storeDead(endpoint.ID, events)
	s.replay(endpoint.ID, store.Replay{Dead: true})
	s.startEngine()
	r.waitForAll(l, events)
	s.waitForReplays(endpoint.ID)
	l.waitUntil("nothing is pending or dead", func() bool {
		p := s.progress(endpoint.ID)
		return p.Pending == 0 && p.Dead == 0
	})
	if n := r.attempts(); n != len(events) {
		t.Errorf("%d messages were sent %d times", len(events), n)
	}
}

// TestReplayOfASpanEnds: a replay ends at its last event, also if that event is before the span or was swept.
func TestReplayOfASpanEnds(t *testing.T) {
	l := newTestCluster(t)
	s := l.node()
	r := newReceiver(t)
	s.grant(3)
	s.waitForEvents(3)
	s.grant(3)
	s.waitForEvents(6)
	s.grant(3)
	events := s.waitForEvents(9)
	endpoint := s.subscribe(r)
	s.startEngine()
	s.replay(endpoint.ID, store.Replay{After: events[1], Until: events[1]})
	s.replay(endpoint.ID, store.Replay{After: events[4], Until: events[3]}) // of the same revision
	s.waitForReplays(endpoint.ID)
	for i, id := range events {
		if n := r.timesReceived(id); n > 0 && i != 5 {
			t.Errorf("event %d is in no span and was sent %d times", i, n)
		}
	}
	before := r.attempts()
	s.engine.Kill()
	s.replay(endpoint.ID, store.Replay{Until: events[2]})
	l.waitUntil("the events are swept", func() bool {
		l.advanceClock(time.Hour)
		_, err := s.store.SweepEvents(l.ctx(), l.now(), store.EventRetention{Age: time.Minute, Bytes: 1 << 30})
		return err == nil && len(s.eventIDs()) == 0
	})
	s.grant(3)
	fresh := s.waitForEvents(3)
	s.startEngine()
	s.waitForReplays(endpoint.ID)
	l.waitUntil("the new events have arrived", func() bool { return r.attempts() >= before+3 })
	for _, id := range fresh {
		if n := r.timesReceived(id); n != 1 {
			t.Errorf("an event behind the span was sent %d times", n)
		}
	}
}
