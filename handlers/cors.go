package handlers

import "github.com/valyala/fasthttp"

// exposed are the headers that a script may read where they are all there is.
const exposed = "X-Request-Id, Retry-After"

// allowAnyOrigin opens an answer to scripts of any web page. It is for the
// routes that need no credentials, and no credentials are let through.
func allowAnyOrigin(h *fasthttp.ResponseHeader) {
	set(h, fasthttp.HeaderAccessControlAllowOrigin, "*")
	set(h, fasthttp.HeaderAccessControlExposeHeaders, exposed)
}

// preflight answers a browser that asks what it may send.
func preflight(allow string) document {
	return document{status: fasthttp.StatusNoContent, headers: []header{
		{fasthttp.HeaderAllow, allow},
		{fasthttp.HeaderAccessControlAllowMethods, allow},
		{fasthttp.HeaderAccessControlAllowHeaders, "content-type, authorization, x-request-id"},
		{fasthttp.HeaderAccessControlMaxAge, "86400"},
	}}
}
