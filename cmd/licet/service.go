package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/handlers"
	"licet/handlers/limits"
	"licet/kv"
	"licet/kv/backup"
	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node"
	"licet/node/peer"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// sweepEvery is about how often what has had its time is removed or recorded.
const sweepEvery = time.Minute

// instance is what every kind of service is made of. A start calls listen, open
// and answer, in that order and with what is its own in between; each leaves on
// parts what it has started, also where it fails.
type instance struct {
	cfg        config
	security   *tls.Config   // what the listener speaks TLS with; nil: it does not
	drainDelay time.Duration // how long a stop only fails readiness
	// Set where there is but one node, whose clock is the only one:
	sweepEvery, expiryMargin time.Duration
	providers                map[licensing.Mode]payment.Provider // for each mode that can be paid in
	log                      zerolog.Logger
	parts                    lifecycle

	// Set by listen:
	listener net.Listener
	admin    net.Listener // nil if it is off
	url      string       // where this machine reaches it
	peering  *peering     // nil: other nodes are not known of

	// Set by open:
	registry    *prometheus.Registry
	instruments *metrics.Metrics
	guard       *guard.Guard
	tracer      *tracing.Tracer // nil: it is off
	store       *kv.Store
	check       licensing.KeyCheck
	version     string

	// Set by the start, before answer:
	ring licensing.MasterRing

	died   <-chan error // from an etcd of its own; nil without one
	failed chan error   // from listeners that ended by themselves
}

func newService(cfg config, log zerolog.Logger) *instance {
	return &instance{
		cfg:       cfg,
		providers: map[licensing.Mode]payment.Provider{licensing.Test: payment.Sandbox{}},
		log:       log,
		parts:     lifecycle{log: log},
		failed:    make(chan error, 3), // one for each listener
	}
}

