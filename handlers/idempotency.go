package handlers

import (
	"crypto/hmac"
	"crypto/sha256"

	"licet/node"
)

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"

	maxIdempotencyKey = 255
)

// once reads the Idempotency-Key of a POST that an API key was sent with
// (draft-ietf-httpapi-idempotency-key-header); nil where there is none. The
// key itself is not kept, only its hash, and of the request only a fingerprint.
func (p *problems) once(r *request) *node.Once {
	keys := r.fast.Request.Header.PeekAll(headerIdempotencyKey)
	if len(keys) == 0 {
		return nil
	}
	if len(keys) > 1 || !validIdempotencyKey(keys[0]) {
		p.add(headerIdempotencyKey, "must be one header of 1 to 255 printable ASCII characters")
		return nil
	}
	hash := sha256.Sum256(keys[0])
	r.once = &node.Once{Hash: string(hash[:16]), Fingerprint: fingerprint(r, keys[0])}
	return r.once
}

// onceInTime is once for a request that may have come too late to be made. What
// was made under its key is answered all the same, so that it is for whoever
// looks that up to refuse what is stale.
func (p *problems) onceInTime(r *request, late problems) (once *node.Once, stale error) {
	once = p.once(r)
	if once != nil && len(p.fields) == 0 {
		return once, late.err()
	}
	p.fields = append(p.fields, late.fields...)
	return once, nil
}

func validIdempotencyKey(key []byte) bool {
	if len(key) == 0 || len(key) > maxIdempotencyKey {
		return false
	}
	for _, c := range key {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// fingerprint tells one request from another: method, path and raw body. It is made
// with the Idempotency-Key, which is not stored: a body may hold nothing but an
// e-mail address, and a plain hash of that would let anyone who can read the store
// try addresses.
func fingerprint(r *request, key []byte) [32]byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(r.fast.Request.Header.Method())
	sum.Write([]byte{'\n'})
	sum.Write([]byte(r.path))
	sum.Write([]byte{'\n'})
	sum.Write(r.body())
	return [32]byte(sum.Sum(nil))
}

// idempotent reports whether sending the very same request again does what it
// does once.
func (e *exchange) idempotent() bool {
	return e.route != nil && e.route.idempotent || e.request != nil && (e.request.idempotent || e.request.once != nil)
}
