package node

import (
	"context"
	"testing"
	"time"

	"licet/licensing"
	"licet/metrics"
	"licet/node/store"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// sends implements Peers: it notes the hops, and takes none.
type sends struct{ hops []Hop }

func (s *sends) Send(_ context.Context, _ store.Incarnation, hop Hop) (HopAnswer, error) {
	s.hops = append(s.hops, hop)
	return HopAnswer{}, ErrNotTaken
}
func (s *sends) Reach(context.Context, store.Incarnation) error { return nil }

func stateNode(peers Peers) *Node {
	return New(Config{
		Clock: time.Now, Metrics: metrics.New(prometheus.NewRegistry(), "test", "", ""), Log: zerolog.Nop(),
		Peers: peers, Self: incarnation(5),
	})
}

func stateCall(within time.Duration, state int32, hopped bool) *call {
	c := &call{cmd: licensing.Activate{Device: "d"}, deadline: time.Now().Add(within), hopped: hopped}
	c.mustWait()
	c.state.Store(state)
	return c
}

// TestHopEndsBeforeItsDeadlines: a hop ends the margin before the earliest deadline of its callers, and a caller with
// a much earlier deadline does not hop.
func TestHopEndsBeforeItsDeadlines(t *testing.T) {
	peers := &sends{}
	n := stateNode(peers)
	calls := []*call{stateCall(9*time.Second, callTaken, false), stateCall(8500*time.Millisecond, callTaken, false),
		stateCall(8700*time.Millisecond, callTaken, false), stateCall(5*time.Second, callTaken, false)}
	rest := n.forward(t.Context(), contestedRef, calls, incarnation(7))
	if len(rest) != 4 || len(peers.hops) != 1 || len(peers.hops[0].Commands) != 3 ||
		!peers.hops[0].Over.Equal(calls[1].deadline.Add(-defaultHopMargin)) {
		t.Errorf("%d are left; sent %+v", len(rest), peers.hops)
	}
}

// TestEndedHopIsNotBegun: a node does not begin commands of an ended hop, even if the caller has not given up yet.
func TestEndedHopIsNotBegun(t *testing.T) {
	box := &mailbox{queue: []*call{stateCall(-time.Millisecond, callWaiting, true),
		stateCall(time.Minute, callWaiting, true), stateCall(-time.Millisecond, callWaiting, false)}}
	if got := box.take(10).calls; len(got) != 2 {
		t.Errorf("%d are taken", len(got))
	}
	if got := stillWanted([]*call{stateCall(-time.Millisecond, callTaken, true),
		stateCall(time.Minute, callTaken, true)}); len(got) != 1 {
		t.Errorf("%d are wanted", len(got))
	}
}

// TestAbandonedStaysAbandoned: the node no longer moves a call that was answered or abandoned.
func TestAbandonedStaysAbandoned(t *testing.T) {
	n := stateNode(&sends{})
	for _, state := range []int32{callAbandoned, callAnswered} {
		c := stateCall(time.Minute, state, false)
		rest := n.sendAway([]*call{c})
		n.moveOut(contestedRef, []*call{c})
		if len(rest) != 0 || c.state.Load() != state || len(n.shardOf(contestedRef).outboxes) != 0 {
			t.Errorf("a call in state %d was sent away: %d calls are left, and its state is %d",
				state, len(rest), c.state.Load())
		}
		n.bringBack(contestedRef, []*call{c})
		if c.state.Load() != state || len(n.shardOf(contestedRef).boxes) != 0 {
			t.Errorf("a call in state %d was brought back: its state is %d", state, c.state.Load())
		}
	}
}
