package handlers_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/remitly-oss/httpsig-go"
)

// TestSignaturesOfALibrary: the server accepts the signatures of an independent library, and refuses them after a
// change.
func TestSignaturesOfALibrary(t *testing.T) {
	t.Parallel()
	s := newSigningService(t)
	s.clock.advance(time.Since(s.clock.Now())) // the library uses the real clock
	license := s.license()
	for _, c := range []struct {
		wire
		digest httpsig.Digest
	}{
		{newOrder(orderBody), httpsig.DigestSHA256},
		{newOrder(orderBody), httpsig.DigestSHA512},
		{wire{method: "GET", path: "/v1/orders?limit=2&buyer_email=a%2Bb%40example.com"}, httpsig.DigestSHA256},
		{wire{method: "DELETE", path: "/v1/licenses/" + license + "/devices/a%2Fb%20c"}, httpsig.DigestSHA256},
		{wire{method: "POST", path: "/v1/licenses/activate", body: `{"license_key":"` + license + `","device_id":"d"}`},
			httpsig.DigestSHA512},
	} {
		fields := []string{"@method", "@target-uri", "authorization"}
		if c.method == "POST" {
			fields = append(fields, "content-digest", "idempotency-key", "content-type")
		}
		request, err := http.NewRequest(c.method, publicURL+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		// The library takes scheme, path and query from the fields of a server's request.
		request.TLS = new(tls.ConnectionState)
		request.URL.RawPath, request.URL.RawQuery = c.path, ""
		request.Header.Set("Authorization", "Bearer "+keySigner)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", "k "+string(c.digest))
		err = httpsig.Sign(request, httpsig.SigningProfile{
			Algorithm: httpsig.Algo_HMAC_SHA256,
			Digest:    c.digest,
			Fields:    httpsig.Fields(fields...),
			Metadata: []httpsig.Metadata{
				httpsig.MetaNonce, httpsig.MetaCreated, httpsig.MetaKeyID, httpsig.MetaAlgorithm, httpsig.MetaExpires,
				httpsig.MetaTag,
			},
			Label: "library",
		}, httpsig.SigningKey{Secret: []byte(s.secret("key_signer", 1)), MetaKeyID: "key_signer", MetaTag: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		headers := []string{"Content-Type", "-"}
		for name, values := range request.Header {
			headers = append(headers, name, values[0])
		}
		s.send(c.method, c.path, "", c.body, headers...).must(t, 0)
		s.send(c.method, c.path+"?", "", c.body, headers...).must(t, 40101)
		s.send(c.method, c.path, "", c.body+" ", headers...).must(t, 40101)
	}
}
