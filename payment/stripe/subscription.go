package stripe

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/licensing"
	"licet/payment"
)

const subscriptions = "/v1/subscriptions"

// The longest intervals of Stripe: three years.
const (
	maxYears  = 3
	maxMonths = 12 * maxYears
	maxDays   = 365 * maxYears
)

var errInterval = errors.New("the interval is not a number of days, months or years, up to 3 years")

// recurring returns an interval as Stripe counts it.
func recurring(p licensing.Period) (interval sdk.PriceRecurringInterval, count int64, err error) {
	if p.Years != 0 {
		p.Months, p.Years = p.Months+12*p.Years, 0
	}
	switch {
	case p.Clock != 0 || (p.Months == 0) == (p.Days == 0) || p.Months > maxMonths || p.Days > maxDays:
		return "", 0, errInterval
	case p.Days != 0:
		return sdk.PriceRecurringIntervalDay, int64(p.Days), nil
	case p.Months%12 == 0:
		return sdk.PriceRecurringIntervalYear, int64(p.Months / 12), nil
	}
	return sdk.PriceRecurringIntervalMonth, int64(p.Months), nil
}

// subscribe makes the session of a subscription from the session of a payment.
func subscribe(session *sdk.CheckoutSessionCreateParams, interval licensing.Period) error {
	unit, count, err := recurring(interval)
	if err != nil {
		return err
	}
	session.Mode = sdk.String(sdk.CheckoutSessionModeSubscription)
	session.LineItems[0].PriceData.Recurring = &sdk.CheckoutSessionCreateLineItemPriceDataRecurringParams{
		Interval: sdk.String(unit), IntervalCount: sdk.Int64(count),
	}
	session.SubscriptionData = &sdk.CheckoutSessionCreateSubscriptionDataParams{Metadata: session.Metadata}
	session.PaymentIntentData = nil // Stripe makes the payment intent of each invoice
	return nil
}

// Change implements [payment.Provider]. The number of the change names the idempotency key: so a request that arrives
// late, after another call for the same change was answered, has no effect.
func (p *Provider) Change(
	ctx context.Context, order licensing.Order, change payment.Change,
) (payment.State, error) {
	path := sdk.FormatURLPath(subscriptions+"/%s", order.Subscription)
	params := &sdk.SubscriptionUpdateParams{}
	switch {
	case change.End == payment.EndNow:
		return p.endSubscription(ctx, path, order.Subscription)
	case change.End == payment.EndOfPeriod:
		params.CancelAtPeriodEnd = sdk.Bool(true)
	case change.Resume:
		params.CancelAtPeriodEnd = sdk.Bool(false)
	default:
		return p.changePrice(ctx, path, order, change)
	}
	for n := 1; ; n++ {
		key := ""
		if change.Once != "" {
			key = fmt.Sprint("change/", change.Once, "/", n)
		}
		changed := &sdk.Subscription{}
		err := p.post(ctx, path, key, params, changed)
		switch {
		case err == nil && replayed(changed.LastResponse): // as the subscription was then
			return p.Look(ctx, payment.Object{Kind: payment.ObjectSubscription, ID: order.Subscription})
		case err == nil:
			return subscriptionState(changed)
		case causeOf(err) != causeSpent || !replayedError(err) || n == maxKeys:
			return payment.State{}, refusedChange(err)
		}
	}
}

// changePrice changes the amount of a subscription, once for each number of a change. The same request stores the
// number in the subscription's metadata, and with which period the change takes effect. So a change that was made is
// known as long as no later change is made, also after Stripe has forgotten the idempotency key, and in later periods.
//
// Stripe repeats an error 500 under the same key for a day. When Stripe repeats it, the request of the key has ended:
// if the subscription does not have the number then, changePrice takes the next key.
func (p *Provider) changePrice(
	ctx context.Context, path string, order licensing.Order, change payment.Change,
) (payment.State, error) {
	for n := 1; ; n++ {
		now := &sdk.Subscription{}
		if err := p.get(ctx, path, &sdk.SubscriptionRetrieveParams{}, now); err != nil {
			return payment.State{}, refusedChange(err)
		}
		if now.Metadata[metaChange] == change.Once {
			return subscriptionState(now)
		}
		params, err := newPrice(now, order, change)
		if err != nil {
			return payment.State{}, fmt.Errorf("%w: %w", payment.ErrRefused, err)
		}
		changed := &sdk.Subscription{}
		key := fmt.Sprint("change/", change.Once, "/", n)
		if from := params.Metadata[metaFrom]; from != "" { // other parameters in another period
			key += "/" + from
		}
		err = p.post(ctx, path, key, params, changed)
		switch {
		case err == nil:
			state, err := subscriptionState(changed)
			state.Changed = change.Once
			return state, err
		case causeOf(err) != causeSpent || !replayedError(err) || n == maxKeys:
			return payment.State{}, refusedChange(err)
		}
	}
}

// endSubscription cancels a subscription at once. To cancel a canceled subscription is a no-op.
func (p *Provider) endSubscription(ctx context.Context, path, id string) (payment.State, error) {
	canceled := &sdk.Subscription{}
	err := p.remove(ctx, path, &sdk.SubscriptionCancelParams{}, canceled)
	if cause := causeOf(err); cause == causeMissing || cause == causeRefused {
		state, looked := p.Look(ctx, payment.Object{Kind: payment.ObjectSubscription, ID: id})
		if looked == nil && state.Outcome == payment.OutcomeEnded {
			return state, nil
		}
	}
	if err != nil {
		return payment.State{}, refusedChange(err)
	}
	return subscriptionState(canceled)
}

