package apidoc

import (
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"licet/handlers"
)

// inputSchema returns the schema of an input. A member of a body that is null counts as missing.
func inputSchema(in *handlers.Input) *base.Schema {
	schema := &base.Schema{Type: []string{string(in.Kind)}}
	if in.Kind == handlers.Object {
		schema = object()
	}
	schema.Pattern, schema.Format = in.Pattern, in.Format
	atLeast := func(limit *(*int64), value int) {
		if value > 0 {
			bound := int64(value)
			*limit = &bound
		}
	}
	atLeast(&schema.MinLength, in.MinLength)
	atLeast(&schema.MaxLength, in.MaxLength)
	atLeast(&schema.MinItems, in.MinItems)
	atLeast(&schema.MaxItems, in.MaxItems)
	atLeast(&schema.MaxProperties, in.MaxProperties)
	if in.MaxNameLength > 0 {
		names := &base.Schema{}
		atLeast(&names.MinLength, 1)
		atLeast(&names.MaxLength, in.MaxNameLength)
		schema.PropertyNames = base.CreateSchemaProxy(names)
	}
	if in.Bounded {
		least, most := float64(in.Minimum), float64(in.Maximum)
		schema.Minimum, schema.Maximum = &least, &most
	}
	if in.Kind == handlers.Strings {
		item := &base.Schema{Type: []string{"string"}, Enum: words(in.Enum)}
		schema.Items = &base.DynamicValue[*base.SchemaProxy, bool]{A: base.CreateSchemaProxy(item)}
	} else if in.Enum != nil {
		schema.Enum = words(in.Enum)
	}
	if in.In == handlers.InBody && !in.Required {
		schema.Type = append(schema.Type, "null")
		if schema.Enum != nil {
			schema.Enum = append(schema.Enum, null())
		}
	}
	return schema
}

// parameters returns the variables, the query parameters and the headers that a route reads. id is the name of the
// operation.
func parameters(id string, r *handlers.Route) []*v3.Parameter {
	var all []*v3.Parameter
	for i := range r.Inputs {
		in := &r.Inputs[i]
		if in.In == handlers.InBody {
			continue
		}
		parameter := &v3.Parameter{
			Name: in.Name, In: string(in.In), Description: description(id, in.Name),
			Schema: base.CreateSchemaProxy(inputSchema(in)),
		}
		if in.Required {
			parameter.Required = &in.Required
		}
		all = append(all, parameter)
	}
	add := func(name string) {
		all = append(all, v3.CreateParameterRef("#/components/parameters/"+name))
	}
	add("X-Request-Id")
	if r.IdempotencyKey {
		add("Idempotency-Key")
	}
	if r.Auth != handlers.NoAuth {
		add("Signature-Input")
		add("Signature")
		add("Content-Digest")
	}
	return all
}

// headerParameters returns the headers that requests may carry.
func headerParameters() *orderedmap.Map[string, *v3.Parameter] {
	all := orderedmap.New[string, *v3.Parameter]()
	add := func(name, description string, schema base.Schema) {
		schema.Type = []string{"string"}
		all.Set(name, &v3.Parameter{
			Name: name, In: "header", Description: description, Schema: base.CreateSchemaProxy(&schema),
		})
	}
	most := int64(255)
	add("X-Request-Id", "The id of the request in the response and in the log of the service. The service makes another "+
		"id if this one is not 1 to 128 of the characters A-Z a-z 0-9 . _ : + / = -, or holds a secret.", base.Schema{})
	add("Idempotency-Key", "Runs the operation once, however often the request is sent. The key is kept for 24 hours.",
		base.Schema{Pattern: "^[ -~]+$", MaxLength: &most})
	add("Signature-Input", "What the signature covers (RFC 9421).", base.Schema{})
	add("Signature", "The signature of the request (RFC 9421), made with the API secret.", base.Schema{})
	add("Content-Digest", "The digest of the body (RFC 9530), which the signature covers.", base.Schema{})
	return all
}

// body returns the body that a route reads; nil for none.
func (s *schemas) body(r *handlers.Route, example golden) *v3.RequestBody {
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
	required := !r.OptionalBody
	return &v3.RequestBody{Required: &required, Content: orderedmap.FromPairs(orderedmap.NewPair(r.MediaType,
		&v3.MediaType{Schema: schema, Examples: examples(example.request)}))}
}

// requestSchema returns the schema of a body. Only open routes take members that are unknown.
func requestSchema(r *handlers.Route) *base.Schema {
	schema := &base.Schema{Type: []string{"object"}, Properties: orderedmap.New[string, *base.SchemaProxy]()}
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
		schema.AdditionalProperties = &base.DynamicValue[*base.SchemaProxy, bool]{N: 1, B: false}
	}
	return schema
}
