package payment_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/kv/embedded/embeddedtest"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store/storetest"
	"licet/payment"
)

var owner = licensing.Owner{AccountID: "acct_test", Mode: licensing.Test}

// clock is a clock that tests advance, so that orders expire.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(c.by()) }

// by returns how far the clock is ahead of the time of day.
func (c *clock) by() time.Duration { return time.Duration(c.ahead.Load()) }

// advance moves the clock. A goroutine of the node may read the clock meanwhile.
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// setup starts a service on an etcd of its own. The test runs in parallel with other tests.
func setup(t *testing.T) (*service.Service, *clock, context.Context) {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	etcd := embeddedtest.Start(t, t.TempDir())
	m := metrics.New(prometheus.NewRegistry(), "test", "", "")
	store, err := kv.Open(ctx, kv.Config{Endpoints: etcd.Endpoints(), Metrics: m, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c := &clock{}
	return service.New(service.Config{
		Config: node.Config{
			Records:     store,
			Queries:     store,
			LicenseKeys: storetest.Keys(),
			Clock:       c.now,
			Metrics:     m,
			Log:         zerolog.Nop(),
		},
		Keys:    store,
		Sweeps:  store,
		Events:  store,
		Ring:    nodetest.Ring(t),
		Entropy: rand.Reader,
	}), c, ctx
}

// provider counts refunds, and fails while a test tells it to.
type provider struct {
	payment.Sandbox
	failing bool
	refunds int
}

var errProvider = errors.New("provider is down")

func (p *provider) Begin(ctx context.Context, o licensing.Order) (payment.Step, error) {
	if p.failing {
		return payment.Step{}, errProvider
	}
	return p.Sandbox.Begin(ctx, o)
}

func (p *provider) Refund(
	ctx context.Context, o licensing.Order, refund licensing.Payment,
) (payment.State, error) {
	if p.failing {
		return payment.State{}, errProvider
	}
	p.refunds++
	return p.Sandbox.Refund(ctx, o, refund)
}

func TestDesk(t *testing.T) {
	n, clock, ctx := setup(t)
	p := &provider{}
	desk := payment.NewDesk(n, payment.ForMode(licensing.Test, p))
	create := func() licensing.Order {
		t.Helper()
		o, _, err := n.CreateOrder(ctx, owner, service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD"})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	check := func(what string, o licensing.Order, want licensing.OrderStatus, licensed, late bool) {
		t.Helper()
		stored, err := n.Order(ctx, owner, o.OrderNo)
		if err != nil {
			t.Fatal(err)
		}
		if got := stored.Status(n.Now()); got != want || stored.LicenseKey.IsZero() == licensed || stored.Late != late {
			t.Errorf("%s: %s, license %q, late %v; want %s, %v, %v", what, got, stored.LicenseKey, stored.Late, want,
				licensed, late)
		}
	}

	paid := create()
	if _, _, err := desk.Pay(ctx, paid); err != nil {
		t.Fatal(err)
	}
	check("paid", paid, licensing.OrderPaid, true, false)
	if _, err := desk.Cancel(ctx, paid); !errors.Is(err, &licensing.Error{Reason: licensing.ReasonInvalidOrderState}) {
		t.Errorf("cancel a paid order: %v", err)
	}

	p.failing = true
	refused := create()
	if _, _, err := desk.Pay(ctx, refused); !errors.Is(err, &licensing.Error{Reason: licensing.ReasonProviderFailed}) {
		t.Errorf("the provider failed, and Pay says: %v", err)
	}
	check("provider failed", refused, licensing.OrderUnpaid, false, false)
	p.failing = false

	canceled := create()
	if _, err := desk.Cancel(ctx, canceled); err != nil {
		t.Fatal(err)
	}
	check("canceled", canceled, licensing.OrderCanceled, false, false)
	p.failing = true
	if _, err := desk.Confirm(ctx, canceled, nodetest.SandboxPayment("late money")); !errors.Is(err,
		&licensing.Error{Reason: licensing.ReasonProviderFailed}) {
		t.Errorf("the refund failed, and Confirm says: %v", err)
	}
	check("refund owed", canceled, licensing.OrderCanceled, false, false)
	p.failing = false
	for range 3 {
		if _, err := desk.Confirm(ctx, canceled, nodetest.SandboxPayment("late money")); err != nil {
			t.Fatal(err)
		}
	}
	check("sent back", canceled, licensing.OrderRefunded, false, false)
	if p.refunds != 1 {
		t.Errorf("%d refunds, want 1", p.refunds)
	}

	expired := create()
	clock.advance(25 * time.Hour)
	check("expired", expired, licensing.OrderExpired, false, false)
	if _, err := desk.Cancel(ctx, expired); !errors.Is(err,
		&licensing.Error{Reason: licensing.ReasonInvalidOrderState}) {
		t.Errorf("cancel an expired order: %v", err)
	}
	if _, _, err := desk.Pay(ctx, expired); err != nil {
		t.Fatal(err)
	}
	check("paid late", expired, licensing.OrderPaid, true, true)

	live := payment.NewDesk(n, nil)
	if _, _, err := live.Pay(ctx, create()); !errors.Is(err, licensing.ErrPaymentNotConfigured) {
		t.Errorf("no provider: %v", err)
	}
}
