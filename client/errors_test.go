package client_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/client"
)

// An error has the address of its section, if the service serves its docs.
func TestDocsOfAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":40403,"message":"no such order","error":{"reason":"order_not_found",`+
			`"retryable":false,"request_id":"r","docs_url":"/docs/errors#40403"}}`)
	}))
	t.Cleanup(server.Close)
	_, err := newClient(t, server.URL, "lk_test_x").Orders.Get(t.Context(), "ord_1")
	if e := refused(t, err, 40403); e.DocsURL != "/docs/errors#40403" {
		t.Errorf("%+v", e)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	shop := newShop(t, nil)
	_, err := shop.Orders.Create(t.Context(), client.NewOrder{Amount: -1, Currency: "XXQ", ProductID: "editor"})
	e := refused(t, err, 42200)
	var fields []string
	for _, f := range e.Fields {
		fields = append(fields, f.Field)
	}
	if !slices.Equal(fields, []string{"amount", "currency"}) || e.Status != 422 || e.Retryable || e.RequestID == "" {
		t.Errorf("refused with %+v", e)
	}
	want := regexp.MustCompile(`^.+: amount must .+; currency must .+ \(42200 invalid_field, request [0-9A-Z]{26}\)$`)
	if !want.MatchString(err.Error()) || strings.Count(err.Error(), "amount must") != 1 {
		t.Errorf("it reads %q", err)
	}
	_, err = newClient(t, service.URL, "lk_test_wrong").Orders.Get(t.Context(), "ord_1")
	refused(t, err, 40100)
	_, err = newClient(t, service.URL, "").Orders.Get(t.Context(), "ord_1")
	refused(t, err, 40100)
	_, err = newClient(t, service.URL+"/other", "").Orders.Get(t.Context(), "ord_1")
	refused(t, err, 40400)
	_, err = newShop(t, []string{"orders"}).Licenses.Get(t.Context(), "LIC-1")
	refused(t, err, 40300)
	_, err = shop.Licenses.Get(t.Context(), "LIC-1")
	refused(t, err, 40001)
	for _, err := range []error{
		second(shop.Licenses.Get(t.Context(), "")), second(shop.Licenses.RemoveDevice(t.Context(), "LIC-1",
			"")), second(shop.Orders.Get(t.Context(), "")),
	} {
		if err == nil || !strings.HasSuffix(err.Error(), " is empty") {
			t.Errorf("without what it is about: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestReasonsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	var documented, known []string
	for _, row := range regexp.MustCompile("(?m)^\\| \\d{5} \\| `([a-z_]+)` \\|").FindAllStringSubmatch(apiDoc(t), -1) {
		documented = append(documented, row[1])
	}
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^\tReason\w+ += "([a-z_]+)"$`).FindAllStringSubmatch(string(source),
		-1) {
		known = append(known, line[1])
	}
	if diff := cmp.Diff(documented, known); diff != "" || len(known) < 30 {
		t.Errorf("documented (-), known (+):\n%s", diff)
	}
}

func TestNewRefusesInvalidAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "licenses.example.com", "ftp://a.example", "http://", "https://:80",
		"https://user:secret@a.example", "https://a.example/?b", "https://a.example/?", "https://a.example/#b",
		"http://a b"} {
		if _, err := client.New(address, ""); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := client.New("http://a.example", "lk_test_\n"); err == nil || strings.Contains(err.Error(), "lk_") {
		t.Error(err)
	}
	for _, option := range []client.Option{client.WithSigning("", "lks_test_1"), client.WithSigning("key_1", "")} {
		if _, err := client.New("http://a.example", "lk_test_1", option); err == nil {
			t.Error("signing without all that it needs")
		}
	}
	if _, err := client.New("http://a.example", "", client.WithSigning("key_1", "lks_test_1")); err == nil {
		t.Error("signing without a key")
	}
}

// TestOthersAtTheAddress: the responses of servers that are no Licet service are errors.
func TestOthersAtTheAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer    http.HandlerFunc
		status    int
		retryable bool
	}{
		"a page": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("<html>hello</html>")) }, 200,
			false},
		"another API": {func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"data":{}}`)) }, 200,
			false},
		"no page":    {http.NotFound, 404, false},
		"a redirect": {http.RedirectHandler("https://elsewhere.example/", http.StatusFound).ServeHTTP, 302, false},
		"a proxy":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, 502, true},
		"a contradiction": {func(w http.ResponseWriter,
			_ *http.Request) {
			w.Write([]byte(`{"code":40401,"message":"?"}`))
		}, 200, false},
		"no data": {func(w http.ResponseWriter,
			_ *http.Request) {
			w.Write([]byte(`{"code":0,"message":"success"}`))
		}, 200, false},
	} {
		server := httptest.NewServer(c.answer)
		_, err := newClient(t, server.URL, "", client.RetryFor(0)).Orders.Get(t.Context(), "ord_1")
		if e := refused(t, err, 0); e.Status != c.status || e.Retryable != c.retryable ||
			!strings.Contains(err.Error(), "no Licet service") {
			t.Errorf("%s: %+v", name, e)
		}
		server.Close()
	}
}

// TestUnansweredRequests: a request without a response fails at once if a retry can't help, and the error quotes
// nothing of the request.
func TestUnansweredRequests(t *testing.T) {
	t.Parallel()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = quiet
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"code":0,"message":"success","data":{"amount":"much"}}`))
	}))
	defer odd.Close()
	for _, address := range []string{secure.URL, strings.Replace(plain.URL, "http:", "https:", 1), odd.URL,
		"http://licet.invalid"} {
		var tries client.Response
		_, err := newClient(t, address, "lk_test_1").Orders.Get(t.Context(), "ord_secret", client.Record(&tries))
		var refused *client.Error
		if err == nil || tries.Tries != 1 || errors.As(err, &refused) || strings.Contains(err.Error(), "ord_secret") ||
			strings.Contains(err.Error(), "lk_test") ||
			!strings.HasPrefix(err.Error(), "GET /v1/orders/{order_no}: ") {
			t.Errorf("%s: after %d tries %v", address, tries.Tries, err)
		}
	}
	var trust *tls.CertificateVerificationError
	if _, err := newClient(t, secure.URL, "").Orders.Get(t.Context(), "ord_1"); !errors.As(err, &trust) {
		t.Errorf("a certificate of an unknown authority: %v", err)
	}
}

// TestAnswersAreBounded: a response beyond maxResponse is an error.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<20)
		for range 65 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if _, err := newClient(t, server.URL, "").Orders.Get(t.Context(), "ord_1"); err == nil ||
		!strings.Contains(err.Error(), "more than 64 MiB") {
		t.Error(err)
	}
}

func TestContextEndsACall(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
		}
		cancel()
		<-ended // a connection that is closed is an end of its own
	}()
	if _, err := newClient(t, "http://"+listener.Addr().String(), "").Orders.Get(ctx, "ord_1"); !errors.Is(err,
		context.Canceled) {
		t.Errorf("while it waits for an answer: %v", err)
	}
	// The same during the pause before a retry.
	ctx, cancel = context.WithCancel(t.Context())
	again := client.OnRetry(func(error, time.Duration) bool { cancel(); return true })
	_, err = newClient(t, "http://"+closedPort(t), "", again).Orders.Get(ctx, "ord_1")
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
}

// closedPort returns an address without a listener.
func closedPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
