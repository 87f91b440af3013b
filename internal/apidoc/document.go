package apidoc

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"licet/handlers"
)

const about = `Sells software licenses and activates them on devices.

Every response is an envelope. Its code is 0 for a success, and else one of the codes of the response. Timestamps are
RFC 3339 in UTC with milliseconds. Every member is always present; null stands for no value. Later versions may add
members, and values to lists of words.

The API reference explains what types can't say: the order of checks, limits of size and rate, idempotency, signatures.`

// Document makes the document. Its examples come from the golden files in a folder.
func Document(goldenFiles string) (*v3.Document, error) {
	s := &schemas{all: orderedmap.New[string, *base.SchemaProxy](), types: make(map[string]reflect.Type)}
	shared := &responses{schemas: s, shared: orderedmap.New[string, *v3.Response](), folder: goldenFiles}
	document := &v3.Document{
		Version: "3.1.0",
		Info: &base.Info{
			Title: "Licet", Version: "v1", Description: about,
			License: &base.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*v3.Server{{URL: "/", Description: "the service that serves this document"}},
		Paths:   &v3.Paths{PathItems: orderedmap.New[string, *v3.PathItem]()},
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
		item := document.Paths.PathItems.GetOrZero(r.Pattern)
		if item == nil {
			item = new(v3.PathItem)
			document.Paths.PathItems.Set(r.Pattern, item)
		}
		operation := &v3.Operation{
			Tags: []string{tag(r.Pattern)}, OperationId: text.id,
			Summary:      strings.ToUpper(text.summary[:1]) + text.summary[1:],
			ExternalDocs: &base.ExternalDoc{Description: "API reference", URL: "api.md#" + text.section},
			Parameters:   parameters(text.id, &r), RequestBody: s.body(&r, example),
			Responses: shared.of(&r, example), Security: security(&r),
		}
		*method(item, r.Method) = operation
	}
	s.event()
	document.Webhooks = webhooks()
	for _, refusal := range handlers.Refusals() {
		if refusal.Status == http.StatusNotFound && refusal.Reason == "not_found" ||
			refusal.Status == http.StatusMethodNotAllowed {
			shared.failure(nil, []handlers.Refusal{refusal})
		}
	}
	s.failures()
	document.Components = &v3.Components{
		Schemas: s.all, Responses: shared.shared, Parameters: headerParameters(), Headers: headers(),
		SecuritySchemes: orderedmap.FromPairs(orderedmap.NewPair("ApiKey", &v3.SecurityScheme{
			Type: "http", Scheme: "bearer",
			Description: "An API key, with the scopes that the operation names. Requests with the key may be signed with its " +
				"secret (RFC 9421), and must be if the key demands signatures.",
		})),
	}
	return document, nil
}

// tag returns the group of a route: the kind of resource in its path.
func tag(pattern string) string {
	parts := strings.Split(pattern, "/")
	if parts[1] == "v1" {
		return parts[2]
	}
	if parts[1] == "pay" {
		return "pay"
	}
	return "probes"
}

// method returns the place of an operation.
func method(item *v3.PathItem, name string) **v3.Operation {
	switch name {
	case http.MethodGet:
		return &item.Get
	case http.MethodPost:
		return &item.Post
	case http.MethodPut:
		return &item.Put
	case http.MethodPatch:
		return &item.Patch
	case http.MethodDelete:
		return &item.Delete
	default:
		panic("no place for the method " + name)
	}
}

// security returns which credentials a route reads.
func security(r *handlers.Route) []*base.SecurityRequirement {
	requirement := func(scopes []string) *base.SecurityRequirement {
		return &base.SecurityRequirement{Requirements: orderedmap.FromPairs(orderedmap.NewPair("ApiKey", scopes))}
	}
	switch r.Auth {
	case handlers.RequiredAuth:
		return []*base.SecurityRequirement{requirement(r.Scopes)}
	case handlers.OptionalAuth:
		return []*base.SecurityRequirement{noCredentials(), requirement([]string{})}
	default:
		return []*base.SecurityRequirement{noCredentials()}
	}
}

// noCredentials returns the requirement that every request meets.
func noCredentials() *base.SecurityRequirement {
	return &base.SecurityRequirement{Requirements: orderedmap.New[string, []string](), ContainsEmptyRequirement: true}
}

// event adds the schema of an event and of its data. Later versions may add members to the data.
func (s *schemas) event() {
	event, data := handlers.EventForm()
	s.ofAnswer(event)
	s.ofAnswer(data)
	if account, has := s.all.Get("AccountUsage"); has {
		numbers := &base.Schema{
			Type: []string{"object"}, Properties: orderedmap.New[string, *base.SchemaProxy](),
			Description: description("EventData", "account"),
		}
		for name, member := range account.Schema().Properties.FromOldest() {
			if slices.Contains(member.Schema().Type, "integer") {
				numbers.Properties.Set(name, member)
			}
		}
		s.all.GetOrZero("EventData").Schema().Properties.Set("account", base.CreateSchemaProxy(numbers))
	}
}

// failures adds the schema of the envelope of a refusal.
func (s *schemas) failures() {
	code := &base.Schema{Type: []string{"integer"}, Description: "status × 100 + n, never 0"}
	reason := &base.Schema{Type: []string{"string"}, Description: "the code as a word"}
	for _, refusal := range handlers.Refusals() {
		code.Enum = append(code.Enum, number(refusal.Code))
		reason.Enum = append(reason.Enum, word(string(refusal.Reason)))
	}
	text := func(description string) *base.SchemaProxy {
		return base.CreateSchemaProxy(&base.Schema{Type: []string{"string"}, Description: description})
	}
	field := base.CreateSchemaProxy(&base.Schema{
		Type: []string{"object"}, Required: []string{"field", "problem"},
		Properties: orderedmap.FromPairs(
			orderedmap.NewPair("field", text("the member, parameter or header")),
			orderedmap.NewPair("problem", text("what the value must be")),
		),
	})
	count := base.CreateSchemaProxy(&base.Schema{Type: []string{"integer"}})
	failure := base.CreateSchemaProxy(&base.Schema{
		Type: []string{"object"}, Required: []string{"reason", "retryable", "request_id"},
		Properties: orderedmap.FromPairs(
			orderedmap.NewPair("reason", base.CreateSchemaProxy(reason)),
			orderedmap.NewPair("retryable", base.CreateSchemaProxy(&base.Schema{
				Type: []string{"boolean"}, Description: "whether sending the same request again is safe and may help",
			})),
			orderedmap.NewPair("request_id", text("the header X-Request-Id")),
			orderedmap.NewPair("fields", base.CreateSchemaProxy(&base.Schema{
				Type: []string{"array"}, Description: "every bad member",
				Items: &base.DynamicValue[*base.SchemaProxy, bool]{A: field},
			})),
			orderedmap.NewPair("details", base.CreateSchemaProxy(&base.Schema{
				Type: []string{"object"}, Description: "counts that help",
				AdditionalProperties: &base.DynamicValue[*base.SchemaProxy, bool]{A: count},
			})),
		),
	})
	s.add("Failure", &base.Schema{
		Type: []string{"object"}, Required: []string{"code", "message", "error"},
		Properties: orderedmap.FromPairs(
			orderedmap.NewPair("code", base.CreateSchemaProxy(code)),
			orderedmap.NewPair("message", text("for people; texts may change")),
			orderedmap.NewPair("error", failure),
		),
	})
}
