package signature

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// BenchmarkVerify verifies a signed request that creates an order.
func BenchmarkVerify(b *testing.B) {
	body := `{"product_id":"editor","amount":4900,"currency":"USD","metadata":{"cart":"` + strings.Repeat("x", 200) + `"}}`
	sum := sha256.Sum256([]byte(body))
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	m := &Message{
		Method:    "POST",
		TargetURI: "https://licenses.example.com/v1/orders",
		Body:      []byte(body),
		Fields: lines("Host: licenses.example.com", "User-Agent: shop/1.0", "Accept: */*",
			"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)),
			"Authorization: Bearer lk_test_1",
			"Content-Digest: "+digest, "Idempotency-Key: checkout-8114"),
	}
	covered := `("@method" "@target-uri" "authorization" "content-digest" "idempotency-key")` +
		params(signedAt.Unix(), `;alg="hmac-sha256"`)
	base, err := m.base(list(b, covered))
	if err != nil {
		b.Fatal(err)
	}
	m.with("sig1", covered, macOf(testSecret, string(base)))
	b.ReportAllocs()
	for b.Loop() {
		if err := Verify(m, testKey(), signedAt); err != nil {
			b.Fatal(err)
		}
	}
}
