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

// headReceived sets a request's body limit before its body is read. Where the
// head is refused it sees to it that no body is read at all, nor waited for,
// nor invited by 100 Continue: the handler then comes to the same verdict, from
// the same raw bytes, answers it and closes the connection.
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

// bodyLimit is the limit of the path that a head asks for.
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
