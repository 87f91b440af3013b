package client

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

// Order is an order in any status.
type Order struct {
	OrderNo     string          `json:"order_no"`
	Status      string          `json:"status"`
	ProductID   string          `json:"product_id"`
	Amount      int64           `json:"amount"` // in the currency's minor unit
	Currency    string          `json:"currency"`
	Description string          `json:"description"`
	BuyerEmail  string          `json:"buyer_email"`
	Metadata    json.RawMessage `json:"metadata"`
	PayURL      string          `json:"pay_url"` // empty unless the order can be paid
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	PaidAt      time.Time       `json:"paid_at"`
	CanceledAt  time.Time       `json:"canceled_at"`
	RefundedAt  time.Time       `json:"refunded_at"`
	LicenseID   string          `json:"license_id"`  // set once the order is paid
	LicenseKey  string          `json:"license_key"` // set once the order is paid
	Quantity    int             `json:"quantity"`    // how many licenses the order is for
	// LicensesIssued is how many licenses the order has, and LicenseKeys are their keys; LicenseKey is the first. In
	// lists and events, orders have no LicenseKeys: use Client.Order.
	LicensesIssued int      `json:"licenses_issued"`
	LicenseKeys    []string `json:"license_keys"`
	UpgradeOf      string   `json:"upgrade_of"` // the key of the trial that the payment upgrades, or empty
	Late           bool     `json:"late"`       // the payment came after ExpiresAt
	SuccessURL     string   `json:"success_url"`
	StateReason    string   `json:"state_reason"`
	RefundDue      bool     `json:"refund_due"` // a refund is due, and the provider has not confirmed it
	// AmountPaid is what the buyer has paid, with all invoices of the subscription and second payments. AmountRefunded
	// is how much of that has gone back. RefundPending is the amount of the refunds that the provider has not
	// confirmed.
	AmountPaid     int64  `json:"amount_paid"`
	AmountRefunded int64  `json:"amount_refunded"`
	RefundPending  int64  `json:"refund_pending"`
	Fee            *int64 `json:"fee"` // the sum of the known fees of the provider; nil: none is known
	// PaymentProvider is where the order was paid, or must be paid: sandbox, stripe or outside; empty: that is open, or
	// the order is free.
	PaymentProvider  string `json:"payment_provider"`
	PaymentReference string `json:"payment_reference"`
	// Subscription is nil for an order that is paid once, and until the payment.
	Subscription *Subscription `json:"subscription"`
	AccountID    string        `json:"account_id"`
	Mode         string        `json:"mode"`
}

// Subscription is the subscription of an order for a product with billing.
type Subscription struct {
	Status           string    `json:"status"`             // active, past_due or canceled
	CurrentPeriodEnd time.Time `json:"current_period_end"` // the end of the period that is paid for
	CancelAt         time.Time `json:"cancel_at"`          // when it ends, or has ended; zero: it renews
	// ProductID and Amount are what the present period is paid for, and what it costs.
	ProductID string `json:"product_id"`
	Amount    int64  `json:"amount"`
	// PlannedChange takes effect with the next period; nil: there is none.
	PlannedChange *PlannedChange `json:"planned_change"`
}

// PlannedChange is a change of a subscription that takes effect with its next period.
type PlannedChange struct {
	ProductID  string    `json:"product_id"`
	Amount     int64     `json:"amount"`
	MaxDevices *int      `json:"max_devices"` // nil: that of the new product, or as it is if the product stays
	From       time.Time `json:"from"`
}

// NewOrder describes an order to create. ProductID, Amount and Currency are required.
type NewOrder struct {
	ProductID   string `json:"product_id"`
	Amount      int64  `json:"amount"` // in the currency's minor unit: 4900 is 49.00 USD
	Currency    string `json:"currency"`
	Quantity    int    `json:"quantity,omitempty"` // of licenses, up to 1000; 0: one. Amount is for all of them
	Description string `json:"description,omitempty"`
	BuyerEmail  string `json:"buyer_email,omitempty"`
	Metadata    any    `json:"metadata,omitempty"`
	SuccessURL  string `json:"success_url,omitempty"`
	// UpgradeOf is the key of a trial. The payment makes the trial's license the paid one; its devices stay bound.
	UpgradeOf string `json:"upgrade_of,omitempty"`
	// PaymentProvider is outside if the buyer pays the shop itself, which records the payment with RecordPayment.
	// Empty: the buyer pays at PayURL.
	PaymentProvider string `json:"payment_provider,omitempty"`
}

// CreateOrder creates an order.
func (c *Client) CreateOrder(ctx context.Context, order NewOrder, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders", nil, order, options)
}

