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

// checkSignature judges the signature of a request, whose path is given as it
// was sent. Like credentials, a signature that is sent must be good wherever
// they are looked at, demanded or not: whoever signs relies on it.
func (s *Server) checkSignature(ctx *fasthttp.RequestCtx, path string, caller *licensing.APIKey) error {
	head := &ctx.Request.Header
	// Most requests come from end users, for whom one look must do. The other
	// header alone is some other kind of signature, or half of one of ours.
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
		// The caller is not to blame, and another node may have the right ring.
		s.cfg.Log.Error().Err(err).Msg("a signature can't be checked: give this node the ring of master keys and start it again")
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

// targetURI is the address that a request was sent to, as its client knows it:
// below PublicURL. The header Host is not asked, since proxies change it.
func (s *Server) targetURI(path string, target []byte) string {
	uri := s.origin + s.basePath + path
	if query := bytes.IndexByte(target, '?'); query >= 0 {
		uri += string(target[query:])
	}
	return uri
}
