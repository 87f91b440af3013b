package apidoc

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"licet/handlers"
	"licet/internal/apidoc/openapi"
)

// responses holds the responses that several routes share.
type responses struct {
	schemas *schemas
	shared  *openapi.Map[*openapi.Response]
	folder  string // of the golden files
}

// headers describes every header that a response may have beside those of HTTP itself.
func headers() *openapi.Map[*openapi.Header] {
	all := new(openapi.Map[*openapi.Header])
	add := func(name, kind, description string) {
		all.Set(name, &openapi.Header{
			Description: description, Schema: &openapi.Schema{Type: []string{kind}},
		})
	}
	add("X-Request-Id", "string", "The id of the request: its own, or a new one.")
	add("Cache-Control", "string", "no-store")
	add("X-Content-Type-Options", "string", "nosniff")
	add("Retry-After", "integer", "The seconds after which the same request may succeed.")
	add("RateLimit", "string",
		"What the limits that counted the request still allow (draft-ietf-httpapi-ratelimit-headers).")
	add("RateLimit-Policy", "string", "The limits that counted the request.")
	add("WWW-Authenticate", "string", "Bearer, with the realm of the service.")
	add("Allow", "string", "The methods of the route.")
	add("Idempotent-Replayed", "string", "true if the response repeats an earlier one.")
	add("Access-Control-Allow-Origin", "string", "*: scripts of any web page may call the route.")
	add("Access-Control-Expose-Headers", "string", "The headers that scripts may read.")
	add("Location", "string", "Where the browser goes on.")
	add("Content-Security-Policy", "string", "What the page may load.")
	add("Referrer-Policy", "string", "same-origin: the address of the page is a secret.")
	add("X-Frame-Options", "string", "DENY")
	return all
}

// named returns references to headers.
func named(names ...string) *openapi.Map[*openapi.Header] {
	all := new(openapi.Map[*openapi.Header])
	for _, name := range names {
		all.Set(name, &openapi.Header{Ref: "#/components/headers/" + name})
	}
	return all
}

// always lists the headers of every response of a route.
func always(r *handlers.Route) []string {
	names := []string{"X-Request-Id", "Cache-Control", "X-Content-Type-Options"}
	switch {
	case r == nil:
	case r.Page:
		return append(names, "Referrer-Policy", "X-Frame-Options")
	case r.Auth == handlers.OptionalAuth:
		names = append(names, "Access-Control-Allow-Origin", "Access-Control-Expose-Headers")
		fallthrough
	case r.Auth == handlers.RequiredAuth:
		return append(names, "RateLimit", "RateLimit-Policy")
	}
	return names
}

// of returns the responses of a route.
func (s *responses) of(r *handlers.Route, example golden) *openapi.Map[*openapi.Response] {
	codes := new(openapi.Map[*openapi.Response])
	for _, status := range r.Statuses {
		codes.Set(strconv.Itoa(status), s.success(r, status, example))
	}
	byStatus := make(map[int][]handlers.Refusal)
	for _, refusal := range r.Refusals {
		byStatus[refusal.Status] = append(byStatus[refusal.Status], refusal)
	}
	for _, refusal := range r.Refusals {
		same := byStatus[refusal.Status]
		codes.Set(strconv.Itoa(refusal.Status), s.failure(r, same))
	}
	return codes
}

// success returns the response to a request that has succeeded.
func (s *responses) success(r *handlers.Route, status int, example golden) *openapi.Response {
	names := always(r)
	if r.IdempotencyKey {
		names = append(names, "Idempotent-Replayed")
	}
	response := &openapi.Response{Description: http.StatusText(status)}
	switch {
	case status == http.StatusSeeOther:
		names = append(names, "Location")
	case r.Page:
		names = append(names, "Content-Security-Policy")
		response.Content = page()
	case r.Media != "":
		response.Content = openapi.MapOf(r.Media, new(openapi.MediaType))
	default:
		schema := &openapi.Schema{Type: []string{"object"}, Required: []string{"code", "message", "data"}}
		schema.Properties = openapi.MapOf("code", &openapi.Schema{Type: []string{"integer"}, Const: 0}).
			Set("message", &openapi.Schema{Type: []string{"string"}}).
			Set("data", s.schemas.ofMember("", "", r.Response))
		response.Content = inJSON(schema, example)
	}
	response.Headers = named(names...)
	return response
}

