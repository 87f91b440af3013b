package apidoc

import (
	"licet/handlers"
	"licet/internal/apidoc/openapi"
)

// inputSchema returns the schema of an input. A member of a body that is null counts as missing.
func inputSchema(in *handlers.Input) *openapi.Schema {
	schema := &openapi.Schema{Type: []string{string(in.Kind)}}
	switch in.Kind {
	case handlers.Object:
		schema = object()
	case handlers.Integers:
		schema.Type = []string{"array"}
		schema.Items = &openapi.Schema{Type: []string{"integer"}, Minimum: &in.Minimum, Maximum: &in.Maximum}
	}
	schema.Pattern, schema.Format = in.Pattern, in.Format
	schema.MinLength, schema.MaxLength = in.MinLength, in.MaxLength
	schema.MinItems, schema.MaxItems = in.MinItems, in.MaxItems
	schema.MaxProperties = in.MaxProperties
	if in.MaxNameLength > 0 {
		schema.PropertyNames = &openapi.Schema{MinLength: 1, MaxLength: in.MaxNameLength}
	}
	if in.Bounded && in.Kind != handlers.Integers {
		schema.Minimum, schema.Maximum = &in.Minimum, &in.Maximum
	}
	if in.Kind == handlers.Strings {
		item := &openapi.Schema{Type: []string{"string"}, Enum: words(in.Enum)}
		schema.Items = item
	} else if in.Enum != nil {
		schema.Enum = words(in.Enum)
	}
	if in.In == handlers.InBody && !in.Required {
		schema.Type = append(schema.Type, "null")
		if schema.Enum != nil {
			schema.Enum = append(schema.Enum, nil)
		}
	}
	return schema
}

// parameters returns the variables, the query parameters and the headers that a route reads. id is the name of the
// operation.
func parameters(id string, r *handlers.Route) []*openapi.Parameter {
	var all []*openapi.Parameter
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if in.In == handlers.InBody {
			continue
		}
		place := id
		if in.In == handlers.InPath {
			place = "Path"
		}
		all = append(all, &openapi.Parameter{
			Name: in.Name, In: string(in.In), Description: description(place, in.Name),
			Required: in.Required, Schema: inputSchema(in),
		})
	}
	add := func(name string) {
		all = append(all, &openapi.Parameter{Ref: "#/components/parameters/" + name})
	}
	add("X-Request-Id")
	if r.IdempotencyKey {
		add("Idempotency-Key")
	}
	for _, name := range r.Headers {
		add(name)
	}
	if r.Auth != handlers.NoAuth {
		add("Signature-Input")
		add("Signature")
		add("Content-Digest")
	}
	return all
}

// headerParameters returns the headers that requests may carry.
func headerParameters() *openapi.Map[*openapi.Parameter] {
	all := new(openapi.Map[*openapi.Parameter])
	add := func(name, description string, schema openapi.Schema, example string) {
		schema.Type = []string{"string"}
		all.Set(name, &openapi.Parameter{
			Name: name, In: "header", Description: description, Schema: &schema, Example: example,
		})
	}
	add("X-Request-Id", "The id of the request in the response and in the log of the service. The service makes "+
		"another id if this one is not 1 to 128 of the characters A-Z a-z 0-9 . _ : + / = -, or contains a secret.",
		openapi.Schema{}, "checkout-20931")
	add("Idempotency-Key", "Runs the operation once, however often the request is sent. The key is kept for 24 hours.",
		openapi.Schema{Pattern: "^[ -~]+$", MaxLength: 255}, "order-for-cart-20931")
	add("Signature-Input", "What the signature covers (RFC 9421).", openapi.Schema{}, "")
	add("Signature", "The signature of the request (RFC 9421), made with the API secret.", openapi.Schema{}, "")
	add("Content-Digest", "The digest of the body (RFC 9530), which the signature covers.", openapi.Schema{}, "")
	add("If-None-Match", "The ETag of the document that the client has. The response is 304 if it is still the same.",
		openapi.Schema{}, "")
	add("Stripe-Signature", "The signature of the callback, which Stripe makes with the endpoint's secret.",
		openapi.Schema{}, "")
	all.Get("Stripe-Signature").Required = true
	return all
}

// body returns the body that a route reads; nil for none.
func (s *schemas) body(r *handlers.Route, example golden) *openapi.RequestBody {
	if r.MediaType == "" {
		return nil
	}
	name := nameOf(r.Request)
	schema := reference(name)
	if s.types[name] == nil {
		s.types[name] = r.Request
		s.add(name, requestSchema(r))
	} else if s.types[name] != r.Request {
		panic("two types have the schema " + name)
	}
	return &openapi.RequestBody{Required: !r.OptionalBody, MaxBytes: r.BodyLimit, Content: openapi.MapOf(r.MediaType,
		&openapi.MediaType{Schema: schema, Examples: examples(example.request)})}
}

// requestSchema returns the schema of a body. Only open routes take members that are unknown.
func requestSchema(r *handlers.Route) *openapi.Schema {
	schema := &openapi.Schema{Type: []string{"object"}, Properties: new(openapi.Map[*openapi.Schema])}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if in.In != handlers.InBody {
			continue
		}
		schema.Properties.Set(in.Name, described(nameOf(r.Request), in.Name, inputSchema(in)))
		if in.Required {
			schema.Required = append(schema.Required, in.Name)
		}
	}
	if r.Auth == handlers.RequiredAuth {
		schema.AdditionalProperties = false
	}
	return schema
}
