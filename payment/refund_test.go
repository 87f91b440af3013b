package payment_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/rs/zerolog"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/payment"
)

// fixture has a bank, a store, and as many nodes as a test needs.
type fixture struct {
	t     *testing.T
	ctx   context.Context
	clock *clock
	bank  *bank
	store *kv.Store
	other *kv.Store // of another node
	node  *service.Service
	desk  *payment.Desk
	key   int

	instruments *metrics.Metrics // of node
}

// newFixture starts an etcd of its own. The test runs in parallel with other tests.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	etcd := embeddedtest.Start(t, t.TempDir())
	w := &fixture{t: t, ctx: ctx, clock: &clock{}, bank: newBank()}
	for _, store := range []**kv.Store{&w.store, &w.other} {
		var err error
		if *store, err = kv.Open(ctx,
			kv.Config{Endpoints: etcd.Endpoints(), Metrics: instruments(), Log: zerolog.Nop()}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = (*store).Close() })
	}
	w.node, w.desk = w.open(w.store, w.bank)
	return w
}

func instruments() *metrics.Metrics { return metrics.New(prometheus.NewRegistry(), "test", "", "") }

func (w *fixture) open(store store.Store, provider payment.Provider) (*service.Service, *payment.Desk) {
	w.t.Helper()
	keys, err := w.store.LicenseKeys(w.ctx, nodetest.Ring(w.t), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	m := instruments()
	if w.node == nil {
		w.instruments = m
	}
	n := service.New(service.Config{
		Config: node.Config{
			Records:     store,
			Queries:     store,
			LicenseKeys: keys,
			Clock:       w.clock.now,
			Metrics:     m,
			Log:         zerolog.Nop(),
		},
		Keys:    store,
		Sweeps:  store,
		Events:  store,
		Ring:    nodetest.Ring(w.t),
		Entropy: rand.Reader,
		Accepts: func(licensing.Order) error { return nil },
	})
	return n, payment.NewDesk(n, payment.ForMode(licensing.Test, provider))
}

func (w *fixture) create() licensing.Order {
	w.t.Helper()
	o, _, err := w.node.CreateOrder(w.ctx, owner, service.NewOrder{ProductID: "pro", Amount: 100, Currency: "USD"})
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *fixture) paid() licensing.Order {
	w.t.Helper()
	o, _, err := w.desk.Pay(w.ctx, w.create())
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *fixture) canceled() licensing.Order {
	w.t.Helper()
	o, err := w.desk.Cancel(w.ctx, w.create())
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *fixture) now(o licensing.Order) licensing.Order {
	w.t.Helper()
	stored, err := w.node.Order(w.ctx, owner, o.OrderNo)
	if err != nil {
		w.t.Fatal(err)
	}
	return stored
}

// once returns a unique Idempotency-Key.
func (w *fixture) once() *node.Once {
	w.key++
	hash := sha256.Sum256(fmt.Append(nil, w.key))
	return &node.Once{Hash: string(hash[:16]), Fingerprint: hash}
}

// check checks the status of an order, and that store and bank agree about the order. Every payment has led to a
// license or a refund, and no order is refunded twice.
func (w *fixture) check(what string, o licensing.Order, want licensing.OrderStatus) {
	w.t.Helper()
	stored := w.now(o)
	if got := stored.Status(w.node.Now()); got != want || stored.RefundDue {
		w.t.Errorf("%s: it is %s, refund due: %v; want %s", what, got, stored.RefundDue, want)
	}
	_, taken := w.bank.taken[o.OrderNo]
	if back := w.bank.returned[o.OrderNo]; (back == 1) != (want == licensing.OrderRefunded) || back > 1 || back == 1 &&
		!taken {
		w.t.Errorf("%s: the money was taken: %v, and returned %d times", what, taken, back)
	}
	if taken && want != licensing.OrderRefunded && want != licensing.OrderPaid {
		w.t.Errorf("%s: the money was taken, and the order is %s", what, want)
	}
	if stored.LicenseKey.IsZero() {
		if want == licensing.OrderPaid {
			w.t.Errorf("%s: it is paid, and there is no license", what)
		}
		return
	}
	view, err := w.node.License(w.ctx, owner, stored.LicenseKey, store.DevicePage{Limit: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	if revoked := view.License.Status(w.node.Now()) == licensing.Revoked; revoked != (want == licensing.OrderRefunded) {
		w.t.Errorf("%s: the order is %s, and its license revoked: %v", what, want, revoked)
	}
}

// verify checks that kv's verification finds no fault in the store.
func (w *fixture) verify() {
	w.t.Helper()
	if _, err := verify.Run(w.ctx, w.store,
		verify.Config{Report: func(v verify.Violation) { w.t.Errorf("verify: %+v", v) }}); err != nil {
		w.t.Error(err)
	}
}

var providerFailed = &licensing.Error{Reason: licensing.ReasonProviderFailed}

// TestRefund refunds a paid order, again, and with an Idempotency-Key. Orders that can't be refunded are refused.
func TestRefund(t *testing.T) {
	w := newFixture(t)
	o, key := w.paid(), w.once()
	refund := func(o licensing.Order, once *node.Once) (licensing.Order, bool, error) {
		return w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Reason: "too slow"}, once)
	}
	for i := range 3 {
		got, replayed, err := refund(o, key)
		if err != nil || replayed != (i > 0) || got.Status(w.node.Now()) != licensing.OrderRefunded ||
			got.StateReason != "too slow" {
			t.Fatalf("refund %d: %+v, replayed %v, %v", i, got, replayed, err)
		}
	}
	if _, replayed, err := refund(o, nil); err != nil || replayed {
		t.Errorf("without the key: replayed %v, %v", replayed, err)
	}
	w.check("refunded", o, licensing.OrderRefunded)
	if w.bank.asked[o.OrderNo] != 1 {
		t.Errorf("the bank was asked %d times", w.bank.asked[o.OrderNo])
	}

	other := licensing.Owner{AccountID: "acct_other", Mode: licensing.Test}
	paid := w.paid()
	if _, _, err := w.desk.Refund(w.ctx, other, paid.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
		licensing.ErrOrderNotFound) {
		t.Errorf("another account's order: %v", err)
	}
	w.check("another account's order", paid, licensing.OrderPaid)
	state := &licensing.Error{Reason: licensing.ReasonInvalidOrderState}
	for name, bad := range map[string]licensing.Order{"unpaid": w.create(), "canceled": w.canceled()} {
		once := w.once()
		for i := range 2 {
			if _, replayed, err := refund(bad, once); !errors.Is(err, state) || replayed != (i > 0) {
				t.Errorf("%s: replayed %v, %v", name, replayed, err)
			}
		}
	}
	free, _, err := w.node.CreateOrder(w.ctx, owner, service.NewOrder{ProductID: "pro", Currency: "USD"})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := refund(free, nil); err != nil || got.Status(w.node.Now()) != licensing.OrderRefunded {
		t.Errorf("a free order: %+v, %v", got, err)
	}
	if w.bank.asked[free.OrderNo] != 0 {
		t.Error("the bank was asked for the money of a free order")
	}
	poor := payment.NewDesk(w.node, nil)
	for range 2 {
		if _, _, err := poor.Refund(w.ctx, owner, paid.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
			licensing.ErrPaymentNotConfigured) {
			t.Errorf("without a provider: %v", err)
		}
	}
	w.check("without a provider", paid, licensing.OrderPaid)
	w.verify()
}

// TestProviderFails: after every kind of failure of the provider, the same call, with an Idempotency-Key or without,
// the pay page, or a pass on another node completes the refund.
func TestProviderFails(t *testing.T) {
	w := newFixture(t)
	_, elsewhere := w.open(w.other, w.bank)
	for name, fails := range map[string]answer{
		"before":            {says: errDown},
		"after it has paid": {moves: true, says: errDown},
		"hanging":           {hangs: true},
		"hanging, paid":     {moves: true, hangs: true},
	} {
		once := w.once()
		for way, goOn := range map[string]func(licensing.Order) error{
			"the same call": func(o licensing.Order) error {
				_, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil)
				return err
			},
			"the same call under its key": func(o licensing.Order) error {
				got, replayed, err := elsewhere.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, once)
				if replayed || got.RefundedAt.IsZero() {
					t.Errorf("%s, under its key: replayed %v, %+v", name, replayed, got)
				}
				return err
			},
			"the pay page": func(o licensing.Order) error {
				w.clock.advance(time.Minute) // the page does not repeat a refund that a node has just tried
				_, _, err := elsewhere.Pay(w.ctx, w.now(o))
				return err
			},
			"a pass elsewhere": func(licensing.Order) error {
				if err := elsewhere.SendRefundsDue(w.ctx); err != nil { // too early
					return err
				}
				w.clock.advance(time.Minute)
				return elsewhere.SendRefundsDue(w.ctx)
			},
		} {
			t.Run(name+", then "+way, func(t *testing.T) {
				o := w.paid()
				w.bank.next = []answer{fails}
				ctx, cancel := context.WithCancel(w.ctx)
				defer cancel()
				w.bank.onHang = cancel
				if _, _, err := w.desk.Refund(ctx, owner, o.OrderNo, licensing.RequestRefund{}, once); !errors.Is(err,
					providerFailed) {
					t.Fatalf("the bank failed, and Refund says: %v", err)
				}
				if now := w.now(o); now.Status(w.node.Now()) != licensing.OrderPaid || !now.RefundDue {
					t.Errorf("meanwhile it is %+v", now)
				}
				if err := goOn(o); err != nil {
					t.Fatal(err)
				}
				w.check("in the end", o, licensing.OrderRefunded)
			})
			once = w.once()
		}
	}
	w.verify()
}

