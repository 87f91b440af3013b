package webhook_test

import (
	"context"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"licet/delivery/webhook"
)

const body = `{"id":"evt_1","type":"order.paid","timestamp":"2030-01-02T03:04:05.678Z","sequence":2,"revision":77,"actor":"provider","data":{"order":{"order_no":"ord_1"}}}`

// receiver starts a TLS server on this machine.
func receiver(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	return start(t, handler, true)
}

func start(t testing.TB, handler http.HandlerFunc, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // drops the log of handshakes that are meant to fail
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func startPlain(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// trusting returns a pool with a server's certificate.
func trusting(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// newSender returns a sender that may reach this machine and trusts a server.
func newSender(t testing.TB, server *httptest.Server, change ...func(*webhook.Config)) *webhook.Sender {
	t.Helper()
	cfg := webhook.Config{
		Policy:  webhook.Policy{Loopback: true},
		Version: "1.2.3",
		Clock:   time.Now,
		Timeout: time.Minute,
	}
	if server != nil && server.TLS != nil {
		cfg.RootCAs = trusting(server)
	}
	for _, c := range change {
		c(&cfg)
	}
	s := webhook.NewSender(cfg)
	t.Cleanup(s.Close)
	return s
}

func within(d time.Duration) func(*webhook.Config) {
	return func(cfg *webhook.Config) { cfg.Timeout = d }
}

func under(p webhook.Policy) func(*webhook.Config) {
	return func(cfg *webhook.Config) { cfg.Policy = p }
}

// send makes an attempt whose context does not end.
func send(t testing.TB, s *webhook.Sender, url string) webhook.Attempt {
	t.Helper()
	attempt, err := s.Send(context.Background(), message(t, url))
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return attempt
}

func message(t testing.TB, url string) webhook.Message {
	t.Helper()
	return webhook.Message{ID: "evt_1", URL: url, Body: []byte(body), Secrets: []webhook.Secret{newSecret(t)}}
}

func newSecret(t testing.TB) webhook.Secret {
	t.Helper()
	secret, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// trap is a listener that no connection must reach.
type trap struct {
	net.Listener
}

func newTrap(t testing.TB, address string) trap {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("nothing can listen at %s: %v", address, err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return trap{listener}
}

func (tr trap) port() uint16 { return uint16(tr.Addr().(*net.TCPAddr).Port) }

// caught reports whether a connection has reached the trap. The kernel hands out connections in their order: if the
// first connection is caught's own, no other came before.
func (tr trap) caught(t testing.TB) bool {
	t.Helper()
	own, err := net.Dial("tcp", tr.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = own.Close() }()
	caught := false
	for {
		conn, err := tr.Accept()
		if err != nil {
			t.Fatal(err)
		}
		from := conn.RemoteAddr().String()
		_ = conn.Close()
		if from == own.LocalAddr().String() {
			return caught
		}
		caught = true
	}
}
