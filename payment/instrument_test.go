package payment_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"licet/licensing"
	"licet/payment"
)

// scripted returns a given result, or panics.
type scripted struct {
	payment.Sandbox
	step payment.Step
	err  error
}

var errPanic = errors.New("panic")

func (s *scripted) Begin(context.Context, licensing.Order) (payment.Step, error) {
	if errors.Is(s.err, errPanic) {
		panic(s.err)
	}
	return s.step, s.err
}

func (s *scripted) Refund(context.Context, licensing.Order, licensing.Payment) (payment.State, error) {
	return payment.State{Outcome: payment.OutcomeDone}, s.err
}

// TestInstrument: each request counts once, by its outcome, and reaches the provider unchanged.
func TestInstrument(t *testing.T) {
	m := instruments()
	inner := &scripted{}
	p := payment.Instrument(m, payment.ForMode(licensing.Test, inner)).Of(licensing.Owner{Mode: licensing.Test})
	for _, c := range []struct {
		outcome string
		step    payment.Step
		err     error
	}{
		{outcome: "ok", step: payment.Step{Payment: "p1"}},
		{outcome: "redirect", step: payment.Step{Redirect: "https://bank.example"}},
		{outcome: "refused", err: payment.ErrAttemptSpent},
		{outcome: "failed", err: errDown},
		{outcome: "failed", err: errPanic},
	} {
		inner.step, inner.err = c.step, c.err
		func() {
			defer func() {
				if caught := recover(); (caught != nil) != errors.Is(c.err, errPanic) {
					t.Errorf("%s: caught %v", c.outcome, caught)
				}
			}()
			if step, err := p.Begin(t.Context(), licensing.Order{}); step != c.step || !errors.Is(err, c.err) {
				t.Errorf("%s: %+v, %v", c.outcome, step, err)
			}
		}()
	}
	for _, err := range []error{nil, nil, fmt.Errorf("no: %w", payment.ErrRefused), errDown} {
		inner.err = err
		if _, got := p.Refund(t.Context(), licensing.Order{}, licensing.Payment{}); !errors.Is(got, err) {
			t.Errorf("refund: %v, want %v", got, err)
		}
	}
	for range 2 {
		if _, err := p.Look(t.Context(), payment.Object{}); !errors.Is(err, payment.ErrUnknownObject) {
			t.Errorf("look: %v", err)
		}
	}
	if err := p.End(t.Context(), licensing.Order{}); err != nil {
		t.Errorf("end: %v", err)
	}
	for range 2 {
		if _, err := p.Change(t.Context(), licensing.Order{}, payment.Change{}); !errors.Is(err, payment.ErrRefused) {
			t.Errorf("change: %v", err)
		}
	}
	if _, err := p.Portal(t.Context(), licensing.Order{}); !errors.Is(err, payment.ErrRefused) {
		t.Errorf("portal: %v", err)
	}
	want := map[string]float64{
		"change ok": 0, "change refused": 2, "change failed": 0,
		"portal ok": 0, "portal refused": 1, "portal failed": 0,
		"begin ok": 1, "begin redirect": 1, "begin refused": 1, "begin failed": 2,
		"look ok": 0, "look failed": 2, "end ok": 1, "end failed": 0,
		"refund ok": 2, "refund refused": 1, "refund failed": 1,
	}
	if got := values(t, m.PaymentRequests); !maps.Equal(got, want) {
		t.Errorf("requests: %v, want %v", got, want)
	}
	if got, want := values(t, m.PaymentDuration), (map[string]float64{"begin": 5, "refund": 4, "look": 2,
		"end": 1, "change": 2, "portal": 1}); !maps.Equal(got, want) {
		t.Errorf("durations: %v, want %v", got, want)
	}
}

// TestInstrumentRefunds: a repeated request to the bank counts again. A refund that the desk answers without the
// bank does not count.
func TestInstrumentRefunds(t *testing.T) {
	w := newFixture(t)
	m := instruments()
	desk := payment.NewDesk(w.node, payment.Instrument(m, payment.ForMode(licensing.Test, w.bank)))
	o := w.paid()
	w.bank.next = []answer{{says: errDown}}
	if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); !errors.Is(err,
		providerFailed) {
		t.Fatal(err)
	}
	for range 3 { // the first call sends the refund, the others find it recorded
		if _, _, err := desk.Refund(w.ctx, owner, o.OrderNo, licensing.RequestRefund{}, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{"refund ok": 1, "refund failed": 1}
	got := values(t, m.PaymentRequests)
	maps.DeleteFunc(got, func(_ string, n float64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("requests: %v, want %v", got, want)
	}
}

// values returns the counts of a metric, by its labels.
func values(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	all := make(chan prometheus.Metric, 100)
	c.Collect(all)
	close(all)
	values := make(map[string]float64)
	for metric := range all {
		var m dto.Metric
		if err := metric.Write(&m); err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		values[strings.Join(labels, " ")] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return values
}