// run starts a service, keeps it up until ctx ends or a part of it fails, and
// stops it.
func (s *instance) run(ctx context.Context, start func(context.Context) error) error {
	setThreads(os.LookupEnv)
	err := start(ctx)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-s.failed:
		case err = <-s.died:
		}
		s.log.Info().Msg("stopping")
	}
	if ctx.Err() != nil {
		err = nil // it was told to stop, if only while it started
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

// listen takes the addresses. It comes before anything slow, so that a port
// that is not free is told at once.
func (s *instance) listen(ctx context.Context, remote bool) error {
	var err error
	if s.listener, err = listen(ctx, "listen", s.cfg.Listen, remote); err != nil {
		return err
	}
	s.parts.started("listening", closing(s.listener))
	s.url = localURL(s.listener.Addr())
	if s.security != nil {
		s.listener = tls.NewListener(s.listener, s.security)
		s.url = "https" + strings.TrimPrefix(s.url, "http")
	}
	if s.cfg.MetricsListen == "" {
		return nil
	}
	if s.admin, err = listen(ctx, "metrics-listen", s.cfg.MetricsListen, remote); err != nil {
		return err
	}
	s.parts.started("listening for metrics", closing(s.admin))
	s.log.Info().Str("url", localURL(s.admin.Addr())+"/metrics").Msg("metrics")
	return nil
}

// open opens the store at cfg's endpoints.
func (s *instance) open(ctx context.Context, build build, cfg kv.Config) error {
	s.registry = prometheus.NewRegistry()
	s.version = build.version
	s.instruments = metrics.New(s.registry, build.version, build.revision, build.goVersion)
	s.guard = guard.New(s.instruments, s.log)
	if err := s.trace(ctx, build); err != nil {
		return err
	}
	cfg.Metrics, cfg.Log, cfg.Tracer, cfg.Remembered, cfg.HearAll = s.instruments, s.log, s.tracer, s.cfg.Remember, s.cfg.RecordActivations
	var err error
	if s.store, err = kv.Open(ctx, cfg); err != nil {
		return err
	}
	s.parts.started("the store's client", func(context.Context) error { return s.store.Close() })
	if s.check, err = s.store.KeyCheck(ctx, rand.Reader); err != nil {
		return err
	}
	return s.store.OpenEpoch(ctx)
}

// answer makes the node and all that stands before it, and serves.
func (s *instance) answer() error {
	cfg := service.Config{
		Config: node.Config{
			Records:    s.store,
			Queries:    s.store,
			KeyCheck:   s.check,
			Clock:      time.Now,
			Metrics:    s.instruments,
			Log:        s.log,
			Tracer:     s.tracer,
			QueueDelay: s.cfg.QueueDelay,
		},
		Sweeps:            s.store,
		Entropy:           rand.Reader,
		Events:            s.store,
		KeepEvents:        store.EventRetention{Age: s.cfg.RetainedAge, Bytes: s.cfg.RetainedBytes},
		Deliveries:        s.store,
		Keys:              s.store,
		Ring:              s.ring,
		OrderLifetime:     s.cfg.OrderLifetime,
		TestOrderLifetime: s.cfg.TestOrders,
		ExpiryMargin:      s.expiryMargin,
	}
	if s.peering != nil {
		if err := s.peering.call(s.store.Nodes, s.guard); err != nil {
			return err
		}
		cfg.Peers, cfg.Self = s.peering.client, s.store.Incarnation()
	}
	n := service.New(cfg)
	var peers *peer.Server
	if s.peering != nil {
		// Before the mailboxes, so that it ends after them: while they end, others'
		// commands are refused, and not lost.
		var err error
		if peers, err = s.answerPeers(n); err != nil {
			return err
		}
	}
	// Before the mailboxes too: what the last of them record is to get into the feed.
	s.background("the epochs of events", n.KeepSealing)
	s.background("the memory of API keys", n.FollowKeys)
	s.background("the memory of API keys used", n.KeepKeyUses)
	s.parts.started("the mailboxes", n.Drain)
	s.background("the memory of devices seen", n.KeepSeen)
	desk := payment.NewDesk(n, payment.Instrument(s.instruments, s.providers))
	every := cmp.Or(s.sweepEvery, sweepEvery)
	s.background("the sweeps", func(ctx context.Context) { n.Sweep(ctx, every, n.Chores()...) })
	// Apart from those, since a provider may be slow.
	s.background("the refunds", func(ctx context.Context) {
		n.Sweep(ctx, every, service.Chore{Name: "sending back what is due", Label: "refunds", Once: desk.SendRefundsDue})
	})
	s.background("the time of the last backup", func(ctx context.Context) {
		backup.Follow(ctx, s.store, s.instruments.BackupSuccess)
	})
	if thrift := newThrift(os.LookupEnv); thrift != nil {
		s.background("the thrift", thrift.keep)
	}

	front := handlers.Config{Node: n, Desk: desk, Metrics: s.instruments, Log: s.log, Tracer: s.tracer, PublicURL: s.cfg.PublicURL, Ring: s.ring}
	if err := s.limit(&front); err != nil {
		return err
	}
	if front.PublicURL == "" {
		front.PublicURL = s.url
	}
	policy, err := s.cfg.policy()
	if err != nil {
		return err
	}
	sender := s.sender(policy)
	front.Webhooks, front.Pings = policy, sender
	api := handlers.New(front)
	// Before what it answers is heard, so that it is stopped after that.
	s.deliver(n, sender, api)
	if s.admin != nil {
		s.serve("metrics", handlers.NewAdmin(front, s.registry, s.cfg.Profiles), s.admin)
	}
	s.serve("the API", api, s.listener)
	s.parts.started("readiness", func(ctx context.Context) error {
		n.Leave()
		// Whoever sends requests here needs a while to notice.
		select {
		case <-time.After(s.drainDelay):
		case <-ctx.Done():
		}
		return nil
	})
	if peers != nil {
		s.background("the registration", func(ctx context.Context) {
			s.store.Register(ctx, peers.Registration(s.peering.address))
		})
	}
	return nil
}

// limit makes the rate limits of what answers.
func (s *instance) limit(front *handlers.Config) (err error) {
	front.Limits, err = limits.New(limits.Config{
		Address: s.cfg.AddressLimit,
		APIKey:  s.cfg.APIKeyLimit,
		License: s.cfg.LicenseLimit,
		Clock:   time.Now,
	})
	if err != nil {
		return err
	}
	s.parts.started("the rate limits", func(context.Context) error {
		front.Limits.Close()
		return nil
	})
	front.Proxies, err = parseNetworks(s.cfg.TrustedProxies)
	return err
}

// background runs work until the service stops, and again after a panic.
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

// server is what both kinds of listeners are served by.
type server interface {
	Serve(net.Listener) error
	Shutdown(context.Context) error
}

// serve answers a listener's requests until the service stops.
func (s *instance) serve(name string, front server, listener net.Listener) {
	failed := func(err error) { s.failed <- fmt.Errorf("serve %s on %v: %w", name, listener.Addr(), err) }
	s.guard.Start(name, func() {
		if err := front.Serve(listener); err != nil {
			failed(err)
		}
	}, func() { failed(errPanicked) })
	s.parts.started(name, func(ctx context.Context) error {
		// Clients that are slow to send or to read must not use up the time
		// that the mailboxes and the store need to end well.
		ctx, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout*7/10)
		defer cancel()
		return front.Shutdown(ctx)
	})
}

// stop takes the service down within the time that the configuration gives.
func (s *instance) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.drainDelay+s.cfg.ShutdownTimeout)
	defer cancel()
	stopped := make(chan error, 1)
	guard.New(s.instruments, s.log).Start("stop", func() { stopped <- s.parts.stop(ctx) }, func() { stopped <- errPanicked })
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
	}
	// Steps that heed ctx are ending now; the rest gets a moment.
	select {
	case err := <-stopped:
		return err
	case <-time.After(cutOff):
		return fmt.Errorf("not everything stopped within %v; the rest was cut off", s.cfg.ShutdownTimeout)
	}
}

// cutOff is how long what ignores its deadline is waited for beyond it.
const cutOff = time.Second

// errPanicked says that a panic has ended a part of the service; the log has its origin.
var errPanicked = errors.New("panic")

// closing closes a listener. Its server may have closed it already.
func closing(listener net.Listener) func(context.Context) error {
	return func(context.Context) error {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
