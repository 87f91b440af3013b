package delivery

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// target is an endpoint that is to get events, as a scan has found it. What the endpoint
// gets, and where, its route reads.
type target struct {
	owner    licensing.Owner
	changed  int64 // see store.OwnerWebhooks
	revision int64 // likewise
}

// worker is an engine under one lease. It is used by one goroutine.
type worker struct {
	engine     *Engine
	store      store.DeliveryWorker
	assignment *assignment

	mark        int64
	listedAt    time.Time         // when all endpoints were read last
	listAgainAt time.Time         // when that may be done again, see restAfter
	scanAgainAt time.Time         // when the next scan may begin, likewise
	targets     map[string]target // the enabled ones, by endpoint
	rereadAllAt time.Time         // when all routes were told last to look at their endpoints

	backoffs map[string]failureBackoff // endpoints whose deliveries have ended by an error lately
	loops    map[string]*endpointLoop  // those that are claimed here; others read it under engine.mu
	ended    chan *endpointLoop
}

func newWorker(e *Engine, w store.DeliveryWorker) *worker {
	return &worker{
		engine: e, store: w, assignment: newAssignment(w.Self()),
		targets: make(map[string]target), backoffs: make(map[string]failureBackoff), loops: e.loops, ended: make(chan *endpointLoop),
	}
}

// run works until ctx ends, or the engine stops and all endpoints were given up.
func (w *worker) run(ctx context.Context) error {
	// What ends with an error must not leave anybody behind who delivers.
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for len(w.loops) > 0 {
			w.loopEnded(<-w.ended)
		}
		w.engine.load.none(w.engine.cfg.Metrics)
	}()
	for {
		if w.engine.isStopping() {
			return w.drain(ctx)
		}
		if err := w.scan(ctx); err != nil && ctx.Err() == nil {
			w.engine.cfg.Log.Debug().Err(err).Msg("which endpoints to deliver to could not be read; it is tried again")
		}
		w.engine.load.report(w.engine.cfg.Metrics, w.loops, w.engine.cfg.Clock())
		if err := w.awaitScan(ctx); err != nil {
			return err
		}
	}
}

// restShare bounds what it takes of a node's time, and of etcd's, to find endpoints, however
// often endpoints change: a reading of the endpoints of all owners is followed by a rest of
// restShare times its duration, and so is each scan.
const restFactor = 20

// restAfter returns when a reading that began at a time, and has just ended, may begin again.
// The rest is no longer than longest.
func readAgainAt(began time.Time, longest time.Duration) time.Time {
	now := time.Now() // monotonic, like began
	return now.Add(min(restFactor*now.Sub(began), longest))
}

