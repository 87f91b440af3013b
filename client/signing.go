package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// signer signs requests by RFC 9421 with hmac-sha256; see docs/guides/signing.md.
type signer struct{ keyID, secret string }

// sign signs a request, whose other headers must be complete.
func (s *signer) sign(r *http.Request, body []byte, now time.Time) {
	var names, base strings.Builder
	cover := func(name, value string) {
		if names.Len() > 0 {
			names.WriteByte(' ')
		}
		fmt.Fprintf(&names, "%q", name)
		fmt.Fprintf(&base, "%q: %s\n", name, value)
	}
	cover("@method", r.Method)
	cover("@target-uri", r.URL.String())
	cover("authorization", r.Header.Get("Authorization"))
	if len(body) > 0 {
		sum := sha256.Sum256(body)
		r.Header.Set("Content-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
		cover("content-digest", r.Header.Get("Content-Digest"))
	}
	if r.Method == http.MethodPost {
		cover("idempotency-key", r.Header.Get("Idempotency-Key"))
	}
	params := fmt.Sprintf(`(%s);created=%d;keyid="%s";alg="hmac-sha256"`, names.String(), now.Unix(), s.keyID)
	mac := hmac.New(sha256.New, []byte(s.secret))
	fmt.Fprintf(mac, "%s\"@signature-params\": %s", base.String(), params)
	r.Header.Set("Signature-Input", "sig1="+params)
	r.Header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(mac.Sum(nil))+":")
}
