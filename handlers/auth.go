package handlers

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// authenticate returns the API key of the caller; nil for an end user, who
// sends no credentials. Credentials that are sent must be valid also where none
// are required: a shop whose key has expired must learn it, and not count as an
// end user.
func (s *Server) authenticate(ctx context.Context, h *fasthttp.RequestHeader, need Auth) (*licensing.APIKey, error) {
	if need == NoAuth {
		return nil, nil
	}
	sent := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(sent) == 0 && need == OptionalAuth:
		return nil, nil
	case len(sent) != 1:
		return nil, errUnauthenticated
	}
	scheme, text, _ := strings.Cut(string(sent[0]), " ")
	text = strings.TrimLeft(text, " ")
	if !strings.EqualFold(scheme, "Bearer") || text == "" {
		return nil, errUnauthenticated
	}
	key, err := s.cfg.Node.Authenticate(ctx, text)
	if err != nil {
		return nil, err
	}
	if key == nil {
		return nil, errUnauthenticated
	}
	return key, nil
}
