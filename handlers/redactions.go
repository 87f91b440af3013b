package handlers

import "context"

// buyerRedaction asks to redact a buyer's orders.
type buyerRedaction struct {
	BuyerEmail     text `json:"buyer_email"`
	idempotencyKey `json:"-"`
}

func (in *buyerRedaction) check(c *checks) {
	c.email("buyer_email", in.BuyerEmail, true)
}

// redaction is the progress of the redaction of a buyer's orders.
type redaction struct {
	Orders   int  `json:"orders"`
	Licenses int  `json:"licenses"`
	Complete bool `json:"complete"`
}

// redactBuyer removes what the shop has noted about a buyer. The answer does not repeat the
// buyer's address.
func (s orderRoutes) redactBuyer(ctx context.Context, c *call, in buyerRedaction) (redaction, error) {
	done, replayed, err := s.cfg.Node.Redact(ctx, c.owner(), in.BuyerEmail.value, in.once)
	c.replayed = replayed
	return redaction(done), err
}
