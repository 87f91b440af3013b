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
	for _, operation := range []string{operationBegin, operationLook, operationEnd, operationRefund, operationChange,
		operationPortal} {
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
	operationChange = "change"
	operationPortal = "portal"
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

// Look implements Provider. An unknown object counts as failed: the key may be that of another account.
func (p *instrumented) Look(ctx context.Context, object Object) (state State, err error) {
	outcome := outcomeFailed
	defer p.count(operationLook, time.Now(), &outcome)
	if state, err = p.Provider.Look(ctx, object); err == nil {
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

// Change implements Provider.
func (p *instrumented) Change(ctx context.Context, order licensing.Order, change Change) (state State, err error) {
	outcome := outcomeFailed
	defer p.count(operationChange, time.Now(), &outcome)
	state, err = p.Provider.Change(ctx, order, change)
	outcome = outcomeOf(err)
	return state, err
}

// Invoices implements Provider. It counts as a look.
func (p *instrumented) Invoices(ctx context.Context, order licensing.Order) (ids []string, err error) {
	outcome := outcomeFailed
	defer p.count(operationLook, time.Now(), &outcome)
	if ids, err = p.Provider.Invoices(ctx, order); err == nil {
		outcome = outcomeOK
	}
	return ids, err
}

// Events implements Provider. It counts as a look.
func (p *instrumented) Events(ctx context.Context, since time.Time, after string) (page EventPage, err error) {
	outcome := outcomeFailed
	defer p.count(operationLook, time.Now(), &outcome)
	if page, err = p.Provider.Events(ctx, since, after); err == nil || errors.Is(err, ErrUnknownObject) {
		outcome = outcomeOK
	}
	return page, err
}

// Portal implements Provider.
func (p *instrumented) Portal(ctx context.Context, order licensing.Order) (url string, err error) {
	outcome := outcomeFailed
	defer p.count(operationPortal, time.Now(), &outcome)
	url, err = p.Provider.Portal(ctx, order)
	outcome = outcomeOf(err)
	return url, err
}

// outcomeOf returns the outcome of an operation that a provider may refuse.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return outcomeOK
	case errors.Is(err, ErrRefused):
		return outcomeRefused
	}
	return outcomeFailed
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
