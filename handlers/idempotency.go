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

// idempotencyKey is embedded by the request types of routes that take an Idempotency-Key.
type idempotencyKey struct {
	once  *node.Once // nil: no key was sent
	stale error      // why a request that is made for the first time must be refused; see [checks.once]
}

func (k *idempotencyKey) setOnce(once *node.Once, stale error) { k.once, k.stale = once, stale }

// keyTaker is a request type that embeds idempotencyKey.
type keyTaker interface {
	setOnce(once *node.Once, stale error)
}

// once reads the Idempotency-Key of a request with an API key
// (draft-ietf-httpapi-idempotency-key-header); nil if there is none. Of the key only a hash is
// kept, and of the request only a fingerprint.
//
// A time that has passed since is no reason to refuse a request that repeats an earlier one. With a
// good key, that reason is returned as stale, and the use case applies it unless it finds the
// earlier request. Without a key it is one more invalid field.
func (c *checks) once(r *request) (once *node.Once, stale error) {
	keys := r.fast.Request.Header.PeekAll(headerIdempotencyKey)
	switch {
	case len(keys) == 0:
	case len(keys) > 1 || !validIdempotencyKey(keys[0]):
		c.add(headerIdempotencyKey, "must be one header of 1 to 255 printable ASCII characters")
	default:
		hash := sha256.Sum256(keys[0])
		once = &node.Once{Hash: string(hash[:16]), Fingerprint: fingerprint(r, keys[0])}
		r.once = once
	}
	if once != nil && len(c.fields) == 0 {
		return once, invalidFields(c.late)
	}
	c.fields = append(c.fields, c.late...)
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

// fingerprint identifies a request by method, path and raw body. It is keyed with the
// Idempotency-Key, which is not stored: a body may hold nothing but an e-mail address,
// and a plain hash would let readers of the store try addresses.
func fingerprint(r *request, key []byte) [32]byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(r.fast.Request.Header.Method())
	sum.Write([]byte{'\n'})
	sum.Write([]byte(r.path))
	sum.Write([]byte{'\n'})
	sum.Write(r.body())
	return [32]byte(sum.Sum(nil))
}

// isIdempotent reports whether the same request sent twice has the effect of one.
func (r *request) isIdempotent() bool {
	return r.route != nil && r.route.is(idempotent) || r.repeatable || r.once != nil
}
