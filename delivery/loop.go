package delivery

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"licet/licensing"
	"licet/metrics/guard"
	"licet/node/store"
)

const (
	// retryPause is the pause before a request that the store refused is sent again.
	retryPause = time.Second
	// longestSleep bounds the sleep of a loop, since the clock may be set forward.
	longestSleep = 5 * time.Second
	// disableTimeout bounds one command that disables an endpoint; the next attempt follows after retryPause.
	disableTimeout = 10 * time.Second
)

// endpointLoop delivers to one endpoint while this node holds the lease on the endpoint.
type endpointLoop struct {
	engine *Engine
	guard  *guard.Guard
	id     string
	lease  store.DeliveryLease
	owner  licensing.Owner
	// temporaryUntil is when a worker that is not the preferred worker releases the endpoint; zero if the
	// worker is the preferred one.
	temporaryUntil time.Time
	lastChange     int64 // target.changed when the worker last requested a reread; only the worker uses it

	mu               sync.Mutex
	rereadRequested  bool // the worker wants the endpoint and its replays read
	releaseRequested bool // the worker wants the endpoint released
	wakeups          chan struct{}
	status           loopStatus // for metrics

	// Only the loop's goroutine uses the fields below.
	queue             *queue
	goroutines        sync.WaitGroup
	attemptResults    chan attemptResult
	pageResults       chan pageResult
	checkpointResults chan checkpointResult
	replayResults     chan replayResult
	disableResults    chan error
	panicked          chan struct{} // a goroutine of the loop has panicked
	failed            bool          // the loop has ended with an error, soon after it started

	reading, storing, disabling bool
	retryPage, retryDisable     time.Time
	buffered                    int // events of this loop in engine.bufferedEvents
	replays                     replayWork
	deadCount                   atomic.Int64 // dead messages as recountDead counted them, plus 1; 0: no new count
}

func newEndpointLoop(e *Engine, id string, to target, lease store.DeliveryLease) *endpointLoop {
	return &endpointLoop{
		engine: e, guard: e.guard.With("endpoint_id", id), id: id,
		lease: lease, owner: to.owner, lastChange: to.changed, wakeups: make(chan struct{}, 1),
		attemptResults: make(chan attemptResult), pageResults: make(chan pageResult, 2),
		checkpointResults: make(chan checkpointResult, 1), replayResults: make(chan replayResult, 1),
		disableResults: make(chan error, 1), panicked: make(chan struct{}, 1), replays: newReplayWork(),
	}
}

// requestReread makes the loop reread its endpoint and its replays.
func (l *endpointLoop) requestReread() {
	l.mu.Lock()
	l.rereadRequested = true
	l.mu.Unlock()
	l.wake()
}

// requestRelease makes the loop release its endpoint after attempts in flight have ended.
func (l *endpointLoop) requestRelease() {
	l.mu.Lock()
	l.releaseRequested = true
	l.mu.Unlock()
	l.wake()
}

// wake makes the loop check for requests.
func (l *endpointLoop) wake() {
	select {
	case l.wakeups <- struct{}{}:
	default:
	}
}

// isTemporary reports whether the worker keeps the endpoint although another worker is preferred.
func (l *endpointLoop) isTemporary(now time.Time) bool { return now.Before(l.temporaryUntil) }

// start runs work in a goroutine of the loop. After a panic the effect of work is unknown, so the loop ends,
// and deliveries to the endpoint resume from the last checkpoint.
func (l *endpointLoop) start(where string, work func()) {
	l.guard.StartIn(&l.goroutines, where, work, func() {
		select {
		case l.panicked <- struct{}{}:
		default: // another goroutine has panicked too
		}
	})
}

// runGuarded runs the loop. After a panic, deliveries to the endpoint resume from the last checkpoint.
func (l *endpointLoop) runGuarded(ctx context.Context) {
	began := time.Now()
	if !l.guard.Do("delivery", func() { l.run(ctx) }) {
		l.failed = true
		_ = l.lease.Release(ctx)
		return
	}
	// A loop that worked for long needs no longer pause.
	l.failed = l.failed && time.Since(began) < longestFailurePause
}

// run delivers until the loop releases the endpoint, the lease is lost, or ctx ends.
func (l *endpointLoop) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		l.awaitGoroutines()
	}()
	state, err := l.lease.Resume(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.engine.cfg.Log.Warn().Err(err).Str("endpoint_id", l.id).
				Msg("can't read the delivery state of an endpoint")
			_ = l.lease.Release(ctx)
		}
		l.failed = true
		return
	}
	l.queue = newQueue(state, l.now(), l.engine.cfg.Random)
	l.queue.updateEndpoint(state.Endpoint, l.now())
	if l.queue.offRevision > 0 {
		_ = l.lease.Release(ctx)
		return
	}
	if l.deliver(ctx) {
		_ = l.lease.Release(ctx)
	}
}

