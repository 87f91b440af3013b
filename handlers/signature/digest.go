package signature

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
)

const fieldContentDigest = "content-digest"

// checkDigest compares the body with its Content-Digest (RFC 9530, 2). Each
// digest of an algorithm that is understood must be right, and there must be
// one; the others are weak or unknown, and stand for nothing.
func (m *Message) checkDigest() error {
	digests, err := m.dictionary(fieldContentDigest)
	if err != nil {
		return errors.New("header Content-Digest is not a dictionary of structured fields")
	}
	understood := false
	check := func(algorithm string, sum func([]byte) []byte) error {
		if _, given := digests.Get(algorithm); !given {
			return nil
		}
		understood = true
		if value, ok := byteSequence(digests, algorithm); !ok || !bytes.Equal(value, sum(m.Body)) {
			return fmt.Errorf("the %s in header Content-Digest is not that of the body", algorithm)
		}
		return nil
	}
	if err := check("sha-256", func(b []byte) []byte { sum := sha256.Sum256(b); return sum[:] }); err != nil {
		return err
	}
	if err := check("sha-512", func(b []byte) []byte { sum := sha512.Sum512(b); return sum[:] }); err != nil {
		return err
	}
	if !understood {
		return errors.New("header Content-Digest has neither sha-256 nor sha-512")
	}
	return nil
}
