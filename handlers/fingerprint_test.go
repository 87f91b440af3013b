package handlers

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// TestFingerprint: requests that differ in method, path, body or Idempotency-Key have different
// fingerprints.
func TestFingerprint(t *testing.T) {
	f := func(method, path, body, key string) [32]byte {
		r := &request{call: call{fast: &fasthttp.RequestCtx{}}, path: path}
		r.fast.Request.Header.SetMethod(method)
		r.fast.Request.SetBodyString(body)
		return fingerprint(r, []byte(key))
	}
	seen := map[[32]byte]string{}
	for _, c := range [][4]string{
		{"POST", "/v1/orders", "{}", "k1"},
		{"PUT", "/v1/orders", "{}", "k1"},
		{"POST", "/v1/licenses", "{}", "k1"},
		{"POST", "/v1/orders", "{} ", "k1"},
		{"POST", "/v1/orders", "", "k1"},
		{"POST", "/v1/order", "s{}", "k1"},
		{"POST", "/v1/orders{}", "", "k1"},
		{"POST", "/v1/orders", "{}", "k2"},
	} {
		print := f(c[0], c[1], c[2], c[3])
		if other, twice := seen[print]; twice {
			t.Errorf("%q has the fingerprint of %s", c, other)
		}
		if print != f(c[0], c[1], c[2], c[3]) {
			t.Errorf("%q has two fingerprints", c)
		}
		seen[print] = c[1] + " " + c[2]
	}
}
