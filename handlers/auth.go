package handlers

import (
	"bytes"
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"licet/handlers/signature"
	"licet/licensing"
)

// authenticate returns the API key of the caller; nil for an end user, who
// sends no credentials. Credentials that are sent must be valid also where none
// are required: a shop whose key has expired must learn it, and not count as an
// end user.
//
// Bad credentials count against the limit of the client's address. An API key that the node does not remember costs a
// request to the store, so the node looks it up only while the address is below that limit. API keys that the node
// remembers still work.
func (s *Server) authenticate(ctx context.Context, c *call, need Auth) (*licensing.APIKey, error) {
	if need == NoAuth {
		return nil, nil
	}
	sent := c.fast.Request.Header.PeekAll(fasthttp.HeaderAuthorization)
	if len(sent) == 0 {
		if need == OptionalAuth {
			return nil, nil
		}
		return nil, errUnauthenticated
	}
	text := bearer(sent)
	if text == "" {
		return nil, s.rates.failedAuthentication(c, errUnauthenticated)
	}
	key, remembered := s.cfg.Node.RememberedKey(text)
	if !remembered {
		return s.lookUpKey(ctx, c, text)
	}
	if key == nil {
		return nil, s.rates.failedAuthentication(c, errBadAPIKey)
	}
	return key, nil
}

// bearer returns the token of the header Authorization; empty if there is not exactly one.
func bearer(sent [][]byte) string {
	if len(sent) != 1 {
		return ""
	}
	scheme, text, _ := strings.Cut(string(sent[0]), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(text, " ")
}

// lookUpKey returns an API key that the node does not remember.
func (s *Server) lookUpKey(ctx context.Context, c *call, text string) (key *licensing.APIKey, err error) {
	err = s.rates.attempt(ctx, c, func() (good bool, err error) {
		key, err = s.cfg.Node.Authenticate(ctx, text)
		return key != nil, err
	})
	if err == nil && key == nil {
		err = errBadAPIKey
	}
	return key, err
}

const (
	headerSignature      = "Signature"
	headerSignatureInput = "Signature-Input"
)

// checkSignature verifies the signature of a request. A bad signature counts as a failed authentication. path is the
// path as sent. On routes that check credentials, a signature must be valid even if the API key does not require one: a
// client that signs relies on the check.
func (s *Server) checkSignature(c *call, path string) error {
	head, caller := &c.fast.Request.Header, c.key
	// Most requests come from end users, and need only one lookup. Signature without Signature-Input
	// is a signature of another kind, or an incomplete one.
	signed := len(head.Peek(headerSignatureInput)) > 0 || caller != nil && len(head.Peek(headerSignature)) > 0
	switch {
	case !signed && caller != nil && caller.RequireSignature:
		return s.rates.failedAuthentication(c, errSignatureRequired)
	case !signed:
		return nil
	case caller == nil:
		return invalidSignature("a signature needs the API key that it is made with: send Authorization: Bearer " +
			"<API_KEY>")
	}
	now := s.cfg.Node.Now()
	secrets, err := s.cfg.Ring.APISecrets(caller, now)
	if err != nil {
		// This is not the caller's fault, and another node may have the right ring.
		s.cfg.Log.Error().Err(err).
			Msg("can't check a signature: give this node the master keys of the service and restart it")
		return errNoSecret
	}
	message := signature.Message{
		Method:    string(head.Method()),
		TargetURI: s.targetURI(path, head.RequestURI()),
		Fields:    head.RawHeaders(),
		Body:      c.fast.Request.Body(),
	}
	if err := signature.Verify(&message, signature.Key{ID: caller.ID, Secrets: secrets}, now); err != nil {
		return s.rates.failedAuthentication(c, invalidSignature(err.Error()))
	}
	return nil
}

// targetURI returns the URI of a request as its client knows it, below PublicURL. targetURI ignores the
// header Host, because proxies change it.
func (s *Server) targetURI(path string, target []byte) string {
	uri := s.origin + s.basePath + path
	if query := bytes.IndexByte(target, '?'); query >= 0 {
		uri += string(target[query:])
	}
	return uri
}

// exposed lists the headers that a script may read.
const exposed = "X-Request-Id, Retry-After, ETag"

// allowAnyOrigin lets scripts of any web page read a response. It is for routes without required credentials, and
// does not allow credentials.
func allowAnyOrigin(h *fasthttp.ResponseHeader) {
	set(h, fasthttp.HeaderAccessControlAllowOrigin, "*")
	set(h, fasthttp.HeaderAccessControlExposeHeaders, exposed)
}

// preflight returns the response to a CORS preflight request.
func preflight(allow string) document {
	return document{status: fasthttp.StatusNoContent, headers: []header{
		{fasthttp.HeaderAllow, allow},
		{fasthttp.HeaderAccessControlAllowMethods, allow},
		{fasthttp.HeaderAccessControlAllowHeaders, "content-type, authorization, x-request-id, if-none-match"},
		{fasthttp.HeaderAccessControlMaxAge, "86400"},
	}}
}
