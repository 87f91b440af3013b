package apidoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"licet/internal/apidoc/openapi"
)

// Exchanges checks requests and responses against a document. It is safe for concurrent use.
type Exchanges struct {
	operations   []*checkedOperation
	withoutRoute map[string]*checkedResponse // by the name of the component
}

// ReadExchanges reads the document in a file.
func ReadExchanges(path string) (*Exchanges, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newExchanges(text)
}

// Check returns how a response, and the request that the service has answered with it, differ from the document. A
// request need not keep to the document if [refusesForm].
func (e *Exchanges) Check(request *http.Request, response *http.Response, body []byte) []string {
	if request.Method == http.MethodOptions && response.StatusCode == http.StatusNoContent {
		return e.withoutRoute[preflight].check(response, body)
	}
	isJSON := strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") &&
		response.StatusCode != http.StatusNotModified
	var envelope struct{ Code int }
	if isJSON {
		if err := json.Unmarshal(body, &envelope); err != nil {
			return []string{"the response is no JSON: " + err.Error()}
		}
	}
	code := envelope.Code
	if code == 0 && response.StatusCode >= 400 {
		code = response.StatusCode * 100 // of a page
	}
	if code == 50000 && len(body) == 0 {
		return nil // the server panicked, and has no envelope left
	}
	o, variables := e.find(request)
	switch {
	case code == 40500, code == 40400 && (o == nil || isJSON): // isJSON: not every service has the route
		found := e.withoutRoute[noRoute+strconv.Itoa(code)].check(response, body)
		if len(found) > 0 && o != nil && code == 40400 { // the route itself may find nothing
			return o.checkResponse(response, body)
		}
		return found
	case o == nil && beforeRoute(code):
		return nil
	case o == nil:
		return []string{"the document lacks " + request.Method + " " + request.URL.Path}
	}
	var found []string
	if !refusesForm(code) {
		found = o.checkRequest(request, variables)
	}
	return append(found, o.checkResponse(response, body)...)
}

// find returns the operation of a request, and the variables in its path. Fixed parts of a path go before variables. A
// HEAD is a GET whose response loses its body on the way.
func (e *Exchanges) find(request *http.Request) (best *checkedOperation, variables url.Values) {
	parts := strings.Split(request.URL.EscapedPath(), "/")
	method := request.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	for _, o := range e.operations {
		if o.method != method || len(o.path) != len(parts) {
			continue
		}
		found := make(url.Values)
		matches := true
		for i, part := range parts {
			if name, variable := strings.CutPrefix(o.path[i], "{"); variable {
				value, err := url.PathUnescape(part)
				matches = matches && err == nil
				found.Set(strings.TrimSuffix(name, "}"), value)
			} else {
				matches = matches && part == o.path[i]
			}
		}
		if matches && (best == nil || len(found) < len(variables)) {
			best, variables = o, found
		}
	}
	return best, variables
}

// checkRequest returns how a request differs from the operation.
func (o *checkedOperation) checkRequest(request *http.Request, variables url.Values) (found []string) {
	scheme, _, _ := strings.Cut(request.Header.Get("Authorization"), " ")
	if o.authorized && !strings.EqualFold(scheme, "Bearer") {
		found = append(found, "the request has no credentials")
	}
	given := map[string]map[string][]string{
		"path": variables, "query": request.URL.Query(), "header": request.Header,
	}
	for _, p := range o.parameters {
		name := p.Name
		if p.In == "header" {
			name = http.CanonicalHeaderKey(name)
		}
		values := given[p.In][name]
		if len(values) == 0 && p.Required {
			found = append(found, "the request lacks "+p.Name)
		}
		for _, text := range values {
			found = append(found, differences(p.Name, p.schema, valueOf(text, p.Schema))...)
		}
	}
	if o.body == nil {
		return found // the service ignores bodies of such requests
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return append(found, "the body of the request: "+err.Error())
	}
	if o.maxBytes > 0 && len(body) > o.maxBytes {
		found = append(found, fmt.Sprintf("the body of the request has %d bytes, more than %d", len(body), o.maxBytes))
	}
	if len(body) == 0 {
		if o.bodyRequired {
			found = append(found, "the request has no body")
		}
		return found
	}
	return append(found, o.body.check("the body of the request", request.Header.Get("Content-Type"), body)...)
}

// checkResponse returns how a response differs from the operation.
func (o *checkedOperation) checkResponse(response *http.Response, body []byte) []string {
	described, known := o.responses[strconv.Itoa(response.StatusCode)]
	if !known {
		return []string{fmt.Sprintf("%s has no response %d", o.id, response.StatusCode)}
	}
	return described.check(response, body)
}

// check returns how the headers and the body of a response differ from the document.
func (r *checkedResponse) check(response *http.Response, body []byte) (found []string) {
	for name, h := range r.headers {
		if h.Required && len(response.Header[name]) == 0 {
			found = append(found, "the response lacks the header "+name)
		}
	}
	for name, values := range response.Header {
		h, known := r.headers[name]
		switch {
		case known:
			for _, text := range values {
				found = append(found, differences("the header "+name, h.schema, valueOf(text, h.Schema))...)
			}
		case !slices.Contains(ofHTTP(), name):
			found = append(found, "the document lacks the header "+name+" of the response")
		}
	}
	if len(body) == 0 && len(r.bodies) == 0 {
		return found
	}
	return append(found, r.bodies.check("the response", response.Header.Get("Content-Type"), body)...)
}

// valueOf returns the value of a parameter or a header for a schema.
func valueOf(text string, schema *openapi.Schema) any {
	if _, err := strconv.ParseInt(text, 10, 64); err == nil && slices.Contains(schema.Type, "integer") {
		return json.Number(text)
	}
	return text
}

// check returns how a body differs from the bodies that the document allows.
func (b bodies) check(what, contentType string, body []byte) []string {
	media, _, err := mime.ParseMediaType(contentType)
	schema, known := b[media]
	if err != nil || !known {
		return []string{fmt.Sprintf("%s has the media type %q", what, contentType)}
	}
	var value any = string(body)
	switch media {
	case "application/json":
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err != nil {
			return []string{what + ": " + err.Error()}
		}
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return []string{what + ": " + err.Error()}
		}
		members := make(map[string]any)
		for name := range form {
			members[name] = form.Get(name)
		}
		value = members
	}
	return differences(what, schema, value)
}

// differences returns how a value differs from a schema; nil: any value fits.
func differences(what string, schema *jsonschema.Schema, value any) []string {
	if schema == nil {
		return nil
	}
	if err := schema.Validate(value); err != nil {
		return []string{what + ": " + err.Error()}
	}
	return nil
}

// refusesForm reports whether a code refuses the form of a request, or comes before the service reads the form: such a
// request need not keep to the document.
func refusesForm(code int) bool {
	switch code / 100 {
	case 400, 401, 413, 414, 415, 429, 431, 500, 503:
		return true
	}
	return code == 40300 || code == 42200
}

// beforeRoute reports whether a code may answer a request that names no route.
func beforeRoute(code int) bool {
	switch code {
	case 40000, 41300, 41400, 43100, 50000:
		return true
	}
	return false
}
