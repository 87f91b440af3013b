package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
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
	"licet/kv/deliveries"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node"
	"licet/node/clocks"
	"licet/node/peer"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// instance is what licet dev and licet serve have in common. They call listen, open, useRing and serveAPI in this
// order, with their own steps in between. Each of these pushes the parts that it started onto parts, also if it fails.
type instance struct {
	cfg        config
	security   *tls.Config   // of the listener; nil: without TLS
	docs       bool          // serve the API reference
	drainDelay time.Duration // how long a stopping node fails readiness but still serves
	// Set by licet dev, whose single clock needs no margin:
	sweepEvery, expiryMargin time.Duration
	sandbox                  *payment.Sandbox  // knows the node once there is one
	providers                payment.Providers // an owner without a provider takes no payments
	clock                    clocks.Source     // the machine's, except in tests
	log                      zerolog.Logger
	parts                    lifecycle

	// Set by listen:
	stripe   *stripeShared
	events   []payment.EventSource // the accounts at Stripe
	listener net.Listener
	admin    net.Listener // for metrics and probes; nil: off
	url      string       // of the listener, from this machine
	peering  *peering     // nil: no commands from or to other nodes

	// Set by open:
	registry    *prometheus.Registry
	instruments *metrics.Metrics
	guard       *guard.Guard
	tracer      *tracing.Tracer // nil: off
	store       *kv.Store
	version     string

	// Set by useRing:
	ring        keyring.MasterRing
	licenseKeys keyring.LicenseKeys

	home *handlers.Home // set by licet dev, before serveAPI; nil: no page at /

	died   <-chan error // receives the error of an embedded etcd that ended; nil: no embedded etcd
	failed chan error   // receives errors of listeners that ended
}

// newService returns an instance with payments in the sandbox.
func newService(cfg config, log zerolog.Logger) *instance {
	sandbox := &payment.Sandbox{}
	return &instance{
		cfg:       cfg,
		sandbox:   sandbox,
		providers: payment.ForMode(licensing.Test, sandbox),
		clock:     clocks.System(),
		log:       log,
		parts:     lifecycle{log: log},
		failed:    make(chan error, 3), // one for each listener
	}
}

// run starts a service, waits until ctx ends or a part of the service fails, and stops the service.
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
		err = nil // a stop during the start is no error
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

