package client

import "context"

// Redaction is the progress of the redaction of a buyer.
type Redaction struct {
	Orders   int `json:"orders"`
	Licenses int `json:"licenses"` // of those orders, and granted licenses
	// Complete reports whether all orders and granted licenses that the buyer had at the time of the request are
	// redacted.
	Complete bool `json:"complete"`
}

// RedactBuyer removes a buyer's e-mail address from the buyer's orders and granted licenses, whatever its case. It also
// removes data about the buyer: the descriptions of the orders, the references of the licenses, and the metadata and
// reasons of both. A redaction can't be undone.
//
// A call redacts up to 100 orders and 100 granted licenses. Repeat the call until the redaction is complete. With the
// same [IdempotencyKey], the counts are the totals of all calls.
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
