package stripe

import (
	"context"
	"strconv"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/licensing"
	"licet/payment"
)

// The members of our metadata at Stripe.
const (
	metaOrder   = "order_no"
	metaAttempt = "attempt"
	metaTax     = "automatic_tax" // "true": Stripe adds the tax to the amount of the order
	metaRefund  = "refund_no"
	metaChange  = "change_no"   // of a subscription: the number of the latest change of its amount
	metaFrom    = "change_from" // of a subscription: the beginning of the first period with the change, in Unix time
)

const checkouts = "/v1/checkout/sessions"

// How long a Checkout Session may be paid. Stripe allows 30 minutes to 24 hours.
const (
	// minCheckout after its end, an order may still be paid in a checkout: so a buyer who presses Pay in the last
	// second has the 30 minutes that Stripe demands. A minute is for a slow request and for clocks that differ.
	minCheckout = 31 * time.Minute
	maxCheckout = 23 * time.Hour // less than Stripe's, since clocks differ
	// maxCheckoutCut is by how much a checkout is shorter that would live for more than maxCheckout.
	maxCheckoutCut = 2 * time.Hour
)

// Begin implements [payment.Provider]. The attempt names the idempotency key, so all nodes get the same Checkout
// Session.
//
// Stripe repeats an error 500 under the same key for a day. Such an attempt has no session, or a session whose URL
// Stripe has not returned, so that no buyer can pay there. Begin returns this session if Stripe lists it, and else
// ErrAttemptSpent.
func (p *Provider) Begin(ctx context.Context, order licensing.Order) (payment.Step, error) {
	if order.Checkout != "" {
		session, err := p.session(ctx, order.Checkout)
		return stepOf(session), failed("read the checkout", err)
	}
	params, err := p.newSession(ctx, order)
	if err != nil {
		return payment.Step{}, err
	}
	session := &sdk.CheckoutSession{}
	err = p.post(ctx, checkouts, order.OrderNo+"/"+strconv.Itoa(order.Attempt), params, session)
	switch cause := causeOf(err); {
	case cause == causeNone && replayed(session.LastResponse): // as the session was when it was made
		session, err = p.session(ctx, session.ID)
	case cause == causeSpent, cause == causeMismatch:
		found, searched := p.find(ctx, order, order.Attempt)
		switch {
		case searched != nil:
			err = searched
		case found == nil:
			return payment.Step{}, payment.ErrAttemptSpent
		default:
			session, err = found, nil
		}
	}
	return stepOf(session), failed("make a checkout", err)
}

// newSession returns the parameters of a Checkout Session. They depend on the order and the configuration alone, since
// Stripe refuses other parameters under the same idempotency key; see endOf.
func (p *Provider) newSession(
	ctx context.Context, order licensing.Order,
) (*sdk.CheckoutSessionCreateParams, error) {
	amount, err := toStripe(order.Amount, order.Currency)
	if err != nil {
		return nil, err
	}
	page, err := p.cfg.Show(ctx, order)
	if err != nil {
		return nil, err
	}
	metadata := map[string]string{metaOrder: order.OrderNo, metaAttempt: strconv.Itoa(order.Attempt)}
	if p.cfg.AutomaticTax {
		metadata[metaTax] = "true"
	}
	price := &sdk.CheckoutSessionCreateLineItemPriceDataParams{
		Currency:   sdk.String(strings.ToLower(order.Currency)),
		UnitAmount: sdk.Int64(amount),
		ProductData: &sdk.CheckoutSessionCreateLineItemPriceDataProductDataParams{
			Name: sdk.String(page.Product), Description: given(order.Description),
		},
	}
	params := &sdk.CheckoutSessionCreateParams{
		Mode:              sdk.String(sdk.CheckoutSessionModePayment),
		ClientReferenceID: sdk.String(order.OrderNo),
		CustomerEmail:     given(order.BuyerEmail),
		LineItems: []*sdk.CheckoutSessionCreateLineItemParams{{
			Quantity: sdk.Int64(1), PriceData: price,
		}},
		SuccessURL:          sdk.String(page.URL),
		CancelURL:           sdk.String(page.URL),
		ExpiresAt:           sdk.Int64(p.endOf(order).Unix()),
		Metadata:            metadata,
		PaymentIntentData:   &sdk.CheckoutSessionCreatePaymentIntentDataParams{Metadata: metadata},
		AllowPromotionCodes: sdk.Bool(false),
		AdaptivePricing:     &sdk.CheckoutSessionCreateAdaptivePricingParams{Enabled: sdk.Bool(false)},
		AutomaticTax:        &sdk.CheckoutSessionCreateAutomaticTaxParams{Enabled: sdk.Bool(p.cfg.AutomaticTax)},
	}
	if !order.Interval.IsZero() {
		err = subscribe(params, order.Interval)
	}
	return params, err
}

