package delivery

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"licet/delivery/webhook"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/service"
	"licet/node/store"
)

const (
	// scanEvery is about how often a worker looks which endpoints it should have. It
	// is woken when endpoints or replays have changed.
	scanEvery = time.Second
	// listEvery is how often at least it reads all endpoints: the mark that tells of
	// changes is trusted, but not for ever.
	listEvery = time.Minute

	// attemptsAtOnce bounds the attempts under way on a node, beside the one that each
	// endpoint may always have.
	maxExtraAttempts = 256
	// eventsAtOnce is about how many events lie here at once, beside a few for each
	// endpoint.
	maxBufferedEvents = 20_000

	// workPause is between two tries to become a worker.
	workRetryPause = 2 * time.Second
	// failedPause and longestFailed bound how long an endpoint is left alone whose
	// deliveries here have ended by an error: what is sent again then is sent seldom.
	firstFailurePause   = time.Second
	longestFailurePause = time.Minute
	// drainTimeout is how long attempts that are under way are waited for at a stop.
	drainTimeout = 5 * time.Second
)

// Config is what an engine is made of. Every field is needed unless it says otherwise.
type Config struct {
	Store  Store
	Node   *service.Service
	Sender *webhook.Sender
	// Render makes the body of a message.
	Render func(*service.EventView) ([]byte, error)

	Clock   func() time.Time
	Random  func() float64 // from [0, 1); nil: math/rand/v2's
	Metrics *metrics.Metrics
	Log     zerolog.Logger
	Tracer  *tracing.Tracer // nil: nothing is traced
}

// Engine is one node's part of the deliveries. Make it with [New].
type Engine struct {
	cfg          Config
	guard        *guard.Guard
	extraSlots   chan struct{} // a place for each attempt but the first of an endpoint
	busyLimit    busyLimiter
	scanRequests chan struct{} // there is something to look for
	load         load
	maxSleep     time.Duration // the longest that a route does not look at the clock
	listInterval time.Duration // the longest that all endpoints are not read, see listEvery

	mu    sync.Mutex
	loops map[string]*endpointLoop // the endpoints that it delivers to

	ctx       context.Context // of everything that the engine does
	cancel    context.CancelFunc
	startOnce sync.Once     // the engine has started, or never will
	stopping  chan struct{} // closed when it drains
	stopOnce  sync.Once
	done      chan struct{} // closed when it has ended
}

// New makes an engine.
func New(cfg Config) *Engine {
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	e := &Engine{
		cfg: cfg, guard: guard.New(cfg.Metrics, cfg.Log), busyLimit: newBusyLimiter(cfg.Node.Busy, cfg.Clock), extraSlots: make(chan struct{}, maxExtraAttempts), scanRequests: make(chan struct{}, 1), maxSleep: longestSleep, listInterval: listEvery,
		loops: make(map[string]*endpointLoop), stopping: make(chan struct{}), done: make(chan struct{}),
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Start begins to deliver. It returns at once, and is a no-op after Stop or Kill.
func (e *Engine) Start() {
	e.startOnce.Do(func() {
		e.guard.Start("deliveries", func() {
			defer close(e.done)
			e.guard.Keep(e.ctx, "deliveries", func() { e.run(e.ctx) })
		})
	})
}

// neverStart ends an engine that has not started.
func (e *Engine) preventStart() { e.startOnce.Do(func() { close(e.done) }) }

// Stop ends it, and waits for that: no attempt is begun any more, those under way may
// end, what came of them is stored, and the endpoints are given up, so that other
// nodes go on at once. Where ctx ends, or that takes too long, the rest is cut off, and
// sent again by others.
func (e *Engine) Stop(ctx context.Context) error {
	e.stopOnce.Do(func() { close(e.stopping) })
	e.preventStart()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
	}
	e.Kill()
	return ctx.Err()
}

// Kill ends it at once, as a crash would, and waits for that.
func (e *Engine) Kill() {
	e.preventStart()
	e.cancel()
	<-e.done
}

// run works until ctx ends or the engine stops.
func (e *Engine) run(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	watch, unwatch := context.WithCancel(ctx)
	defer unwatch()
	e.guard.KeepIn(watch, &watching, "watch of endpoints", func() { e.cfg.Store.WatchWebhooks(watch, e.requestScan) })
	for {
		var err error
		e.guard.Do("delivery worker", func() {
			err = e.cfg.Store.Work(ctx, func(ctx context.Context, w store.DeliveryWorker) error {
				return newWorker(e, w).run(ctx)
			})
		})
		if ctx.Err() != nil || e.isStopping() {
			return
		}
		e.cfg.Log.Debug().Err(err).Msg("this node does not deliver for a moment")
		timer := time.NewTimer(workRetryPause/2 + rand.N(workRetryPause))
		select {
		case <-timer.C:
		case <-e.stopping:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (e *Engine) requestScan() {
	select {
	case e.scanRequests <- struct{}{}:
	default:
	}
}

func (e *Engine) isStopping() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}
