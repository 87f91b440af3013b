package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// result is the response to a request.
type result struct {
	response Response
	failure  *Error // nil: success
}

// envelope is the JSON of every response of a service.
type envelope struct {
	Code    *int            `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
	Error   struct {
		Reason    string          `json:"reason"`
		Retryable bool            `json:"retryable"`
		RequestID string          `json:"request_id"`
		Fields    []FieldError    `json:"fields"`
		Details   json.RawMessage `json:"details"`
		DocsURL   string          `json:"docs_url"`
	} `json:"error"`
}

var errResponseTooLong = fmt.Errorf("the response has more than %d MiB", maxResponse>>20)

// readResponse reads a response of a service, or of anything else at the address.
func readResponse(response *http.Response, text []byte) *result {
	r := &result{response: Response{
		Status:    response.StatusCode,
		RequestID: response.Header.Get("X-Request-Id"),
		Replayed:  response.Header.Get("Idempotent-Replayed") == "true",
	}}
	success := response.StatusCode/100 == 2
	var e envelope
	if json.Unmarshal(text, &e) != nil || e.Code == nil || success != (*e.Code == 0) || success && e.Data == nil {
		r.failure = unknownResponder(response)
		return r
	}
	if success {
		r.response.Data = e.Data
		return r
	}
	r.failure = e.refusal()
	r.failure.Status, r.failure.RetryAfter = response.StatusCode, retryAfter(response)
	return r
}

// refusal returns the error that the envelope contains.
func (e *envelope) refusal() *Error {
	refused := &Error{
		Reason:    e.Error.Reason,
		Message:   e.Message,
		Retryable: e.Error.Retryable,
		RequestID: e.Error.RequestID,
		Fields:    e.Error.Fields,
		DocsURL:   e.Error.DocsURL,
	}
	if e.Code != nil {
		refused.Code, refused.Status = *e.Code, *e.Code/100
	}
	// Details that are no counts, which a later version may have, are ignored.
	if json.Unmarshal(e.Error.Details, &refused.Details) != nil {
		refused.Details = nil
	}
	return refused
}

// unknownResponder returns the error for a response that is not from a Licet service, but from a proxy or from
// another service at the address.
func unknownResponder(response *http.Response) *Error {
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	e := &Error{
		Status:     response.StatusCode,
		Message:    fmt.Sprintf("HTTP %d from a server that is no Licet service", response.StatusCode),
		RetryAfter: retryAfter(response),
		RequestID:  response.Header.Get("X-Request-Id"),
	}
	if kind != "" {
		e.Message += ", of type " + kind
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Retryable = true // a proxy that can't reach its service
	}
	return e
}

// retryAfter returns the value of the header Retry-After, which services send in seconds; 0 without one.
func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// withoutURL removes the URL from an error of net/http, because path and query contain license keys and addresses.
func withoutURL(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}