var errItems = errors.New("the subscription has not exactly one item with a price")

// newPrice returns the parameters for another amount. The product at Stripe stays, and so does the interval.
func newPrice(
	now *sdk.Subscription, order licensing.Order, change payment.Change,
) (*sdk.SubscriptionUpdateParams, error) {
	amount, err := toStripe(change.Amount, order.Currency)
	if err != nil {
		return nil, err
	}
	if now.Items == nil || len(now.Items.Data) != 1 || now.Items.Data[0].Price == nil ||
		now.Items.Data[0].Price.Recurring == nil || now.Items.Data[0].Price.Product == nil {
		return nil, errItems
	}
	price := now.Items.Data[0].Price
	params := &sdk.SubscriptionUpdateParams{Metadata: map[string]string{metaChange: change.Once}}
	params.Items = []*sdk.SubscriptionUpdateItemParams{{
		ID: sdk.String(now.Items.Data[0].ID),
		PriceData: &sdk.SubscriptionUpdateItemPriceDataParams{
			Currency: sdk.String(strings.ToLower(order.Currency)), Product: sdk.String(price.Product.ID),
			UnitAmount: sdk.Int64(amount),
			Recurring: &sdk.SubscriptionUpdateItemPriceDataRecurringParams{
				Interval: sdk.String(price.Recurring.Interval), IntervalCount: sdk.Int64(price.Recurring.IntervalCount),
			},
		},
	}}
	if change.Prorate {
		params.ProrationBehavior = sdk.String("always_invoice")
		params.PaymentBehavior = sdk.String("error_if_incomplete") // a declined card changes nothing
		return params, nil
	}
	params.ProrationBehavior = sdk.String("none")
	params.Metadata[metaFrom] = strconv.FormatInt(now.Items.Data[0].CurrentPeriodEnd, 10)
	return params, nil
}

// refusedChange returns the error of a change. It is ErrRefused if Stripe refuses the change for good, as for a deleted
// customer, and ErrUnknownObject if Stripe does not know the subscription, which the path of the request names.
func refusedChange(err error) error {
	failure := failed("change a subscription", err)
	switch cause := causeOf(err); {
	case notFound(err):
		return fmt.Errorf("%w: %w", payment.ErrUnknownObject, failure)
	case cause == causeMissing, cause == causeRefused:
		return fmt.Errorf("%w: %w", payment.ErrRefused, failure)
	}
	return failure
}

// Portal implements [payment.Provider]. The page is Stripe's customer portal, which the shop must have activated in
// Stripe's dashboard.
func (p *Provider) Portal(ctx context.Context, order licensing.Order) (string, error) {
	now := &sdk.Subscription{}
	path := sdk.FormatURLPath(subscriptions+"/%s", order.Subscription)
	if err := p.get(ctx, path, &sdk.SubscriptionRetrieveParams{}, now); err != nil {
		return "", refusedChange(err)
	}
	if now.Customer == nil {
		return "", payment.ErrRefused
	}
	page := &sdk.BillingPortalSession{}
	err := p.post(ctx, "/v1/billing_portal/sessions", "", &sdk.BillingPortalSessionCreateParams{
		Customer: sdk.String(now.Customer.ID), ReturnURL: given(order.SuccessURL),
	}, page)
	if err != nil {
		return "", refusedChange(err)
	}
	return page.URL, nil
}

func (p *Provider) lookAtSubscription(ctx context.Context, id string) (payment.State, error) {
	now := &sdk.Subscription{}
	path := sdk.FormatURLPath(subscriptions+"/%s", id)
	if err := p.get(ctx, path, &sdk.SubscriptionRetrieveParams{}, now); err != nil {
		return payment.State{}, err
	}
	return subscriptionState(now)
}

func subscriptionState(s *sdk.Subscription) (payment.State, error) {
	state := payment.State{
		Object:       payment.Object{Kind: payment.ObjectSubscription, ID: s.ID},
		OrderNo:      s.Metadata[metaOrder],
		Changed:      s.Metadata[metaChange],
		Subscription: s.ID,
		Live:         s.Livemode,
		At:           moment(s.Created),
		Outcome:      subscriptionOutcome(s.Status),
	}
	var amount int64
	if s.Items != nil {
		for _, item := range s.Items.Data {
			if item.Price != nil {
				amount += item.Price.UnitAmount * item.Quantity
			}
			if end := moment(item.CurrentPeriodEnd); item.CurrentPeriodEnd != 0 && end.After(state.PeriodEnd) {
				state.PeriodEnd = end
			}
		}
	}
	if from, err := strconv.ParseInt(s.Metadata[metaFrom], 10, 64); err == nil {
		state.ChangedFrom = moment(from)
	}
	switch {
	case s.EndedAt != 0:
		state.CancelAt = moment(s.EndedAt)
	case s.CancelAt != 0:
		state.CancelAt = moment(s.CancelAt)
	case s.CancelAtPeriodEnd:
		state.CancelAt = state.PeriodEnd
	}
	return withAmount(state, amount, s.Currency)
}

func subscriptionOutcome(status sdk.SubscriptionStatus) payment.Outcome {
	switch status {
	case sdk.SubscriptionStatusActive, sdk.SubscriptionStatusTrialing:
		return payment.OutcomeDone
	case sdk.SubscriptionStatusPastDue, sdk.SubscriptionStatusUnpaid:
		return payment.OutcomeFailed
	case sdk.SubscriptionStatusCanceled, sdk.SubscriptionStatusIncompleteExpired:
		return payment.OutcomeEnded
	case sdk.SubscriptionStatusPaused:
		return payment.OutcomePending
	}
	return payment.OutcomeOpen
}
