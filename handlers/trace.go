package handlers

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/valyala/fasthttp"

	"licet/licensing"
	"licet/metrics/tracing"
)

// beginTrace begins the span of a request once its route is known. The span has the pattern of the route, never the
// path, which may contain a license key. Probes have no span: they are frequent and show nothing.
func (s *Server) beginTrace(r *request) {
	if s.cfg.Tracer == nil {
		return
	}
	if r.resource != nil && r.resource.quiet {
		return
	}
	r.span = s.cfg.Tracer.Begin(traceParent(&r.fast.Request.Header), tracing.Start{
		Kind: tracing.Server,
		At:   r.started,
	})
	if r.span == nil {
		return
	}
	r.span.Rename(spanName(r)) // a span that is not sampled needs no name
	scheme := "http"
	if r.fast.IsTLS() {
		scheme = "https"
	}
	r.span.Set(
		tracing.String("http.request.method", spanMethod(r)),
		tracing.String("url.scheme", scheme),
		tracing.String("licet.request_id", r.id),
	)
	if r.resource != nil {
		r.span.Set(tracing.String("http.route", r.resource.pattern), tracing.String("url.path", r.resource.pattern))
	}
}

// endTrace ends the span with the status and the code of the response. By OpenTelemetry's conventions, a status 4xx is
// no failure of a server.
func (r *request) endTrace(answer *document) {
	if r.span == nil {
		return
	}
	r.span.Set(tracing.Int("http.response.status_code", answer.status))
	if answer.code != 0 {
		r.span.Set(tracing.Int("licet.code", answer.code))
	}
	if answer.status >= fasthttp.StatusInternalServerError {
		r.span.Fail(strconv.Itoa(max(answer.code, answer.status)))
	}
	r.span.End()
}

// spanName returns the name of a span. The number of names is bounded.
func spanName(r *request) string {
	method := r.method
	if method == otherMethod {
		method = "HTTP"
	}
	if r.resource == nil {
		return method
	}
	return method + " " + r.resource.pattern
}

// spanMethod returns the method by OpenTelemetry's conventions.
func spanMethod(r *request) string {
	if r.method == otherMethod {
		return "_OTHER"
	}
	return r.method
}

// traceParent reads the headers of W3C Trace Context. It ignores a repeated traceparent, which is ambiguous, and joins
// repeated tracestates to one list.
func traceParent(head *fasthttp.RequestHeader) (parent tracing.Parent) {
	given := head.Peek(tracing.HeaderParent)
	if len(given) == 0 || len(head.PeekAll(tracing.HeaderParent)) > 1 {
		return tracing.Parent{}
	}
	return tracing.Parent{
		Traceparent: string(given),
		Tracestate:  string(bytes.Join(head.PeekAll(tracing.HeaderState), []byte(","))),
	}
}

const (
	headerRequestID = "X-Request-Id"
	maxRequestID    = 128
)

// requestID returns the id that the caller gave its request, or a new one. The log contains the ids, so requestID
// replaces an invalid id, and an id that looks like a secret of ours or contains one.
func (s *Server) requestID(given []byte, now time.Time) string {
	if len(given) == 0 {
		return newRequestID(now)
	}
	if id := string(given); validRequestID(given) && !s.secret(id) {
		return id
	}
	return newRequestID(now)
}

// newRequestID returns makeRequestID as text.
func newRequestID(now time.Time) string { return makeRequestID(now).String() }

// makeRequestID returns a new ULID. The id must be unique but is no secret, so it need not come from crypto/rand,
// which takes longer.
func makeRequestID(now time.Time) (id ulid.ULID) {
	_ = id.SetTime(ulid.Timestamp(now)) // fails only after the year 10889
	binary.BigEndian.PutUint16(id[6:], uint16(rand.Uint32()))
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return id
}

// secret reports whether text begins as an API key or an API secret, or contains, in any case, an API key, an API
// secret, the secret of a webhook endpoint, or a license key.
func (s *Server) secret(text string) bool {
	if strings.HasPrefix(text, "lk_") || strings.HasPrefix(text, "lks_") {
		return true
	}
	for at := range len(text) {
		switch text[at] {
		case '_':
			if endsInSecretPrefix(text[:at], text[at+1:]) {
				return true
			}
		case '-':
			if s.licenseKeyAt(text, at) {
				return true
			}
		}
	}
	return false
}

// endsInSecretPrefix reports whether before, an underscore and after are a text in which a secret begins.
func endsInSecretPrefix(before, after string) bool {
	ends := func(prefix string) bool {
		return len(before) >= len(prefix) && strings.EqualFold(before[len(before)-len(prefix):], prefix)
	}
	goesOn := func(mode licensing.Mode) bool {
		return len(after) > len(mode) && after[len(mode)] == '_' && strings.EqualFold(after[:len(mode)], string(mode))
	}
	return ends("whsec") || (ends("lk") || ends("lks")) && (goesOn(licensing.Live) || goesOn(licensing.Test))
}

// licenseKeyAt reports whether text contains a license key whose prefix ends before the dash at an index.
func (s *Server) licenseKeyAt(text string, dash int) bool {
	const group = 1 + 5 // a dash and five characters
	end := dash + 5*group
	if end > len(text) || dash < licensing.MinKeyPrefix {
		return false
	}
	for at := dash; at < end; at += group {
		if text[at] != '-' {
			return false
		}
	}
	for begin := dash - licensing.MinKeyPrefix; begin >= max(0, dash-licensing.MaxKeyPrefix); begin-- {
		if _, _, err := s.keys.Parse(text[begin:end]); err == nil {
			return true
		}
	}
	return false
}

// validRequestID reports whether headers and logs may repeat an id.
func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._:+/=-", c) >= 0:
		default:
			return false
		}
	}
	return true
}
