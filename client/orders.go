package client

import (
	"context"
	"encoding/json"
	"time"
)

// Order is an order, whatever has become of it.
type Order struct {
	OrderNo     string          `json:"order_no"`
	Status      string          `json:"status"`
	ProductID   string          `json:"product_id"`
	Amount      int64           `json:"amount"` // in the currency's minor unit
	Currency    string          `json:"currency"`
	Description string          `json:"description"`
	BuyerEmail  string          `json:"buyer_email"`
	Metadata    json.RawMessage `json:"metadata"`
	PayURL      string          `json:"pay_url"` // empty unless it can be paid
	CreatedAt   time.Time       `json:"created_at"`
	ExpiresAt   time.Time       `json:"expires_at"`
	PaidAt      time.Time       `json:"paid_at"`
	CanceledAt  time.Time       `json:"canceled_at"`
	RefundedAt  time.Time       `json:"refunded_at"`
	LicenseKey  string          `json:"license_key"` // from payment on
	Late        bool            `json:"late"`        // paid after it had expired
	SuccessURL  string          `json:"success_url"`
	StateReason string          `json:"state_reason"`
	RefundDue   bool            `json:"refund_due"` // money is to go back, and the provider has not confirmed it
	AccountID   string          `json:"account_id"`
	Mode        string          `json:"mode"`
}

// NewOrder says what to order. Product, amount and currency are needed.
type NewOrder struct {
	ProductID   string `json:"product_id"`
	Amount      int64  `json:"amount"` // in the currency's minor unit: 4900 is 49.00 USD
	Currency    string `json:"currency"`
	Description string `json:"description,omitempty"`
	BuyerEmail  string `json:"buyer_email,omitempty"`
	Metadata    any    `json:"metadata,omitempty"`
	SuccessURL  string `json:"success_url,omitempty"`
}

// CreateOrder makes an order.
func (c *Client) CreateOrder(ctx context.Context, order NewOrder, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders", nil, order, options)
}

// OrderFilter says which orders to list: those to which all that is given
// applies.
type OrderFilter struct {
	ProductID  string
	Status     string
	BuyerEmail string
}

// ListOrders reads one page of orders, the newest first.
func (c *Client) ListOrders(ctx context.Context, filter OrderFilter, page Page, options ...CallOption) (*List[Order], error) {
	var listed struct {
		Orders []Order `json:"orders"`
		Next   string  `json:"next_cursor"`
	}
	query := page.query("product_id", filter.ProductID, "status", filter.Status, "buyer_email", filter.BuyerEmail)
	if err := c.do(ctx, "GET /v1/orders", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Order]{listed.Orders, listed.Next}, nil
}

// Order looks an order up.
func (c *Client) Order(ctx context.Context, orderNo string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "GET /v1/orders/{order_no}", []string{orderNo}, nil, options)
}

// CancelOrder gives an unpaid order up. The reason may be empty.
func (c *Client) CancelOrder(ctx context.Context, orderNo, reason string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/cancel", []string{orderNo}, because{reason}, options)
}

// RefundOrder sends a paid order's money back, and revokes its license. The
// reason may be empty.
func (c *Client) RefundOrder(ctx context.Context, orderNo, reason string, options ...CallOption) (*Order, error) {
	return c.order(ctx, "POST /v1/orders/{order_no}/refund", []string{orderNo}, because{reason}, options)
}

func (c *Client) order(ctx context.Context, route string, values []string, in any, options []CallOption) (*Order, error) {
	o := new(Order)
	if err := c.do(ctx, route, values, nil, in, o, options); err != nil {
		return nil, err
	}
	return o, nil
}
