package delivery

import (
	"context"
	"testing"
	"time"

	"licet/node/store"
)

// giveUp stores that messages to an endpoint were given up, as whoever delivered to it
// before would have.
func (s *site) giveUp(endpoint string, events []string) {
	s.lab.t.Helper()
	e := s.endpoint(endpoint)
	done := store.Checkpoint{Progress: store.DeliveryProgress{Place: store.FeedPosition(e.Since), SeenAt: e.ResetAt}}
	for _, id := range events {
		done.Dead = append(done.Dead, store.Delivery{EventID: id, Type: e.Types[0], Status: store.DeliveryDead})
	}
	err := s.deliveries.Work(s.lab.ctx(), func(ctx context.Context, w store.DeliveryWorker) error {
		hold, ok, err := w.Claim(ctx, s.lab.owner, endpoint)
		if err != nil || !ok {
			s.lab.t.Fatalf("claim: %v, %v", ok, err)
		}
		if _, err := hold.Resume(ctx); err != nil {
			return err
		}
		if err := hold.Checkpoint(ctx, done); err != nil {
			return err
		}
		return hold.Release(ctx)
	})
	if err != nil {
		s.lab.t.Fatal(err)
	}
}

func (s *site) replaysAreDone(endpoint string) {
	s.lab.t.Helper()
	s.lab.until("the replays are done", func() bool {
		jobs, err := s.jobs(endpoint)
		return err == nil && len(jobs) == 0
	})
}

// TestReplayOfManyDeadLetters: each comes once, however many come on in a checkpoint.
func TestReplayOfManyDeadLetters(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	s.record(130)
	events := s.recorded(130)
	endpoint := s.subscribe(r)
	s.giveUp(endpoint.ID, events)
	s.replay(endpoint.ID, store.Replay{Dead: true})
	s.deliver()
	r.mustHaveAll(l, events)
	s.replaysAreDone(endpoint.ID)
	l.until("nothing is pending or dead", func() bool {
		p := s.progress(endpoint.ID)
		return p.Pending == 0 && p.Dead == 0
	})
	if n := r.attempts(); n != len(events) {
		t.Errorf("%d messages were sent %d times", len(events), n)
	}
}

// TestReplayOfASpanEnds where it says, also where that is not in the span or not kept
// any more.
func TestReplayOfASpanEnds(t *testing.T) {
	l := newLab(t)
	s := l.site()
	r := newReceiver(t)
	s.record(3)
	s.recorded(3)
	s.record(3)
	s.recorded(6)
	s.record(3)
	events := s.recorded(9)
	endpoint := s.subscribe(r)
	s.deliver()
	s.replay(endpoint.ID, store.Replay{After: events[1], Until: events[1]})
	s.replay(endpoint.ID, store.Replay{After: events[4], Until: events[3]}) // of one revision
	s.replaysAreDone(endpoint.ID)
	for i, id := range events {
		if n := r.times(id); n > 0 && i != 5 {
			t.Errorf("event %d, which is in no span, was sent %d times", i, n)
		}
	}
	before := r.attempts()
	s.engine.Kill()
	s.replay(endpoint.ID, store.Replay{Until: events[2]})
	l.until("they are swept", func() bool {
		l.pass(time.Hour)
		_, err := s.store.SweepEvents(l.ctx(), l.now(), store.EventRetention{Age: time.Minute, Bytes: 1 << 30})
		return err == nil && len(s.feed()) == 0
	})
	s.record(3)
	fresh := s.recorded(3)
	s.deliver()
	s.replaysAreDone(endpoint.ID)
	l.until("the new ones have come", func() bool { return r.attempts() >= before+3 })
	for _, id := range fresh {
		if n := r.times(id); n != 1 {
			t.Errorf("an event behind the span was sent %d times", n)
		}
	}
}
