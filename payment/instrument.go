package payment

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/metrics"
)

// Counted gives providers that count what they are asked for, how that ends and how
// long it takes. What they do is theirs.
func Counted(m *metrics.Metrics, providers map[licensing.Mode]Provider) map[licensing.Mode]Provider {
	for _, operation := range []string{askBegin, askRefund} {
		m.PaymentDuration.WithLabelValues(operation)
	}
	all := make(map[licensing.Mode]Provider, len(providers))
	for mode, p := range providers {
		all[mode] = &counted{provider: p, metrics: m}
	}
	return all
}

type counted struct {
	provider Provider
	metrics  *metrics.Metrics
}

// What a provider may be asked for, and how that may end, as metrics label it.
const (
	askBegin  = "begin"
	askRefund = "refund"

	endedOK       = "ok"
	endedRedirect = "redirect" // the buyer pays at the provider
	endedRefused  = "refused"
	endedFailed   = "failed" // which leaves open what became of it
)

// Begin implements Provider.
func (c *counted) Begin(ctx context.Context, order licensing.Order) (step Step, err error) {
	outcome := endedFailed // also where it panics
	defer c.count(askBegin, time.Now(), &outcome)
	step, err = c.provider.Begin(ctx, order)
	switch {
	case err != nil:
	case step.Redirect != "":
		outcome = endedRedirect
	default:
		outcome = endedOK
	}
	return step, err
}

// Refund implements Provider.
func (c *counted) Refund(ctx context.Context, order licensing.Order) error {
	outcome := endedFailed
	defer c.count(askRefund, time.Now(), &outcome)
	err := c.provider.Refund(ctx, order)
	switch {
	case err == nil:
		outcome = endedOK
	case errors.Is(err, ErrRefused):
		outcome = endedRefused
	}
	return err
}

func (c *counted) count(operation string, began time.Time, outcome *string) {
	c.metrics.PaymentDuration.WithLabelValues(operation).Observe(time.Since(began).Seconds())
	c.metrics.PaymentRequests.WithLabelValues(operation, *outcome).Inc()
}
