package delivery

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"licet/delivery/webhook"
	"licet/internal/backoff"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/service"
	"licet/node/store"
)

const (
	// scanEvery is about how often a worker scans which endpoints it should lease. A change of an endpoint,
	// or a new replay, wakes the worker earlier.
	scanEvery = time.Second
	// listEvery is the longest time between two reads of all endpoints. It bounds the damage of a change that
	// the mark missed.
	listEvery = time.Minute

	// maxExtraAttempts bounds a node's concurrent attempts, not counting the first attempt of each endpoint,
	// which is always allowed.
	maxExtraAttempts = 256
	// maxBufferedEvents bounds the events in a node's memory. Beyond it, each endpoint reads small pages.
	maxBufferedEvents = 20_000

	// workRetryPause is about the pause between two tries to become a worker.
	workRetryPause = 2 * time.Second
	// firstFailurePause and longestFailurePause bound the pause before this node leases an endpoint again
	// after its loop failed. Each failure may send messages twice, so failures must be rare.
	firstFailurePause   = time.Second
	longestFailurePause = time.Minute
	// drainTimeout bounds the wait for attempts in flight when a loop releases its endpoint.
	drainTimeout = 5 * time.Second
)

// Config configures an engine. Every field is required unless its comment says otherwise.
type Config struct {
	Store  Store
	Node   *service.Service
	Sender *webhook.Sender
	// Render returns the body of a message.
	Render func(*service.EventView) ([]byte, error)

	Clock   func() time.Time
	Random  func() float64 // in [0, 1); nil: math/rand/v2
	Metrics *metrics.Metrics
	Log     zerolog.Logger
	Tracer  *tracing.Tracer // nil: no tracing
}

// Engine delivers on one node. Make it with [New].
type Engine struct {
	cfg          Config
	guard        *guard.Guard
	extraSlots   chan struct{} // contains one value for each extra attempt; see maxExtraAttempts
	busyLimit    busyLimiter
	scanRequests chan struct{} // contains a value when a scan was requested
	// bufferedEvents counts the events in memory; see maxBufferedEvents.
	bufferedEvents atomic.Int64
	maxSleep       time.Duration // the longest sleep of a loop; see longestSleep
	listInterval   time.Duration // see listEvery

	mu    sync.Mutex
	loops map[string]*endpointLoop // by endpoint id

	ctx       context.Context // of the engine's work
	cancel    context.CancelFunc
	startOnce sync.Once     // done once the engine has started or can't start any more
	stopping  chan struct{} // closed when the engine drains
	stopOnce  sync.Once
	done      chan struct{} // closed when the engine has ended
}

// New returns an engine that has not started.
func New(cfg Config) *Engine {
	if cfg.Random == nil {
		cfg.Random = rand.Float64
	}
	e := &Engine{
		cfg: cfg, guard: guard.New(cfg.Metrics, cfg.Log), busyLimit: newBusyLimiter(cfg.Node.Busy, cfg.Clock),
		extraSlots: make(chan struct{}, maxExtraAttempts), scanRequests: make(chan struct{}, 1),
		maxSleep: longestSleep, listInterval: listEvery,
		loops: make(map[string]*endpointLoop), stopping: make(chan struct{}), done: make(chan struct{}),
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e
}

// Start starts to deliver and returns at once. It is a no-op after Stop or Kill.
func (e *Engine) Start() {
	e.startOnce.Do(func() {
		e.guard.Start("deliveries", func() {
			defer close(e.done)
			e.guard.Keep(e.ctx, "deliveries", func() { e.run(e.ctx) })
		})
	})
}

// preventStart ends an engine that has not started.
func (e *Engine) preventStart() { e.startOnce.Do(func() { close(e.done) }) }

// Stop drains the engine and returns when the engine has ended. The engine starts no attempt, waits for
// attempts in flight, stores their results, and releases its endpoints, so that other nodes continue at once.
// If ctx ends first or draining takes too long, Stop cuts off the rest, which other nodes send again.
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

// Kill ends the engine at once, as a crash would, and returns when the engine has ended.
func (e *Engine) Kill() {
	e.preventStart()
	e.cancel()
	<-e.done
}

// run delivers until ctx ends or the engine stops.
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
		e.cfg.Log.Debug().Err(err).Msg("this node can't deliver: retrying")
		backoff.SleepUnless(ctx, backoff.Around(workRetryPause, 2), e.stopping)
	}
}

// requestScan makes the worker scan soon.
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
