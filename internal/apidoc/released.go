package apidoc

import (
	"fmt"
	"reflect"
	"slices"

	"licet/internal/apidoc/openapi"
)

// breaking returns the changes between a released document and its successor that break clients. Requests may gain
// members, parameters and words that are optional; responses may gain members, words and codes; limits may not change,
// and neither may names that generated clients use: of operations and of shared schemas.
func breaking(released, current *openapi.Document) []string {
	c := comparison{before: released, after: current}
	c.items("", c.before.Paths, c.after.Paths)
	c.items("webhook ", c.before.Webhooks, c.after.Webhooks)
	for name := range c.before.Components.Schemas.All() {
		if c.after.Components.Schemas.Get(name) == nil {
			c.report("components", "the schema %s was removed", name)
		}
	}
	slices.Sort(c.found)
	return slices.Compact(c.found)
}

// comparison compares two documents.
type comparison struct {
	before, after *openapi.Document
	seen          []string // the shared schemas that are compared already, or just now
	found         []string
}

func (c *comparison) report(where, format string, values ...any) {
	c.found = append(c.found, where+": "+fmt.Sprintf(format, values...))
}

// items compares paths, or webhooks. Of webhooks, the service sends the requests.
func (c *comparison) items(kind string, before, after *openapi.Map[*openapi.PathItem]) {
	for path, item := range before.All() {
		for method, operation := range item.Operations() {
			where := kind + method + " " + path
			successor := after.Get(path)
			if successor == nil || *successor.Place(method) == nil {
				c.report(where, "removed")
				continue
			}
			c.operations(where, kind == "", operation, *successor.Place(method))
		}
	}
}

// operations compares two operations. received: the service receives the requests.
func (c *comparison) operations(where string, received bool, before, after *openapi.Operation) {
	if before.OperationID != after.OperationID {
		c.report(where, "the operationId %s became %s", before.OperationID, after.OperationID)
	}
	c.parameters(where, received, before.Parameters, after.Parameters)
	if before.RequestBody != nil && after.RequestBody != nil {
		if !before.RequestBody.Required && after.RequestBody.Required {
			c.report(where, "the body became required")
		}
		if before.RequestBody.MaxBytes != after.RequestBody.MaxBytes {
			c.report(where, "x-max-bytes %d became %d", before.RequestBody.MaxBytes, after.RequestBody.MaxBytes)
		}
		c.contents(where, received, before.RequestBody.Content, after.RequestBody.Content)
	} else if before.RequestBody != nil || after.RequestBody != nil && after.RequestBody.Required {
		c.report(where, "the body of the request was added or removed")
	}
	for status, response := range before.Responses.All() {
		successor := after.Responses.Get(status)
		if successor == nil {
			c.report(where, "the response %s was removed", status)
			continue
		}
		response = c.before.Components.Responses.Resolve(response.Ref, response)
		successor = c.after.Components.Responses.Resolve(successor.Ref, successor)
		for name, header := range response.Headers.All() {
			now := successor.Headers.Get(name)
			if now == nil {
				c.report(where+" "+status, "the header %s was removed", name)
				continue
			}
			header = c.before.Components.Headers.Resolve(header.Ref, header)
			now = c.after.Components.Headers.Resolve(now.Ref, now)
			if header.Required && !now.Required {
				c.report(where+" "+status, "the header %s became optional", name)
			}
			c.schemas(where+" "+status+" "+name, !received, header.Schema, now.Schema)
		}
		c.contents(where+" "+status, !received, response.Content, successor.Content)
	}
	for _, requirement := range before.Security {
		if !slices.ContainsFunc(after.Security, func(other map[string][]string) bool {
			return reflect.DeepEqual(requirement, other)
		}) {
			c.report(where, "the credentials %v no longer suffice", requirement)
		}
	}
}

