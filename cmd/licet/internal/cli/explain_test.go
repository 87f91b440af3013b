package cli

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestNoService meets addresses at which there is no service.
func TestNoService(t *testing.T) {
	t.Parallel()
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { // which takes connections, and drops them
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	defer listener.Close()
	u := newUser(t)
	u.setup.retryFor = time.Nanosecond
	for address, words := range map[string][]string{
		"http://127.0.0.1:1":   {"no service listens at http://127.0.0.1:1 (from $LICET_URL)", "with licet dev"},
		"http://licet.invalid": {"the host of http://licet.invalid (from $LICET_URL) does not exist"},
		page.URL:               {"is not a Licet service: it returned HTTP 404"},
		strings.Replace(page.URL, "http:", "https:", 1): {"speaks HTTP without TLS"},
		secure.URL:                           {"is not trusted", "SSL_CERT_FILE"},
		"http://" + listener.Addr().String(): {"GET /v1/orders: ", ", at http://127.0.0.1:"},
		svc.URL + "/v2":                      {"no such route", "may have an extra path"},
		"https://someone:password@licenses.example.com": {"$LICET_URL: the address of the service must be a URL"},
		strings.Replace(svc.URL, "http://", "http:", 1): {"must be a URL such as"},
	} {
		u.env["LICET_URL"] = address
		got := u.run("orders", "list")
		if got.err == nil || got.stdout != "" || strings.Contains(got.err.Error(), "password") {
			t.Fatalf("%s: %+v", address, got)
		}
		for _, word := range words {
			if !strings.Contains(got.err.Error(), word) {
				t.Errorf("%s: it says %q, want %q", address, got.err, word)
			}
		}
	}
	// For a change, the message says that the outcome is unknown.
	u.env["LICET_URL"] = "http://" + listener.Addr().String()
	u.refuses(false, []string{"the outcome is unknown"}, "licenses", "grant", "--product-id", "editor")
}

// TestRefusalsMoveNoCursor is refused by something that wants to paint the screen.
func TestRefusalsMoveNoCursor(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = w.Write([]byte(`{"code":40901,"message":"a\u001b[2Jb\nc","error":{"reason":"device_limit_reached"}}`))
	}))
	defer server.Close()
	u := newStranger(t)
	u.env["LICET_URL"] = server.URL
	u.refuses(false, []string{"a [2Jb c (40901"}, "licenses", "activate", "LIC-1", "d")
}

func TestRefusedKeys(t *testing.T) {
	t.Parallel()
	u := newUser(t, "orders:read")
	u.refuses(false, []string{"40300", "licet licenses list needs the scope licenses:read", "$LICET_API_KEY"},
		"licenses", "list")
	u.env["LICET_API_KEY"] = "lk_test_wrong"
	got := u.run("orders", "list")
	if got.err == nil || !strings.Contains(got.err.Error(), "refused the API key from $LICET_API_KEY (40100") ||
		strings.Contains(got.err.Error(), "lk_test") {
		t.Errorf("%+v", got)
	}
	delete(u.env, "LICET_API_KEY")
	u.refuses(true, []string{"no API key for " + u.env["LICET_URL"] + " (from $LICET_URL)"}, "orders", "list")
	// End users have none.
	if text := u.must("licenses", "activate", newUser(t).grant(1)[0], "d"); !strings.Contains(text, "activated") {
		t.Errorf("activated\n%s", text)
	}
}
