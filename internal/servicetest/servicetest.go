package servicetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/delivery/webhook"
	"licet/handlers"
	"licet/handlers/limits"
	"licet/kv"
	"licet/kv/deliveries"
	"licet/kv/embedded"
	"licet/kv/embedded/embeddedtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/payment"
)

// Config is the configuration of the service. The zero value is the usual one.
type Config struct {
	AccountLimit limits.Rate // zero: none
	// OrderLifetime is how long an order can be paid; 0: a day.
	OrderLifetime time.Duration
	Clock         func() time.Time // nil: time.Now
}

// Service is a running service.
type Service struct {
	URL   string
	Store *kv.Store

	node  *service.Service
	maker service.Keymaker
	stop  []func()
}

// New starts a service. The end of the test stops it.
func New(t testing.TB, cfg Config) *Service {
	t.Helper()
	s, err := Start(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// Run runs a package's tests with one service that all tests share, and returns the exit code.
func Run(m *testing.M, into **Service) int {
	dir, err := os.MkdirTemp("", "licet-service-")
	if err == nil {
		defer os.RemoveAll(dir)
		*into, err = Start(dir, Config{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer (*into).Close()
	return m.Run()
}

// Start starts a service on the store in a directory. The caller must close the service.
func Start(dir string, cfg Config) (s *Service, err error) {
	s = new(Service)
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	etcd, err := embedded.StartTuned(ctx, dir, zerolog.Nop(), embeddedtest.Quick)
	if err != nil {
		return s, err
	}
	s.stop = append(s.stop, etcd.Close)
	instruments := metrics.New(prometheus.NewRegistry(), "", "", "")
	store := kv.Config{Endpoints: etcd.Endpoints(), Metrics: instruments, Log: zerolog.Nop(), RecordActivations: true}
	if s.Store, err = kv.Open(ctx, store); err != nil {
		return s, err
	}
	s.stop = append(s.stop, func() { _ = s.Store.Close() })
	if err := s.Store.OpenEpoch(ctx); err != nil {
		return s, err
	}
	s.Store.KeepClosingEpochs()
	ring, err := keyring.ParseMasterRing("m1:" + strings.Repeat("A", 43) + "=")
	if err != nil {
		return s, err
	}
	if err := s.Store.UseMaster(ctx, ring.Current()); err != nil {
		return s, err
	}
	keys, err := s.Store.LicenseKeys(ctx, ring, rand.Reader)
	if err != nil {
		return s, err
	}
	s.maker = service.Keymaker{Store: s.Store, Check: keys.KeyCheck, Ring: ring, Clock: cfg.Clock, Entropy: rand.Reader}
	s.node = service.New(service.Config{
		Config: node.Config{
			Records:     s.Store,
			Queries:     s.Store,
			LicenseKeys: keys,
			Clock:       cfg.Clock,
			Metrics:     instruments,
			Log:         zerolog.Nop(),
		},
		Sweeps:            s.Store,
		Events:            s.Store,
		Deliveries:        deliveries.New(s.Store),
		Keys:              s.Store,
		Ring:              ring,
		Entropy:           rand.Reader,
		OrderLifetime:     cfg.OrderLifetime,
		TestOrderLifetime: cfg.OrderLifetime,
	})
	s.background(s.node.FollowKeys)
	s.stop = append(s.stop, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = s.node.Drain(ctx)
	})
	return s, s.serve(cfg, instruments, ring)
}

// serve serves the API on a free port.
func (s *Service) serve(cfg Config, instruments *metrics.Metrics, ring keyring.MasterRing) error {
	bounds, err := limits.New(limits.Config{Account: cfg.AccountLimit, Clock: cfg.Clock})
	if err != nil {
		return err
	}
	s.stop = append(s.stop, bounds.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.URL = "http://" + listener.Addr().String()
	policy := webhook.Policy{Loopback: true}
	sender := webhook.NewSender(webhook.Config{Policy: policy, Version: "test", Clock: cfg.Clock})
	s.stop = append(s.stop, sender.Close)
	front := handlers.New(handlers.Config{
		Webhooks: policy, Pings: sender,
		Node: s.node, Metrics: instruments, Log: zerolog.Nop(), PublicURL: s.URL, Ring: ring, Limits: bounds,
		Desk: payment.NewDesk(s.node, payment.ForMode(licensing.Test, payment.Sandbox{Node: s.node})),
	})
	done := make(chan error, 1)
	go func() { done <- front.Serve(listener) }()
	s.stop = append(s.stop, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = front.Shutdown(ctx)
		<-done
	})
	return nil
}

func (s *Service) background(work func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		work(ctx)
	}()
	s.stop = append(s.stop, func() {
		cancel()
		<-done
	})
}

// Close stops the service.
func (s *Service) Close() {
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
	s.stop = nil
}

// NewAccount returns a new account in test mode, which has only the records of the test.
func NewAccount() licensing.Owner {
	return licensing.Owner{AccountID: "acct_" + strings.ToLower(rand.Text()), Mode: licensing.Test}
}

// Key creates an API key of an account with these scopes, or with all.
func (s *Service) Key(account licensing.Owner, scopes ...string) (service.IssuedKey, error) {
	if len(scopes) == 0 {
		scopes = []string{"*"}
	}
	return s.NewKey(service.NewKey{Owner: account, Name: "test", Scopes: scopes})
}

// NewKey creates an API key.
func (s *Service) NewKey(key service.NewKey) (service.IssuedKey, error) {
	return s.maker.Create(context.Background(), key)
}
