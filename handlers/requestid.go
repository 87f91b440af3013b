package handlers

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

const (
	headerRequestID = "X-Request-Id"
	maxRequestID    = 128
)

// requestID returns the id that the caller gave its request, or a new one. The log holds the ids, so requestID
// replaces an invalid id, and an id that looks like a secret of ours.
func (s *Server) requestID(given []byte, now time.Time) string {
	if len(given) == 0 {
		return newRequestID(now)
	}
	if id := string(given); validRequestID(given) && !s.secret(id) {
		return id
	}
	return newRequestID(now)
}

// newRequestID returns makeRequestID as text.
func newRequestID(now time.Time) string { return makeRequestID(now).String() }

// makeRequestID returns a new ULID. The id must be unique but is no secret, so it need not come from crypto/rand,
// which takes longer.
func makeRequestID(now time.Time) (id ulid.ULID) {
	_ = id.SetTime(ulid.Timestamp(now)) // fails only after the year 10889
	binary.BigEndian.PutUint16(id[6:], uint16(rand.Uint32()))
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	return id
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

// validRequestID reports whether headers and logs may repeat an id.
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