// awaitGoroutines waits for the loop's goroutines. Their context has ended.
func (l *endpointLoop) awaitGoroutines() {
	l.guard.Start("delivery", func() {
		for range l.attemptResults { //nolint:revive // the loop drops these results
		}
	})
	l.goroutines.Wait()
	close(l.attemptResults)
	l.engine.bufferedEvents.Add(-int64(l.buffered))
}

func (l *endpointLoop) now() time.Time { return l.engine.cfg.Clock() }

// deliver is the loop itself. It reports whether the caller should release the lease.
func (l *endpointLoop) deliver(ctx context.Context) (release bool) {
	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	var cutOff <-chan time.Time // fires when the wait for attempts in flight ends
	news := l.engine.cfg.Node.NewEvents()
	for {
		now := l.now()
		leaving := l.applyRequests()
		if leaving && cutOff == nil {
			timer := time.NewTimer(drainTimeout)
			defer timer.Stop()
			cutOff = timer.C
		}
		if leaving && l.queue.idle() && !l.storing && !l.reading {
			if l.queue.movedSince.IsZero() {
				return true
			}
			l.queue.markDirty(now) // to store the place
		}
		l.startAttempts(sending, now)
		l.startWork(ctx, now, leaving)
		l.publishStatus()
		timer := time.NewTimer(l.sleepTime(now))
		select {
		case <-timer.C:
		case <-l.wakeups:
		case <-news:
			news = l.engine.cfg.Node.NewEvents()
			l.queue.newEvents()
		case done := <-l.attemptResults:
			l.attemptDone(done)
		case read := <-l.pageResults:
			l.pageDone(read)
		case s := <-l.checkpointResults:
			if !l.checkpointDone(ctx, s) {
				timer.Stop()
				return !errors.Is(s.err, store.ErrLeaseLost) && ctx.Err() == nil
			}
		case read := <-l.replayResults:
			l.replayDone(read)
		case err := <-l.disableResults:
			l.disableDone(err)
		case <-l.panicked:
			timer.Stop()
			l.failed = true
			return true
		case <-cutOff:
			stopSending() // the queue puts the attempts back
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// applyRequests applies the worker's requests. It reports whether the loop is leaving the endpoint: the worker
// wants it released, or the endpoint was deleted or disabled.
func (l *endpointLoop) applyRequests() (leaving bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rereadRequested {
		l.rereadRequested, l.replays.reload = false, true
	}
	if l.releaseRequested || l.queue.offRevision > 0 {
		l.queue.releasing = true
	}
	return l.queue.releasing
}

// startWork starts the reads and writes that are due.
func (l *endpointLoop) startWork(ctx context.Context, now time.Time, leaving bool) {
	if counted := l.deadCount.Swap(0); counted > 0 {
		l.queue.dead = int(counted) - 1
	}
	l.startPage(ctx, now)
	l.startCheckpoint(ctx, now, leaving)
	if !leaving {
		l.startReplays(ctx, now)
		l.startDisable(ctx, now)
	}
}

// startDisable disables the endpoint if the queue has a reason to.
func (l *endpointLoop) startDisable(ctx context.Context, now time.Time) {
	why := l.queue.disableReason
	if why == "" || l.disabling || now.Before(l.retryDisable) {
		return
	}
	l.disabling = true
	command := licensing.DisableEndpoint{ID: l.id, ResetAt: l.queue.endpoint.ResetAt, Because: why}
	l.start("disabling", func() {
		bounded, cancel := context.WithTimeout(ctx, disableTimeout)
		defer cancel()
		l.disableResults <- l.engine.cfg.Node.DisableWebhook(bounded, l.owner, command)
	})
}

// disableDone takes the result of disabling the endpoint.
func (l *endpointLoop) disableDone(err error) {
	l.disabling = false
	l.replays.reload = true // the endpoint is disabled now, has changed meanwhile, or was deleted
	if err != nil {
		l.retryDisable = l.now().Add(retryPause)
		return
	}
	l.retryDisable = l.now().Add(longestSleep)
	l.engine.cfg.Log.Info().Str("endpoint_id", l.id).Str("because", string(l.queue.disableReason)).
		Msg("disabled an endpoint")
}

// sleepTime returns how long the loop may sleep until the next time that something is due.
func (l *endpointLoop) sleepTime(now time.Time) time.Duration {
	sleep := l.engine.maxSleep
	for _, at := range []time.Time{
		l.queue.wakeAt(now), l.checkpointAt(), l.retryPage, l.retryDisable, l.replays.retryAt,
	} {
		if !at.IsZero() && at.After(now) {
			sleep = min(sleep, at.Sub(now))
		}
	}
	return sleep
}