// OrderFilter selects orders that match all fields that are set.
type OrderFilter struct {
	ProductID  string
	Status     string
	BuyerEmail string
	// Provider is where the order was paid, or must be paid, such as outside.
	Provider string
	// Reference is the reference of a payment of the order.
	Reference string
	Created   Period
	Paid      Period
	Refunded  Period
}

// Period holds the times from From on and before To. A zero time bounds nothing.
type Period struct {
	From time.Time `json:"from,omitzero"`
	To   time.Time `json:"to,omitzero"`
}

// filters returns the query parameters of a period, such as created_from and created_to.
func (p Period) filters(name string) []string {
	return []string{name + "_from", instant(p.From), name + "_to", instant(p.To)}
}

// instant returns a time as a query parameter; empty for the zero time.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// ListOrders reads a page of orders, the newest first.
func (c *Client) ListOrders(
	ctx context.Context, filter OrderFilter, page Page, options ...CallOption,
) (*List[Order], error) {
	var listed struct {
		Orders []Order `json:"orders"`
		Next   string  `json:"next_cursor"`
	}
	query := page.query(slices.Concat([]string{"product_id", filter.ProductID, "status", filter.Status,
		"buyer_email", filter.BuyerEmail, "payment_provider", filter.Provider, "reference", filter.Reference},
		filter.Created.filters("created"), filter.Paid.filters("paid"), filter.Refunded.filters("refunded"))...)
	if err := c.do(ctx, "GET /v1/orders", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Order]{listed.Orders, listed.Next}, nil
}

// Order returns an order by its number.
func (c *Client) Order(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "GET /v1/orders/{order_no}", []string{orderNo}, nil, options)
}

// CancelOrder cancels an unpaid order. The reason may be empty.
func (c *Client) CancelOrder(ctx context.Context, orderNo, reason string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/cancel", []string{orderNo}, changeReason{reason}, options)
}

// OutsidePayment is a payment that the shop has received itself, such as by bank transfer.
type OutsidePayment struct {
	Reference string    `json:"reference"`        // the shop's own; new for each payment of the account and mode
	Amount    int64     `json:"amount,omitempty"` // must be the order's amount; 0: it is
	PaidAt    time.Time `json:"paid_at,omitzero"` // zero: now
}

// RecordPayment records a payment that the shop has received itself, and issues the license. Recording the same payment
// again changes nothing. The API key needs the scope orders:payments.
func (c *Client) RecordPayment(
	ctx context.Context, orderNo string, payment OutsidePayment, options ...CallOption,
) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/payments", []string{orderNo}, payment, options)
}

// Payment is a record of an order's payments.
type Payment struct {
	Type            string    `json:"type"`      // payment, invoice, second, refund or dispute
	Reference       string    `json:"reference"` // the provider's, or the shop's own
	PaymentProvider string    `json:"payment_provider"`
	Status          string    `json:"status"` // succeeded; of a refund also pending or failed
	Amount          int64     `json:"amount"` // in the currency's minor unit
	Currency        string    `json:"currency"`
	Fee             *int64    `json:"fee"` // what the provider keeps; nil: not known
	PaidAt          time.Time `json:"paid_at"`
	RecordedAt      time.Time `json:"recorded_at"`
	RecordedBy      string    `json:"recorded_by"`
}

// ListOrderPayments reads a page of the records of an order's payments, the newest first.
func (c *Client) ListOrderPayments(
	ctx context.Context, orderNo string, page Page, options ...CallOption,
) (*List[Payment], error) {
	var listed struct {
		Payments []Payment `json:"payments"`
		Next     string    `json:"next_cursor"`
	}
	route, values := "GET /v1/orders/{order_no}/payments", []string{orderNo}
	if err := c.do(ctx, route, values, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Payment]{listed.Payments, listed.Next}, nil
}

// RefundOrder refunds all that is left of the payment of an order, and revokes its license. The reason may be empty.
// The API key needs the scope orders:refunds.
func (c *Client) RefundOrder(ctx context.Context, orderNo, reason string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, changeReason{reason}, options)
}

// RefundPart refunds a part of the payment of an order, in the currency's minor unit. The license stays as it is,
// unless nothing is left of the payment then. Each call refunds another part, unless the calls have the same
// IdempotencyKey. The reason may be empty. The API key needs the scope orders:refunds.
func (c *Client) RefundPart(
	ctx context.Context, orderNo string, amount int64, reason string, options ...CallOption,
) (*Order, error) {
	refund := struct {
		Amount int64  `json:"amount"`
		Reason string `json:"reason,omitempty"`
	}{amount, reason}
	return c.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, refund, options)
}

