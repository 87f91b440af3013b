package delivery

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node/store"
)

// target is an enabled endpoint as a scan found it. The endpoint's loop reads its URL and its event types.
type target struct {
	owner    licensing.Owner
	changed  int64 // store.OwnerWebhooks.Changed
	revision int64 // store.OwnerWebhooks.Revision
}

// worker is an engine's work during one registration. One goroutine uses it.
type worker struct {
	engine     *Engine
	store      store.DeliveryWorker
	assignment *assignment

	mark        int64
	listedAt    time.Time         // when all endpoints were last read
	listAgainAt time.Time         // when all endpoints may be read again; see readAgainAt
	scanAgainAt time.Time         // when the next scan may begin; see readAgainAt
	targets     map[string]target // enabled endpoints, by id
	rereadAllAt time.Time         // when all loops had to reread their endpoints

	backoffs map[string]failureBackoff // of endpoints whose loop has failed, by id
	loops    map[string]*endpointLoop  // of leased endpoints, by id; other goroutines read it under engine.mu
	ended    chan *endpointLoop
}

func newWorker(e *Engine, w store.DeliveryWorker) *worker {
	return &worker{
		engine: e, store: w, assignment: newAssignment(w.Self()),
		targets: make(map[string]target), backoffs: make(map[string]failureBackoff),
		loops: e.loops, ended: make(chan *endpointLoop),
	}
}

// run scans and delivers until ctx ends, or until the engine stops and has released all endpoints.
func (w *worker) run(ctx context.Context) error {
	// No loop may go on after run returns an error.
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for len(w.loops) > 0 {
			w.loopEnded(<-w.ended)
		}
		setMetrics(w.engine.cfg.Metrics, nil, time.Time{})
	}()
	for {
		if w.engine.isStopping() {
			return w.drain(ctx)
		}
		if err := w.scan(ctx); err != nil && ctx.Err() == nil {
			w.engine.cfg.Log.Debug().Err(err).Msg("can't read which endpoints to deliver to: retrying")
		}
		setMetrics(w.engine.cfg.Metrics, w.loops, w.engine.cfg.Clock())
		if err := w.awaitScan(ctx); err != nil {
			return err
		}
	}
}

// restFactor bounds the share of a node's time, and of etcd's time, that finding endpoints takes, however
// often endpoints change. After reading the endpoints of all owners, a worker rests restFactor times as long
// as the read took. The same holds for each scan.
const restFactor = 20

// readAgainAt returns when a read that began at began, and has just ended, may begin again. The rest is at
// most longest.
func readAgainAt(began time.Time, longest time.Duration) time.Time {
	now := time.Now() // monotonic, as began is
	return now.Add(min(restFactor*now.Sub(began), longest))
}

