package client

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// OrderService creates and manages orders.
type OrderService struct{ client *Client }

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
	// lists and events, orders have no LicenseKeys: use OrderService.Get.
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
	// PaymentProvider is outside if the buyer pays the shop itself, which records the payment with
	// [OrderService.RecordPayment]. Empty: the buyer pays at PayURL.
	PaymentProvider string `json:"payment_provider,omitempty"`
}

// Create creates an order.
func (s *OrderService) Create(ctx context.Context, order NewOrder, options ...CallOption) (*Order, error) {
	return s.client.order(ctx, "POST /v1/orders", nil, order, options)
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
	Refunded  Period // the time when nothing was left of the payment; a refund of a part does not count
}

// Period contains the times from From on and before To. A zero time bounds nothing.
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

// List reads a page of orders, the newest first.
func (s *OrderService) List(
	ctx context.Context, filter OrderFilter, page Page, options ...CallOption,
) (*List[Order], error) {
	var listed struct {
		Orders []Order `json:"orders"`
		Next   string  `json:"next_cursor"`
	}
	query := page.query(slices.Concat([]string{"product_id", filter.ProductID, "status", filter.Status,
		"buyer_email", filter.BuyerEmail, "payment_provider", filter.Provider, "reference", filter.Reference},
		filter.Created.filters("created"), filter.Paid.filters("paid"), filter.Refunded.filters("refunded"))...)
	if err := s.client.do(ctx, "GET /v1/orders", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Order]{listed.Orders, listed.Next}, nil
}

// All yields all orders that match a filter, the newest first.
func (s *OrderService) All(ctx context.Context, filter OrderFilter) iter.Seq2[Order, error] {
	return allPages(listPage, func(page Page) (*List[Order], error) { return s.List(ctx, filter, page) })
}

// Get returns an order by its number.
func (s *OrderService) Get(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return s.client.order(ctx, "GET /v1/orders/{order_no}", []string{orderNo}, nil, options)
}

// Cancel cancels an unpaid order. The reason may be empty.
func (s *OrderService) Cancel(ctx context.Context, orderNo, reason string, options ...CallOption) (*Order, error) {
	return s.client.order(ctx, "POST /v1/orders/{order_no}/cancel", []string{orderNo}, changeReason{reason}, options)
}

// OutsidePayment is a payment that the shop has received itself, such as by bank transfer.
type OutsidePayment struct {
	Reference string    `json:"reference"`        // the shop's own; new for each payment of the account and mode
	Amount    int64     `json:"amount,omitempty"` // must be the order's amount; 0: it is
	PaidAt    time.Time `json:"paid_at,omitzero"` // zero: now
}

// RecordPayment records a payment that the shop has received itself, and issues the license. Recording the same payment
// again changes nothing. The API key needs the scope orders:payments.
func (s *OrderService) RecordPayment(
	ctx context.Context, orderNo string, payment OutsidePayment, options ...CallOption,
) (*Order, error) {
	return s.client.order(ctx, "POST /v1/orders/{order_no}/payments", []string{orderNo}, payment, options)
}

// Payment is a record of an order's payments.
type Payment struct {
	Type            string    `json:"type"`      // payment, invoice, second, unmatched, refund or dispute
	Reference       string    `json:"reference"` // the provider's, or the shop's own
	PaymentProvider string    `json:"payment_provider"`
	Status          string    `json:"status"` // succeeded; a refund: also pending, failed; a dispute: open, won, lost
	Amount          int64     `json:"amount"` // in the currency's minor unit
	Currency        string    `json:"currency"`
	Fee             *int64    `json:"fee"` // what the provider keeps; nil: not known
	PaidAt          time.Time `json:"paid_at"`
	RecordedAt      time.Time `json:"recorded_at"`
	RecordedBy      string    `json:"recorded_by"`
}

// ListPayments reads a page of the records of an order's payments, the newest first.
func (s *OrderService) ListPayments(
	ctx context.Context, orderNo string, page Page, options ...CallOption,
) (*List[Payment], error) {
	var listed struct {
		Payments []Payment `json:"payments"`
		Next     string    `json:"next_cursor"`
	}
	route, values := "GET /v1/orders/{order_no}/payments", []string{orderNo}
	if err := s.client.do(ctx, route, values, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Payment]{listed.Payments, listed.Next}, nil
}

// Refund refunds all that is left of the payment of an order, and revokes its license. The reason may be empty.
// The API key needs the scope orders:refunds.
func (s *OrderService) Refund(ctx context.Context, orderNo, reason string, options ...CallOption) (*Order, error) {
	return s.client.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, changeReason{reason}, options)
}

// RefundPart refunds a part of the payment of an order, in the currency's minor unit. The license stays as it is,
// unless nothing is left of the payment then. Each call refunds another part, unless the calls have the same
// IdempotencyKey. The reason may be empty. The API key needs the scope orders:refunds.
func (s *OrderService) RefundPart(
	ctx context.Context, orderNo string, amount int64, reason string, options ...CallOption,
) (*Order, error) {
	refund := struct {
		Amount int64  `json:"amount"`
		Reason string `json:"reason,omitempty"`
	}{amount, reason}
	return s.client.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, refund, options)
}

// RefundInvoice refunds an invoice of an order's subscription, by its reference among the payments of the order. Amount
// is in the currency's minor unit; 0: all that is left. Once all of an invoice has gone back, the service takes back
// the period that it paid for. Each call with an amount refunds another part, unless the calls have the same
// IdempotencyKey. The API key needs the scope orders:refunds.
func (s *OrderService) RefundInvoice(
	ctx context.Context, orderNo, invoice string, amount int64, options ...CallOption,
) (*Order, error) {
	refund := struct {
		Invoice string `json:"invoice"`
		Amount  int64  `json:"amount,omitempty"`
	}{invoice, amount}
	return s.client.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, refund, options)
}

// order calls a route whose response is an order.
func (c *Client) order(
	ctx context.Context, route string, values []string, in any, options []CallOption,
) (*Order, error) {
	o := new(Order)
	if err := c.do(ctx, route, values, nil, in, o, options); err != nil {
		return nil, err
	}
	return o, nil
}
