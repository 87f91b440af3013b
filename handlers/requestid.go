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

// requestID keeps the id that a caller gave to its request, or makes one. Ids
// go into the log, so one that looks like a secret of ours is not kept.
func (s *Server) requestID(given []byte) string {
	if id := string(given); validRequestID(given) && !s.secret(id) {
		return id
	}
	return ulid.MustNew(ulid.Now(), rand.Reader).String() // crypto/rand never fails
}

// secret reports whether text has the form of an API key, an API secret or a
// license key.
func (s *Server) secret(text string) bool {
	if strings.HasPrefix(text, "lk_") || strings.HasPrefix(text, "lks_") {
		return true
	}
	_, err := s.cfg.Node.ParseLicenseKey(text)
	return err == nil
}

// validRequestID bounds what is repeated in headers and logs.
func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte("._:+/=-", c) >= 0:
		default:
			return false
		}
	}
	return true
}
