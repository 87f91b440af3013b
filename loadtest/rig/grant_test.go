package rig

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// TestGrant grants more licenses than one request may.
func TestGrant(t *testing.T) {
	var granted atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request struct{ Quantity, MaxDevices int }
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil ||
			r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		if request.Quantity > grantSize {
			t.Errorf("%d licenses in one request", request.Quantity)
		}
		var list []string
		for range request.Quantity {
			list = append(list, fmt.Sprintf(`{"license_key":"K%06d"}`, granted.Add(1)))
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"code":0,"message":"success","data":{"licenses":[%s]}}`, strings.Join(list, ","))
	}))
	defer server.Close()
	const count = 2*grantSize + 7
	var most atomic.Int64
	keys, err := Grant(t.Context(), server.URL, "secret", "editor", count, 3,
		func(done int) { most.Store(max(most.Load(), int64(done))) })
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range keys.Count() {
		seen[string(keys.At(i))] = true
	}
	if len(seen) != count || granted.Load() != count || most.Load() == 0 {
		t.Errorf("%d different keys of %d, %d granted, %d in the report", len(seen), keys.Count(), granted.Load(),
			most.Load())
	}
}

// TestGrantIsRepeated: a busy service is asked again under the same key.
func TestGrantIsRepeated(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.Header.Get("Idempotency-Key")); len(asked) == 1 {
			w.WriteHeader(http.StatusGatewayTimeout)
			fmt.Fprint(w,
				`{"code":50400,"message":"the outcome is unknown",`+
					`"error":{"reason":"outcome_unknown","retryable":true}}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"code":0,"message":"success","data":{"licenses":[{"license_key":"K"}]}}`)
	}))
	defer server.Close()
	keys, err := Grant(t.Context(), server.URL, "secret", "editor", 1, 3, func(int) {})
	if err != nil || keys.Count() != 1 || len(asked) != 2 || asked[0] == "" || asked[1] != asked[0] {
		t.Errorf("got %v, asked under the keys %q", err, asked)
	}
}

func TestGrantRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"code":40100,"message":"no"}`)
	}))
	defer server.Close()
	if _, err := Grant(t.Context(), server.URL, "secret", "editor", 1, 3, func(int) {}); err == nil ||
		!strings.Contains(err.Error(), "40100") {
		t.Errorf("got %v", err)
	}
}
