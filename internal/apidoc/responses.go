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

// responses contains the responses that several routes share.
type responses struct {
	schemas *schemas
	shared  *openapi.Map[*openapi.Response]
	folder  string // of the golden files
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
	response := &openapi.Response{Description: http.StatusText(status), Headers: ofSuccess(r, status)}
	switch {
	case status == http.StatusSeeOther, status == http.StatusNotModified:
	case r.Page:
		response.Content = page()
	case r.Media != "":
		response.Content = openapi.MapOf(r.Media,
			&openapi.MediaType{Schema: s.schemas.ofFile(r), Examples: examples(example.response)})
	default:
		schema := &openapi.Schema{Type: []string{"object"}, Required: []string{"code", "message", "data"}}
		schema.Properties = openapi.MapOf("code", &openapi.Schema{Type: []string{"integer"}, Const: 0}).
			Set("message", &openapi.Schema{Type: []string{"string"}}).
			Set("data", s.schemas.ofMember("", "", r.Response))
		response.Content = inJSON(schema, example)
	}
	return response
}

// failure returns a reference to the response for refusals with one status. r is nil for requests that name no route:
// no operation refers to their responses.
func (s *responses) failure(r *handlers.Route, refusals []handlers.Refusal) *openapi.Response {
	var codes, texts []string
	for _, refusal := range refusals {
		codes = append(codes, strconv.Itoa(refusal.Code))
		texts = append(texts, fmt.Sprintf("- %d `%s`: %s", refusal.Code, refusal.Reason, meanings()[refusal.Reason]))
	}
	name, status := strings.Join(codes, "-"), refusals[0].Status
	switch {
	case r == nil:
		name = noRoute + name
	case r.Page:
		name = "page-" + name
	case r.Auth == handlers.OptionalAuth:
		name = "open-" + name
	case r.Auth == handlers.NoAuth:
		name = "probe-" + name
	case replayable(r, status):
		name = "once-" + name
	}
	if s.shared.Get(name) == nil {
		response := &openapi.Response{Description: strings.Join(texts, "\n"), Headers: ofFailure(r, refusals)}
		response.Content = new(openapi.Map[*openapi.MediaType])
		if r == nil || !r.Page || early(status) {
			response.Content = inJSON(failureSchema(refusals), golden{})
			response.Content.First().Examples = s.failures(refusals)
		}
		if r == nil || r.Page {
			response.Content.Set("text/html", page().First())
		}
		s.shared.Set(name, response)
	}
	return &openapi.Response{Ref: "#/components/responses/" + name}
}

// noRoute begins the names of the responses to requests that name no route.
const noRoute = "no-route-"

// preflight is the name of the response to OPTIONS on the path of an open route.
const preflight = "preflight"

// withoutRoute adds the responses to requests that name no route: an unknown path, a known path with another method,
// and a preflight request.
func (s *responses) withoutRoute() {
	for _, refusal := range handlers.Refusals() {
		if refusal.Code == http.StatusNotFound*100 || refusal.Code == http.StatusMethodNotAllowed*100 {
			s.failure(nil, []handlers.Refusal{refusal})
		}
	}
	h := common()
	h.always(ofScripts...)
	h.always("Allow", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age")
	s.shared.Set(preflight, &openapi.Response{
		Description: "The response to `OPTIONS` on the path of an open route, which browsers send before a request.",
		Headers:     h.all,
	})
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
			all.Set(string(refusal.Reason), &openapi.Example{Value: *example.response})
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
