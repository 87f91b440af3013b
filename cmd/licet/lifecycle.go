package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"licet/metrics/guard"
)

// lifecycle is a stack of started parts. stop stops them in reverse order. A lifecycle is not safe for concurrent use.
type lifecycle struct {
	steps []step
	log   zerolog.Logger
}

// step is one started part.
type step struct {
	name string
	undo func(context.Context) error
}

// started pushes a step, with the function that undoes the step.
func (l *lifecycle) started(name string, undo func(context.Context) error) {
	l.steps = append(l.steps, step{name, undo})
}

// stop undoes each step once, the last step first. It continues after failures and returns their errors. The end of ctx
// tells a step to give up.
func (l *lifecycle) stop(ctx context.Context) error {
	var failures []error
	for len(l.steps) > 0 {
		last := l.steps[len(l.steps)-1]
		l.steps = l.steps[:len(l.steps)-1]
		l.log.Debug().Str("step", last.name).Msg("stopping")
		if err := last.undo(ctx); err != nil {
			failures = append(failures, fmt.Errorf("stop %s: %w", last.name, err))
		}
	}
	return errors.Join(failures...)
}

// background runs work in a goroutine until the service stops, and runs it again after a panic.
func (s *instance) background(name string, work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.guard.Start(name, func() {
		defer close(done)
		s.guard.Keep(ctx, name, func() { work(ctx) })
	})
	s.parts.started(name, func(context.Context) error {
		cancel()
		<-done
		return nil
	})
}

// server serves a listener until Shutdown.
type server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// serve serves the requests of a listener in a goroutine until the service stops.
func (s *instance) serve(name string, server server, listener net.Listener) {
	failed := func(err error) { s.failed <- fmt.Errorf("serve %s on %v: %w", name, listener.Addr(), err) }
	s.guard.Start(name, func() {
		if err := server.Serve(listener); err != nil {
			failed(err)
		}
	}, func() { failed(errPanicked) })
	s.parts.started(name, func(ctx context.Context) error {
		// Slow clients must leave time for the mailboxes and the store to stop in order.
		ctx, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout*7/10)
		defer cancel()
		return server.Shutdown(ctx)
	})
}

// stop stops all parts, within the drain delay plus the shutdown timeout.
func (s *instance) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.drainDelay+s.cfg.ShutdownTimeout)
	defer cancel()
	stopped := make(chan error, 1)
	guard.New(s.instruments, s.log).Start("stop", func() { stopped <- s.parts.stop(ctx) },
		func() { stopped <- errPanicked })
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	// Steps that observe ctx are ending now; other steps get cutOff.
	select {
	case err := <-stopped:
		return err
	case <-time.After(cutOff):
		return fmt.Errorf("not everything stopped within %v; the rest was cut off", s.cfg.ShutdownTimeout)
	}
}

// cutOff is how long stop waits for the steps after their deadline.
const cutOff = time.Second

// errPanicked reports that a panic ended a part of the service. The log has the stack.
var errPanicked = errors.New("panic")

// closing returns a step that closes a listener, which its server may have closed already.
func closing(listener net.Listener) func(context.Context) error {
	return func(context.Context) error {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
