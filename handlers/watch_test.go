package handlers_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

var longPoll = "GET /v1/events?wait=25 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + keyAll + "\r\n\r\n"

// inFlight returns the number of requests that the server is working on.
func (s *fixture) inFlight() float64 {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "licet_http_requests_in_flight" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	s.t.Fatal("there is no such metric")
	return 0
}

func (s *fixture) awaitInFlight(want float64) {
	s.t.Helper()
	for until := time.Now().Add(20 * time.Second); s.inFlight() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("%v requests are in flight, want %v", s.inFlight(), want)
		}
	}
}

// eachWay runs a test over TCP and over TLS.
func eachWay(t *testing.T, test func(t *testing.T, s *fixture, dial func() net.Conn)) {
	t.Run("TCP", func(t *testing.T) {
		t.Parallel()
		s := newService(t)
		test(t, s, func() net.Conn {
			c, err := net.Dial("tcp", s.addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		})
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		s := newService(t)
		server := s.serveTLS(t)
		test(t, s, func() net.Conn { return tls.Client(server.dial(t), server.config) })
	})
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
}

// TestWaitEndsWithItsClient: a wait for events ends at once when its client closes the connection, even
// if the client has sent another request meanwhile.
func TestWaitEndsWithItsClient(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *fixture, dial func() net.Conn) {
		for _, more := range []string{"", "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"} {
			c := dial()
			say(t, c, longPoll)
			s.awaitInFlight(1)
			say(t, c, more)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			s.awaitInFlight(0)
		}
	})
}

// TestRequestsAfterAWait: the server serves requests that arrive during a wait once the wait is over. A
// client that closes only its half of the connection gets its response.
func TestRequestsAfterAWait(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *fixture, dial func() net.Conn) {
		c := dial()
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		answers := bufio.NewReader(c)
		read := func(want int) {
			t.Helper()
			response, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != want {
				t.Fatalf("status %d, %v", response.StatusCode, err)
			}
		}
		short := "GET /v1/events?wait=3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + keyAll + "\r\n\r\n"
		for range 2 {
			say(t, c, short)
			s.awaitInFlight(1)
			say(t, c, "GET /livez HTTP/1.1\r\nHo")
			read(http.StatusOK)
			say(t, c, "st: x\r\n\r\n"+"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n")
			read(http.StatusOK)
			read(http.StatusNotFound)
		}
		say(t, c, longPoll)
		s.awaitInFlight(1)
		if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		read(http.StatusOK)
		s.awaitInFlight(0)
	})
}
