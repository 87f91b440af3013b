package stage

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// echo is a node that answers with the request and its host name.
func echo(t *testing.T, served *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, r.Host+" "+string(body))
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// unused returns an address without a listener.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func post(ctx context.Context, b *Balancer) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, PublicURL+"/v1/orders",
		strings.NewReader("a body"))
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: b}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestBalancerSpreadsRequests(t *testing.T) {
	var served [2]atomic.Int64
	b := newBalancer([]string{echo(t, &served[0]), echo(t, &served[1])})
	defer b.CloseIdleConnections()
	for range 100 {
		if text, err := post(t.Context(), b); err != nil || text != "licenses.example.com a body" {
			t.Fatal(text, err)
		}
	}
	if served[0].Load() < 20 || served[1].Load() < 20 {
		t.Errorf("of 100 requests the nodes served %d and %d", served[0].Load(), served[1].Load())
	}
	before := served[1].Load()
	for range 10 {
		if _, err := post(Toward(t.Context(), 1), b); err != nil {
			t.Fatal(err)
		}
	}
	if served[1].Load() != before+10 {
		t.Errorf("of 10 requests for one node it served %d", served[1].Load()-before)
	}
}

func TestBalancerSkipsDownNodes(t *testing.T) {
	var served atomic.Int64
	b := newBalancer([]string{unused(t), echo(t, &served)})
	defer b.CloseIdleConnections()
	for range 10 {
		if text, err := post(Toward(t.Context(), 0), b); err != nil || text != "licenses.example.com a body" {
			t.Fatal(text, err)
		}
	}
	if b.moved.Load() != 10 || b.unanswered.Load() != 0 {
		t.Errorf("%d requests moved, %d unanswered", b.moved.Load(), b.unanswered.Load())
	}
}

// TestBalancerRepeatsNothing sends a request to a node that breaks off.
func TestBalancerRepeatsNothing(t *testing.T) {
	var served atomic.Int64
	broken := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request) {
		panic(http.ErrAbortHandler)
	}))
	defer broken.Close()
	b := newBalancer([]string{broken.Listener.Addr().String(), echo(t, &served)})
	defer b.CloseIdleConnections()
	if _, err := post(Toward(t.Context(), 0), b); err == nil {
		t.Error("a request that broke off has an answer")
	}
	if served.Load() != 0 || b.unanswered.Load() != 1 || b.moved.Load() != 0 {
		t.Errorf("another node served %d, %d unanswered, %d moved", served.Load(), b.unanswered.Load(), b.moved.Load())
	}
}
