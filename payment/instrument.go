package payment

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/metrics"
)

// Instrument returns providers that also count and time their requests, by operation and outcome.
func Instrument(m *metrics.Metrics, providers Providers) Providers {
	for _, operation := range []string{operationBegin, operationLook, operationEnd, operationRefund} {
		m.PaymentDuration.WithLabelValues(operation)
	}
	return func(owner licensing.Owner) Provider {
		p := providers.Of(owner)
		if p == nil {
			return nil
		}
		return &instrumented{Provider: p, metrics: m}
	}
}

type instrumented struct {
	Provider
	metrics *metrics.Metrics
}

// The operations of a provider and their outcomes, as labels of metrics.
const (
	operationBegin  = "begin"
	operationLook   = "look"
	operationEnd    = "end"
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
	step, err = p.Provider.Begin(ctx, order)
	switch {
	case errors.Is(err, ErrAttemptSpent):
		outcome = outcomeRefused
	case err != nil:
	case step.Redirect != "":
		outcome = outcomeRedirect
	default:
		outcome = outcomeOK
	}
	return step, err
}

// Look implements Provider. An unknown object counts as ok: the provider has answered.
func (p *instrumented) Look(ctx context.Context, object Object) (state State, err error) {
	outcome := outcomeFailed
	defer p.count(operationLook, time.Now(), &outcome)
	state, err = p.Provider.Look(ctx, object)
	if err == nil || errors.Is(err, ErrUnknownObject) {
		outcome = outcomeOK
	}
	return state, err
}

// End implements Provider.
func (p *instrumented) End(ctx context.Context, order licensing.Order) (err error) {
	outcome := outcomeFailed
	defer p.count(operationEnd, time.Now(), &outcome)
	if err = p.Provider.End(ctx, order); err == nil {
		outcome = outcomeOK
	}
	return err
}

// Refund implements Provider. A refund that is not complete yet counts as ok.
func (p *instrumented) Refund(
	ctx context.Context, order licensing.Order, refund licensing.Payment,
) (state State, err error) {
	outcome := outcomeFailed
	defer p.count(operationRefund, time.Now(), &outcome)
	state, err = p.Provider.Refund(ctx, order, refund)
	switch {
	case errors.Is(err, ErrRefused), err == nil && state.Outcome == OutcomeFailed:
		outcome = outcomeRefused
	case err == nil:
		outcome = outcomeOK
	}
	return state, err
}

func (p *instrumented) count(operation string, began time.Time, outcome *string) {
	p.metrics.PaymentDuration.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	p.metrics.PaymentRequests.WithLabelValues(operation, *outcome).Inc()
}
