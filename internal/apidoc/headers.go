package apidoc

import (
	"net/http"
	"slices"

	"licet/handlers"
	"licet/internal/apidoc/openapi"
)

// optional begins the names of the components for responses that may lack a header.
const optional = "optional-"

// ofHTTP are the headers that HTTP itself adds to any response. The document describes all other headers.
func ofHTTP() []string {
	return []string{"Connection", "Content-Length", "Content-Type", "Date", "Transfer-Encoding"}
}

// headers describes every header that a response may have, except those of [ofHTTP]: once as required, under the name
// of the header, and once as optional.
func headers() *openapi.Map[*openapi.Header] {
	all := new(openapi.Map[*openapi.Header])
	add := func(name, description string, schema openapi.Schema) {
		if schema.Type == nil {
			schema.Type = []string{"string"}
		}
		all.Set(name, &openapi.Header{Description: description, Schema: &schema, Required: true})
		all.Set(optional+name, &openapi.Header{Description: description, Schema: &schema})
	}
	add("X-Request-Id", "The id of the request: its own, or a new one.", openapi.Schema{MinLength: 1, MaxLength: 128})
	add("Cache-Control", "Responses must not be stored.", openapi.Schema{Const: "no-store"})
	add(caching, "How long a file may be stored.", openapi.Schema{
		Enum: words([]string{"no-store", "public, max-age=5", "public, max-age=15", "public, max-age=20",
			"public, max-age=300", "public, max-age=3600", "public, max-age=31536000, immutable"}),
	})
	add("Vary", "Files are compressed for clients that accept gzip.", openapi.Schema{Const: "Accept-Encoding"})
	add("ETag", "The version of the document, for If-None-Match.", openapi.Schema{})
	add("Content-Encoding", "The encoding of a compressed file.", openapi.Schema{Const: "gzip"})
	add("X-Content-Type-Options", "Clients must not guess another type.", openapi.Schema{Const: "nosniff"})
	one := int64(1)
	add("Retry-After", "The seconds after which the same request may succeed.",
		openapi.Schema{Type: []string{"integer"}, Minimum: &one})
	add("RateLimit", "What the limits that counted the request still allow "+
		"(draft-ietf-httpapi-ratelimit-headers). Absent if no limit counted the request.",
		openapi.Schema{Pattern: `^"[a-z_]+";r=\d+;t=\d+(, "[a-z_]+";r=\d+;t=\d+)*$`})
	add("RateLimit-Policy", "The limits that counted the request.",
		openapi.Schema{Pattern: `^"[a-z_]+";q=\d+;w=\d+(, "[a-z_]+";q=\d+;w=\d+)*$`})
	add("WWW-Authenticate", "The scheme of API keys.", openapi.Schema{Const: `Bearer realm="licet"`})
	add("Allow", "The methods of the path.", openapi.Schema{Pattern: "^[A-Z]+(, [A-Z]+)*$"})
	add("Idempotent-Replayed", "The response repeats an earlier one. Absent from other responses.",
		openapi.Schema{Const: "true"})
	add("Access-Control-Allow-Origin", "Scripts of any web page may call the route.", openapi.Schema{Const: "*"})
	add("Access-Control-Expose-Headers", "The headers that scripts may read.", openapi.Schema{})
	add("Access-Control-Allow-Methods", "The methods that scripts may use.", openapi.Schema{})
	add("Access-Control-Allow-Headers", "The headers that scripts may send.", openapi.Schema{})
	add("Access-Control-Max-Age", "The seconds for which browsers may keep the response.",
		openapi.Schema{Type: []string{"integer"}, Minimum: &one})
	add("Location", "Where the browser goes on.", openapi.Schema{Format: "uri"})
	add("Content-Security-Policy", "What the page may load.", openapi.Schema{})
	add("Referrer-Policy", "The address of the page is a secret.", openapi.Schema{Const: "same-origin"})
	add("X-Frame-Options", "No other page may frame the page.", openapi.Schema{Const: "DENY"})
	return all
}

// usedHeaders returns the headers that the responses of a document refer to.
func usedHeaders(document *openapi.Document) *openapi.Map[*openapi.Header] {
	named := make(map[string]bool)
	note := func(responses *openapi.Map[*openapi.Response]) {
		for _, response := range responses.All() {
			for _, header := range response.Headers.All() {
				named[header.Ref] = true
			}
		}
	}
	note(document.Components.Responses)
	for _, items := range []*openapi.Map[*openapi.PathItem]{document.Paths, document.Webhooks} {
		for _, item := range items.All() {
			for _, operation := range item.Operations() {
				note(operation.Responses)
			}
		}
	}
	used := new(openapi.Map[*openapi.Header])
	for name, header := range headers().All() {
		if named[headersAt+name] {
			used.Set(name, header)
		}
	}
	return used
}

