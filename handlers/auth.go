package handlers

import (
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// authenticate finds out who calls. The answer is nil for an end user, who
// sends no credentials where none are needed. Credentials that are sent must be
// good wherever they are looked at: a shop whose key has run out should learn
// it, and not be taken for an end user.
func (s *Server) authenticate(ctx context.Context, h *fasthttp.RequestHeader, need access) (*licensing.APIKey, error) {
	if need == anyone {
		return nil, nil
	}
	sent := h.PeekAll(fasthttp.HeaderAuthorization)
	switch {
	case len(sent) == 0 && need == open:
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