// RefundInvoice refunds an invoice of an order's subscription, by its reference among the payments of the order. Amount
// is in the currency's minor unit; 0: all that is left. Once all of an invoice has gone back, the service takes back
// the period that it paid for. Each call with an amount refunds another part, unless the calls have the same
// IdempotencyKey. The API key needs the scope orders:refunds.
func (c *Client) RefundInvoice(
	ctx context.Context, orderNo, invoice string, amount int64, options ...CallOption,
) (*Order, error) {
	refund := struct {
		Invoice string `json:"invoice"`
		Amount  int64  `json:"amount,omitempty"`
	}{invoice, amount}
	return c.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, refund, options)
}

// SubscriptionEnd is when a subscription ends, or when a change of it takes effect.
type SubscriptionEnd string

// The ends.
const (
	EndNow      SubscriptionEnd = "now"
	EndOfPeriod SubscriptionEnd = "period_end" // of the period that is paid for
)

// CancelSubscription ends the subscription of an order. The license works until the end of the time that is paid for.
// The API key needs the scope orders:subscriptions.
func (c *Client) CancelSubscription(
	ctx context.Context, orderNo string, at SubscriptionEnd, options ...CallOption,
) (*Order, error) {
	in := struct {
		At SubscriptionEnd `json:"at"`
	}{at}
	return c.order(ctx, "POST /v1/orders/{order_no}/subscription/cancel", []string{orderNo}, in, options)
}

// ResumeSubscription lets a subscription renew that would end with its period. The API key needs the scope
// orders:subscriptions.
func (c *Client) ResumeSubscription(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/subscription/resume", []string{orderNo}, nil, options)
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

// ChangeSubscription changes what the subscription of an order pays for. If the buyer's card is declined, the service
// returns ReasonProviderFailed, and nothing changes. The API key needs the scope orders:subscriptions.
func (c *Client) ChangeSubscription(
	ctx context.Context, orderNo string, change SubscriptionChange, options ...CallOption,
) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/subscription/change", []string{orderNo}, change, options)
}

// SubscriptionPortal returns the URL of the payment provider's page where the buyer changes the card of an order's
// subscription. The URL is for the buyer alone, and valid for a short time. The API key needs the scope
// orders:subscriptions. The service refuses orders of the sandbox with ReasonPaymentNotConfigured.
func (c *Client) SubscriptionPortal(ctx context.Context, orderNo string, options ...CallOption) (string, error) {
	var page struct {
		URL string `json:"url"`
	}
	route := "POST /v1/orders/{order_no}/subscription/portal"
	err := c.do(ctx, route, []string{orderNo}, nil, nil, &page, options)
	return page.URL, err
}

// PayOrderInSandbox pays an order of test mode, as the buyer does on the pay page; no money moves. Paying a paid order
// changes nothing. The service refuses orders of live mode with ReasonPaymentNotConfigured.
func (c *Client) PayOrderInSandbox(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "PUT /v1/orders/{order_no}/sandbox_payment", []string{orderNo}, nil, options)
}

// SandboxAction is something that a buyer or a bank does about an order of test mode.
type SandboxAction string

// The actions.
const (
	SandboxPay           SandboxAction = "pay"       // as PayOrderInSandbox
	SandboxCancel        SandboxAction = "cancel"    // the buyer cancels the order
	SandboxDecline       SandboxAction = "decline"   // the bank declines the payment
	SandboxPayLater      SandboxAction = "pay_later" // the payment is pending
	SandboxComplete      SandboxAction = "complete"  // the pending payment arrives
	SandboxFail          SandboxAction = "fail"      // the pending payment or refund fails
	SandboxCallbackTwice SandboxAction = "callback_twice"
	SandboxCallbackLate  SandboxAction = "callback_late"
	SandboxRefundFails   SandboxAction = "refund_fails" // the next refund is pending, and then fails

	SandboxInvoicePaid        SandboxAction = "invoice_paid"   // the unpaid invoice is paid, or else the next one
	SandboxInvoiceFailed      SandboxAction = "invoice_failed" // the payment of the next invoice fails
	SandboxCancelSubscription SandboxAction = "cancel_subscription"
)

// PlayInSandbox plays an action about an order of test mode, and returns the order after that. The service refuses an
// action that does not fit the order with ReasonInvalidOrderState, and orders of live mode with
// ReasonPaymentNotConfigured.
func (c *Client) PlayInSandbox(
	ctx context.Context, orderNo string, action SandboxAction, options ...CallOption,
) (*Order, error) {
	in := struct {
		Action SandboxAction `json:"action"`
	}{action}
	return c.order(ctx, "PUT /v1/orders/{order_no}/sandbox", []string{orderNo}, in, options)
}

func (c *Client) order(
	ctx context.Context, route string, values []string, in any, options []CallOption,
) (*Order, error) {
	o := new(Order)
	if err := c.do(ctx, route, values, nil, in, o, options); err != nil {
		return nil, err
	}
	return o, nil
}