// headersAt is where the components of headers are.
const headersAt = "#/components/headers/"

// caching is the component of Cache-Control in responses that may be stored.
const caching = "Cache-Control-of-files"

// headerSet collects the headers of a response.
type headerSet struct{ all *openapi.Map[*openapi.Header] }

// always adds headers that every such response has.
func (h *headerSet) always(names ...string) { h.add("", names) }

// sometimes adds headers that such responses may have.
func (h *headerSet) sometimes(names ...string) { h.add(optional, names) }

func (h *headerSet) add(prefix string, names []string) {
	for _, name := range names {
		h.all.Set(name, &openapi.Header{Ref: headersAt + prefix + name})
	}
}

// common returns the headers of every response that the service writes itself.
func common() *headerSet {
	h := &headerSet{new(openapi.Map[*openapi.Header])}
	h.always("X-Request-Id", "Cache-Control", "X-Content-Type-Options")
	return h
}

var (
	ofPages      = []string{"Content-Security-Policy", "Referrer-Policy", "X-Frame-Options"}
	ofScripts    = []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers"}
	ofRateLimits = []string{"RateLimit", "RateLimit-Policy"}
)

// ofSuccess returns the headers of a success.
func ofSuccess(r *handlers.Route, status int) *openapi.Map[*openapi.Header] {
	h := common()
	if r.IdempotencyKey {
		h.sometimes("Idempotent-Replayed")
	}
	if counted(r) {
		h.sometimes(ofRateLimits...)
	}
	switch {
	case r.Auth == handlers.OptionalAuth:
		h.always(ofScripts...)
	case status == http.StatusSeeOther:
		h.always("Location", "Referrer-Policy", "X-Frame-Options")
	case r.Page || r.Media == "text/html":
		h.always(ofPages...)
	}
	if r.Media != "" {
		h.all.Set("Cache-Control", &openapi.Header{Ref: headersAt + caching})
		h.sometimes("Vary", "Content-Encoding")
		if slices.Contains(r.Statuses, http.StatusNotModified) {
			h.always("ETag")
		}
	}
	return h.all
}

// ofFailure returns the headers of refusals with one status; r is nil for requests that name no route.
func ofFailure(r *handlers.Route, refusals []handlers.Refusal) *openapi.Map[*openapi.Header] {
	h, status := common(), refusals[0].Status
	add := h.always
	if early(status) || r == nil {
		add = h.sometimes // the node may not know the route yet
	}
	if r == nil || r.Page {
		add(ofPages...)
	}
	if r == nil || r.Auth == handlers.OptionalAuth {
		add(ofScripts...)
	}
	if r != nil && replayable(r, status) {
		h.sometimes("Idempotent-Replayed")
	}
	switch {
	case status == http.StatusTooManyRequests:
		h.always(ofRateLimits...)
	case r != nil && counted(r):
		h.sometimes(ofRateLimits...)
	}
	switch status {
	case http.StatusUnauthorized:
		h.always("WWW-Authenticate")
	case http.StatusMethodNotAllowed:
		h.always("Allow")
	}
	temporary := func(refusal handlers.Refusal) bool { return refusal.RetryAfter }
	switch {
	case !slices.ContainsFunc(refusals, temporary):
	case slices.ContainsFunc(refusals, func(refusal handlers.Refusal) bool { return !refusal.RetryAfter }):
		h.sometimes("Retry-After")
	default:
		h.always("Retry-After")
	}
	return h.all
}

// counted reports whether limits may count requests to a route that they do not refuse: files for every client have no
// such limit.
func counted(r *handlers.Route) bool { return r.Auth != handlers.NoAuth || r.Page || r.Media == "" }

// early reports whether a node may answer with a status before it knows the route of the request.
func early(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusRequestHeaderFieldsTooLarge, http.StatusInternalServerError, http.StatusServiceUnavailable:
		return true
	}
	return false
}

// replayable reports whether the service repeats refusals of a route with a status under the same Idempotency-Key.
func replayable(r *handlers.Route, status int) bool {
	return r.IdempotencyKey && (status == http.StatusForbidden || status == http.StatusConflict)
}