// TestProviderRefuses: a refusal withdraws the shop's request. The order is paid as before, and only a new request
// of the shop calls the provider again.
func TestProviderRefuses(t *testing.T) {
	w := newFixture(t)
	o, once := w.paid(), w.once()
	w.bank.next = []answer{{says: fmt.Errorf("%w: disputed", payment.ErrRefused)}, {says: payment.ErrRefused}}
	for asked := 1; asked <= 2; asked++ {
		if _, replayed, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{Reason: "too slow"},
			once); !errors.Is(err, providerFailed) || replayed {
			t.Fatalf("the bank refused, and Refund says: replayed %v, %v", replayed, err)
		}
		w.check("refused", o, licensing.OrderPaid)
		if now := w.now(o); now.StateReason != "" || now.RefundTries != 1 || !now.RefundRetryAt.IsZero() {
			t.Errorf("left are %+v", now)
		}
		w.clock.advance(2 * time.Hour)
		if err := w.desk.SendRefundsDue(w.ctx); err != nil {
			t.Fatal(err)
		}
		if w.bank.asked[o.OrderNo] != asked {
			t.Errorf("the bank was asked %d times, want %d", w.bank.asked[o.OrderNo], asked)
		}
	}
	if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, w.once()); err != nil {
		t.Fatal(err)
	}
	w.check("when it has changed its mind", o, licensing.OrderRefunded)

	// The refund of a payment for a canceled order stays due, whatever the bank says.
	canceled := w.canceled()
	w.bank.next = []answer{{says: payment.ErrRefused}}
	if _, _, err := w.desk.Pay(w.ctx, canceled); !errors.Is(err, providerFailed) {
		t.Errorf("the refund was refused, and Pay says: %v", err)
	}
	w.clock.advance(time.Minute)
	if err := w.desk.SendRefundsDue(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.check("canceled, and asked again", canceled, licensing.OrderRefunded)
	w.verify()
}

