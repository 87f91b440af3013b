package handlers

import (
	"reflect"
	"slices"
)

// Location is the part of a request that holds an input.
type Location string

// The parts of a request.
const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// inputField is a field of a request type that holds an input.
type inputField struct {
	name  string
	in    Location
	kind  Kind
	index []int // see [reflect.Value.FieldByIndex]
}

// requestType is the compiled form of a request type: a struct whose exported fields are the inputs
// of a route. The tags path, query, json and form name an input and its place. In types with a JSON
// body, the other inputs also have the tag json:"-", so that no member fills them.
type requestType struct {
	typ          reflect.Type
	inputs       []inputField
	strings      []inputField // members of a JSON body that are strings
	body         bodyForm
	optionalBody bool
}

// optionalBody is embedded by request types whose body may be missing.
type optionalBody struct{}

func (optionalBody) bodyIsOptional() {}

// checked is a request type that checks its inputs; see [checks].
type checked interface{ check(c *checks) }

// compile reads the fields of a request type. TestRequestTypes finds types that are no request types.
func compile(typ reflect.Type) *requestType {
	t := &requestType{typ: typ}
	if _, t.optionalBody = reflect.New(typ).Interface().(interface{ bodyIsOptional() }); t.optionalBody {
		t.body = jsonBody
	}
	for _, field := range reflect.VisibleFields(typ) {
		if !field.Anonymous && field.IsExported() {
			t.add(field)
		}
	}
	return t
}

func (t *requestType) add(field reflect.StructField) {
	f := inputField{index: field.Index, kind: reflect.New(field.Type).Interface().(input).kind()}
	for _, place := range []struct {
		tag  string
		in   Location
		body bodyForm
	}{{"path", InPath, t.body}, {"query", InQuery, t.body}, {"form", InBody, formBody}, {"json", InBody, jsonBody}} {
		if f.name = field.Tag.Get(place.tag); f.name != "" {
			f.in, t.body = place.in, place.body
			break
		}
	}
	t.inputs = append(t.inputs, f)
	if f.in == InBody && t.body == jsonBody && f.kind == String {
		t.strings = append(t.strings, f)
	}
}

// kind returns the kind of a member of the body.
func (t *requestType) kind(name string) Kind {
	return t.inputs[slices.IndexFunc(t.inputs, func(f inputField) bool { return f.in == InBody && f.name == name })].kind
}

// fieldOf returns a pointer to an input of a request, which must be of type T.
func fieldOf[T any](request reflect.Value, f *inputField) *T {
	return request.FieldByIndex(f.index).Addr().Interface().(*T)
}
