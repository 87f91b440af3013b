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

// tlsServer is the address of a server with TLS, and the configuration of its clients.
type tlsServer struct {
	address string
	config  *tls.Config
}

// serveTLS also serves the fixture's service with TLS.
func (s *fixture) serveTLS(t *testing.T) *tlsServer {
	t.Helper()
	issuer := httptest.NewTLSServer(http.NotFoundHandler()) // has a certificate to use
	issuer.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serveOn(t, handlers.New(s.config), tls.NewListener(inner, &tls.Config{Certificates: issuer.TLS.Certificates}))
	config := issuer.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = "example.com" // the name in the certificate
	return &tlsServer{inner.Addr().String(), config}
}

// dial opens a TCP connection without a TLS handshake.
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

// wantEnd waits until the server has closed a connection, and checks that the server has sent nothing.
func wantEnd(t *testing.T, c net.Conn) {
	t.Helper()
	if sent, err := io.ReadAll(c); len(sent) > 0 || err != nil {
		t.Errorf("the server sent %q, %v", sent, err)
	}
}

// TestTLSClientsThatStop: the server closes a connection whose client does not complete the handshake
// in time, without a response or a log line.
func TestTLSClientsThatStop(t *testing.T) {
	t.Parallel()
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.ReadTimeout = 50 * time.Millisecond })
	server := s.serveTLS(t)
	wantEnd(t, server.dial(t))
	half := server.dial(t)
	_, _ = half.Write([]byte{22, 3, 1, 2, 0}) // the head of a record that never comes
	wantEnd(t, half)
	if lines := s.log.requests(t); len(lines) > 0 {
		t.Errorf("the log has requests that no client sent: %v", lines)
	}
}

// TestRefusalOverTLS: a client can read the whole refusal, even if the server has not read the whole request.
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

// TestTooManyTLSConnections: the server closes a connection beyond MaxConnections without a handshake, and before the
// time for a handshake is up, here an hour.
func TestTooManyTLSConnections(t *testing.T) {
	t.Parallel()
	server := newService(t, func(c *handlers.Config, _ *service.Config) {
		c.MaxConnections, c.ReadTimeout = 1, time.Hour
	}).serveTLS(t)
	if err := tls.Client(server.dial(t), server.config).Handshake(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, server.dial(t))
}