// parameters compares the parameters of two operations.
func (c *comparison) parameters(where string, received bool, before, after []*openapi.Parameter) {
	known := make(map[[2]string]*openapi.Parameter)
	for _, p := range after {
		p = c.after.Components.Parameters.Resolve(p.Ref, p)
		known[[2]string{p.In, p.Name}] = p
	}
	for _, p := range before {
		p = c.before.Components.Parameters.Resolve(p.Ref, p)
		key := [2]string{p.In, p.Name}
		successor := known[key]
		delete(known, key)
		switch {
		case successor == nil:
			c.report(where, "the parameter %s was removed", p.Name)
			continue
		case successor.Required && !p.Required:
			c.report(where, "the parameter %s became required", p.Name)
		}
		c.schemas(where+" "+p.Name, received, p.Schema, successor.Schema)
	}
	for _, p := range known {
		if p.Required {
			c.report(where, "the parameter %s was added and is required", p.Name)
		}
	}
}

// contents compares the bodies of two requests, or of two responses.
func (c *comparison) contents(where string, received bool, before, after *openapi.Map[*openapi.MediaType]) {
	for media, body := range before.All() {
		successor := after.Get(media)
		if successor == nil {
			c.report(where, "the media type %s was removed", media)
			continue
		}
		c.schemas(where, received, body.Schema, successor.Schema)
	}
}

// schemas compares two schemas, of what the service receives or of what the service sends.
func (c *comparison) schemas(where string, received bool, before, after *openapi.Schema) {
	if before == nil || after == nil {
		if before != after {
			c.report(where, "a schema was added or removed")
		}
		return
	}
	if before.Ref != "" && after.Ref != "" {
		if before.Ref != after.Ref {
			c.report(where, "the schema %s became %s", before.Ref, after.Ref)
		}
		where = before.Ref
		pair := fmt.Sprint(received, before.Ref, " ", after.Ref)
		if slices.Contains(c.seen, pair) {
			return
		}
		c.seen = append(c.seen, pair)
	}
	before = c.before.Components.Schemas.Resolve(before.Ref, before)
	after = c.after.Components.Schemas.Resolve(after.Ref, after)
	c.words(where, received, before, after)
	for name, member := range before.Properties.All() {
		successor := after.Properties.Get(name)
		if successor == nil {
			c.report(where, "the member %s was removed", name)
			continue
		}
		c.schemas(where+"."+name, received, member, successor)
	}
	c.schemas(where+"[]", received, before.Items, after.Items)
	if len(before.AllOf) != len(after.AllOf) {
		c.report(where, "allOf changed")
		return
	}
	for i := range before.AllOf {
		c.schemas(where, received, before.AllOf[i], after.AllOf[i])
	}
}

// words compares what two schemas say themselves.
func (c *comparison) words(where string, received bool, before, after *openapi.Schema) {
	narrow, wide := before, after // every value that fits narrow must fit wide
	if !received {
		narrow, wide = after, before
	}
	if len(wide.Type) > 0 && (len(narrow.Type) == 0 || missing(narrow.Type, wide.Type)) {
		c.report(where, "the type %v became %v", before.Type, after.Type)
	}
	if missing(wide.Required, narrow.Required) {
		c.report(where, "the required members %v became %v", before.Required, after.Required)
	}
	if after.Enum != nil && (before.Enum == nil && received || missing(before.Enum, after.Enum)) {
		c.report(where, "the words %v became %v", before.Enum, after.Enum)
	}
	rest := [2]openapi.Schema{*before, *after}
	for i := range rest {
		s := &rest[i]
		s.Type, s.Required, s.Enum, s.Properties, s.Items, s.AllOf, s.Description = nil, nil, nil, nil, nil, nil, ""
	}
	if !reflect.DeepEqual(rest[0], rest[1]) {
		c.report(where, "a limit, the format or a constant changed")
	}
}

// missing reports whether a list lacks one of some values.
func missing[T comparable](values, list []T) bool {
	return slices.ContainsFunc(values, func(value T) bool { return !slices.Contains(list, value) })
}
