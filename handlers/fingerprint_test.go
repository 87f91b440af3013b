package handlers

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// TestFingerprint tells requests apart by each of what is the caller's.
func TestFingerprint(t *testing.T) {
	f := func(method, path, body string) [32]byte {
		r := &request{fast: &fasthttp.RequestCtx{}, path: path}
		r.fast.Request.Header.SetMethod(method)
		r.fast.Request.SetBodyString(body)
		return fingerprint(r)
	}
	seen := map[[32]byte]string{}
	for _, c := range [][3]string{
		{"POST", "/v1/orders", "{}"},
		{"PUT", "/v1/orders", "{}"},
		{"POST", "/v1/licenses", "{}"},
		{"POST", "/v1/orders", "{} "},
		{"POST", "/v1/orders", ""},
		{"POST", "/v1/order", "s{}"},
		{"POST", "/v1/orders{}", ""},
	} {
		print := f(c[0], c[1], c[2])
		if other, twice := seen[print]; twice {
			t.Errorf("%q has the fingerprint of %s", c, other)
		}
		if print != f(c[0], c[1], c[2]) {
			t.Errorf("%q has two fingerprints", c)
		}
		seen[print] = c[1] + " " + c[2]
	}
}
