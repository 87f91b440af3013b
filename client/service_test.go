package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"licet/client"
	"licet/internal/servicetest"
)

// service is the real service that the tests share.
var service *servicetest.Service

func TestMain(m *testing.M) { os.Exit(servicetest.Run(m, &service)) }

// newShop returns a client with a new account, and an API key with the given scopes, or all.
func newShop(t *testing.T, scopes []string, options ...client.Option) *client.Client {
	t.Helper()
	key, err := service.Key(servicetest.NewAccount(), scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, service.URL, key.Text, options...)
}

func newClient(t *testing.T, url, apiKey string, options ...client.Option) *client.Client {
	t.Helper()
	c, err := client.New(url, apiKey, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// must checks that a call has succeeded.
func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// refused checks that a call was refused, and returns the error.
func refused(t *testing.T, err error, code int) *client.Error {
	t.Helper()
	var e *client.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want the code %d", err, code)
	}
	return e
}

// wire sends requests to the service and records them. It can lose responses, as a network would.
type wire struct {
	mu      sync.Mutex
	lose    int // how many of the next answers
	noted   []*http.Request
	bodies  []string
	through http.RoundTripper
}

var errLost = errors.New("the connection was reset")

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	again := r.Clone(context.WithoutCancel(r.Context()))
	again.Body = io.NopCloser(strings.NewReader(string(body)))
	response, err := w.through.RoundTrip(again)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noted = append(w.noted, r)
	w.bodies = append(w.bodies, string(body))
	if err == nil && w.lose > 0 {
		w.lose--
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		return nil, errLost
	}
	return response, err
}

func newWire(lose int) *wire { return &wire{lose: lose, through: http.DefaultTransport} }

func (w *wire) option() client.Option { return client.WithHTTPClient(&http.Client{Transport: w}) }