// awaitScan waits until the next scan is due: after about scanEvery, or sooner if a scan is requested, but
// not before the worker has rested.
func (w *worker) awaitScan(ctx context.Context) error {
	resting := time.Until(w.scanAgainAt)
	regular, rest := time.NewTimer(max(backoff.Around(scanEvery, 2), resting)), time.NewTimer(resting)
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
		case l := <-w.ended:
			w.loopEnded(l)
		case <-w.engine.stopping:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// scan leases endpoints, releases endpoints, and tells loops to reread endpoints that have changed. A node whose clock
// is wrong leaves its endpoints to other nodes: it would give up messages and sign with wrong times.
func (w *worker) scan(ctx context.Context) error {
	if w.engine.cfg.Node.RefuseByClock() != nil {
		for _, l := range w.loops {
			l.requestRelease()
		}
		return nil
	}
	began := time.Now()
	workers, leases, err := w.readState(ctx)
	w.scanAgainAt = readAgainAt(began, takeoverAfter) // after an error too: a failed read may have taken long
	if err != nil {
		return err
	}
	w.assignment.setWorkers(workers)
	// A node of an earlier version adds a replay without changing its owner's record.
	rereadAll := time.Since(w.rereadAllAt) >= w.engine.listInterval
	if rereadAll {
		w.rereadAllAt = time.Now()
	}
	now := w.engine.cfg.Clock()
	for id, l := range w.loops {
		to, wanted := w.targets[id]
		switch {
		case !wanted:
			l.requestRelease()
		case !w.assignment.isPreferred(id) && slices.Contains(workers, w.assignment.self) && !l.isTemporary(now):
			l.requestRelease()
		case rereadAll || l.lastChange != to.changed:
			l.lastChange = to.changed
			l.requestReread()
		}
	}
	return w.acquireFree(ctx, leases, now)
}

// readState reads the input of a scan.
func (w *worker) readState(
	ctx context.Context,
) (workers []store.Incarnation, leases map[string]store.Incarnation, err error) {
	if err = w.readTargets(ctx); err != nil {
		return nil, nil, err
	}
	if workers, err = w.store.Workers(ctx); err != nil {
		return nil, nil, err
	}
	leases, err = w.store.Leases(ctx)
	return workers, leases, err
}

// acquireFree leases endpoints that no worker has leased. After scanEvery it stops and requests a scan.
func (w *worker) acquireFree(ctx context.Context, leases map[string]store.Incarnation, now time.Time) error {
	began := time.Now()
	for _, id := range slices.Sorted(maps.Keys(w.targets)) {
		if _, leased := leases[id]; leased || w.loops[id] != nil {
			w.assignment.leased(id)
			continue
		}
		if !w.assignment.shouldAcquire(id, now) || now.Before(w.backoffs[id].until) {
			continue
		}
		switch err := w.acquire(ctx, id); {
		case errors.Is(err, licensing.ErrInternal):
			// An endpoint that can't be read must not keep the worker from other endpoints.
			w.engine.cfg.Log.Error().Err(err).Str("endpoint_id", id).Msg("can't lease an endpoint")
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

// failureBackoff says until when this worker does not lease an endpoint whose loop failed.
type failureBackoff struct {
	until time.Time
	pause time.Duration
}

// backOff doubles an endpoint's pause after a failure of its loop.
func (w *worker) backOff(id string) {
	pause := min(max(2*w.backoffs[id].pause, firstFailurePause), longestFailurePause)
	w.backoffs[id] = failureBackoff{w.engine.cfg.Clock().Add(pause), pause}
}

// readTargets reads the enabled endpoints if endpoints may have changed. A change of one owner reads the
// endpoints of all owners, so a rest follows.
func (w *worker) readTargets(ctx context.Context) error {
	mark, err := w.engine.cfg.Store.WebhooksMark(ctx)
	if err != nil {
		return err
	}
	now := time.Now() // for an age, so the monotonic clock
	moved := mark != w.mark || w.listedAt.IsZero() || now.Sub(w.listedAt) >= w.engine.listInterval
	if !moved || now.Before(w.listAgainAt) {
		return nil
	}
	targets := make(map[string]target)
	for webhooks, err := range w.engine.cfg.Store.AllWebhooks(ctx) {
		switch {
		case errors.Is(err, licensing.ErrInternal):
			w.engine.cfg.Log.Error().Err(err).Msg("can't read the endpoints of an owner: they get no events")
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
	exists := func(id string) bool { _, ok := targets[id]; return ok }
	w.assignment.retain(exists)
	maps.DeleteFunc(w.backoffs, func(id string, _ failureBackoff) bool { return !exists(id) })
	return nil
}

// acquire leases an endpoint and starts its loop. It is a no-op if another worker has leased the endpoint.
func (w *worker) acquire(ctx context.Context, id string) error {
	to := w.targets[id]
	lease, ok, err := w.store.Acquire(ctx, to.owner, id)
	if err != nil || !ok {
		return err
	}
	w.assignment.leased(id)
	l := newEndpointLoop(w.engine, id, to, lease)
	if !w.assignment.isPreferred(id) {
		l.temporaryUntil = w.engine.cfg.Clock().Add(temporaryFor)
	}
	w.engine.mu.Lock()
	w.loops[id] = l
	w.engine.mu.Unlock()
	l.guard.Start("delivery", func() {
		defer func() { w.ended <- l }()
		l.runGuarded(ctx)
	})
	return nil
}

// loopEnded removes a loop that has ended, and backs off if the loop failed.
func (w *worker) loopEnded(l *endpointLoop) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	delete(w.loops, l.id)
	if l.failed {
		w.backOff(l.id)
	} else {
		delete(w.backoffs, l.id)
	}
	// A loop that read its endpoint as deleted or disabled knows more than an earlier scan.
	if l.queue != nil && l.queue.offRevision > 0 && w.targets[l.id].revision <= l.queue.offRevision {
		delete(w.targets, l.id)
	}
}

// drain releases all endpoints.
func (w *worker) drain(ctx context.Context) error {
	for _, l := range w.loops {
		l.requestRelease()
	}
	for len(w.loops) > 0 {
		select {
		case l := <-w.ended:
			w.loopEnded(l)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