// listen makes the payment providers and opens the listeners. It runs before the store is opened, so that a wrong key
// fails the start as soon as Stripe refuses the key, and a port in use once Stripe has answered about all keys. Stripe
// has at most verifyAllTimeout for its answers.
func (s *instance) listen(ctx context.Context, remote bool) error {
	err := s.usePayments(ctx)
	if err != nil {
		return err
	}
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

// open opens the store at the endpoints of cfg.
func (s *instance) open(ctx context.Context, build build, cfg kv.Config) error {
	s.registry = prometheus.NewRegistry()
	s.version = build.version
	s.instruments = metrics.New(s.registry, build.version, build.revision, build.goVersion)
	s.guard = guard.New(s.instruments, s.log)
	if err := s.startTracing(ctx, build); err != nil {
		return err
	}
	cfg.Metrics, cfg.Log, cfg.Tracer = s.instruments, s.log, s.tracer
	cfg.Remembered, cfg.RecordActivations = s.cfg.Remember, s.cfg.RecordActivations
	var err error
	if s.store, err = kv.Open(ctx, cfg); err != nil {
		return err
	}
	s.parts.started("the store's client", func(context.Context) error { return s.store.Close() })
	if err := s.store.OpenSlotMap(ctx); err != nil {
		return err
	}
	if err := s.store.OpenEpoch(ctx); err != nil {
		return err
	}
	if now, _ := s.clock(); !now.IsZero() {
		if err := s.store.NoteBooks(ctx, now); err != nil { // the store may be full
			s.log.Warn().Err(err).Msg("can't note since when reports of sales are complete: the next start tries again")
		}
	}
	// The store closes epochs until Close, after the mailboxes: the feeds must have the events of the last commands.
	s.store.KeepClosingEpochs()
	return nil
}

// useRing compares the ring with the store, and opens the id key with it.
func (s *instance) useRing(ctx context.Context, ring keyring.MasterRing) (err error) {
	if err := s.store.CheckRing(ctx, ring); err != nil {
		return err
	}
	s.ring = ring
	s.licenseKeys, err = s.store.LicenseKeys(ctx, ring, rand.Reader)
	return err
}

// serveAPI starts the node and its background work, and then serves the API.
func (s *instance) serveAPI() error {
	comparison := clocks.New(clocks.Config{Self: s.store.Incarnation(), Clock: s.clock,
		Tolerance: s.cfg.ClockTolerance, Metrics: s.instruments, Log: s.log})
	cfg := service.Config{
		Config: node.Config{
			Records:     s.store,
			Queries:     s.store,
			LicenseKeys: s.licenseKeys,
			Clock:       func() time.Time { now, _ := s.clock(); return now },
			Clocks:      comparison,
			Self:        s.store.Incarnation(),
			Metrics:     s.instruments,
			Log:         s.log,
			Tracer:      s.tracer,
			QueueDelay:  s.cfg.QueueDelay,
			WriteLimits: node.WriteLimits{
				NewDevices:   writeLimit(s.cfg.NewDevicesLimit, 1),
				LicenseBytes: writeLimit(s.cfg.LicenseKiB, 1<<10),
				AccountBytes: writeLimit(s.cfg.AccountKiB, 1<<10),
			},
		},
		Sweeps:            s.store,
		Usages:            s.store,
		Budget:            s.cfg.Budget,
		Entropy:           rand.Reader,
		Events:            s.store,
		KeepEvents:        store.EventRetention{Age: s.cfg.RetainedAge, Bytes: s.cfg.RetainedBytes},
		Deliveries:        deliveries.New(s.store),
		Keys:              s.store,
		MaxAPIKeys:        s.cfg.MaxAPIKeys,
		Ring:              s.ring,
		OrderLifetime:     s.cfg.OrderLifetime,
		TestOrderLifetime: s.cfg.TestOrders,
		ExpiryMargin:      s.expiryMargin,
		SweepEvery:        s.sweepEvery,
		Accepts:           s.accepts,
	}
	if s.peering != nil {
		if err := s.peering.connect(s.store.Nodes, s.guard); err != nil {
			return err
		}
		cfg.Peers = s.peering.client
	}
	n := service.New(cfg)
	var peers *peer.Server
	if s.peering != nil {
		// The peer server starts before the mailboxes, so it stops after them: while the mailboxes drain, it refuses
		// commands of other nodes instead of losing them.
		var err error
		if peers, err = s.servePeers(n); err != nil {
			return err
		}
	}
	s.background("the map of slots", s.store.FollowSlotMap)
	s.background("the memory of API keys", n.FollowKeys)
	s.background("the memory of API keys used", n.KeepKeyUses)
	// The registration starts before the mailboxes, so it stops after them: while the node acts by time, other nodes
	// compare their clocks with its clock. A node that leaves withdraws its address, since it takes no hops.
	registration := func() store.Registration {
		r := store.Registration{Incarnation: s.store.Incarnation()}
		if peers != nil && !n.Leaving() {
			r = peers.Registration(s.peering.address)
		}
		r.Version = s.version
		return r
	}
	s.background("the registration", func(ctx context.Context) { s.store.Register(ctx, registration, comparison) })
	s.parts.started("the mailboxes", n.Drain)
	s.background("the memory of devices seen", n.KeepSeen)
	s.background("the usage of accounts", n.KeepUsage)
	s.background("the seals of root keys", func(ctx context.Context) {
		n.SealRoots(ctx, func(ctx context.Context) ([]licensing.Owner, error) {
			return s.store.RootsSealedElsewhere(ctx, s.ring.Current().ID)
		})
	})
	s.sandbox.Node = n
	desk := payment.NewDesk(n, payment.Fairly(payment.Instrument(s.instruments, s.providers)))
	chores := n.Chores()
	if s.cfg.CompactEarly {
		chores = append(chores,
			service.Chore{Name: "the early compaction of etcd's history", Label: "history",
				Once: s.store.CompactHistory})
	}
	s.background("the sweeps", func(ctx context.Context) { n.Sweep(ctx, chores...) })
	s.background("the sweep of leases", n.SweepLeases)
	s.background("the renewals in the sandbox", func(ctx context.Context) { n.SweepSandbox(ctx, desk.AskSandboxDue) })
	// Refunds run apart from the sweeps, because a payment provider may be slow.
	s.background("the refunds", func(ctx context.Context) {
		n.Sweep(ctx, service.Chore{Name: "the sending of refunds due", Label: "refunds",
			Once: desk.SendRefundsDue})
	})
	s.background("the questions about checkouts", func(ctx context.Context) {
		n.Sweep(ctx, service.Chore{Name: "the questions about checkouts", Label: "checkouts",
			Once: desk.AskCheckoutsDue})
	})
	s.background("the events at payment providers", func(ctx context.Context) {
		n.Sweep(ctx, service.Chore{Name: "the reading of the events at payment providers", Label: "provider_events",
			Once: func(ctx context.Context) error { return desk.AskProviderEvents(ctx, s.events) }})
	})
	// So do recounts, which read the whole store.
	s.background("the recount of usage", func(ctx context.Context) {
		n.Sweep(ctx, service.Chore{Name: "the count of what accounts store", Label: "usage", Once: n.Recount})
	})
	// And counts of leases, which read all licenses with leases, and others that end soon.
	s.background("the count of leases", func(ctx context.Context) {
		n.Sweep(ctx, service.Chore{Name: "the count of leases in use", Label: "leases_in_use", Once: n.CountLeases})
	})
	s.background("the time of the last backup", func(ctx context.Context) {
		backup.Follow(ctx, s.store, s.instruments.BackupSuccess)
	})
	if releaser := newMemoryReleaser(os.LookupEnv); releaser != nil {
		s.background("the memory releaser", releaser.run)
	}

	api := handlers.Config{
		Node: n, Desk: desk, Metrics: s.instruments, Log: s.log, Tracer: s.tracer, PublicURL: s.cfg.PublicURL,
		Ring: s.ring,
		Docs: s.docs, Home: s.home,
	}
	if err := s.limit(&api); err != nil {
		return err
	}
	if api.PublicURL == "" {
		api.PublicURL = s.url
	}
	s.showOrders(n, api.PublicURL)
	policy, err := s.cfg.policy()
	if err != nil {
		return err
	}
	sender := s.sender(policy)
	api.Webhooks, api.Pings = policy, sender
	server := handlers.New(api)
	// Deliveries start before the listeners, so they stop after them.
	s.deliver(n, sender, server)
	if s.admin != nil {
		s.serve("metrics", handlers.NewAdmin(api, s.registry, s.cfg.Profiles), s.admin)
	}
	s.serve("the API", server, s.listener)
	s.parts.started("readiness", func(ctx context.Context) error {
		n.Leave()
		// Load balancers need some time to notice the failed readiness.
		select {
		case <-time.After(s.drainDelay):
		case <-ctx.Done():
		}
		return nil
	})
	return nil
}

// writeLimit returns a setting as a limit in smaller units.
func writeLimit(setting limits.Rate, units int) node.WriteLimit {
	return node.WriteLimit{Count: setting.Count * units, Per: setting.Per}
}

// limit starts the rate limits and adds them to the configuration of the API.
func (s *instance) limit(api *handlers.Config) (err error) {
	api.Limits, err = limits.New(limits.Config{
		Address:        s.cfg.AddressLimit,
		Authentication: s.cfg.AuthenticationLimit,
		Account:        s.cfg.AccountLimit,
		License:        s.cfg.LicenseLimit,
		// Stripe takes 25 requests a second of an account in test mode, and 100 in live mode.
		PayPage:       limits.Rate{Count: 10, Per: time.Minute},
		DocumentBytes: limits.Rate{Count: s.cfg.DocumentsKiB.Count << 10, Per: s.cfg.DocumentsKiB.Per},
		Clock:         time.Now,
	})
	if err != nil {
		return err
	}
	s.parts.started("the rate limits", func(context.Context) error {
		api.Limits.Close()
		return nil
	})
	api.Proxies, err = parseNetworks(s.cfg.TrustedProxies)
	return err
}