// pause waits until it is time to scan again: about scanEvery, or sooner where the engine
// wakes the worker, but not before the worker has rested.
func (w *worker) awaitScan(ctx context.Context) error {
	resting := time.Until(w.scanAgainAt)
	regular, rest := time.NewTimer(max(scanEvery/2+rand.N(scanEvery), resting)), time.NewTimer(resting)
	defer regular.Stop()
	defer rest.Stop()
	var wake <-chan struct{}
	for {
		select {
		case <-regular.C:
			return nil
		case <-rest.C:
			wake = w.engine.scanRequests
		case <-wake:
			return nil
		case r := <-w.ended:
			w.loopEnded(r)
		case <-w.engine.stopping:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// scan does what there is to do about who delivers to which endpoint.
func (w *worker) scan(ctx context.Context) error {
	began := time.Now()
	workers, claims, err := w.readState(ctx)
	w.scanAgainAt = readAgainAt(began, takeoverAfter) // after an error too: what has failed may have taken long
	if err != nil {
		return err
	}
	w.assignment.setWorkers(workers)
	// A node of an earlier version adds a replay without a change of its owner's record.
	lookAll := time.Since(w.rereadAllAt) >= w.engine.listInterval
	if lookAll {
		w.rereadAllAt = time.Now()
	}
	now := w.engine.cfg.Clock()
	for id, r := range w.loops {
		to, wanted := w.targets[id]
		switch {
		case !wanted:
			r.requestRelease()
		case !w.assignment.isPreferred(id) && slices.Contains(workers, w.assignment.self) && !r.isTemporary(now):
			r.requestRelease()
		case lookAll || r.lastChange != to.changed:
			r.lastChange = to.changed
			r.requestReread()
		}
	}
	return w.claimUnclaimed(ctx, claims, now)
}

// read reads what a scan goes by.
func (w *worker) readState(ctx context.Context) (workers []store.Incarnation, claims map[string]store.Incarnation, err error) {
	if err = w.readTargets(ctx); err != nil {
		return nil, nil, err
	}
	if workers, err = w.store.Workers(ctx); err != nil {
		return nil, nil, err
	}
	claims, err = w.store.Claims(ctx)
	return workers, claims, err
}

// claimFree claims what nobody has, as far as that can be done before it is time to
// look again.
func (w *worker) claimUnclaimed(ctx context.Context, claims map[string]store.Incarnation, now time.Time) error {
	began := time.Now()
	for _, id := range slices.Sorted(maps.Keys(w.targets)) {
		if _, claimed := claims[id]; claimed || w.loops[id] != nil {
			w.assignment.claimed(id)
			continue
		}
		if !w.assignment.shouldClaim(id, now) || now.Before(w.backoffs[id].until) {
			continue
		}
		switch err := w.claim(ctx, id); {
		case errors.Is(err, licensing.ErrInternal):
			// What can't be read of one is no reason to leave others alone.
			w.engine.cfg.Log.Error().Err(err).Str("endpoint_id", id).Msg("an endpoint can't be claimed")
			w.backOff(id)
		case err != nil:
			return err
		}
		if w.engine.isStopping() || time.Since(began) > scanEvery {
			w.engine.requestScan()
			return nil
		}
	}
	return nil
}

// failing is an endpoint that is left alone for a while, longer each time.
type failureBackoff struct {
	until time.Time
	pause time.Duration
}

// failed has this worker not try again at once what has ended by an error.
func (w *worker) backOff(id string) {
	pause := min(max(2*w.backoffs[id].pause, firstFailurePause), longestFailurePause)
	w.backoffs[id] = failureBackoff{w.engine.cfg.Clock().Add(pause), pause}
}

// readTargets finds the endpoints that are to get events, where they may have changed. One
// owner's change has the endpoints of all owners read, so that a rest follows.
func (w *worker) readTargets(ctx context.Context) error {
	mark, err := w.engine.cfg.Store.WebhooksMark(ctx)
	if err != nil {
		return err
	}
	now := time.Now() // an age, and so by the clock that only goes forward
	moved := mark != w.mark || w.listedAt.IsZero() || now.Sub(w.listedAt) >= w.engine.listInterval
	if !moved || now.Before(w.listAgainAt) {
		return nil
	}
	targets := make(map[string]target)
	for webhooks, err := range w.engine.cfg.Store.AllWebhooks(ctx) {
		switch {
		case errors.Is(err, licensing.ErrInternal):
			w.engine.cfg.Log.Error().Err(err).Msg("the endpoints of an owner can't be read, and get nothing")
			continue
		case err != nil:
			return err
		}
		for i := range webhooks.Endpoints {
			if endpoint := &webhooks.Endpoints[i]; endpoint.Enabled() {
				targets[endpoint.ID] = target{webhooks.Owner, webhooks.Changed, webhooks.Revision}
			}
		}
	}
	w.targets, w.mark, w.listedAt, w.listAgainAt = targets, mark, now, readAgainAt(now, listEvery)
	there := func(id string) bool { _, there := targets[id]; return there }
	w.assignment.retain(there)
	maps.DeleteFunc(w.backoffs, func(id string, _ failureBackoff) bool { return !there(id) })
	return nil
}

// claim claims an endpoint and begins to deliver to it.
func (w *worker) claim(ctx context.Context, id string) error {
	to := w.targets[id]
	hold, ok, err := w.store.Claim(ctx, to.owner, id)
	if err != nil || !ok {
		return err
	}
	w.assignment.claimed(id)
	r := newEndpointLoop(w.engine, id, to, hold)
	if !w.assignment.isPreferred(id) {
		r.temporaryUntil = w.engine.cfg.Clock().Add(temporaryFor)
	}
	w.engine.mu.Lock()
	w.loops[id] = r
	w.engine.mu.Unlock()
	r.guard.Start("delivery", func() {
		defer func() { w.ended <- r }()
		r.runGuarded(ctx)
	})
	return nil
}

func (w *worker) loopEnded(r *endpointLoop) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	delete(w.loops, r.id)
	if r.failed {
		w.backOff(r.id)
	} else {
		delete(w.backoffs, r.id)
	}
	// A route that has read its endpoint as deleted or disabled knows more than a scan before.
	if r.queue != nil && r.queue.offRevision > 0 && w.targets[r.id].revision <= r.queue.offRevision {
		delete(w.targets, r.id)
	}
}

// drain has all endpoints given up.
func (w *worker) drain(ctx context.Context) error {
	for _, r := range w.loops {
		r.requestRelease()
	}
	for len(w.loops) > 0 {
		select {
		case r := <-w.ended:
			w.loopEnded(r)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
