package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
)

const fieldContentDigest = "content-digest"

// checkDigest compares the body with its Content-Digest (RFC 9530, section 2). There must be a digest by
// sha-256 or sha-512, and each of these must match the body. checkDigest ignores digests by other
// algorithms, which are weak or unknown.
func (m *Message) checkDigest() error {
	digests, err := m.dictionary(fieldContentDigest)
	if err != nil {
		return errors.New("header Content-Digest is not a dictionary of structured fields")
	}
	supported := false
	check := func(algorithm string, sum func([]byte) []byte) error {
		if _, given := digests.Get(algorithm); !given {
			return nil
		}
		supported = true
		if value, ok := byteSequence(digests, algorithm); !ok || !bytes.Equal(value, sum(m.Body)) {
			return fmt.Errorf("the %s in header Content-Digest does not match the body", algorithm)
		}
		return nil
	}
	if err := check("sha-256", func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] }); err != nil {
		return err
	}
	if err := check("sha-512", func(b []byte) []byte { sum := sha512.Sum512(b); return sum[:] }); err != nil {
		return err
	}
	if !supported {
		return errors.New("header Content-Digest has neither sha-256 nor sha-512")
	}
	return nil
}
