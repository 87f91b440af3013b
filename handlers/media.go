package handlers

import (
	"bytes"
	"mime"
	"strings"

	"github.com/valyala/fasthttp"
)

// checkMediaType refuses a body that is declared to be something else than the
// route reads. A request without a body declares nothing.
func checkMediaType(form bodyForm, h *fasthttp.RequestHeader, hasBody bool) error {
	if form == noBody || !hasBody {
		return nil
	}
	want, refusal := "application/json", errNotJSONMedia
	if form == formBody {
		want, refusal = "application/x-www-form-urlencoded", errNotFormMedia
	}
	if encoding := h.Peek(fasthttp.HeaderContentEncoding); len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
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
