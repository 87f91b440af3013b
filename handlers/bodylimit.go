package handlers

import (
	"github.com/valyala/fasthttp"

	"licet/handlers/connection"
)

const (
	// bodyLimit bounds a body in bytes.
	bodyLimit = 64 << 10
	// openBodyLimit bounds a body on the routes that need no API key.
	openBodyLimit = 16 << 10
)

// headReceived sets the body limit of a request before fasthttp reads the body. If CheckHead refuses
// the head, headReceived makes fasthttp neither invite a body by 100 Continue nor read one. dispatch
// then checks the same raw bytes again, sends the error and closes the connection.
func (s *Server) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limit := bodyLimit
	s.guard.Do("head", func() {
		limit = s.bodyLimit(h)
		if _, err := connection.CheckHead(h, limit); err != nil {
			h.SetContentLength(0)
			h.Del(fasthttp.HeaderExpect)
		}
	})
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}

// bodyLimit returns the body limit of the path that a head names.
func (s *Server) bodyLimit(h *fasthttp.RequestHeader) int {
	if limit, special := s.bodyLimits[string(h.RequestURI())]; special {
		return limit
	}
	path, _, _ := splitTarget(string(h.RequestURI()))
	if limit, special := s.bodyLimits[path]; special {
		return limit
	}
	return bodyLimit
}