// given returns nil for an empty text: Stripe takes an empty parameter for a request to remove the value.
func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// endOf returns when the checkout of an order ends. For a repeated call the end must be the same, so it depends on the
// time only by whether the order has most of a day left. A call that crosses this moment gets an error of Stripe, which
// Begin treats like an error 500.
func (p *Provider) endOf(order licensing.Order) time.Time {
	end := order.ExpiresAt.Add(minCheckout)
	if end.Sub(p.cfg.Clock()) > maxCheckout {
		end = end.Add(-maxCheckoutCut)
	}
	return end
}

// End implements [payment.Provider].
func (p *Provider) End(ctx context.Context, order licensing.Order) error {
	id := order.Checkout
	if id == "" {
		session, err := p.find(ctx, order, 0)
		if err != nil || session == nil {
			return failed("look for a checkout", err)
		}
		id = session.ID
	}
	err := p.post(ctx, sdk.FormatURLPath(checkouts+"/%s/expire", id), "", &sdk.CheckoutSessionExpireParams{},
		&sdk.CheckoutSession{})
	switch causeOf(err) {
	case causeMissing:
		return nil
	case causeRefused: // because the session is not open, or for another reason
		if session, looked := p.session(ctx, id); looked == nil && session.Status != sdk.CheckoutSessionStatusOpen {
			return nil
		}
	}
	return failed("end the checkout", err)
}

// How far find looks back, from the newest session on.
const (
	findPages = 5
	findLimit = 100
	// clockSkew is by how much the clocks of Stripe and of the node may differ.
	clockSkew = 5 * time.Minute
)

// find returns the open session of an attempt; nil if Stripe lists none. Attempt 0 is any attempt of the order.
func (p *Provider) find(ctx context.Context, order licensing.Order, attempt int) (*sdk.CheckoutSession, error) {
	params := &sdk.CheckoutSessionListParams{
		Status:       sdk.String(sdk.CheckoutSessionStatusOpen),
		CreatedRange: &sdk.RangeQueryParams{GreaterThanOrEqual: order.CreatedAt.Add(-clockSkew).Unix()},
	}
	params.Limit = sdk.Int64(findLimit)
	for range findPages {
		page, err := p.sessions(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, session := range page.Data {
			if session.Metadata[metaOrder] == order.OrderNo &&
				(attempt == 0 || session.Metadata[metaAttempt] == strconv.Itoa(attempt)) {
				return session, nil
			}
		}
		if !page.HasMore || len(page.Data) == 0 {
			break
		}
		params.StartingAfter = sdk.String(page.Data[len(page.Data)-1].ID)
	}
	return nil, nil
}

func (r *requests) sessions(
	ctx context.Context, params *sdk.CheckoutSessionListParams,
) (*sdk.CheckoutSessionList, error) {
	page := &sdk.CheckoutSessionList{}
	return page, r.list(ctx, checkouts, params, page)
}

// session reads a session with its payment and the fee.
func (r *requests) session(ctx context.Context, id string) (*sdk.CheckoutSession, error) {
	session := &sdk.CheckoutSession{}
	return session, r.get(ctx, sdk.FormatURLPath(checkouts+"/%s", id), &sdk.CheckoutSessionRetrieveParams{}, session,
		"payment_intent."+expandFee)
}

// stepOf returns the next step for the buyer. A session that is not open has no URL.
func stepOf(session *sdk.CheckoutSession) payment.Step {
	if session == nil || session.ID == "" {
		return payment.Step{}
	}
	step := payment.Step{Checkout: session.ID, EndsAt: time.Unix(session.ExpiresAt, 0).UTC()}
	if session.Status == sdk.CheckoutSessionStatusOpen {
		step.Redirect = session.URL
	}
	return step
}
