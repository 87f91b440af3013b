package handlers

import (
	"bytes"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"
)

// bodyForm says what a route reads as its body.
type bodyForm int

const (
	noBody bodyForm = iota
	jsonBody
	formBody
)

// mediaType returns the media type of a body; empty if there is none.
func (f bodyForm) mediaType() string {
	switch f {
	case jsonBody:
		return "application/json"
	case formBody:
		return "application/x-www-form-urlencoded"
	default:
		return ""
	}
}

// checkMediaType refuses a body of another media type than the route reads. A
// request without a body needs no media type.
func checkMediaType(form bodyForm, h *fasthttp.RequestHeader, hasBody bool) error {
	if form == noBody || !hasBody {
		return nil
	}
	want, refusal := form.mediaType(), errNotJSONMedia
	if form == formBody {
		refusal = errNotFormMedia
	}
	encoding := h.Peek(fasthttp.HeaderContentEncoding)
	if len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
		return refusal
	}
	if string(h.ContentType()) == want {
		return nil
	}
	mediaType, parameters, err := mime.ParseMediaType(string(h.ContentType()))
	if err != nil || mediaType != want {
		return refusal
	}
	if charset, given := parameters["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return refusal
	}
	return nil
}
