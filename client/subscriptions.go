package client

import "context"

// SubscriptionService changes and ends the subscriptions of orders.
type SubscriptionService struct{ client *Client }

// SubscriptionEnd is when a subscription ends, or when a change of it takes effect.
type SubscriptionEnd string

// The ends.
const (
	EndNow      SubscriptionEnd = "now"
	EndOfPeriod SubscriptionEnd = "period_end" // of the period that is paid for
)

// Cancel ends the subscription of an order. The license works until the end of the time that is paid for.
// The API key needs the scope orders:subscriptions.
func (s *SubscriptionService) Cancel(
	ctx context.Context, orderNo string, at SubscriptionEnd, options ...CallOption,
) (*Order, error) {
	in := struct {
		At SubscriptionEnd `json:"at"`
	}{at}
	return s.client.order(ctx, "POST /v1/orders/{order_no}/subscription/cancel", []string{orderNo}, in, options)
}

// Resume lets a subscription renew that would end with its period. The API key needs the scope
// orders:subscriptions.
func (s *SubscriptionService) Resume(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return s.client.order(ctx, "POST /v1/orders/{order_no}/subscription/resume", []string{orderNo}, nil, options)
}

// SubscriptionChange is what a subscription is to pay for.
type SubscriptionChange struct {
	ProductID string `json:"product_id,omitempty"` // a product with the same interval; empty: the product stays
	Amount    int64  `json:"amount"`               // of each period, in the minor unit
	// MaxDevices of the license; 0: unlimited; nil: that of the new product, or as it is if the product stays.
	MaxDevices *int `json:"max_devices,omitempty"`
	// At is when the change takes effect; empty: with the next period. A buyer pays the difference of a change now, or
	// gets a credit for the next invoices.
	At SubscriptionEnd `json:"at,omitempty"`
}

// Change changes what the subscription of an order pays for. If the buyer's card is declined, the service
// returns ReasonProviderFailed, and nothing changes. The API key needs the scope orders:subscriptions.
func (s *SubscriptionService) Change(
	ctx context.Context, orderNo string, change SubscriptionChange, options ...CallOption,
) (*Order, error) {
	return s.client.order(ctx, "POST /v1/orders/{order_no}/subscription/change", []string{orderNo}, change, options)
}

// Portal returns the URL of the payment provider's page where the buyer changes the card of an order's
// subscription. The URL is for the buyer alone, and valid for a short time. The API key needs the scope
// orders:subscriptions. The service refuses orders of the sandbox with ReasonPaymentNotConfigured.
func (s *SubscriptionService) Portal(ctx context.Context, orderNo string, options ...CallOption) (string, error) {
	var page struct {
		URL string `json:"url"`
	}
	route := "POST /v1/orders/{order_no}/subscription/portal"
	err := s.client.do(ctx, route, []string{orderNo}, nil, nil, &page, options)
	return page.URL, err
}
