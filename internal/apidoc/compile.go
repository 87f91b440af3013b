package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"licet/internal/apidoc/openapi"
)

// checkedOperation is an operation of a document with its schemas compiled.
type checkedOperation struct {
	id           string
	method       string
	path         []string // the parts between slashes; variables are in braces
	authorized   bool     // requests need an API key
	parameters   []parameter
	body         bodies
	bodyRequired bool
	maxBytes     int
	responses    map[string]*checkedResponse // by status
}

// checkedResponse is a response of a document with its schemas compiled.
type checkedResponse struct {
	headers map[string]header // by canonical name
	bodies  bodies
}

type header struct {
	*openapi.Header
	schema *jsonschema.Schema
}

type parameter struct {
	*openapi.Parameter
	schema *jsonschema.Schema
}

// bodies contains schemas by media type; nil: any body.
type bodies map[string]*jsonschema.Schema

// newExchanges compiles a document.
func newExchanges(text []byte) (*Exchanges, error) {
	c, err := newCompiler(text)
	if err != nil {
		return nil, err
	}
	exchanges := &Exchanges{withoutRoute: make(map[string]*checkedResponse)}
	for _, name := range []string{noRoute + "40400", noRoute + "40500", preflight} {
		reference := &openapi.Response{Ref: "#/components/responses/" + name}
		exchanges.withoutRoute[name] = c.response("", reference)
	}
	for path, item := range c.document.Paths.All() {
		for method, o := range item.Operations() {
			exchanges.operations = append(exchanges.operations, c.operation("paths", path, method, o))
		}
	}
	return exchanges, c.err
}

// compiler compiles the schemas of a document.
type compiler struct {
	document openapi.Document
	resource any // the document as JSON
	schemas  *jsonschema.Compiler
	err      error // the first
}

// newCompiler reads a document. In its schemas, the objects of responses have no members that the document lacks; see
// closeObjects.
func newCompiler(text []byte) (*compiler, error) {
	c := &compiler{schemas: jsonschema.NewCompiler()}
	if err := yaml.Unmarshal(text, &c.document); err != nil {
		return nil, err
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	closeObjects(document)
	inJSON, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	if c.resource, err = jsonschema.UnmarshalJSON(bytes.NewReader(inJSON)); err != nil {
		return nil, err
	}
	return c, c.schemas.AddResource("openapi.json", c.resource)
}

// schema compiles the schema at a JSON pointer.
func (c *compiler) schema(at string) *jsonschema.Schema {
	compiled, err := c.schemas.Compile("openapi.json" + at)
	if err != nil {
		c.fail(err)
	}
	return compiled
}

// fail keeps the first error.
func (c *compiler) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

// operation compiles an operation of a path, or of a webhook, as the member within says.
func (c *compiler) operation(within, path, method string, o *openapi.Operation) *checkedOperation {
	at := "#/" + within + "/" + escaped(path) + "/" + strings.ToLower(method)
	compiled := &checkedOperation{
		id: o.OperationID, method: method, path: strings.Split(path, "/"), authorized: len(o.Security) > 0,
		responses: make(map[string]*checkedResponse),
	}
	for _, requirement := range o.Security {
		compiled.authorized = compiled.authorized && len(requirement) > 0
	}
	for i, p := range o.Parameters {
		place := fmt.Sprintf("%s/parameters/%d", at, i)
		if p.Ref != "" {
			place, p = p.Ref, c.document.Components.Parameters.Resolve(p.Ref, p)
		}
		if p == nil {
			c.fail(fmt.Errorf("the document lacks %s", place))
			continue
		}
		compiled.parameters = append(compiled.parameters, parameter{p, c.schema(place + "/schema")})
	}
	if o.RequestBody != nil {
		compiled.body = c.bodies(at+"/requestBody", o.RequestBody.Content)
		compiled.bodyRequired, compiled.maxBytes = o.RequestBody.Required, o.RequestBody.MaxBytes
	}
	for status, r := range o.Responses.All() {
		compiled.responses[status] = c.response(at+"/responses/"+status, r)
	}
	return compiled
}

// response compiles a response. It returns nil if the document lacks the response or one of its headers.
func (c *compiler) response(place string, r *openapi.Response) *checkedResponse {
	if r.Ref != "" {
		place, r = r.Ref, c.document.Components.Responses.Resolve(r.Ref, r)
	}
	if r == nil {
		c.fail(fmt.Errorf("the document lacks %s", place))
		return nil
	}
	compiled := &checkedResponse{headers: make(map[string]header), bodies: c.bodies(place, r.Content)}
	for name, h := range r.Headers.All() {
		at := place + "/headers/" + name
		if h.Ref != "" {
			at, h = h.Ref, c.document.Components.Headers.Resolve(h.Ref, h)
		}
		if h == nil {
			c.fail(fmt.Errorf("the document lacks %s", at))
			return nil
		}
		compiled.headers[http.CanonicalHeaderKey(name)] = header{h, c.schema(at + "/schema")}
	}
	return compiled
}

// bodies compiles the schemas of a content.
func (c *compiler) bodies(at string, content *openapi.Map[*openapi.MediaType]) bodies {
	compiled := make(bodies)
	for media, of := range content.All() {
		compiled[media] = nil
		if of.Schema != nil {
			compiled[media] = c.schema(at + "/content/" + escaped(media) + "/schema")
		}
	}
	return compiled
}

// escaped returns a part of a JSON pointer in a URL.
func escaped(part string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(part)
}
