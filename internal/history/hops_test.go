package history

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/metrics"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/peer"
	"licet/node/store"
)

// way describes the hops of a run: whether nodes send each other commands, and how many of a
// thousand hops fail.
type way struct {
	on      bool
	refused int // it is not taken
	unsent  int // the message gets lost before it is sent
	lost    int // its answer does
	slow    int // it takes long
	late    int // it is read when it is over, or nearly
	lie     int // an answer is missing
}

// ways has nodes that know nothing of each other, that work together as they
// should, and that do so under ever more trouble. Killed nodes stay registered, and
// nodes are paused and their clocks moved in any case.
func ways() []way {
	return []way{
		{},
		{on: true},
		{on: true, refused: 30, unsent: 10, lost: 20, slow: 100, late: 5, lie: 5},
		{on: true, refused: 500, slow: 500}, // now with the others, now alone
	}
}

const (
	// hopPatience is the patience of callers whose commands may hop: whom a hop
	// leaves in doubt waits to its end.
	hopPatience = 600 * time.Millisecond
	hopMargin   = 25 * time.Millisecond
)

// connectPeers lets a process call the others. It comes before its node is made.
func (p *process) connectPeers(r *run) error {
	ring, err := testRing()
	if err != nil {
		return err
	}
	p.calls, err = peer.NewClient(ring, func(context.Context) ([]store.Registration, error) {
		return r.registrations(),
			nil
	}, guard.New(nil, zerolog.Nop()))
	return err
}

// beCalled lets the others call a process.
func (p *process) beCalled(r *run, instruments *metrics.Metrics) error {
	ring, err := testRing()
	if err != nil {
		return err
	}
	server, err := peer.NewServer(p.opened.Incarnation(), ring, pausing{p}, instruments, zerolog.Nop())
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.called = &severable{Listener: listener, conns: make(map[net.Conn]struct{})}
	r.background.Go(func() { _ = server.Serve(p.called) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes = append(r.nodes, server.Registration(listener.Addr().String()))
	return nil
}

// registrations are those of all processes that ever were.
func (r *run) registrations() []store.Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]store.Registration(nil), r.nodes...)
}

// severable is a listener whose connections end with its process.
type severable struct {
	net.Listener
	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil: severed
}

func (s *severable) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	s.conns[conn] = struct{}{}
	return conn, nil
}

func (s *severable) sever() {
	s.Listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.conns {
		conn.Close()
	}
	s.conns = nil
}

// troubled is the way from a process to the others.
type troubled struct{ p *process }

var errTrouble = errors.New("trouble on the way")

func (t troubled) Send(ctx context.Context, to store.Incarnation, hop node.Hop) (node.HopAnswer, error) {
	f, w := t.p.faults, t.p.faults.run.way
	if err := f.running(ctx); err != nil || t.p.isDead() || f.hits(w.refused) {
		return node.HopAnswer{}, fmt.Errorf("%w: %w", node.ErrNotTaken, errTrouble)
	}
	if f.hits(w.slow) {
		f.sleep(ctx, 5*time.Millisecond)
	}
	if f.hits(w.unsent) {
		return node.HopAnswer{}, errTrouble
	}
	answer, err := t.p.calls.Send(ctx, to, hop)
	if f.running(ctx) != nil || f.hits(w.lost) {
		if f.run.bug.lostHop != nil {
			f.run.awaitOthers(ctx)
			return node.HopAnswer{}, f.run.bug.lostHop
		}
		return node.HopAnswer{}, errTrouble
	}
	if err == nil && f.hits(w.lie) {
		answer.Answers = answer.Answers[1:]
	}
	return answer, err
}

// awaitOthers waits until some other operations have ended, or ctx has.
func (r *run) awaitOthers(ctx context.Context) {
	for enough := r.done() + 3*len(r.licenses); r.done() < enough; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func (t troubled) Reach(ctx context.Context, to store.Incarnation) error {
	if err := t.p.faults.running(ctx); err != nil {
		return err
	}
	return t.p.calls.Reach(ctx, to)
}

// pausing is the node of a process as others' commands come to it: it stands
// still while the process is paused.
type pausing struct{ p *process }

func (e pausing) Execute(hop node.Hop) (node.HopAnswer, error) {
	f := e.p.faults
	_ = f.running(e.p.life)
	if f.hits(f.run.way.late) {
		time.Sleep(time.Until(hop.Over) - time.Duration(f.IntN(int(2*time.Millisecond))))
		if f.run.bug.overlong {
			time.Sleep(2 * hopMargin)
			hop.Over = time.Now().Add(time.Second)
		}
	}
	f.run.hops.Add(int64(len(hop.Commands)))
	began := time.Since(f.run.started)
	answer, err := e.p.node.Execute(hop)
	f.run.noteHop(e.p, hop, began, answer, err)
	_ = f.running(e.p.life)
	return answer, err
}

// newInstruments returns metrics that the test does not read.
func newInstruments() *metrics.Metrics {
	return metrics.New(prometheus.NewRegistry(), "test", "", "")
}
