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
	// retryPause is until something that the store has refused is asked again.
	retryPause = time.Second
	// longestSleep is how long a route sleeps at most: the clock may be put forward.
	longestSleep = 5 * time.Second
	// disableTimeout bounds one command that disables an endpoint. Node commands need a deadline.
	disableTimeout = 10 * time.Second
)

// route delivers to one endpoint, as long as the claim on it is held.
type endpointLoop struct {
	engine *Engine
	guard  *guard.Guard
	id     string
	claim  store.DeliveryHold
	owner  licensing.Owner
	// lentUntil is until when it is kept though it belongs to another worker.
	temporaryUntil time.Time
	lastChange     int64 // the worker's: see target.changed

	mu               sync.Mutex
	rereadRequested  bool // the endpoint and its replays are to be read
	releaseRequested bool // it is to be given up
	wakeups          chan struct{}
	status           loopStatus // for the metrics

	// All else is the goroutine's own.
	queue             *queue
	goroutines        sync.WaitGroup
	attemptResults    chan attemptResult
	pageResults       chan pageResult
	checkpointResults chan checkpointResult
	replayResults     chan replayResult
	disableResults    chan error
	panicked          chan struct{} // a goroutine of the route has panicked
	failed            bool          // it has ended by an error, and soon

	reading, storing, disabling bool
	retryPage, retryDisable     time.Time
	buffered                    int // events that are counted in engine.load
	replays                     replayWork
	deadCount                   atomic.Int64 // messages given up that the store has, and one more; 0: nothing new
}

func newEndpointLoop(e *Engine, id string, to target, hold store.DeliveryHold) *endpointLoop {
	return &endpointLoop{
		engine: e, guard: e.guard.With("endpoint_id", id), id: id, claim: hold, owner: to.owner, lastChange: to.changed, wakeups: make(chan struct{}, 1),
		attemptResults: make(chan attemptResult), pageResults: make(chan pageResult, 2), checkpointResults: make(chan checkpointResult, 1),
		replayResults: make(chan replayResult, 1), disableResults: make(chan error, 1), panicked: make(chan struct{}, 1), replays: newReplayWork(),
	}
}

// look has the route read its endpoint, which may have changed, and look for replays.
func (l *endpointLoop) requestReread() {
	l.mu.Lock()
	l.rereadRequested = true
	l.mu.Unlock()
	l.wake()
}

// giveUp has the endpoint given up once what is under way has ended.
func (l *endpointLoop) requestRelease() {
	l.mu.Lock()
	l.releaseRequested = true
	l.mu.Unlock()
	l.wake()
}

func (l *endpointLoop) wake() {
	select {
	case l.wakeups <- struct{}{}:
	default:
	}
}

func (l *endpointLoop) isTemporary(now time.Time) bool { return now.Before(l.temporaryUntil) }

// start runs work in a goroutine of the route. After a panic it is unknown what work has done, so the
// route ends, and the deliveries to the endpoint begin anew where they were stored last.
func (l *endpointLoop) start(where string, work func()) {
	l.guard.StartIn(&l.goroutines, where, work, func() {
		select {
		case l.panicked <- struct{}{}:
		default: // another goroutine has panicked too
		}
	})
}

// runSafely runs it. After a panic the deliveries to the endpoint begin anew.
func (l *endpointLoop) runGuarded(ctx context.Context) {
	began := time.Now()
	if !l.guard.Do("delivery", func() { l.run(ctx) }) {
		l.failed = true
		_ = l.claim.Release(ctx)
		return
	}
	// What has gone well for long may go well again.
	l.failed = l.failed && time.Since(began) < longestFailurePause
}

// run delivers until the endpoint is given up, the claim is lost or ctx ends.
func (l *endpointLoop) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		l.awaitGoroutines()
	}()
	state, err := l.claim.Resume(ctx)
	if err != nil {
		if ctx.Err() == nil {
			l.engine.cfg.Log.Warn().Err(err).Str("endpoint_id", l.id).Msg("where the deliveries to an endpoint stand could not be read")
			_ = l.claim.Release(ctx)
		}
		l.failed = true
		return
	}
	l.queue = newQueue(state, l.now(), l.engine.cfg.Random)
	l.queue.updateEndpoint(state.Endpoint, l.now())
	if l.queue.offRevision > 0 {
		_ = l.claim.Release(ctx)
		return
	}
	if l.deliver(ctx) {
		_ = l.claim.Release(ctx)
	}
}

// abandon waits for what is under way, which knows by its context that it must end.
func (l *endpointLoop) awaitGoroutines() {
	l.guard.Start("delivery", func() {
		for range l.attemptResults { //nolint:revive // nobody asks any more what came of them
		}
	})
	l.goroutines.Wait()
	close(l.attemptResults)
	l.engine.load.events.Add(-int64(l.buffered))
}

func (l *endpointLoop) now() time.Time { return l.engine.cfg.Clock() }

// loop tells at its end whether the claim is to be released.
func (l *endpointLoop) deliver(ctx context.Context) (release bool) {
	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	var cutOff <-chan time.Time // when attempts under way are not waited for any longer
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
			l.queue.markDirty(now) // its place
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
				return !errors.Is(s.err, store.ErrClaimLost) && ctx.Err() == nil
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
			stopSending() // they are put back
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// heed takes what the worker has asked for. It reports whether the endpoint is to be given
// up: because the worker says so, or because the endpoint gets no events any more.
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

// act begins what there is to begin.
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

// disableIfDue has the endpoint disabled where it should be.
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

func (l *endpointLoop) disableDone(err error) {
	l.disabling = false
	l.replays.reload = true // the endpoint is disabled now, or was changed meanwhile, or is gone
	if err != nil {
		l.retryDisable = l.now().Add(retryPause)
		return
	}
	l.retryDisable = l.now().Add(longestSleep)
	l.engine.cfg.Log.Info().Str("endpoint_id", l.id).Str("because", string(l.queue.disableReason)).Msg("an endpoint is disabled")
}

// sleep is how long there is nothing to do by the time alone.
func (l *endpointLoop) sleepTime(now time.Time) time.Duration {
	sleep := l.engine.maxSleep
	for _, at := range []time.Time{l.queue.wakeAt(now), l.checkpointAt(), l.retryPage, l.retryDisable, l.replays.retryAt} {
		if !at.IsZero() && at.After(now) {
			sleep = min(sleep, at.Sub(now))
		}
	}
	return sleep
}
