package handlers

import "github.com/valyala/fasthttp"

// exposed lists the headers that a script may read.
const exposed = "X-Request-Id, Retry-After"

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
		{fasthttp.HeaderAccessControlAllowHeaders, "content-type, authorization, x-request-id"},
		{fasthttp.HeaderAccessControlMaxAge, "86400"},
	}}
}
