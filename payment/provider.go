package payment

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
)

// Provider moves money, for one account and mode. It never decides what an answer means for an order: the [Desk] does.
//
// Implementations must be safe for concurrent use and idempotent: any call may repeat an earlier call, whose node has
// died or has not received the result.
type Provider interface {
	// Name is the name of the provider in orders and records of payments.
	Name() licensing.PaymentProvider

	// Accepts returns nil if the provider can charge the order. Otherwise it returns an error of
	// [licensing.InvalidField], for the request that wants to create the order. It does not ask the provider.
	Accepts(order licensing.Order) error

	// AcceptsRefund returns nil if the provider can send the amount of a refund back. Otherwise it returns an error of
	// [licensing.InvalidField], for the request that wants the refund. It does not ask the provider.
	AcceptsRefund(refund licensing.Payment) error

	// SuspendOnDispute reports whether the account wants the license suspended while a buyer disputes its payment.
	SuspendOnDispute() bool

	// Begin makes the checkout of order.Attempt, or returns the checkout that this attempt already has. It returns
	// ErrAttemptSpent if the attempt has no checkout and never will: then only another attempt can have one. After any
	// other error the attempt may have a checkout.
	Begin(ctx context.Context, order licensing.Order) (Step, error)

	// Look returns what the provider says now about an object, ErrUnknownObject, or ErrForbidden if the key of the
	// provider may not read it.
	Look(ctx context.Context, object Object) (State, error)

	// End closes the open checkouts of an order, so that no buyer can pay there. End is a no-op if there is none.
	// A payment may have been faster: look at the checkout afterwards.
	End(ctx context.Context, order licensing.Order) error

	// Refund sends refund.Amount of the order's payment back, once for each refund.Reference, which is our number of
	// the refund. A provider that has added tax to the order's price also sends the same part of the tax back. Refund
	// returns ErrRefused if no call for the refund so far has moved money or will move money, and ErrUnknownObject if
	// the provider does not know the payment. After any error but ErrRefused the outcome is unknown.
	Refund(ctx context.Context, order licensing.Order, refund licensing.Payment) (State, error)

	// Change changes the subscription of an order. Repeated calls have the effect of one. It returns ErrRefused if the
	// provider can't change the subscription so, and ErrUnknownObject if the provider does not know the subscription.
	Change(ctx context.Context, order licensing.Order, change Change) (State, error)

	// Invoices returns the ids of the paid invoices of an order's subscription, the newest first, and at least those of
	// the latest years.
	Invoices(ctx context.Context, order licensing.Order) ([]string, error)

	// Events returns a page of the refunds and disputes at the provider, by the events that tell of them, the newest
	// first: those since a time, or all that the provider keeps if it is zero, and only those older than the event with
	// the id after, unless that is empty. It returns ErrUnknownObject if the provider does not keep that event any
	// more, and ErrForbidden if the key of the provider may not read events.
	Events(ctx context.Context, since time.Time, after string) (EventPage, error)

	// Portal returns the URL of a page of the provider where the buyer changes the card of the order's subscription.
	// The URL is for the buyer alone, and is valid for a short time. It returns ErrRefused if there is no such page,
	// and ErrUnknownObject if the provider does not know the subscription.
	Portal(ctx context.Context, order licensing.Order) (string, error)

	// Signed reports whether the text of the signature header of a callback is in the form of this provider, and not
	// too old. Only then is the body worth reading. It is false for a provider that sends no callbacks.
	Signed(signature string) bool

	// Callback verifies the signature over the raw body of a callback, and returns the object that the callback names.
	// That is all to believe: ask Look about the object. The object is zero if the callback is of no interest. Callback
	// returns ErrSignature if the signature is wrong or too old.
	Callback(signature string, body []byte) (Object, error)
}

// Providers returns the provider of an account and mode; nil: the owner's orders can't be paid through a provider. It
// must be safe for concurrent use. Nil Providers have no provider.
type Providers func(owner licensing.Owner) Provider

// Of returns the provider of an owner; nil: there is none.
func (p Providers) Of(owner licensing.Owner) Provider {
	if p == nil {
		return nil
	}
	return p(owner)
}

// ForMode returns providers that have the same provider for all accounts in one mode, and none in the other mode.
func ForMode(mode licensing.Mode, p Provider) Providers {
	return func(owner licensing.Owner) Provider {
		if owner.Mode != mode {
			return nil
		}
		return p
	}
}

// Errors of providers.
var (
	// ErrRefused means that the provider definitely does not make a refund, or a change of a subscription.
	ErrRefused = errors.New("the payment provider refused the request")
	// ErrAttemptSpent means that an attempt has made no checkout and never will.
	ErrAttemptSpent = errors.New("this attempt to pay can't have a checkout at the payment provider any more")
	// ErrUnknownObject means that the provider has no such object, or that its key is that of another account.
	ErrUnknownObject = errors.New("the payment provider does not know the object")
	// ErrForbidden means that the key of the provider lacks a permission.
	ErrForbidden = errors.New("the key of the payment provider lacks a permission")
	// ErrSignature means that a callback does not come from the provider, or is too old.
	ErrSignature = errors.New("the signature of the callback is wrong or too old")
)

