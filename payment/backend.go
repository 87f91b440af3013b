package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/licensing"
)

func (d *Desk) calling(name licensing.PaymentProvider, owner licensing.Owner) Provider {
	if provider := d.providers.Of(owner); provider != nil && provider.Name() == name {
		return provider
	}
	return nil
}

// checkoutProvider returns the provider that has the checkout of an order; nil if the owner has that provider no more.
// An order that was paid outside meanwhile does not name the provider of its checkout.
func (d *Desk) checkoutProvider(order licensing.Order) Provider {
	provider := d.providers.Of(order.Owner)
	if provider == nil || order.Provider != provider.Name() && order.Provider != licensing.ProviderOutside {
		return nil
	}
	return provider
}

// look asks the provider about an object.
func (d *Desk) look(ctx context.Context, provider Provider, object Object) (State, error) {
	span := startSpan(ctx, operationLook)
	state, err := provider.Look(ctx, object)
	endSpan(span, err)
	return state, err
}

// providerFailed returns the error for a client when the provider has failed with err. An error of the service itself
// stays as it is.
func providerFailed(err error) error {
	if errors.As(err, new(*licensing.Error)) {
		return err
	}
	return fmt.Errorf("%w: %w", &licensing.Error{
		Reason:  licensing.ReasonProviderFailed,
		Message: "the payment provider failed; try again",
	}, err)
}

// providerError is providerFailed for an error that may be nil.
func providerError(err error) error {
	if err == nil {
		return nil
	}
	return providerFailed(err)
}
