package handlers

import (
	"bytes"
	"context"
	"strings"

	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// callbackRoutes are the functions of the routes that payment providers call.
type callbackRoutes struct{ *Server }

const (
	stripeCallbacks = "/v1/callbacks/stripe/"
	// callbackBodyLimit bounds the body of a callback in bytes; see bodyLimit.
	callbackBodyLimit = 512 << 10
	// stripeSignature is the header with the signature of a callback of Stripe.
	stripeSignature = "Stripe-Signature"
)

// stripeCallback names the owner whom Stripe calls about.
type stripeCallback struct {
	readsBody
	AccountID text `path:"account_id" json:"-"`
	Mode      text `path:"mode" json:"-"`
}

// errNoCallbacks does not say which accounts exist.
var errNoCallbacks = &licensing.Error{
	Reason: reasonNotFound, Message: "there is no such account, or Stripe is not its payment provider",
}

// received is the answer to a callback. Providers read only its status.
type received struct {
	Received bool `json:"received"`
}

// stripe takes a callback of Stripe. The body names an object, and is believed in nothing else: the desk asks Stripe
// about the object. The answer comes after the change is stored, so Stripe repeats a callback whose change is not.
//
// A limit refuses only callbacks whose signature is wrong, after the signature was verified. Stripe calls for all
// accounts from the same addresses, and behind a proxy all clients may have one address: so the wrong signatures of one
// account, or of a stranger, must not keep the callbacks of the others out. A node verifies one body at a time, and the
// largest in 0.4 to 1.6 ms for each secret.
func (s callbackRoutes) stripe(ctx context.Context, c *call, in stripeCallback) (received, error) {
	owner := in.owner()
	if !s.cfg.Desk.TakesCallbacks(licensing.ProviderStripe, owner) {
		return received{}, errNoCallbacks
	}
	request := &c.fast.Request
	object, err := s.cfg.Desk.Callback(owner, string(request.Header.Peek(stripeSignature)), request.Body())
	if err != nil {
		return received{}, s.rates.failedAuthentication(c, invalidSignature("the header "+stripeSignature+
			" is missing, wrong or too old: compare the endpoint's signing secret at Stripe with the secret of this "+
			"service"))
	}
	if err := s.rates.count(c, s.rates.limits.Account(owner), errAccountLimited); err != nil {
		return received{}, err
	}
	return received{true}, s.cfg.Desk.Called(ctx, owner, object)
}

func (in *stripeCallback) owner() licensing.Owner {
	return licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
}

// bodyLimit returns the body limit of the request with a head. It is callbackBodyLimit for a callback of Stripe whose
// owner takes callbacks, whose signature may be right, and whose body is not in chunks.
func (s *Server) bodyLimit(h *fasthttp.RequestHeader) int {
	if !bytes.HasPrefix(h.RequestURI(), []byte(stripeCallbacks)) || h.ContentLength() <= bodyLimit {
		return s.table.bodyLimit(h)
	}
	path, _, _ := splitTarget(string(h.RequestURI()))
	account, mode, _ := strings.Cut(strings.TrimPrefix(path, stripeCallbacks), "/")
	owner := licensing.Owner{AccountID: account, Mode: licensing.Mode(mode)}
	if !s.cfg.Desk.Signed(licensing.ProviderStripe, owner, string(h.Peek(stripeSignature))) {
		return bodyLimit
	}
	return callbackBodyLimit
}
