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

// answer is what came back of one request.
type answer struct {
	response Response
	failure  *Error // nil: a success
}

// envelope is what every answer of a service is.
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
	} `json:"error"`
}

var errAnswerTooLong = fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)

// readAnswer reads an answer, whoever it may be from.
func readAnswer(response *http.Response, text []byte) *answer {
	a := &answer{response: Response{
		Status:    response.StatusCode,
		RequestID: response.Header.Get("X-Request-Id"),
		Replayed:  response.Header.Get("Idempotent-Replayed") == "true",
	}}
	success := response.StatusCode/100 == 2
	var e envelope
	if json.Unmarshal(text, &e) != nil || e.Code == nil || success != (*e.Code == 0) || success && e.Data == nil {
		a.failure = foreign(response)
		return a
	}
	if success {
		a.response.Data = e.Data
		return a
	}
	a.failure = &Error{
		Status:     response.StatusCode,
		Code:       *e.Code,
		Reason:     e.Error.Reason,
		Message:    e.Message,
		Retryable:  e.Error.Retryable,
		RetryAfter: retryAfter(response),
		RequestID:  e.Error.RequestID,
		Fields:     e.Error.Fields,
	}
	// Details other than counts, which a later version may have, are left out.
	if json.Unmarshal(e.Error.Details, &a.failure.Details) != nil {
		a.failure.Details = nil
	}
	return a
}

// foreign is an answer in which no service speaks: that of a proxy before it, or
// of something else at its address.
func foreign(response *http.Response) *Error {
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	e := &Error{
		Status:     response.StatusCode,
		Message:    fmt.Sprintf("HTTP %d from what is no Licet service", response.StatusCode),
		RetryAfter: retryAfter(response),
		RequestID:  response.Header.Get("X-Request-Id"),
	}
	if kind != "" {
		e.Message += ", of type " + kind
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Retryable = true // a proxy whose service is away
	}
	return e
}

// retryAfter reads the header, of which services send seconds.
func retryAfter(response *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// withoutURL takes the address out of an error of net/http, for what its path
// and query have in them.
func withoutURL(err error) error {
	var about *url.Error
	if errors.As(err, &about) {
		return about.Err
	}
	return err
}
