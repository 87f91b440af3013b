package delivery

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"licet"
	"licet/node"
)

// target is an endpoint that is to get events.
type target struct {
	owner    licet.Owner
	endpoint licet.Endpoint
}

// worker is an engine under one lease. It is used by one goroutine.
type worker struct {
	engine *Engine
	store  node.DeliveryWorker
	assign *assignment

	mark    int64
	listed  time.Time
	targets map[string]target // the enabled ones, by endpoint

	routes map[string]*route // those that are claimed here; others read it under engine.mu
	ended  chan *route
}

func newWorker(e *Engine, w node.DeliveryWorker) *worker {
	return &worker{
		engine: e, store: w, assign: newAssignment(w.Self()),
		targets: make(map[string]target), routes: e.routes, ended: make(chan *route),
	}
}

// run works until ctx ends, or the engine stops and all endpoints were given up.
func (w *worker) run(ctx context.Context) error {
	// What ends with an error must not leave anybody behind who delivers.
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for len(w.routes) > 0 {
			w.forget(<-w.ended)
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
		w.engine.load.report(w.engine.cfg.Metrics, w.routes, w.engine.cfg.Clock())
		timer := time.NewTimer(scanEvery/2 + rand.N(scanEvery))
		select {
		case <-timer.C:
		case <-w.engine.wake:
			timer.Stop()
		case r := <-w.ended:
			timer.Stop()
			w.forget(r)
		case <-w.engine.stopping:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// scan does what there is to do about who delivers to which endpoint.
func (w *worker) scan(ctx context.Context) error {
	changed, err := w.readTargets(ctx)
	if err != nil {
		return err
	}
	workers, err := w.store.Workers(ctx)
	if err != nil {
		return err
	}
	claims, err := w.store.Claims(ctx)
	if err != nil {
		return err
	}
	w.assign.look(workers)
	now := w.engine.cfg.Clock()
	for id, r := range w.routes {
		to, wanted := w.targets[id]
		switch {
		case !wanted:
			r.giveUp()
		case !w.assign.mine(id) && slices.Contains(workers, w.assign.self) && !r.isLent(now):
			r.giveUp()
		case changed:
			r.change(to)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.targets)) {
		if _, claimed := claims[id]; claimed || w.routes[id] != nil {
			w.assign.taken(id)
			continue
		}
		if !w.assign.claims(id, now) {
			continue
		}
		if err := w.claim(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// readTargets reads the endpoints, if they may have changed.
func (w *worker) readTargets(ctx context.Context) (changed bool, err error) {
	mark, err := w.engine.cfg.Store.WebhooksMark(ctx)
	if err != nil {
		return false, err
	}
	now := time.Now() // an age, and so by the clock that only goes forward
	if mark == w.mark && !w.listed.IsZero() && now.Sub(w.listed) < listEvery {
		return false, nil
	}
	targets := make(map[string]target)
	for webhooks, err := range w.engine.cfg.Store.AllWebhooks(ctx) {
		if err != nil {
			return false, err
		}
		for _, endpoint := range webhooks.Endpoints {
			if endpoint.Enabled() {
				targets[endpoint.ID] = target{webhooks.Owner, endpoint}
			}
		}
	}
	w.targets, w.mark, w.listed = targets, mark, now
	w.assign.keepOnly(func(id string) bool { _, there := targets[id]; return there })
	return true, nil
}

// claim claims an endpoint and begins to deliver to it.
func (w *worker) claim(ctx context.Context, id string) error {
	to := w.targets[id]
	hold, ok, err := w.store.Claim(ctx, to.owner, id)
	if err != nil || !ok {
		return err
	}
	w.assign.taken(id)
	r := newRoute(w.engine, id, to, hold)
	if !w.assign.mine(id) {
		r.lentUntil = w.engine.cfg.Clock().Add(lentFor)
	}
	w.engine.mu.Lock()
	w.routes[id] = r
	w.engine.mu.Unlock()
	go func() {
		r.runSafely(ctx)
		w.ended <- r
	}()
	return nil
}

func (w *worker) forget(r *route) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	delete(w.routes, r.id)
}

// drain has all endpoints given up.
func (w *worker) drain(ctx context.Context) error {
	for _, r := range w.routes {
		r.giveUp()
	}
	for len(w.routes) > 0 {
		select {
		case r := <-w.ended:
			w.forget(r)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
