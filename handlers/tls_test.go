package handlers_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/node/service"
)

// tlsServer is a server behind TLS, as its clients reach it.
type tlsServer struct {
	address string
	config  *tls.Config
}

// serveTLS serves the same service once more, with TLS.
func (s *fixture) serveTLS(t *testing.T) *tlsServer {
	t.Helper()
	lender := httptest.NewTLSServer(http.NotFoundHandler()) // of a certificate
	lender.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, handlers.New(s.config), tls.NewListener(inner, &tls.Config{Certificates: lender.TLS.Certificates}))
	config := lender.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com" // which the lender has its certificate for
	return &tlsServer{inner.Addr().String(), config}
}

// dial connects without a word of TLS.
func (s *tlsServer) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

// wantEnd waits until the other side has closed a connection, and demands that
// it says nothing before.
func wantEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if said, err := io.ReadAll(c); len(said) > 0 || err != nil {
		t.Errorf("it said %q, %v", said, err)
	}
}

func TestTLSClientsThatStop(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.ReadTimeout = 50 * time.Millisecond })
	server := s.serveTLS(t)
	wantEnd(t, server.dial(t))
	half := server.dial(t)
	_, _ = half.Write([]byte{22, 3, 1, 2, 0}) // the head of a record that never comes
	wantEnd(t, half)
	if lines := s.log.requests(t); len(lines) > 0 {
		t.Errorf("requests were logged that never came: %v", lines)
	}
}

// A refusal can be read to its end, although more was sent than was read.
func TestRefusalOverTLS(t *testing.T) {
	t.Parallel()
	server := newService(t).serveTLS(t)
	c := tls.Client(server.dial(t), server.config)
	_, _ = io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 64<<10)+"\r\n\r\n")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Fatalf("%v, %v", response, err)
	}
	if _, err := io.ReadAll(response.Body); err != nil {
		t.Error(err)
	}
}

// The connection too many is not given the time of a handshake.
func TestTooManyTLSConnections(t *testing.T) {
	t.Parallel()
	server := newService(t, func(c *handlers.Config, _ *service.Config) { c.MaxConnections = 1 }).serveTLS(t)
	if err := tls.Client(server.dial(t), server.config).Handshake(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	wantEnd(t, server.dial(t))
	if took := time.Since(began); took > time.Second {
		t.Errorf("it was closed after %v", took)
	}
}