// TestRefundsAreCounted: every node shows the due refunds; each step counts on the node that has made it.
func TestRefundsAreCounted(t *testing.T) {
	w := newFixture(t)
	counted := func(want string) {
		t.Helper()
		steps := w.instruments.Refunds
		value := func(metric prometheus.Metric) float64 {
			var m dto.Metric
			if err := metric.Write(&m); err != nil {
				t.Fatal(err)
			}
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
		got := fmt.Sprintf("due %v, asked %v, made %v, refused %v", value(w.instruments.RefundsDue),
			value(steps.WithLabelValues("asked")), value(steps.WithLabelValues("made")),
			value(steps.WithLabelValues("refused")))
		if got != want {
			t.Errorf("counted: %s, want %s", got, want)
		}
	}
	refund := func(says ...answer) {
		t.Helper()
		w.bank.next = says
		_, _, _ = w.desk.Refund(w.ctx, owner, w.paid().OrderNo, licensing.RequestRefund{}, nil)
	}
	refund()
	refund(answer{says: payment.ErrRefused})
	refund(answer{says: errDown})
	refund(answer{says: errDown})
	counted("due 0, asked 4, made 1, refused 1")
	if err := w.desk.SendRefundsDue(w.ctx); err != nil { // which finds none to try yet
		t.Error(err)
	}
	counted("due 2, asked 4, made 1, refused 1")
	w.clock.advance(time.Minute)
	w.bank.next = []answer{{says: errDown}}
	if err := w.desk.SendRefundsDue(w.ctx); !errors.Is(err, providerFailed) {
		t.Error(err)
	}
	counted("due 1, asked 6, made 2, refused 1")
}

// TestOnePassPerPause: if many nodes find the same refund, one of them calls the bank after each pause, and the
// pauses get longer.
func TestOnePassPerPause(t *testing.T) {
	w := newFixture(t)
	_, elsewhere := w.open(w.other, w.bank)
	o := w.paid()
	down := answer{says: errDown}
	w.bank.next = []answer{down, down, down, down}
	if _, _, err := w.desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
		providerFailed) {
		t.Fatal(err)
	}
	for pass, pause := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute} {
		w.clock.advance(pause + time.Second)
		for range 3 {
			for _, desk := range []*payment.Desk{w.desk, elsewhere} {
				_ = desk.SendRefundsDue(w.ctx) // it says that the bank is down
			}
		}
		if want := pass + 2; w.bank.asked[o.OrderNo] != want {
			t.Errorf("after pass %d the bank was asked %d times, want %d", pass, w.bank.asked[o.OrderNo], want)
		}
	}
	w.check("in the end", o, licensing.OrderRefunded)
}
