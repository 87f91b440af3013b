package handlers_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// exchangeRaw sends bytes as they are. Then it reads answers until the server closes the connection, which the server
// must do.
func (s *fixture) exchangeRaw(sent string) (answers []answer, closed bool) {
	s.t.Helper()
	return s.exchange(sent, false)
}

// exchangeEnded is exchangeRaw of a client that closes its half of the connection afterwards.
func (s *fixture) exchangeEnded(sent string) (answers []answer, closed bool) {
	s.t.Helper()
	return s.exchange(sent, true)
}

func (s *fixture) exchange(sent string, end bool) (answers []answer, closed bool) {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		s.t.Fatal(err)
	}
	// The server may refuse, and close, before it has read all.
	go func() {
		_, _ = io.WriteString(c, sent)
		if end {
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	reader := bufio.NewReader(c)
	for {
		response, err := http.ReadResponse(reader, &http.Request{Method: "GET"})
		if err != nil {
			timeout, ok := err.(net.Error)
			return answers, !ok || !timeout.Timeout()
		}
		if response.StatusCode == http.StatusContinue {
			continue
		}
		answers = append(answers, readAnswer(s.t, response))
	}
}

// exchangeKept is exchangeRaw for requests that may leave the connection open. A last request, with
// Connection: close, shows whether the connection was open.
func (s *fixture) exchangeKept(sent string) (answers []answer, closed bool) {
	s.t.Helper()
	const last = "last"
	answers, ended := s.exchangeRaw(sent + "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: " +
		last + "\r\n\r\n")
	if !ended {
		s.t.Fatal("the connection was not closed in the end")
	}
	if n := len(answers); n > 0 && answers[n-1].header.Get("X-Request-Id") == last {
		return answers[:n-1], false
	}
	return answers, true
}

const (
	smuggled = "GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: smuggled\r\n\r\n"
	goodBody = `{"license_key":"x","device_id":"d"}` // 40001
)

func post(headers string) string {
	return "POST /v1/licenses/activate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + headers + "\r\n"
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// checkCommonHeaders checks the headers of every JSON response.
func checkCommonHeaders(t *testing.T, a answer) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type":           "application/json; charset=utf-8",
		"Cache-Control":          "no-store",
		"X-Content-Type-Options": "nosniff",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a.header.Get("X-Request-Id") == "" {
		t.Error("no X-Request-Id")
	}
	if server := a.header.Values("Server"); len(server) > 0 {
		t.Errorf("Server: %v", server)
	}
	if failure, ok := a.raw["error"].(map[string]any); ok && failure["request_id"] != a.header.Get("X-Request-Id") {
		t.Errorf("request_id %v, header %q", failure["request_id"], a.header.Get("X-Request-Id"))
	}
}
