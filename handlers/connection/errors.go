package connection

import (
	"errors"
	"os"

	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// The reasons for which a request is refused before it is routed. Package
// handlers gives them status and code. They are part of the public contract and
// never change.
const (
	ReasonMalformedRequest licensing.Reason = "malformed_request"
	ReasonBodyTooLarge     licensing.Reason = "body_too_large"
	ReasonURITooLong       licensing.Reason = "uri_too_long"
	ReasonHeadersTooLarge  licensing.Reason = "headers_too_large"
)

// ErrAmbiguousFraming is what [Conn.Read] returns in place of bytes that
// fasthttp would accept, but in which another server may see a different end of
// the request.
var ErrAmbiguousFraming = malformed("each line of a head and of chunks must end with CR LF, and chunks must come without extensions, blanks after their size, and trailers")

var (
	errBodyTooLarge    = &licensing.Error{Reason: ReasonBodyTooLarge, Message: "the body is too large"}
	errURITooLong      = &licensing.Error{Reason: ReasonURITooLong, Message: "the URI is too long"}
	errHeadersTooLarge = &licensing.Error{Reason: ReasonHeadersTooLarge, Message: "the headers are too large"}
)

func malformed(message string) *licensing.Error {
	return &licensing.Error{Reason: ReasonMalformedRequest, Message: message}
}

// ReadError translates the error with which fasthttp gave up reading a request
// from c. c is nil if the request did not come over a connection of a
// [Listener].
func ReadError(c *Conn, cause error) error {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case errors.As(cause, &small) && c != nil && c.line >= ReadBufferSize:
		return errURITooLong
	case errors.As(cause, &small):
		return errHeadersTooLarge
	case errors.Is(cause, fasthttp.ErrBodyTooLarge):
		return errBodyTooLarge
	case timedOut(cause):
		return malformed("the request did not arrive in time")
	case c != nil && c.loose: // fasthttp does not hand on why it could not read
		return ErrAmbiguousFraming
	default:
		return malformed("this is not an HTTP request, or its framing is broken")
	}
}

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, fasthttp.ErrTimeout)
}
