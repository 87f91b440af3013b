package node

import (
	"context"
	"sync"
	"sync/atomic"

	"licet/licensing"
	"licet/metrics/guard"
)

var errDraining = &licensing.Error{
	Reason:  licensing.ReasonUnavailable,
	Message: "the node is shutting down; nothing was changed",
}

// lifecycle is the end of a node: first it leaves, so that callers go to other nodes, then it drains.
type lifecycle struct {
	guard    *guard.Guard
	leaving  atomic.Bool
	gate     sync.RWMutex // read-locked while the node lets work in
	draining bool         // guarded by gate
	work     sync.WaitGroup
}

// StartWork lets in one piece of work that [Node.Drain] waits for, unless the node is draining. The caller must
// call EndWork.
func (l *lifecycle) StartWork() error {
	l.gate.RLock()
	defer l.gate.RUnlock()
	if l.draining {
		return errDraining
	}
	l.work.Add(1)
	return nil
}

// EndWork ends a piece of work that StartWork has let in.
func (l *lifecycle) EndWork() { l.work.Done() }

// Leave fails readiness from now on, so that load balancers send callers to other nodes. The node still takes
// commands.
func (l *lifecycle) Leave() { l.leaving.Store(true) }

// Leaving reports whether Leave was called.
func (l *lifecycle) Leaving() bool { return l.leaving.Load() }

// StopIntake refuses new commands from now on; admitted commands continue. Readiness fails too.
func (l *lifecycle) StopIntake() {
	l.Leave()
	l.gate.Lock()
	l.draining = true
	l.gate.Unlock()
}

// Draining reports whether the node refuses all commands.
func (l *lifecycle) Draining() bool {
	l.gate.RLock()
	defer l.gate.RUnlock()
	return l.draining
}

// Drain stops the intake and waits until all commands that were let in are answered, or ctx ends.
func (l *lifecycle) Drain(ctx context.Context) error {
	l.StopIntake()
	done := make(chan struct{})
	l.guard.Start("drain", func() {
		defer close(done)
		l.work.Wait()
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
