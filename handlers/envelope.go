package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"licet/handlers/connection"
	"licet/licensing"
)

const (
	contentTypeJSON = "application/json; charset=utf-8"
	timeFormat      = "2006-01-02T15:04:05.000Z"
)

// document is a complete response.
type document struct {
	status      int
	code        int    // the code in the envelope; 0 for a success
	contentType string // empty: JSON
	headers     []header
	body        []byte
	inPlace     bool // fasthttp's response already has the body
	written     bool // fasthttp's response already has the body and its content type
}

type header struct{ name, value string }

// successEnvelope and failureEnvelope are the two forms of a JSON response.
type successEnvelope struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

type failureEnvelope struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Error   failureBody `json:"error"`
}

type failureBody struct {
	Reason    licensing.Reason `json:"reason"`
	Retryable bool             `json:"retryable"`
	RequestID string           `json:"request_id"`
	Fields    []failureField   `json:"fields,omitempty"`
	Details   map[string]int   `json:"details,omitempty"`
	DocsURL   string           `json:"docs_url,omitempty"`
}

type failureField struct {
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

// success returns the response with a value in the envelope.
func success(r *request, value any) (document, error) {
	status := fasthttp.StatusOK
	if r.route.is(creates) || r.created {
		status = fasthttp.StatusCreated
	}
	if data, ok := value.(appender); ok {
		// The response reuses its buffer for the next request.
		response := &r.fast.Response
		response.SwapBody(appendSuccess(response.SwapBody(nil)[:0], data))
		return document{status: status, inPlace: true}, nil
	}
	body, err := encode(successEnvelope{Message: "success", Data: value})
	if err != nil {
		return document{}, fmt.Errorf("encode a response: %w", err)
	}
	return document{status: status, body: body}, nil
}

// failure returns the response for an error. No other function turns errors into responses.
func (s *Server) failure(r *request, cause error) document {
	known, k := s.errors.explain(cause)
	if known == licensing.ErrInternal && cause != error(licensing.ErrInternal) {
		s.accessLog.unknown(r, cause)
	}
	answer := document{status: k.status, code: k.code()}
	if known.Limit != nil {
		s.noteRefusal(&r.call, known.Limit)
	}
	retryable := k.retry == always || k.retry == ifIdempotent && r.isIdempotent()
	if after := max(k.after, r.retryAfter()); after > 0 {
		answer.headers = append(answer.headers, header{fasthttp.HeaderRetryAfter, strconv.Itoa(after)})
	}
	switch known.Reason {
	case reasonUnauthenticated, reasonInvalidSignature, reasonSignatureRequired:
		answer.headers = append(answer.headers, header{fasthttp.HeaderWWWAuthenticate, `Bearer realm="licet"`})
	case reasonMethodNotAllowed:
		answer.headers = append(answer.headers, header{fasthttp.HeaderAllow, r.resource.allow})
	}
	if r.page && s.problemPage(r, &answer, known) {
		return answer
	}
	answer.body = s.encodeFailure(known, k, retryable, r.id)
	return answer
}

// failureEnvelope returns the envelope of an error.
func (s *Server) failureEnvelope(known *licensing.Error, k kind, retryable bool, id string) failureEnvelope {
	body := failureBody{
		Reason:    known.Reason,
		Retryable: retryable,
		RequestID: id,
		Details:   known.Details,
		DocsURL:   s.docsURL(k.code()),
	}
	for _, f := range known.Fields {
		body.Fields = append(body.Fields, failureField(f))
	}
	return failureEnvelope{Code: k.code(), Message: known.Message, Error: body}
}

func (s *Server) encodeFailure(known *licensing.Error, k kind, retryable bool, id string) []byte {
	encoded, err := encode(s.failureEnvelope(known, k, retryable, id))
	if err != nil {
		panic(err) // texts and numbers always encode
	}
	return encoded
}

// encode returns JSON without the escapes for HTML, so that a URL keeps its ampersands.
func encode(value any) ([]byte, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return body.Bytes(), err
}

// write writes a document into fasthttp's response, with the headers of every response.
func (r *request) write(answer document) {
	response := &r.fast.Response
	response.SetStatusCode(answer.status)
	h := &response.Header
	if !answer.written {
		contentType := answer.contentType
		if contentType == "" {
			contentType = contentTypeJSON
		}
		h.SetContentType(contentType)
		if !answer.inPlace {
			response.SetBodyRaw(answer.body)
		}
	}
	set(h, headerRequestID, r.id)
	if r.replayed {
		set(h, headerReplayed, "true")
	}
	set(h, fasthttp.HeaderCacheControl, "no-store")
	set(h, fasthttp.HeaderXContentTypeOptions, "nosniff")
	if r.resource != nil && r.resource.open {
		allowAnyOrigin(h)
	}
	if len(r.decisions) > 0 {
		r.writeRateLimits()
	}
	for _, extra := range answer.headers {
		h.Set(extra.name, extra.value)
	}
	if connection.WantsClose(&r.fast.Request.Header) {
		r.fast.SetConnectionClose()
	}
	c := connection.Of(r.fast)
	if r.refused || c != nil && c.Expired(r.started) {
		r.fast.SetConnectionClose()
		if c != nil {
			c.LingerOnClose()
		}
	}
}

// set sets a header whose name is in canonical form, which saves fasthttp the conversion.
func set(h *fasthttp.ResponseHeader, name, value string) {
	h.SetCanonical([]byte(name), []byte(value))
}

// overloaded returns the complete HTTP response to a connection beyond the limit. All such connections get the same
// bytes, so its request id is the text "none".
func (s *Server) overloaded() []byte {
	const id = "none"
	k := s.errors[licensing.ReasonOverloaded]
	body := s.encodeFailure(licensing.ErrOverloaded, k, true, id)
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"%s: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"+
		"Retry-After: %d\r\nConnection: close\r\n\r\n%s",
		k.status, fasthttp.StatusMessage(k.status), contentTypeJSON, len(body), headerRequestID, id, k.after, body)
}

