package payment

import (
	"context"
	"errors"
	"time"

	"licet/internal/fair"
	"licet/licensing"
)

const (
	// requestPlaces bounds the requests to providers under way. Owners share the places, so the slow provider of one
	// owner leaves places for the others. There are as many connections to Stripe as places: a request that has a place
	// waits for no other owner's.
	requestPlaces = 64
	// requestsWaiting bounds the requests that wait for a place.
	requestsWaiting = 1024
)

// Fairly returns providers whose requests take places that the owners share. A request without a place fails with
// licensing.ErrOverloaded, and is not sent.
func Fairly(providers Providers) Providers {
	places := fair.New[licensing.Owner](fair.Config{Places: requestPlaces, Waiting: requestsWaiting})
	return func(owner licensing.Owner) Provider {
		p := providers.Of(owner)
		if p == nil {
			return nil
		}
		return &sharing{Provider: p, places: places, owner: owner}
	}
}

// sharing is the provider of an owner whose requests take places.
type sharing struct {
	Provider
	places *fair.Places[licensing.Owner]
	owner  licensing.Owner
}

// inPlace sends a request in a place of the owner.
func inPlace[T any](ctx context.Context, p *sharing, request func() (T, error)) (result T, err error) {
	if err := p.places.Enter(ctx, p.owner); err != nil {
		if errors.Is(err, fair.ErrFull) {
			err = licensing.ErrOverloaded
		}
		return result, err
	}
	defer p.places.Leave(p.owner)
	return request()
}

// Begin implements Provider.
func (p *sharing) Begin(ctx context.Context, order licensing.Order) (Step, error) {
	return inPlace(ctx, p, func() (Step, error) { return p.Provider.Begin(ctx, order) })
}

// Look implements Provider.
func (p *sharing) Look(ctx context.Context, object Object) (State, error) {
	return inPlace(ctx, p, func() (State, error) { return p.Provider.Look(ctx, object) })
}

// End implements Provider.
func (p *sharing) End(ctx context.Context, order licensing.Order) error {
	_, err := inPlace(ctx, p, func() (none struct{}, err error) { return none, p.Provider.End(ctx, order) })
	return err
}

// Refund implements Provider.
func (p *sharing) Refund(ctx context.Context, order licensing.Order, refund licensing.Payment) (State, error) {
	return inPlace(ctx, p, func() (State, error) { return p.Provider.Refund(ctx, order, refund) })
}

// Change implements Provider.
func (p *sharing) Change(ctx context.Context, order licensing.Order, change Change) (State, error) {
	return inPlace(ctx, p, func() (State, error) { return p.Provider.Change(ctx, order, change) })
}

// Invoices implements Provider.
func (p *sharing) Invoices(ctx context.Context, order licensing.Order) ([]string, error) {
	return inPlace(ctx, p, func() ([]string, error) { return p.Provider.Invoices(ctx, order) })
}

// Events implements Provider.
func (p *sharing) Events(ctx context.Context, since time.Time, after string) (EventPage, error) {
	return inPlace(ctx, p, func() (EventPage, error) { return p.Provider.Events(ctx, since, after) })
}

// Portal implements Provider.
func (p *sharing) Portal(ctx context.Context, order licensing.Order) (string, error) {
	return inPlace(ctx, p, func() (string, error) { return p.Provider.Portal(ctx, order) })
}
