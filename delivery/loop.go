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
type route struct {
	engine *Engine
	guard  *guard.Guard
	id     string
	hold   store.DeliveryHold
	owner  licensing.Owner
	// lentUntil is until when it is kept though it belongs to another worker.
	lentUntil time.Time
	heard     int64 // the worker's: see target.changed

	mu       sync.Mutex
	asked    bool // the endpoint and its replays are to be read
	released bool // it is to be given up
	poked    chan struct{}
	seen     standing // for the metrics

	// All else is the goroutine's own.
	queue    *queue
	attempts sync.WaitGroup
	sent     chan attempted
	pages    chan pageRead
	stores   chan stored
	jobs     chan replayRead
	disabled chan error
	panicked chan struct{} // a goroutine of the route has panicked
	failed   bool          // it has ended by an error, and soon

	reading, storing, disabling bool
	retryPage, retryDisable     time.Time
	held                        int // events that are counted in engine.load
	replays                     replays
	counted                     atomic.Int64 // messages given up that the store has, and one more; 0: nothing new
}

func newRoute(e *Engine, id string, to target, hold store.DeliveryHold) *route {
	return &route{
		engine: e, guard: e.guard.With("endpoint_id", id), id: id, hold: hold, owner: to.owner, heard: to.changed, poked: make(chan struct{}, 1),
		sent: make(chan attempted), pages: make(chan pageRead, 2), stores: make(chan stored, 1),
		jobs: make(chan replayRead, 1), disabled: make(chan error, 1), panicked: make(chan struct{}, 1), replays: newReplays(),
	}
}

// look has the route read its endpoint, which may have changed, and look for replays.
func (r *route) look() {
	r.mu.Lock()
	r.asked = true
	r.mu.Unlock()
	r.poke()
}

// giveUp has the endpoint given up once what is under way has ended.
func (r *route) giveUp() {
	r.mu.Lock()
	r.released = true
	r.mu.Unlock()
	r.poke()
}

func (r *route) poke() {
	select {
	case r.poked <- struct{}{}:
	default:
	}
}

func (r *route) isLent(now time.Time) bool { return now.Before(r.lentUntil) }

// start runs work in a goroutine of the route. After a panic it is unknown what work has done, so the
// route ends, and the deliveries to the endpoint begin anew where they were stored last.
func (r *route) start(where string, work func()) {
	r.guard.StartIn(&r.attempts, where, work, func() {
		select {
		case r.panicked <- struct{}{}:
		default: // another goroutine has panicked too
		}
	})
}

// runSafely runs it. After a panic the deliveries to the endpoint begin anew.
func (r *route) runSafely(ctx context.Context) {
	began := time.Now()
	if !r.guard.Do("delivery", func() { r.run(ctx) }) {
		r.failed = true
		_ = r.hold.Release(ctx)
		return
	}
	// What has gone well for long may go well again.
	r.failed = r.failed && time.Since(began) < longestFailed
}

// run delivers until the endpoint is given up, the claim is lost or ctx ends.
func (r *route) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		r.abandon()
	}()
	state, err := r.hold.Resume(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.engine.cfg.Log.Warn().Err(err).Str("endpoint_id", r.id).Msg("where the deliveries to an endpoint stand could not be read")
			_ = r.hold.Release(ctx)
		}
		r.failed = true
		return
	}
	r.queue = newQueue(state, r.now(), r.engine.cfg.Random)
	r.queue.learn(state.Endpoint, r.now())
	if r.queue.off > 0 {
		_ = r.hold.Release(ctx)
		return
	}
	if r.loop(ctx) {
		_ = r.hold.Release(ctx)
	}
}

// abandon waits for what is under way, which knows by its context that it must end.
func (r *route) abandon() {
	r.guard.Start("delivery", func() {
		for range r.sent { //nolint:revive // nobody asks any more what came of them
		}
	})
	r.attempts.Wait()
	close(r.sent)
	r.engine.load.events.Add(-int64(r.held))
}

func (r *route) now() time.Time { return r.engine.cfg.Clock() }

// loop tells at its end whether the claim is to be released.
func (r *route) loop(ctx context.Context) (release bool) {
	sending, stopSending := context.WithCancel(ctx)
	defer stopSending()
	var cutOff <-chan time.Time // when attempts under way are not waited for any longer
	news := r.engine.cfg.Node.NewEvents()
	for {
		now := r.now()
		leaving := r.heed()
		if leaving && cutOff == nil {
			timer := time.NewTimer(drainTimeout)
			defer timer.Stop()
			cutOff = timer.C
		}
		if leaving && r.queue.idle() && !r.storing && !r.reading {
			if r.queue.moved.IsZero() {
				return true
			}
			r.queue.touch(now) // its place
		}
		r.send(sending, now)
		r.act(ctx, now, leaving)
		r.tell()
		timer := time.NewTimer(r.sleep(now))
		select {
		case <-timer.C:
		case <-r.poked:
		case <-news:
			news = r.engine.cfg.Node.NewEvents()
			r.queue.news()
		case done := <-r.sent:
			r.took(done)
		case read := <-r.pages:
			r.turned(read)
		case s := <-r.stores:
			if !r.wasStored(ctx, s) {
				timer.Stop()
				return !errors.Is(s.err, store.ErrClaimLost) && ctx.Err() == nil
			}
		case read := <-r.jobs:
			r.tookReplay(read)
		case err := <-r.disabled:
			r.wasDisabled(err)
		case <-r.panicked:
			timer.Stop()
			r.failed = true
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
func (r *route) heed() (leaving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked {
		r.asked, r.replays.ask = false, true
	}
	if r.released || r.queue.off > 0 {
		r.queue.paused = true
	}
	return r.queue.paused
}

// act begins what there is to begin.
func (r *route) act(ctx context.Context, now time.Time, leaving bool) {
	if counted := r.counted.Swap(0); counted > 0 {
		r.queue.dead = int(counted) - 1
	}
	r.readOn(ctx, now)
	r.checkpoint(ctx, now, leaving)
	if !leaving {
		r.runReplays(ctx, now)
		r.disableIfDue(ctx, now)
	}
}

// disableIfDue has the endpoint disabled where it should be.
func (r *route) disableIfDue(ctx context.Context, now time.Time) {
	why := r.queue.disable
	if why == "" || r.disabling || now.Before(r.retryDisable) {
		return
	}
	r.disabling = true
	command := licensing.DisableEndpoint{ID: r.id, ResetAt: r.queue.endpoint.ResetAt, Because: why}
	r.start("disabling", func() {
		bounded, cancel := context.WithTimeout(ctx, disableTimeout)
		defer cancel()
		r.disabled <- r.engine.cfg.Node.DisableWebhook(bounded, r.owner, command)
	})
}

func (r *route) wasDisabled(err error) {
	r.disabling = false
	r.replays.ask = true // the endpoint is disabled now, or was changed meanwhile, or is gone
	if err != nil {
		r.retryDisable = r.now().Add(retryPause)
		return
	}
	r.retryDisable = r.now().Add(longestSleep)
	r.engine.cfg.Log.Info().Str("endpoint_id", r.id).Str("because", string(r.queue.disable)).Msg("an endpoint is disabled")
}

// sleep is how long there is nothing to do by the time alone.
func (r *route) sleep(now time.Time) time.Duration {
	sleep := r.engine.nap
	for _, at := range []time.Time{r.queue.wake(now), r.storeAt(), r.retryPage, r.retryDisable, r.replays.retry} {
		if !at.IsZero() && at.After(now) {
			sleep = min(sleep, at.Sub(now))
		}
	}
	return sleep
}
