package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet"
	"licet/handlers"
	"licet/kv"
	"licet/metrics"
	"licet/node"
	"licet/payment"
)

const (
	// startTimeout bounds each wait of a start: for etcd, and for being ready.
	startTimeout = 30 * time.Second
	// readyPoll is the pause between two questions whether it is ready.
	readyPoll = 5 * time.Millisecond
	// sweepEvery is about how often what has had its time is removed.
	sweepEvery = 10 * time.Minute
)

// service is everything that licet dev runs. Its fields are set by start.
type service struct {
	cfg   config
	log   zerolog.Logger
	parts lifecycle

	etcd   *kv.Embedded
	store  *kv.Store
	key    *devKey
	secret string
	url    string     // where this machine reaches it
	failed chan error // from listeners that ended by themselves
}

func newService(cfg config, log zerolog.Logger) *service {
	return &service{
		cfg:    cfg,
		log:    log,
		parts:  lifecycle{log: log},
		failed: make(chan error, 2), // one for each listener
	}
}

// start puts the service together, from the store up, and leaves on s.parts
// what it has started, also where it fails. It is one function on purpose: read
// from top to bottom it is the order of things, and read backwards it is how
// they stop. Cutting it up would hide that order, which the compiler now keeps.
func (s *service) start(ctx context.Context, build build) error {
	if err := s.lock(); err != nil {
		return err
	}
	// Addresses are taken before anything slow, so that a port that is not
	// free is told at once.
	listener, err := listen(ctx, "listen", s.cfg.Listen, s.cfg.AllowRemote)
	if err != nil {
		return err
	}
	s.parts.started("listening", closing(listener))
	s.url = localURL(listener.Addr())
	var admin net.Listener
	if s.cfg.MetricsListen != "" {
		if admin, err = listen(ctx, "metrics-listen", s.cfg.MetricsListen, s.cfg.AllowRemote); err != nil {
			return err
		}
		s.parts.started("listening for metrics", closing(admin))
		s.log.Info().Str("url", localURL(admin.Addr())+"/metrics").Msg("metrics")
	}

	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if s.etcd, err = kv.StartEmbedded(starting, s.cfg.DataDir, s.log); err != nil {
		return err
	}
	s.parts.started("etcd", func(context.Context) error { s.etcd.Close(); return nil })

	registry := prometheus.NewRegistry()
	instruments := metrics.New(registry, build.version, build.revision, build.goVersion)
	s.store, err = kv.Open(starting, kv.Config{Endpoints: s.etcd.Endpoints(), Metrics: instruments, Log: s.log})
	if err != nil {
		return err
	}
	s.parts.started("the store's client", func(context.Context) error { return s.store.Close() })
	check, err := s.store.KeyCheck(starting, rand.Reader)
	if err != nil {
		return err
	}

	ring, err := loadMasterRing(s.cfg.DataDir, rand.Reader)
	if err != nil {
		return err
	}
	if s.key, err = loadDevKey(s.cfg.DataDir, ring, rand.Reader, time.Now()); err != nil {
		return err
	}
	record := s.key.record()
	if s.secret, err = ring.APISecret(&record); err != nil {
		return err
	}
	if err := s.store.PutAPIKey(starting, record); err != nil {
		return err
	}

	n := node.New(node.Config{
		Store:         s.store,
		KeyCheck:      check,
		Clock:         time.Now,
		Entropy:       rand.Reader,
		Metrics:       instruments,
		Log:           s.log,
		OrderLifetime: s.cfg.OrderLifetime,
	})
	s.parts.started("the mailboxes", n.Drain)
	s.background("the sweep of old claims", func(ctx context.Context) { n.Sweep(ctx, sweepEvery) })
	desk := payment.NewDesk(n, map[licet.Mode]payment.Provider{licet.Test: payment.Sandbox{}})

	front := handlers.Config{Node: n, Desk: desk, Metrics: instruments, Log: s.log, PublicURL: s.cfg.PublicURL}
	if front.PublicURL == "" {
		front.PublicURL = s.url
	}
	if admin != nil {
		s.serve("metrics", handlers.NewAdmin(front, registry), admin)
	}
	s.serve("the API", handlers.New(front), listener)
	s.parts.started("readiness", func(context.Context) error { n.Leave(); return nil })
	if s.cfg.AllowRemote {
		s.log.Warn().Stringer("address", listener.Addr()).
			Msg("other machines may reach this service, without TLS and with payments that move no money")
		if s.cfg.PublicURL == "" {
			s.log.Warn().Str("pay_links_begin_with", front.PublicURL).
				Msg("pay links lead to this machine only; --public-url gives them another address")
		}
	}
	return nil
}

// background runs work until the service stops.
func (s *service) background(name string, work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
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
func (s *service) serve(name string, front server, listener net.Listener) {
	go func() {
		if err := front.Serve(listener); err != nil {
			s.failed <- fmt.Errorf("serve %s on %v: %w", name, listener.Addr(), err)
		}
	}()
	s.parts.started(name, func(ctx context.Context) error {
		// Clients that are slow to send or to read must not use up the time
		// that the mailboxes and the store need to end well.
		ctx, cancel := context.WithTimeout(ctx, s.cfg.ShutdownTimeout*7/10)
		defer cancel()
		return front.Shutdown(ctx)
	})
}

// awaitReady waits until the service says of itself that it is ready, asked
// the way everybody else asks it.
func (s *service) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if ready(ctx, s.url) {
			return nil
		}
		select {
		case err := <-s.failed:
			return err
		case err := <-s.etcd.Err():
			return err
		case <-ctx.Done():
			return errors.New("the service was started but did not become ready; its log may tell why")
		case <-time.After(readyPoll):
		}
	}
}

func ready(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	// A transport of its own: no proxy from the environment, no connection kept.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// closing closes a listener. Its server may have closed it already.
func closing(listener net.Listener) func(context.Context) error {
	return func(context.Context) error {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
