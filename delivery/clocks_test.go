package delivery

import (
	"net/http"
	"testing"
	"time"

	"licet/delivery/webhook"
	"licet/internal/nodetest"
	"licet/node/clocks"
)

// TestWrongClockDeliversNothing: a node whose clock differs from most nodes' clocks leaves its endpoints to other
// nodes, and takes endpoints again once its clock agrees.
func TestWrongClockDeliversNothing(t *testing.T) {
	l := newTestCluster(t)
	l.clocks = nodetest.NewComparison(clocks.System())
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

	nodetest.MeetNodes(comparison, 0, 0)
	wrong.startEngine()
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(5))

	nodetest.MeetNodes(comparison, 9*24*time.Hour, 9*24*time.Hour)
	l.waitUntil("the node has released its endpoint", func() bool { return loops(wrong) == 0 })
	right.startEngine()
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(10))
	if n := loops(wrong); n != 0 {
		t.Errorf("the node whose clock is wrong delivers to %d endpoints", n)
	}
	right.engine.Kill()

	nodetest.MeetNodes(comparison, 0, 0)
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(15))
}

// TestClocksInDoubtGiveNothingUp: of two nodes whose clocks are 9 days apart, neither knows which clock is right. They
// go on with attempts, but give no message up and disable no endpoint until a majority of clocks agrees.
func TestClocksInDoubtGiveNothingUp(t *testing.T) {
	const apart = 9 * 24 * time.Hour
	l := newTestCluster(t)
	l.clocks = nodetest.NewComparison(clocks.System())
	nodetest.MeetNodes(l.clocks, apart)
	behind := l.node()
	doubted := nodetest.NewComparison(clocks.System())
	nodetest.MeetNodes(doubted, -apart)
	l.clocks, l.ahead = doubted, apart
	ahead := l.node()
	r := newReceiver(t)
	r.respondWith(status(http.StatusInternalServerError))
	endpoint := behind.subscribe(r)
	isOver := func() bool {
		now := behind.endpoint(endpoint.ID)
		return !now.Enabled() || behind.progress(endpoint.ID).Dead > 0
	}

	behind.startEngine()
	behind.grant(failingAfter)
	events := behind.waitForEvents(failingAfter)
	l.waitUntil("the endpoint is failing", func() bool {
		l.advanceClock(checkpointDelay / 2)
		return behind.progress(endpoint.ID).Failures >= failingAfter
	})
	if err := behind.engine.Stop(l.ctx()); err != nil {
		t.Fatal(err)
	}
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

	nodetest.MeetNodes(doubted, 0, 0)
	l.waitUntil("the next failure ends a message, or the endpoint", func() bool {
		l.advanceClock(2 * time.Hour)
		return isOver()
	})
}
