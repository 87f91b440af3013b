//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestParseAnswer(t *testing.T) {
	f := func(text string, want answer, complete bool) {
		t.Helper()
		got, done, err := parseAnswer([]byte(text))
		if err != nil || done != complete || got != want {
			t.Errorf("%q: got %+v, complete %v, %v; want %+v, complete %v", text, got, done, err, want, complete)
		}
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-LENGTH:  5 \r\n\r\n"
	f("", answer{}, false)
	f("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n", answer{}, false)
	f(head, answer{status: 200, head: len(head), length: 5}, false)
	f(head+"hell", answer{status: 200, head: len(head), length: 5}, false)
	f(head+"hello", answer{status: 200, head: len(head), length: 5}, true)
	const closing = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	f(closing, answer{status: 503, head: len(closing), closes: true}, true)
}

func TestParseAnswerRefuses(t *testing.T) {
	f := func(text string, want error) {
		t.Helper()
		if _, complete, err := parseAnswer([]byte(text)); complete || !errors.Is(err, want) {
			t.Errorf("%q: got complete %v, %v; want %v", text, complete, err, want)
		}
	}
	f("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", errNoHTTP)
	f("HTTP/1.1 2x0 OK\r\nContent-Length: 0\r\n\r\n", errNoHTTP)
	f("HTTP/1.1 \r\n\r\n", errNoHTTP)
	f(strings.Repeat("x", 20<<10), errNoHTTP)
	f("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", errNoLength)
	f("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errNoLength)
	f("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", errNoLength)
	f("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", errTooMuch)
}

func TestEnvelopeCode(t *testing.T) {
	f := func(status int, body string, want int) {
		t.Helper()
		if got := envelopeCode(status, []byte(body)); got != want {
			t.Errorf("%d %s: got %d, want %d", status, body, got, want)
		}
	}
	f(200, `{"code":0,"message":"success","data":{}}`, 0)
	f(201, `{"code":0,"message":"success","data":{}}`, 0)
	f(503, `{"code":50301,"message":"overloaded"}`, 50301)
	f(409, `{"code":40901,"message":"device limit reached"}`, 40901)
	f(200, `{"code":40901,"message":"a status that contradicts its code"}`, codeBroken)
	f(503, `{"code":0,"message":"success"}`, codeBroken)
	f(200, `{"status":"ready"}`, codeBroken)
	f(200, ``, codeBroken)
	f(200, `{"code":`, codeBroken)
	f(200, `{"code":x,`, codeBroken)
}

// TestFleetReadsPieces reads answers that come in pieces, over a connection that the server closes now and then.
func TestFleetReadsPieces(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	long := `{"code":0,"data":"` + strings.Repeat("x", 10_000) + `"}`
	bodies := []string{`{"code":0,"data":1}`, long, `{"code":50301,"m":1}`, `{"code":0,"data":2}`}
	go serveBodies(listener, bodies)
	ask := openFleet(t, listener.Addr().String(), 1).worker(numbered)
	for i, want := range []int{0, 0, codeOverloaded, 0} {
		if got := ask(i); got != want {
			t.Errorf("answer %d: got %d, want %d", i, got, want)
		}
	}
	if got := ask(4); got != codeBroken {
		t.Errorf("from a server that is gone: %d", got)
	}
}

// serveBodies answers one body after the other, each third time the last on
// its connection, and then stops.
func serveBodies(listener net.Listener, bodies []string) {
	defer listener.Close()
	for len(bodies) > 0 {
		tcp, err := listener.Accept()
		if err != nil {
			return
		}
		reader := bufio.NewReader(tcp)
		for n := 1; len(bodies) > 0; n++ {
			if _, err := http.ReadRequest(reader); err != nil {
				break
			}
			status, connection := 200, "keep-alive"
			if strings.Contains(bodies[0], "503") {
				status = 503
			}
			if n == 3 {
				connection = "close"
			}
			text := fmt.Sprintf("HTTP/1.1 %d X\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n%s", status, connection,
				len(bodies[0]), bodies[0])
			_, _ = io.WriteString(tcp, text[:20])
			_, _ = io.WriteString(tcp, text[20:])
			bodies = bodies[1:]
			if n == 3 {
				break
			}
		}
		_ = tcp.Close()
	}
}

func BenchmarkAnswer(b *testing.B) {
	body := `{"code":0,"message":"success","data":{` + strings.Repeat("x", 400) + `}}`
	text := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+
		"%d\r\nX-Request-Id: 1\r\n\r\n%s", len(body), body)
	b.ReportAllocs()
	for b.Loop() {
		a, complete, err := parseAnswer(text)
		if err != nil || !complete || envelopeCode(a.status, text[a.head:]) != 0 {
			b.Fatal(a, complete, err)
		}
	}
}
