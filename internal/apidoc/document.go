package apidoc

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"licet/handlers"
	"licet/internal/apidoc/openapi"
)

const about = `Sells software licenses and activates them on devices.

Every response is an envelope. Its code is 0 for a success, and else one of the codes of the response. Timestamps are
RFC 3339 in UTC with milliseconds. Every member is always present; null stands for no value. Later versions may add
members, and values to lists of words.

HEAD works wherever GET does: the response has the same status and headers, and no body.

A path that belongs to no route gets the response no-route-40400 of the components, and a method that the path lacks
gets no-route-40500. OPTIONS on the path of an open route gets the response preflight. A node may refuse a request
before it knows the route, with 400, 413, 414, 431, 500 or 503: the response is then JSON, also on routes of pages.

x-max-bytes is the most bytes that the body of a request may have. A URI may have 4 KiB, and a request line with its
headers 12 KiB.`

// Document makes the document. Its examples come from the golden files in a folder.
func Document(goldenFiles string) (*openapi.Document, error) {
	s := &schemas{all: new(openapi.Map[*openapi.Schema]), types: make(map[string]reflect.Type)}
	shared := &responses{schemas: s, shared: new(openapi.Map[*openapi.Response]), folder: goldenFiles}
	document := &openapi.Document{
		OpenAPI: "3.1.0",
		Info: openapi.Info{
			Title: "Licet", Version: "v1", Description: about,
			License: openapi.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []openapi.Server{{URL: ".", Description: "the service that serves this document"}},
		Paths:   new(openapi.Map[*openapi.PathItem]),
	}
	texts := operations()
	for _, r := range handlers.Routes() {
		name := r.Method + " " + r.Pattern
		text, known := texts[name]
		if !known {
			return nil, fmt.Errorf("operations.go has no row of %s", name)
		}
		var example golden
		if text.example != "" {
			var err error
			if example, err = readGolden(goldenFiles, text.example); err != nil {
				return nil, err
			}
		}
		item := document.Paths.Get(r.Pattern)
		if item == nil {
			item = new(openapi.PathItem)
			document.Paths.Set(r.Pattern, item)
		}
		operation := &openapi.Operation{
			Tags: []string{tag(r.Pattern)}, OperationID: text.id,
			Summary:    strings.ToUpper(text.summary[:1]) + text.summary[1:],
			Parameters: parameters(text.id, &r), RequestBody: s.body(&r, example),
			Responses: shared.of(&r, example), Security: security(&r),
		}
		*item.Place(r.Method) = operation
	}
	if err := s.event(); err != nil {
		return nil, err
	}
	var err error
	if document.Webhooks, err = webhooks(goldenFiles); err != nil {
		return nil, err
	}
	shared.withoutRoute()
	s.failures()
	document.Components = openapi.Components{
		Schemas: s.all, Responses: shared.shared, Parameters: headerParameters(),
		SecuritySchemes: openapi.MapOf("ApiKey", &openapi.SecurityScheme{
			Type: "http", Scheme: "bearer",
			Description: "An API key, with the scopes that the operation names. Requests with the key may be signed " +
				"with its secret (RFC 9421), and must be if the key demands signatures.",
		}),
	}
	document.Components.Headers = usedHeaders(document)
	return document, nil
}

// tag returns the group of a route: the kind of resource in its path.
func tag(pattern string) string {
	parts := strings.Split(pattern, "/")
	if parts[1] == "v1" {
		return parts[2]
	}
	switch parts[1] {
	case "pay":
		return "pay"
	case "livez", "readyz":
		return "probes"
	default:
		return "docs"
	}
}

// security returns which credentials a route reads.
func security(r *handlers.Route) []map[string][]string {
	switch r.Auth {
	case handlers.RequiredAuth:
		return []map[string][]string{{"ApiKey": r.Scopes}}
	case handlers.OptionalAuth:
		return []map[string][]string{noCredentials(), {"ApiKey": {}}}
	default:
		return []map[string][]string{noCredentials()}
	}
}

// noCredentials returns the requirement that every request meets.
func noCredentials() map[string][]string { return map[string][]string{} }

// event adds the schema of an event and of its data. Later versions may add members to the data.
func (s *schemas) event() error {
	event, data := handlers.EventForm()
	s.ofAnswer(event)
	s.ofAnswer(data)
	s.all.Get("EventData").Properties.Set("days_before_end", &openapi.Schema{
		Type: []string{"integer"}, Description: description("EventData", "days_before_end"),
	})
	dispute := &openapi.Schema{Type: []string{"object"}, Properties: new(openapi.Map[*openapi.Schema])}
	for _, m := range [][2]string{{"reference", "string"}, {"status", "string"}, {"amount", "integer"}} {
		dispute.Properties.Set(m[0], &openapi.Schema{Type: []string{m[1]}, Description: description("Dispute", m[0])})
	}
	s.all.Set("Dispute", dispute)
	s.all.Get("EventData").Properties.Set("dispute", &openapi.Schema{
		Ref: reference("Dispute").Ref, Description: description("EventData", "dispute"),
	})
	usage, err := s.usage()
	if err != nil {
		return err
	}
	s.all.Get("EventData").Properties.Set("account", &openapi.Schema{
		Ref: usage.Ref, Description: description("EventData", "account"),
	})
	return nil
}

// usage adds the schema of how much an account stores, in the data of an event: the numbers that a look-up of the
// account shows.
func (s *schemas) usage() (*openapi.Schema, error) {
	account := s.all.Get("Account")
	if account == nil {
		return nil, errors.New("the document has no schema Account")
	}
	usage := &openapi.Schema{Type: []string{"object"}, Properties: new(openapi.Map[*openapi.Schema])}
	for name, member := range account.Properties.All() {
		if slices.Contains(member.Type, "integer") {
			usage.Properties.Set(name, member)
		}
	}
	return s.add("AccountUsage", usage), nil
}

// failures adds the schema of the envelope of a refusal.
func (s *schemas) failures() {
	code := &openapi.Schema{Type: []string{"integer"}, Description: "status × 100 + n, never 0"}
	reason := &openapi.Schema{Type: []string{"string"}, Description: "the code as a word"}
	for _, refusal := range handlers.Refusals() {
		code.Enum = append(code.Enum, refusal.Code)
		reason.Enum = append(reason.Enum, string(refusal.Reason))
	}
	text := func(description string) *openapi.Schema {
		return &openapi.Schema{Type: []string{"string"}, Description: description}
	}
	field := &openapi.Schema{
		Type: []string{"object"}, Required: []string{"field", "problem"},
		Properties: openapi.MapOf("field", text("the member, parameter or header")).
			Set("problem", text("what the value must be")),
	}
	count := &openapi.Schema{Type: []string{"integer"}}
	failure := &openapi.Schema{
		Type: []string{"object"}, Required: []string{"reason", "retryable", "request_id"},
		Properties: openapi.MapOf("reason", reason).
			Set("retryable", &openapi.Schema{
				Type: []string{"boolean"}, Description: "whether sending the same request again is safe and may help",
			}).
			Set("request_id", text("the header X-Request-Id")).
			Set("fields", &openapi.Schema{Type: []string{"array"}, Description: "every bad member", Items: field}).
			Set("details", &openapi.Schema{
				Type: []string{"object"}, Description: "counts that help", AdditionalProperties: count,
			}).
			Set("docs_url", text("the address of the code's section in the docs, relative to the public URL of the "+
				"service; only where the service serves its docs")),
	}
	s.add("Failure", &openapi.Schema{
		Type: []string{"object"}, Required: []string{"code", "message", "error"},
		Properties: openapi.MapOf("code", code).
			Set("message", text("for people; texts may change")).
			Set("error", failure),
	})
}
