package handlers

import (
	"crypto/rand"
	"strings"

	"github.com/oklog/ulid/v2"
)

const (
	headerRequestID = "X-Request-Id"
	maxRequestID    = 128
)

// requestID keeps the id that a caller gave to its request, or makes one.
func requestID(given []byte) string {
	if validRequestID(given) {
		return string(given)
	}
	return ulid.MustNew(ulid.Now(), rand.Reader).String() // crypto/rand never fails
}

// validRequestID bounds what is repeated in headers and logs.
func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._:+/=@-", c) >= 0:
		default:
			return false
		}
	}
	return true
}
