package apidoc

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/errors"
)

// Exchanges checks requests and responses against a document. It is safe for concurrent use.
type Exchanges struct{ validator validator.Validator }

// ReadExchanges reads the document in a file.
func ReadExchanges(path string) (*Exchanges, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return newExchanges(text)
}

func newExchanges(text []byte) (*Exchanges, error) {
	document, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, err
	}
	v, errs := validator.NewValidator(document)
	if errs != nil {
		return nil, fmt.Errorf("read the API document: %v", errs)
	}
	return &Exchanges{v}, nil
}

// Check returns how a response, and the request that the service has answered with it, differ from the document. A
// request need not keep to the document if the response refuses its form.
func (e *Exchanges) Check(request *http.Request, response *http.Response, body []byte) []string {
	if request.Method == http.MethodOptions && response.StatusCode == http.StatusNoContent {
		return nil
	}
	var envelope struct{ Code int }
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(body, &envelope); err != nil {
			return []string{"the response is no JSON: " + err.Error()}
		}
	}
	code := envelope.Code
	if code == 0 && response.StatusCode >= 400 {
		code = response.StatusCode * 100 // of a page
	}
	if code == 40400 || code == 40500 || code == 50000 && len(body) == 0 {
		return nil // such requests name no route; or the server panicked, and has no envelope left
	}
	if request.Method == http.MethodHead {
		return nil // a request as that of GET, without the body of its response
	}
	if request.ContentLength == 0 {
		request.Header.Del("Content-Type") // a request without a body needs no media type, and may have any
	}
	valid, problems := true, []*errors.ValidationError(nil)
	if takenAsValid(code) {
		valid, problems = e.validator.ValidateHttpRequestSync(request)
	}
	if fits, further := e.validator.ValidateHttpResponse(request, response); !fits {
		valid, problems = false, append(problems, further...)
	}
	if valid {
		return nil
	}
	var texts []string
	for _, p := range problems {
		if beforeRoute(code) && (p.IsPathMissingError() || p.IsOperationMissingError()) {
			continue
		}
		text := p.Message + ": " + p.Reason
		for _, s := range p.SchemaValidationErrors {
			text += fmt.Sprintf("; %s %s", s.FieldPath, s.Reason)
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// takenAsValid reports whether the service has taken the form of a request as valid, as the code of the response says:
// the service checks the form before it looks anything up.
func takenAsValid(code int) bool {
	switch code / 100 {
	case 0, 403, 404, 409, 410, 502:
		return code != 40300 && code != 40900
	default:
		return false
	}
}

// beforeRoute reports whether a code may answer a request that names no route.
func beforeRoute(code int) bool {
	switch code {
	case 40000, 41300, 41400, 43100, 50000:
		return true
	}
	return false
}
