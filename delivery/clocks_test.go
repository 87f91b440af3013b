package delivery

import (
	"testing"
	"time"

	"licet/internal/nodetest"
)

// TestWrongClockDeliversNothing: a node whose clock differs from most nodes' clocks leaves its endpoints to other
// nodes, and takes endpoints again once its clock agrees.
func TestWrongClockDeliversNothing(t *testing.T) {
	l := newTestCluster(t)
	l.clocks = nodetest.NewComparison()
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

	nodetest.MeetNodes(comparison, 0)
	wrong.startEngine()
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(5))

	nodetest.MeetNodes(comparison, 9*24*time.Hour)
	l.waitUntil("the node has released its endpoint", func() bool { return loops(wrong) == 0 })
	right.startEngine()
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(10))
	if n := loops(wrong); n != 0 {
		t.Errorf("the node whose clock is wrong delivers to %d endpoints", n)
	}
	right.engine.Kill()

	nodetest.MeetNodes(comparison, 0)
	right.grant(5)
	r.waitForAll(l, right.waitForEvents(15))
}
