package connection

import (
	"errors"
	"os"

	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// The reasons for which a request is refused before routing. Package handlers maps them to status
// and code. They are part of the public contract and never change.
const (
	ReasonMalformedRequest licensing.Reason = "malformed_request"
	ReasonBodyTooLarge     licensing.Reason = "body_too_large"
	ReasonURITooLong       licensing.Reason = "uri_too_long"
	ReasonHeadersTooLarge  licensing.Reason = "headers_too_large"
)

// ErrAmbiguousFraming is the error of a request that fasthttp would accept, but in which another
// server may see a different end of the request. [Conn.Read] returns it in place of the bytes.
var ErrAmbiguousFraming = malformed("each line of a head and of chunks must end with CR LF, " +
	"and chunks must come without extensions, blanks after their size, and trailers")

var (
	errBodyTooLarge = &licensing.Error{Reason: ReasonBodyTooLarge, Message: "the body is too large"}
	errURITooLong   = &licensing.Error{Reason: ReasonURITooLong, Message: "the URI is too long"}
	// errBodyRefused is the error of a request for whose body Config.MaxBodies has no room.
	errBodyRefused     = licensing.ErrOverloaded
	errHeadersTooLarge = &licensing.Error{Reason: ReasonHeadersTooLarge, Message: "the headers are too large"}
)

func malformed(message string) *licensing.Error {
	return &licensing.Error{Reason: ReasonMalformedRequest, Message: message}
}

// ReadError returns the error to report for a request that fasthttp could not read. cause is
// fasthttp's error. c is the request's connection, or nil if no [Listener] accepted it.
func ReadError(c *Conn, cause error) error {
	var small *fasthttp.ErrSmallBuffer
	switch {
	case c != nil && c.bodyRefused: // fasthttp does not pass on the error of Read
		return errBodyRefused
	case errors.As(cause, &small) && c != nil && c.lineLength >= ReadBufferSize:
		return errURITooLong
	case errors.As(cause, &small):
		return errHeadersTooLarge
	case errors.Is(cause, fasthttp.ErrBodyTooLarge):
		return errBodyTooLarge
	case timedOut(cause):
		return malformed("the request did not arrive in time")
	case c != nil && c.ambiguous: // as above
		return ErrAmbiguousFraming
	default:
		return malformed("the request is not valid HTTP/1.1: check its first line, headers, length and chunks")
	}
}

func timedOut(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, fasthttp.ErrTimeout)
}
