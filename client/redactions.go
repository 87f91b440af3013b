package client

import "context"

// RedactionService removes personal data.
type RedactionService struct{ client *Client }

// Redaction is the progress of a redaction.
type Redaction struct {
	Orders   int `json:"orders"`   // 0 by a customer reference
	Licenses int `json:"licenses"` // of a buyer: of those orders, and granted licenses
	// Complete reports whether all orders and granted licenses that the buyer had at the time of the request are
	// redacted; by a customer reference, all licenses with the reference.
	Complete bool `json:"complete"`
}

// RedactBuyer removes a buyer's e-mail address from the buyer's orders and granted licenses, whatever its case. It also
// removes data about the buyer: the descriptions of the orders, the references of the licenses, and the metadata and
// reasons of both. A redaction can't be undone.
//
// A call redacts up to 100 orders and 100 granted licenses. Repeat the call until the redaction is complete. With the
// same [IdempotencyKey], the counts are the totals of all calls.
func (s *RedactionService) RedactBuyer(ctx context.Context, email string, options ...CallOption) (*Redaction, error) {
	return s.redact(ctx, map[string]string{"buyer_email": email}, options)
}

// RedactCustomer removes the personal data from all licenses with a customer reference. The orders of these licenses
// keep their data. A call redacts up to 100 licenses: repeat the call as with RedactBuyer.
func (s *RedactionService) RedactCustomer(
	ctx context.Context, reference string, options ...CallOption,
) (*Redaction, error) {
	return s.redact(ctx, map[string]string{"customer_reference": reference}, options)
}

func (s *RedactionService) redact(ctx context.Context, of map[string]string, options []CallOption) (*Redaction, error) {
	done := new(Redaction)
	if err := s.client.do(ctx, "POST /v1/redactions", nil, nil, of, done, options); err != nil {
		return nil, err
	}
	return done, nil
}
