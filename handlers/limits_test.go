package handlers_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/node/service"
)

// The greatest size that the server accepts and the smallest that it refuses, for a declared length and for chunks.
func TestSizeLimits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const openLimit, limit, uriLimit, headLimit = 16 << 10, 64 << 10, 4 << 10, 12 << 10
	sized := func(size int) string { return `{"a":"` + strings.Repeat("x", size-8) + `"}` }
	declared := func(path string, size int) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "+
			"%s\r\nContent-Length: %d\r\n\r\n", path, keyAll, size) + sized(size)
	}
	chunked := func(path string, size int) string {
		body := sized(size)
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer "+
			"%s\r\nTransfer-Encoding: chunked\r\n\r\n", path, keyAll) +
			chunk(body[:size/2]) + chunk(body[size/2:]) + "0\r\n\r\n"
	}
	target := func(size int) string {
		return "GET /" + strings.Repeat("x", size-1) + " HTTP/1.1\r\nHost: x\r\n\r\n"
	}
	head := func(size int) string {
		const start, end = "GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ", "\r\n\r\n"
		return start + strings.Repeat("x", size-len(start)-len(end)) + end
	}
	for name, c := range map[string]struct {
		sent   string
		code   int
		closed bool
	}{
		"activation, at the limit":          {declared("/v1/licenses/activate", openLimit), 42200, false},
		"activation, over":                  {declared("/v1/licenses/activate", openLimit+1), 41300, true},
		"activation, chunked, at the limit": {chunked("/v1/licenses/activate", openLimit), 42200, false},
		"activation, chunked, over":         {chunked("/v1/licenses/activate", openLimit+1), 41300, true},
		"activation, absolute form, over":   {declared("http://x/v1/licenses/activate", openLimit+1), 41300, true},
		"order, at the limit":               {declared("/v1/orders", limit), 40000, false},
		"order, over":                       {declared("/v1/orders", limit+1), 41300, true},
		"order, chunked, at the limit":      {chunked("/v1/orders", limit), 40000, false},
		"order, chunked, over":              {chunked("/v1/orders", limit+1), 41300, true},
		"order, a terabyte declared, none sent": {"POST /v1/orders HTTP/1.1\r\nHost: x\r\nContent-Length: " +
			"1099511627776\r\n\r\n", 41300, true},
		"order, over, with expectation": {"POST /v1/orders HTTP/1.1\r\nHost: x\r\nExpect: " +
			"100-continue\r\nContent-Length: 1099511627776\r\n\r\n", 41300, true},
		"no route, over":                 {declared("/v1/nothing", limit+1), 41300, true},
		"URI at the limit":               {target(uriLimit), 40400, false},
		"URI over":                       {target(uriLimit + 1), 41400, true},
		"URI beyond the read buffer":     {target(20 << 10), 41400, true},
		"URI far beyond the read buffer": {target(200 << 10), 41400, true},
		"URI without end":                {"GET /" + strings.Repeat("x", 40<<10), 41400, true},
		"head at the limit":              {head(headLimit), 0, false},
		"head over":                      {head(headLimit + 1), 43100, true},
		"head beyond the read buffer":    {head(20 << 10), 43100, true},
		"head of many lines": {"GET /livez HTTP/1.1\r\nHost: x\r\n" +
			strings.Repeat("X-A: b\r\n", 10_000) + "\r\n", 43100, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answers, closed := s.exchangeKept(c.sent)
			if len(answers) != 1 || closed != c.closed {
				t.Fatalf("%d answers, closed: %v, want %v\n%v", len(answers), closed, c.closed, answers)
			}
			answers[0].must(t, c.code)
			checkCommonHeaders(t, answers[0])
		})
	}
}

// A client that stops in the middle of a request gets an error and loses its connection. A client that sends nothing
// loses its connection without a response.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	// A busy machine has a second to send what comes before the stop.
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.ReadTimeout = time.Second })
	for name, sent := range map[string]string{
		"in the request line": "GET /liv",
		"in the headers":      "GET /livez HTTP/1.1\r\nHost: x\r\nX-A",
		"in the body":         post("Content-Length: 10\r\n") + "{",
		"in a chunk":          post("Transfer-Encoding: chunked\r\n") + "a\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			answers, closed := s.exchangeRaw(sent)
			if len(answers) != 1 || !closed {
				t.Fatalf("%d answers, closed: %v", len(answers), closed)
			}
			answers[0].must(t, 40000)
			checkCommonHeaders(t, answers[0])
		})
	}
	t.Run("before anything", func(t *testing.T) {
		before := len(s.log.requests(t))
		answers, closed := s.exchangeRaw("")
		if len(answers) != 0 || !closed {
			t.Fatalf("%d answers, closed: %v", len(answers), closed)
		}
		if after := len(s.log.requests(t)); after != before {
			t.Errorf("the log has a request that the client never sent")
		}
	})
}

// A connection beyond the limit gets a response in the usual form.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.MaxConnections = 1 })
	first, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := io.WriteString(first, smuggled); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil {
		t.Fatal(err)
	}
	answers, closed := s.exchangeRaw("")
	if len(answers) != 1 || !closed {
		t.Fatalf("%d answers, closed: %v", len(answers), closed)
	}
	answers[0].must(t, 50301)
	checkCommonHeaders(t, answers[0])
	if got := s.series("licet_commands_shed_total"); !maps.Equal(got, map[string]float64{"connection": 1}) {
		t.Errorf("shed: %v", got)
	}
}
