package guard

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"licet/internal/backoff"
	"licet/metrics"
)

const (
	// firstPause and longestPause bound the pause before Keep starts work again that panicked.
	firstPause   = time.Second
	longestPause = time.Minute
)

// Guard recovers, counts and logs panics. Make it with [New]. It is safe for concurrent use and
// may be copied.
type Guard struct {
	metrics *metrics.Metrics
	log     zerolog.Logger
}

// New returns a guard that counts panics in m and writes them to log. If m is nil, the guard
// does not count them.
func New(m *metrics.Metrics, log zerolog.Logger) *Guard { return &Guard{metrics: m, log: log} }

// With returns a guard whose log lines have one more field.
func (g *Guard) With(key, value string) *Guard {
	return &Guard{metrics: g.metrics, log: g.log.With().Str(key, value).Logger()}
}

// Start runs work in a new goroutine. If work panics, Start then calls the functions in panicked,
// in the same goroutine: they release everything that waits for work. A function that work defers
// runs in any case, before them.
func (g *Guard) Start(where string, work func(), panicked ...func()) {
	go g.run(where, work, panicked)
}

// StartIn is Start for a goroutine that group waits for, with all functions in panicked.
func (g *Guard) StartIn(group *sync.WaitGroup, where string, work func(), panicked ...func()) {
	group.Add(1)
	go func() {
		defer group.Done()
		g.run(where, work, panicked)
	}()
}

func (g *Guard) run(where string, work func(), panicked []func()) {
	if g.Do(where, work) {
		return
	}
	for _, release := range panicked {
		g.Do(where, release)
	}
}

// Do runs work in the caller's goroutine and reports whether work returned. It reports false
// after a panic.
func (g *Guard) Do(where string, work func()) (returned bool) {
	return g.Catch(work, func() *zerolog.Event { return g.log.Error().Str("where", where) })
}

// Catch is Do with a log line that the caller begins. It calls event only after a panic.
func (g *Guard) Catch(work func(), event func() *zerolog.Event) (returned bool) {
	defer func() {
		if p := recover(); p != nil {
			g.report(event(), p)
		}
	}()
	work()
	return true
}

// report counts a panic and logs its origin. Of the panic's value, the log has only the type,
// unless the value is an error of Go's runtime: any other value may contain keys or e-mail
// addresses that a client sent.
func (g *Guard) report(event *zerolog.Event, p any) {
	if g.metrics != nil {
		g.metrics.Panics.Inc()
	}
	event = event.Str("type", fmt.Sprintf("%T", p))
	if fault, ok := p.(runtime.Error); ok {
		event = event.Str("fault", fault.Error())
	}
	event.Str("stack", string(debug.Stack())).Msg("panic")
}

// KeepIn is Keep in a new goroutine that group waits for.
func (g *Guard) KeepIn(ctx context.Context, group *sync.WaitGroup, where string, work func()) {
	g.StartIn(group, where, func() { g.Keep(ctx, where, work) })
}

// Keep runs work in the caller's goroutine, and runs work again after a panic, until work returns
// or ctx ends. It is for loops that the node can't do without. The pause before work runs again
// doubles from a second to a minute, and is a second again once work has run for a minute.
func (g *Guard) Keep(ctx context.Context, where string, work func()) {
	pause := firstPause
	for {
		began := time.Now()
		if g.Do(where, work) {
			return
		}
		if time.Since(began) >= longestPause {
			pause = firstPause
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, longestPause)
	}
}
