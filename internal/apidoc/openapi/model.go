package openapi

import (
	"iter"
	"net/http"

	"go.yaml.in/yaml/v3"
)

// Document is a document of OpenAPI.
type Document struct {
	OpenAPI    string          `yaml:"openapi"`
	Info       Info            `yaml:"info"`
	Servers    []Server        `yaml:"servers"`
	Paths      *Map[*PathItem] `yaml:"paths"`
	Components Components      `yaml:"components"`
	Webhooks   *Map[*PathItem] `yaml:"webhooks,omitempty"`
}

// Info says what the document is about.
type Info struct {
	Title       string  `yaml:"title"`
	Description string  `yaml:"description"`
	License     License `yaml:"license"`
	Version     string  `yaml:"version"`
}

// License is the license of the document.
type License struct {
	Name       string `yaml:"name"`
	Identifier string `yaml:"identifier"`
}

// Server is the address of a service.
type Server struct {
	URL         string `yaml:"url"`
	Description string `yaml:"description"`
}

// Components are the parts that other parts refer to.
type Components struct {
	Schemas         *Map[*Schema]         `yaml:"schemas"`
	Responses       *Map[*Response]       `yaml:"responses"`
	Parameters      *Map[*Parameter]      `yaml:"parameters"`
	Headers         *Map[*Header]         `yaml:"headers"`
	SecuritySchemes *Map[*SecurityScheme] `yaml:"securitySchemes"`
}

// SecurityScheme is a kind of credentials.
type SecurityScheme struct {
	Type        string `yaml:"type"`
	Description string `yaml:"description"`
	Scheme      string `yaml:"scheme"`
}

// PathItem contains the operations of a path.
type PathItem struct {
	Get    *Operation `yaml:"get,omitempty"`
	Put    *Operation `yaml:"put,omitempty"`
	Post   *Operation `yaml:"post,omitempty"`
	Delete *Operation `yaml:"delete,omitempty"`
	Patch  *Operation `yaml:"patch,omitempty"`
}

// Place returns the place of the operation with a method. It panics if the model lacks the method.
func (p *PathItem) Place(method string) **Operation {
	switch method {
	case http.MethodGet:
		return &p.Get
	case http.MethodPost:
		return &p.Post
	case http.MethodPut:
		return &p.Put
	case http.MethodPatch:
		return &p.Patch
	case http.MethodDelete:
		return &p.Delete
	default:
		panic("no place for the method " + method)
	}
}

// Operations returns the operations of the path by method.
func (p *PathItem) Operations() iter.Seq2[string, *Operation] {
	return func(yield func(string, *Operation) bool) {
		for _, method := range []string{
			http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch,
		} {
			if operation := *p.Place(method); operation != nil && !yield(method, operation) {
				return
			}
		}
	}
}

// Operation is a route.
type Operation struct {
	Tags        []string              `yaml:"tags,omitempty"`
	Summary     string                `yaml:"summary,omitempty"`
	OperationID string                `yaml:"operationId"`
	Parameters  []*Parameter          `yaml:"parameters,omitempty"`
	RequestBody *RequestBody          `yaml:"requestBody,omitempty"`
	Responses   *Map[*Response]       `yaml:"responses"`
	Security    []map[string][]string `yaml:"security,omitempty"`
}

// Parameter is a variable of a path, a parameter of a query or a header; or a reference to a shared parameter.
type Parameter struct {
	Ref         string  `yaml:"$ref,omitempty"`
	Name        string  `yaml:"name,omitempty"`
	In          string  `yaml:"in,omitempty"`
	Description string  `yaml:"description,omitempty"`
	Required    bool    `yaml:"required,omitempty"`
	Schema      *Schema `yaml:"schema,omitempty"`
	Example     string  `yaml:"example,omitempty"`
}

// RequestBody is the body of a request.
type RequestBody struct {
	Content  *Map[*MediaType] `yaml:"content"`
	Required bool             `yaml:"required"`
	MaxBytes int              `yaml:"x-max-bytes,omitempty"` // an extension of ours; 0: not known
}

// MediaType is a body of one media type.
type MediaType struct {
	Schema   *Schema        `yaml:"schema,omitempty"`
	Examples *Map[*Example] `yaml:"examples,omitempty"`
}

// Example is an example of a body.
type Example struct {
	Value yaml.Node `yaml:"value"`
}

// Response is a response of an operation, or a reference to a shared response.
type Response struct {
	Ref         string           `yaml:"$ref,omitempty"`
	Description string           `yaml:"description,omitempty"`
	Headers     *Map[*Header]    `yaml:"headers,omitempty"`
	Content     *Map[*MediaType] `yaml:"content,omitempty"`
}

// Header is a header of a response, or a reference to a shared header.
type Header struct {
	Ref         string  `yaml:"$ref,omitempty"`
	Description string  `yaml:"description,omitempty"`
	Required    bool    `yaml:"required,omitempty"` // every such response has the header
	Schema      *Schema `yaml:"schema,omitempty"`
}

// Schema is a JSON Schema, or a reference to a shared one. A limit of 0 is none.
type Schema struct {
	Ref                  string        `yaml:"$ref,omitempty"`
	Type                 Types         `yaml:"type,omitempty"`
	AllOf                []*Schema     `yaml:"allOf,omitempty"`
	PropertyNames        *Schema       `yaml:"propertyNames,omitempty"`
	Items                *Schema       `yaml:"items,omitempty"`
	Properties           *Map[*Schema] `yaml:"properties,omitempty"`
	Maximum              *int64        `yaml:"maximum,omitempty"`
	Minimum              *int64        `yaml:"minimum,omitempty"`
	MaxLength            int           `yaml:"maxLength,omitempty"`
	MinLength            int           `yaml:"minLength,omitempty"`
	Pattern              string        `yaml:"pattern,omitempty"`
	Format               string        `yaml:"format,omitempty"`
	MaxItems             int           `yaml:"maxItems,omitempty"`
	MinItems             int           `yaml:"minItems,omitempty"`
	MaxProperties        int           `yaml:"maxProperties,omitempty"`
	Required             []string      `yaml:"required,omitempty"`
	Enum                 []any         `yaml:"enum,omitempty"`
	AdditionalProperties any           `yaml:"additionalProperties,omitempty"` // a bool or a *Schema; nil: left out
	Description          string        `yaml:"description,omitempty"`
	Const                any           `yaml:"const,omitempty"`
}

// Types are the types that a value may have.
type Types []string

// MarshalYAML writes one type as a text, and several as a list.
func (t Types) MarshalYAML() (any, error) {
	if len(t) == 1 {
		return t[0], nil
	}
	return []string(t), nil
}

// UnmarshalYAML reads a text or a list.
func (t *Types) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*t = Types{node.Value}
		return nil
	}
	return node.Decode((*[]string)(t))
}