// failure returns a reference to the response for refusals with one status.
func (s *responses) failure(r *handlers.Route, refusals []handlers.Refusal) *openapi.Response {
	var codes, texts []string
	for _, refusal := range refusals {
		codes = append(codes, strconv.Itoa(refusal.Code))
		texts = append(texts, fmt.Sprintf("- %d `%s`: %s", refusal.Code, refusal.Reason, meanings()[refusal.Reason]))
	}
	name := strings.Join(codes, "-")
	switch {
	case r == nil:
	case r.Page:
		name = "page-" + name
	case r.Auth == handlers.OptionalAuth:
		name = "open-" + name
	case r.Auth == handlers.NoAuth:
		name = "probe-" + name
	}
	if s.shared.Get(name) == nil {
		headers := always(r)
		switch refusals[0].Status {
		case http.StatusUnauthorized:
			headers = append(headers, "WWW-Authenticate")
		case http.StatusMethodNotAllowed:
			headers = append(headers, "Allow")
		}
		for _, refusal := range refusals {
			if refusal.RetryAfter {
				headers = append(headers, "Retry-After")
				break
			}
		}
		response := &openapi.Response{Description: strings.Join(texts, "\n"), Headers: named(headers...)}
		if r != nil && r.Page {
			response.Headers.Set("Content-Security-Policy",
				&openapi.Header{Ref: "#/components/headers/Content-Security-Policy"})
			response.Content = page()
		} else {
			response.Content = inJSON(failureSchema(refusals), golden{})
			response.Content.First().Examples = s.failures(refusals)
		}
		s.shared.Set(name, response)
	}
	return &openapi.Response{Ref: "#/components/responses/" + name}
}

// failureSchema returns the schema of the envelope of refusals.
func failureSchema(refusals []handlers.Refusal) *openapi.Schema {
	code := &openapi.Schema{Type: []string{"integer"}}
	reason := &openapi.Schema{Type: []string{"string"}}
	for _, refusal := range refusals {
		code.Enum = append(code.Enum, refusal.Code)
		reason.Enum = append(reason.Enum, string(refusal.Reason))
	}
	reasons := &openapi.Schema{Properties: openapi.MapOf("reason", reason)}
	return &openapi.Schema{AllOf: []*openapi.Schema{reference("Failure"), {
		Properties: openapi.MapOf("code", code).Set("error", reasons),
	}}}
}

// failures returns examples of refusals, for each code that has a golden file.
func (s *responses) failures(refusals []handlers.Refusal) *openapi.Map[*openapi.Example] {
	all := new(openapi.Map[*openapi.Example])
	for _, refusal := range refusals {
		names, err := filepath.Glob(filepath.Join(s.folder, strconv.Itoa(refusal.Code)+"*.txt"))
		if err != nil || len(names) == 0 {
			continue
		}
		example, err := readGolden(s.folder, strings.TrimSuffix(filepath.Base(names[0]), ".txt"))
		if err == nil && example.response != nil {
			all.Set(string(refusal.Reason), &openapi.Example{Value: example.response})
		}
	}
	return all
}

// inJSON returns a body in JSON.
func inJSON(schema *openapi.Schema, example golden) *openapi.Map[*openapi.MediaType] {
	return openapi.MapOf("application/json",
		&openapi.MediaType{Schema: schema, Examples: examples(example.response)})
}

// page returns a body that is a page.
func page() *openapi.Map[*openapi.MediaType] {
	return openapi.MapOf("text/html",
		&openapi.MediaType{Schema: &openapi.Schema{Type: []string{"string"}}})
}