// timestamp is a time in a response. The zero time is null.
type timestamp time.Time

// MarshalJSON implements json.Marshaler. It writes RFC 3339 in UTC with milliseconds.
func (t timestamp) MarshalJSON() ([]byte, error) {
	return t.appendTo(nil), nil
}

func (t timestamp) appendTo(to []byte) []byte {
	if time.Time(t).IsZero() {
		return append(to, "null"...)
	}
	// As timeFormat, in a third of the time: package time need not parse this layout.
	to = time.Time(t).UTC().AppendFormat(append(to, '"'), time.RFC3339)
	ms := time.Time(t).Nanosecond() / int(time.Millisecond)
	return append(to[:len(to)-len("Z")], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

// orNull returns nil, which answers null, for an empty text.
func orNull[T ~string](text T) *T {
	if text == "" {
		return nil
	}
	return &text
}

// metadata returns stored metadata as responses show it; an empty object if there is none.
func metadata(stored string) json.RawMessage {
	if stored == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(stored)
}

// appender is an answer with an encoder of its own, whose output equals that of encode.
type appender interface{ appendJSON(to []byte) []byte }

// appendSuccess appends what encode makes of a successEnvelope around data.
func appendSuccess(to []byte, data appender) []byte {
	to = append(to, `{"code":0,"message":"success","data":`...)
	return append(data.appendJSON(to), "}\n"...)
}

// appendText appends a JSON string. It leaves strings with escapes or beyond ASCII
// to encode, so that only encode decides how to write them.
func appendText(to []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendUnusual(to, text)
		}
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"')
}

func appendUnusual(to []byte, text string) []byte {
	encoded, err := encode(text)
	if err != nil {
		panic(err) // text always encodes
	}
	return append(to, encoded[:len(encoded)-len("\n")]...)
}

func appendOptional(to []byte, text *string) []byte {
	if text == nil {
		return append(to, "null"...)
	}
	return appendText(to, *text)
}
