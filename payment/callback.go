package payment

import (
	"context"
	"errors"
	"sync"

	"licet/licensing"
)

// callbacks records the states of the objects that callbacks of providers name.
type callbacks struct {
	*backend
	checkouts       *checkouts
	subscriptions   *subscriptions
	refundCallbacks *refundCallbacks
	disputes        *disputes
	verifying       sync.Mutex // held while a body is hashed and parsed
}

// Signed reports whether the signature header of a callback is in the form of the owner's provider, which has the given
// name, and not too old. It is false for any other provider. Only then is the body worth reading.
func (c *callbacks) Signed(name licensing.PaymentProvider, owner licensing.Owner, signature string) bool {
	provider := c.providerNamed(name, owner)
	return provider != nil && provider.Signed(signature)
}

// TakesCallbacks reports whether the owner's provider has the given name.
func (c *callbacks) TakesCallbacks(name licensing.PaymentProvider, owner licensing.Owner) bool {
	return c.providerNamed(name, owner) != nil
}

// ProviderOf returns the name of the provider that charges the orders of an owner; empty: there is none.
func (c *callbacks) ProviderOf(owner licensing.Owner) licensing.PaymentProvider {
	if provider := c.providers.Of(owner); provider != nil {
		return provider.Name()
	}
	return ""
}

// Callback verifies the signature of a callback for an owner over its raw body, and returns the object that the
// callback names. It returns ErrSignature if the signature is wrong or too old, or if the owner has no provider.
//
// Callback verifies one body at a time: strangers who forge callbacks keep at most one processor busy. A caller waits
// for bodies that are in memory already. The server bounds their bytes, so the wait is less than a second.
func (c *callbacks) Callback(owner licensing.Owner, signature string, body []byte) (Object, error) {
	provider := c.providers.Of(owner)
	if provider == nil {
		return Object{}, ErrSignature
	}
	c.verifying.Lock()
	defer c.verifying.Unlock()
	return provider.Callback(signature, body)
}

// Called asks the owner's provider about the object that a callback named, and stores the answer before it returns.
// Called returns nil for an object of no order of the owner: the provider must not repeat the callback.
//
// Callbacks come late, twice and in any order. No answer about a checkout, a payment or a refund can replace a later
// answer: once an order is paid, an attempt is over, or a refund is done or has failed, the commands for older answers
// are no-ops. Answers about disputes and subscriptions can go back: see askDispute and askSubscription. The fee of a
// payment comes later than the payment, and then stays: see recordFee.
func (c *callbacks) Called(ctx context.Context, owner licensing.Owner, object Object) error {
	provider := c.providers.Of(owner)
	if provider == nil {
		return nil
	}
	switch object.Kind {
	case ObjectCheckout, ObjectPayment, ObjectRefund, ObjectInvoice, ObjectSubscription:
	case ObjectCharge: // its callback repeats often what is recorded; invoices have their own ids: see recordCharge
		paid, err := c.node.ReadPayment(ctx, owner,
			licensing.Payment{Provider: provider.Name(), Reference: object.ID})
		if err != nil || paid != nil && paid.Fee != nil {
			return err
		}
	case ObjectDispute:
		return c.disputes.askDispute(ctx, provider, owner, object.ID)
	default:
		return nil
	}
	state, err := c.look(ctx, provider, object)
	switch {
	case nothingThere(object, err), err == nil && !licensing.ValidOrderNo(state.OrderNo):
		return nil
	case err != nil:
		return providerFailed(err)
	}
	kind := object.Kind
	if kind == ObjectCharge {
		kind = state.Kind
	}
	record := c.checkouts.record
	switch kind {
	case ObjectRefund:
		record = c.refundCallbacks.recordRefundState
	case ObjectInvoice, ObjectSubscription:
		record = c.subscriptions.recordSubscription
		if object.Kind == ObjectCharge {
			record = c.subscriptions.recordCharge
		}
	}
	order, err := c.node.Order(ctx, owner, state.OrderNo)
	if err == nil {
		_, err = record(ctx, provider, order, state)
	}
	if licensing.ReasonOf(err) == licensing.ReasonOrderNotFound {
		return nil
	}
	return err
}

// nothingThere reports whether a provider's error about an object means that there is nothing to record: the provider
// does not know the object, or its key may not read a charge. Without the charge, only the fee stays unknown. Most
// charges in an account at the provider may be of other programs.
func nothingThere(object Object, err error) bool {
	return errors.Is(err, ErrUnknownObject) || object.Kind == ObjectCharge && errors.Is(err, ErrForbidden)
}
