package client

import "context"

// Redaction tells how far the redaction of a buyer has come.
type Redaction struct {
	Orders   int `json:"orders"`
	Licenses int `json:"licenses"` // of those orders
	// Complete: no order is left of those that the buyer had when it was asked for.
	Complete bool `json:"complete"`
}

// RedactBuyer removes a buyer's e-mail address, in any case, from the buyer's orders,
// and with it what was noted of the buyer: the orders' descriptions, and the metadata
// and reasons of orders and licenses. That can't be undone.
//
// One call redacts up to 100 orders. Where it is not complete, call it again; with
// the same [IdempotencyKey] the counts are of all calls with it.
func (c *Client) RedactBuyer(ctx context.Context, email string, options ...CallOption) (*Redaction, error) {
	done := new(Redaction)
	in := struct {
		BuyerEmail string `json:"buyer_email"`
	}{email}
	if err := c.do(ctx, "POST /v1/redactions", nil, nil, in, done, options); err != nil {
		return nil, err
	}
	return done, nil
}
