package handlers

// redaction is how far the redaction of a buyer's orders has come.
type redaction struct {
	Orders   int  `json:"orders"`
	Licenses int  `json:"licenses"`
	Complete bool `json:"complete"`
}

// redactBuyer removes what the shop has noted of a buyer. The answer does not repeat
// who that was.
func (s *Server) redactBuyer(r *request) (any, error) {
	var email text
	if err := decodeObject(r.body(), true, textMember("buyer_email", &email)); err != nil {
		return nil, err
	}
	var bad problems
	if !email.given {
		bad.add("buyer_email", problemRequired)
	}
	bad.email("buyer_email", email)
	once := bad.once(r)
	if err := bad.err(); err != nil {
		return nil, err
	}
	done, replayed, err := s.cfg.Node.Redact(r.ctx, r.caller.Owner, email.value, once)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return redaction(done), nil
}
