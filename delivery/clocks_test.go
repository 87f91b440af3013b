package delivery

import (
	"net/http"
	"testing"
	"time"

	"licet/delivery/webhook"
	"licet/internal/nodetest"
)

// TestWrongClockDeliversNothing: a node whose clock differs from most nodes' clocks leaves its endpoints to other
// nodes, and takes endpoints again once its clock agrees.
func TestWrongClockDeliversNothing(t *testing.T) {
	l := newTestCluster(t)
	l.clocks = nodetest.NewComparison(new(nodetest.Clock).Source)
	wrong := l.node()
	comparison := l.clocks
	l.clocks = nil
	right := l.node()
	r := newReceiver(t)
	right.subscribe(r)
	loops := func(s *testNode) int {
		s.engine.mu.Lock()
		defer s.engine.mu.Unlock()
		return len(s.engine.loops)
	}

	nodetest.CompareWith(comparison, 0, 0)
	wrong.startEngine()
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(5))

	nodetest.CompareWith(comparison, 9*24*time.Hour, 9*24*time.Hour)
	l.waitUntil("the node has released its endpoint", func() bool { return loops(wrong) == 0 })
	right.startEngine()
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(10))
	if n := loops(wrong); n != 0 {
		t.Errorf("the node whose clock is wrong delivers to %d endpoints", n)
	}
	right.engine.Kill()

	nodetest.CompareWith(comparison, 0, 0)
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(15))
}

// TestClocksInDoubtGiveNothingUp: of two nodes whose clocks are 9 days apart, neither knows which clock is right. They
// go on with attempts, but give no message up and disable no endpoint until a majority of clocks agrees.
func TestClocksInDoubtGiveNothingUp(t *testing.T) {
	const apart = 9 * 24 * time.Hour
	l := newTestCluster(t)
	l.clocks = nodetest.NewComparison(new(nodetest.Clock).Source)
	nodetest.CompareWith(l.clocks, apart)
	behind := l.node()
	inDoubt := nodetest.NewComparison(new(nodetest.Clock).Source)
	nodetest.CompareWith(inDoubt, -apart)
	l.clocks, l.ahead = inDoubt, apart
	ahead := l.node()
	r := newReceiver(t)
	r.respondWith(status(http.StatusInternalServerError))
	endpoint := behind.subscribe(r)
	isOver := func() bool {
		now := behind.endpoint(endpoint.ID)
		return !now.Enabled() || behind.progress(endpoint.ID).Dead > 0
	}

	behind.startEngine()
	events := failEndpoint(l, behind, endpoint.ID)
	ahead.startEngine()
	l.waitUntil("each message was tried more often than a message is tried", func() bool {
		l.advanceClock(2 * time.Hour)
		for _, id := range events {
			if r.timesReceived(id) <= webhook.Attempts {
				return isOver()
			}
		}
		return true
	})
	if isOver() {
		t.Errorf("of %+v, a node without a majority gave up %d messages",
			behind.endpoint(endpoint.ID), behind.progress(endpoint.ID).Dead)
	}

	nodetest.CompareWith(inDoubt, 0, 0)
	l.waitUntil("the next failure ends a message, or the endpoint", func() bool {
		l.advanceClock(2 * time.Hour)
		return isOver()
	})
}

// TestClockAheadDelaysNothing: a lone node whose clock is 9 days ahead stores when the next probe and the next attempts
// are due. The node that takes over, whose clock is right, does not wait for these times.
func TestClockAheadDelaysNothing(t *testing.T) {
	const apart = 9 * 24 * time.Hour
	l := newTestCluster(t)
	right := l.node()
	l.ahead = apart
	ahead := l.node()
	r := newReceiver(t)
	r.respondWith(status(http.StatusInternalServerError))
	endpoint := right.subscribe(r)

	ahead.startEngine()
	events := failEndpoint(l, ahead, endpoint.ID)
	if p := right.progress(endpoint.ID); p.NextProbe.Before(right.now().Add(apart-time.Hour)) ||
		!p.FailingSince.After(right.now()) {
		t.Fatalf("the clock that is ahead has stored %+v", p)
	}
	r.respondWith(nil)
	right.startEngine()
	r.waitForAll(l, events)
}

// TestClockBehindDisablesNothing: a node in doubt whose clock is 9 days behind stores since when an endpoint fails. The
// node that takes over, whose clock is right, does not believe this time, and disables the endpoint no sooner.
func TestClockBehindDisablesNothing(t *testing.T) {
	const apart = 9 * 24 * time.Hour
	l := newTestCluster(t)
	right := l.node()
	l.clocks, l.ahead = nodetest.NewComparison(new(nodetest.Clock).Source), -apart
	nodetest.CompareWith(l.clocks, apart)
	behind := l.node()
	r := newReceiver(t)
	r.respondWith(status(http.StatusInternalServerError))
	endpoint := right.subscribe(r)

	behind.startEngine()
	failEndpoint(l, behind, endpoint.ID)
	if p := right.progress(endpoint.ID); right.now().Sub(p.FailingSince) < webhook.MaxFailing {
		t.Fatalf("the clock that is behind has stored %+v", p)
	}
	took := right.now().Truncate(time.Millisecond) // as times are stored
	right.startEngine()
	l.waitUntil("more probes have failed, or the endpoint is disabled", func() bool {
		l.advanceClock(firstProbePause)
		endpoint = right.endpoint(endpoint.ID)
		return right.progress(endpoint.ID).Failures > failingAfter+1 || !endpoint.Enabled()
	})
	if !endpoint.Enabled() {
		t.Fatalf("the endpoint is disabled at once: %+v", endpoint)
	}
	if since := right.progress(endpoint.ID).FailingSince; since.Before(took) {
		t.Errorf("the endpoint is said to fail since %v, before %v", since, took)
	}
}

// failEndpoint lets a node deliver to an endpoint until the endpoint is failing, stops the node's engine, and returns
// the events.
func failEndpoint(l *testCluster, s *testNode, endpoint string) []string {
	l.t.Helper()
	s.grant(failingAfter)
	events := s.waitForEvents(failingAfter)
	l.waitUntil("the endpoint is failing", func() bool {
		l.advanceClock(checkpointDelay / 2)
		return s.progress(endpoint).Failures >= failingAfter
	})
	if err := s.engine.Stop(l.ctx()); err != nil {
		l.t.Fatal(err)
	}
	return events
}

func TestResumedTimes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct{ stored, want time.Time }{
		{time.Time{}, time.Time{}},
		{now.Add(-9 * 24 * time.Hour), now.Add(-9 * 24 * time.Hour)},
		{now, now},
		{now.Add(longestProbePause), now.Add(longestProbePause)},
		{now.Add(longestProbePause + 1), now},
		{now.Add(9 * 24 * time.Hour), now},
	} {
		if got := resumed(test.stored, now, longestProbePause); !got.Equal(test.want) {
			t.Errorf("%v: %v, want %v", test.stored, got, test.want)
		}
	}
}