// Step is the next step of a payment. Either Payment or Checkout and Redirect are set.
type Step struct {
	Payment  string    // the provider's reference: the payment is complete
	Checkout string    // the provider's id of the checkout
	Redirect string    // the URL of the checkout, where the customer pays; empty: the checkout is over, look at it
	EndsAt   time.Time // when the provider ends the checkout
	// Subscription is the provider's id of the subscription that a complete payment has started.
	Subscription string
}

// Object names an object of a provider.
type Object struct {
	Kind ObjectKind
	ID   string // the provider's
}

// ObjectKind is the kind of an object of a provider.
type ObjectKind string

// The kinds of objects.
const (
	ObjectCheckout     ObjectKind = "checkout"
	ObjectPayment      ObjectKind = "payment"
	ObjectRefund       ObjectKind = "refund"
	ObjectDispute      ObjectKind = "dispute"
	ObjectInvoice      ObjectKind = "invoice" // of a subscription
	ObjectSubscription ObjectKind = "subscription"
	// ObjectCharge is the charge of a payment, with the fee. Its id is that of the payment. The state is that of the
	// payment, or of the invoice of an order's subscription that was paid with it.
	ObjectCharge ObjectKind = "charge"
)

// State is what a provider says about an object at one moment. A later answer may differ in everything but the ids.
type State struct {
	Object
	// OrderNo is the number of our order, as Begin told it to the provider. It is empty if the object is of no order of
	// ours. A dispute may have none: then Payment leads to the order.
	OrderNo string
	// Refund is our number of a refund. It is empty for a refund that was made at the provider, not through Refund.
	Refund string
	// Payment is the provider's reference of the payment to which the object belongs; empty: there is none yet. It is
	// set for all kinds but ObjectSubscription.
	Payment  string
	Outcome  Outcome
	Amount   int64  // in the minor unit of ISO 4217; without tax if the provider adds the tax, see also Charged
	Currency string // ISO 4217, upper case
	Live     bool
	At       time.Time // when the provider made the object, or was paid
	Fee      *int64    // what the provider keeps of the payment, in the minor unit of Currency; nil: not known (yet)
	URL      string    // of an open checkout
	// Charged is what the buyer has paid, with tax, in the payment of a refund or a dispute; 0: not known. Amount then
	// is a part of it, and so also includes tax. AllBack reports that the refunds of the payment leave nothing of it.
	Charged int64
	AllBack bool
	// Smallest is set along with Charged: all amounts of the provider in the currency are multiples of it. 0 means 1.
	Smallest int64
	EndsAt   time.Time // of a checkout

	Subscription string    // the provider's id of the subscription of a checkout, invoice or subscription
	Invoice      string    // the provider's id of the first invoice of a checkout, or that of a refund or a dispute
	PeriodStart  time.Time // the beginning of the period that an invoice pays for
	PeriodEnd    time.Time // the end of the period that an invoice pays for, or that a subscription is in
	Changed      string    // our number of the latest change of a subscription's amount; see Change.Once
	ChangedFrom  time.Time // the beginning of the first period with this change, if it was planned; zero: unknown
	CancelAt     time.Time // when a subscription ends; zero: it renews
}

// Change is a change of a subscription. Exactly one of End, Resume and Amount is set.
type Change struct {
	End    End   // end the subscription
	Resume bool  // let a subscription renew that would end with its period
	Amount int64 // renew for another amount, in the minor unit of ISO 4217
	// Prorate: the buyer pays the difference for the rest of the period at once, or gets a credit.
	Prorate bool
	// Once is our id of the change; empty: none. The provider makes each id once, so a call that arrives late undoes
	// nothing. After a change of the amount, the provider returns the id with the state of the subscription.
	Once string
}

// End is when a subscription ends.
type End string

// The ends.
const (
	EndNow      End = "now"
	EndOfPeriod End = "period"
)

// Outcome is what has become of an object. Done, failed and ended are final, with two exceptions: a refund that is done
// may still fail, and an invoice or a subscription that has failed may still succeed.
type Outcome string

// The outcomes.
const (
	// OutcomeOpen: the buyer has not paid yet; a dispute is not decided yet; a subscription has not begun.
	OutcomeOpen Outcome = "open"
	// OutcomePending: the buyer has completed the checkout, or the refund is asked for, and the money is on its way.
	OutcomePending Outcome = "pending"
	// OutcomeDone: the money has moved; a subscription is active.
	OutcomeDone Outcome = "done"
	// OutcomeFailed: the money has not moved; a subscription is past due.
	OutcomeFailed Outcome = "failed"
	// OutcomeEnded: a checkout has expired, a payment or a subscription is canceled, an invoice is void.
	OutcomeEnded Outcome = "ended"
	OutcomeWon   Outcome = "won"  // of a dispute: the shop keeps the money
	OutcomeLost  Outcome = "lost" // of a dispute: the buyer has the money back
)
