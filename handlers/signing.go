package handlers

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"licet/handlers/signature"
	"licet/licensing"
)

const (
	headerSignature      = "Signature"
	headerSignatureInput = "Signature-Input"
)

// checkSignature verifies the signature of a request. path is the path as sent. On routes that check
// credentials, a signature must be valid even if the API key does not require one: a client that signs
// relies on the check.
func (s *Server) checkSignature(ctx *fasthttp.RequestCtx, path string, caller *licensing.APIKey) error {
	head := &ctx.Request.Header
	// Most requests come from end users, and need only one lookup. Signature without Signature-Input
	// is a signature of another kind, or an incomplete one.
	signed := len(head.Peek(headerSignatureInput)) > 0 || caller != nil && len(head.Peek(headerSignature)) > 0
	switch {
	case !signed && caller != nil && caller.RequireSignature:
		return errSignatureRequired
	case !signed:
		return nil
	case caller == nil:
		return invalidSignature("a signature needs the API key that it is made with: send Authorization: Bearer <API_KEY>")
	}
	now := s.cfg.Node.Now()
	secrets, err := s.cfg.Ring.APISecrets(caller, now)
	if err != nil {
		// This is not the caller's fault, and another node may have the right ring.
		s.cfg.Log.Error().Err(err).
			Msg("a signature can't be checked: give this node the ring of master keys and start it again")
		return errNoSecret
	}
	message := signature.Message{
		Method:    string(head.Method()),
		TargetURI: s.targetURI(path, head.RequestURI()),
		Fields:    head.RawHeaders(),
		Body:      ctx.Request.Body(),
	}
	if err := signature.Verify(&message, signature.Key{ID: caller.ID, Secrets: secrets}, now); err != nil {
		return invalidSignature(err.Error())
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
