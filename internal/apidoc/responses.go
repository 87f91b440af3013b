package apidoc

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"licet/handlers"
)

// responses holds the responses that several routes share.
type responses struct {
	schemas *schemas
	shared  *orderedmap.Map[string, *v3.Response]
	folder  string // of the golden files
}

// headers describes every header that a response may have beside those of HTTP itself.
func headers() *orderedmap.Map[string, *v3.Header] {
	all := orderedmap.New[string, *v3.Header]()
	add := func(name, kind, description string) {
		all.Set(name, &v3.Header{
			Description: description, Schema: base.CreateSchemaProxy(&base.Schema{Type: []string{kind}}),
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
func named(names ...string) *orderedmap.Map[string, *v3.Header] {
	all := orderedmap.New[string, *v3.Header]()
	for _, name := range names {
		all.Set(name, v3.CreateHeaderRef("#/components/headers/"+name))
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
func (s *responses) of(r *handlers.Route, example golden) *v3.Responses {
	codes := orderedmap.New[string, *v3.Response]()
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
	return &v3.Responses{Codes: codes}
}

// success returns the response to a request that has succeeded.
func (s *responses) success(r *handlers.Route, status int, example golden) *v3.Response {
	names := always(r)
	if r.IdempotencyKey {
		names = append(names, "Idempotent-Replayed")
	}
	response := &v3.Response{Description: http.StatusText(status)}
	switch {
	case status == http.StatusSeeOther:
		names = append(names, "Location")
	case r.Page:
		names = append(names, "Content-Security-Policy")
		response.Content = page()
	case r.Media != "":
		response.Content = orderedmap.FromPairs(orderedmap.NewPair(r.Media, new(v3.MediaType)))
	default:
		schema := &base.Schema{Type: []string{"object"}, Required: []string{"code", "message", "data"}}
		schema.Properties = orderedmap.FromPairs(
			orderedmap.NewPair("code", base.CreateSchemaProxy(&base.Schema{Type: []string{"integer"}, Const: number(0)})),
			orderedmap.NewPair("message", base.CreateSchemaProxy(&base.Schema{Type: []string{"string"}})),
			orderedmap.NewPair("data", s.schemas.ofMember("", "", r.Response)),
		)
		response.Content = inJSON(schema, example)
	}
	response.Headers = named(names...)
	return response
}

// failure returns a reference to the response for refusals with one status.
func (s *responses) failure(r *handlers.Route, refusals []handlers.Refusal) *v3.Response {
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
	if _, known := s.shared.Get(name); !known {
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
		response := &v3.Response{Description: strings.Join(texts, "\n"), Headers: named(headers...)}
		if r != nil && r.Page {
			response.Headers.Set("Content-Security-Policy", v3.CreateHeaderRef("#/components/headers/Content-Security-Policy"))
			response.Content = page()
		} else {
			response.Content = inJSON(failureSchema(refusals), golden{})
			response.Content.First().Value().Examples = s.failures(refusals)
		}
		s.shared.Set(name, response)
	}
	return v3.CreateResponseRef("#/components/responses/" + name)
}

// failureSchema returns the schema of the envelope of refusals.
func failureSchema(refusals []handlers.Refusal) *base.Schema {
	code := &base.Schema{Type: []string{"integer"}}
	reason := &base.Schema{Type: []string{"string"}}
	for _, refusal := range refusals {
		code.Enum = append(code.Enum, number(refusal.Code))
		reason.Enum = append(reason.Enum, word(string(refusal.Reason)))
	}
	reasons := &base.Schema{Properties: orderedmap.FromPairs(
		orderedmap.NewPair("reason", base.CreateSchemaProxy(reason)))}
	return &base.Schema{AllOf: []*base.SchemaProxy{reference("Failure"), base.CreateSchemaProxy(&base.Schema{
		Properties: orderedmap.FromPairs(
			orderedmap.NewPair("code", base.CreateSchemaProxy(code)),
			orderedmap.NewPair("error", base.CreateSchemaProxy(reasons)),
		),
	})}}
}

// failures returns examples of refusals, for each code that has a golden file.
func (s *responses) failures(refusals []handlers.Refusal) *orderedmap.Map[string, *base.Example] {
	all := orderedmap.New[string, *base.Example]()
	for _, refusal := range refusals {
		names, err := filepath.Glob(filepath.Join(s.folder, strconv.Itoa(refusal.Code)+"*.txt"))
		if err != nil || len(names) == 0 {
			continue
		}
		example, err := readGolden(s.folder, strings.TrimSuffix(filepath.Base(names[0]), ".txt"))
		if err == nil && example.response != nil {
			all.Set(string(refusal.Reason), &base.Example{Value: example.response})
		}
	}
	return all
}

// inJSON returns a body in JSON.
func inJSON(schema *base.Schema, example golden) *orderedmap.Map[string, *v3.MediaType] {
	return orderedmap.FromPairs(orderedmap.NewPair("application/json",
		&v3.MediaType{Schema: base.CreateSchemaProxy(schema), Examples: examples(example.response)}))
}

// page returns a body that is a page.
func page() *orderedmap.Map[string, *v3.MediaType] {
	return orderedmap.FromPairs(orderedmap.NewPair("text/html",
		&v3.MediaType{Schema: base.CreateSchemaProxy(&base.Schema{Type: []string{"string"}})}))
}
