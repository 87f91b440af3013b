package payment

import (
	"context"
	"errors"
	"fmt"

	"licet/internal/fair"
	"licet/licensing"
	"licet/node/service"
)

// backend is the node with the orders and the providers with the money. All parts of a desk share it.
type backend struct {
	node      *service.Service
	providers Providers
	// asks holds the locks of objects that callers ask about, by the number of the order or the id of the dispute.
	// Fairly bounds how many ask at the same time.
	asks *fair.Places[string]
}

// providerNamed returns the provider of an owner if that provider has the name; else nil.
func (b *backend) providerNamed(name licensing.PaymentProvider, owner licensing.Owner) Provider {
	if provider := b.providers.Of(owner); provider != nil && provider.Name() == name {
		return provider
	}
	return nil
}

// checkoutProvider returns the provider that has the checkout of an order; nil if the owner has that provider no more.
// An order that was paid outside meanwhile does not name the provider of its checkout.
func (b *backend) checkoutProvider(order licensing.Order) Provider {
	provider := b.providers.Of(order.Owner)
	if provider == nil || order.Provider != provider.Name() && order.Provider != licensing.ProviderOutside {
		return nil
	}
	return provider
}

// look asks the provider about an object.
func (b *backend) look(ctx context.Context, provider Provider, object Object) (State, error) {
	span := startSpan(ctx, operationLook)
	state, err := provider.Look(ctx, object)
	endSpan(span, err)
	return state, err
}

// recordFee stores the fee of a recorded payment of an order; nil: the provider does not tell the fee (yet).
func (b *backend) recordFee(
	ctx context.Context, provider Provider, order licensing.Order, reference string, fee *int64,
) error {
	return b.node.RecordFee(ctx, order,
		licensing.Payment{Provider: provider.Name(), Reference: reference, Fee: fee})
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

// enter waits for the caller's turn to ask about an object of an owner, by the number of its order or by its id. If ctx
// ends before, the error is licensing.ErrUnavailable. After a nil error, the caller must call leave. Callbacks with the
// signature of one owner can name any object, so they wait for callers of the same owner only.
func (b *backend) enter(ctx context.Context, owner licensing.Owner, name string) (leave func(), err error) {
	turn := owner.AccountID + "/" + string(owner.Mode) + "/" + name
	if err := b.asks.Enter(ctx, turn); err != nil {
		return nil, fmt.Errorf("%w: another question about %s is under way: %w", licensing.ErrUnavailable, name, err)
	}
	return func() { b.asks.Leave(turn) }, nil
}
