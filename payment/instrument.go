package payment

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/metrics"
)

// Instrument returns providers that also count and time their requests, by operation and outcome.
func Instrument(m *metrics.Metrics, providers map[licensing.Mode]Provider) map[licensing.Mode]Provider {
	for _, operation := range []string{operationBegin, operationRefund} {
		m.PaymentDuration.WithLabelValues(operation)
	}
	all := make(map[licensing.Mode]Provider, len(providers))
	for mode, p := range providers {
		all[mode] = &instrumented{provider: p, metrics: m}
	}
	return all
}

type instrumented struct {
	provider Provider
	metrics  *metrics.Metrics
}

// The operations of a provider and their outcomes, as labels of metrics.
const (
	operationBegin  = "begin"
	operationRefund = "refund"

	outcomeOK       = "ok"
	outcomeRedirect = "redirect" // the customer pays at the provider
	outcomeRefused  = "refused"
	outcomeFailed   = "failed" // the outcome is unknown
)

// Begin implements Provider.
func (p *instrumented) Begin(ctx context.Context, order licensing.Order) (step Step, err error) {
	outcome := outcomeFailed // also after a panic
	defer p.count(operationBegin, time.Now(), &outcome)
	step, err = p.provider.Begin(ctx, order)
	switch {
	case err != nil:
	case step.Redirect != "":
		outcome = outcomeRedirect
	default:
		outcome = outcomeOK
	}
	return step, err
}

// Refund implements Provider.
func (p *instrumented) Refund(ctx context.Context, order licensing.Order) error {
	outcome := outcomeFailed
	defer p.count(operationRefund, time.Now(), &outcome)
	err := p.provider.Refund(ctx, order)
	switch {
	case err == nil:
		outcome = outcomeOK
	case errors.Is(err, ErrRefused):
		outcome = outcomeRefused
	}
	return err
}

func (p *instrumented) count(operation string, began time.Time, outcome *string) {
	p.metrics.PaymentDuration.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	p.metrics.PaymentRequests.WithLabelValues(operation, *outcome).Inc()
}
