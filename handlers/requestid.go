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

// requestID keeps the id that a caller gave to its request, or makes one. Ids
// go into the log, so one that looks like a secret of ours is not kept.
func (s *Server) requestID(given []byte, now time.Time) string {
	if len(given) == 0 {
		return newRequestID(now)
	}
	if id := string(given); validRequestID(given) && !s.secret(id) {
		return id
	}
	return newRequestID(now)
}

// newRequestID is makeRequestID as text.
func newRequestID(now time.Time) string { return makeRequestID(now).String() }

// makeRequestID makes a ULID. It is a name and no secret: that it is not told
// twice is enough, so it need not come from crypto/rand, which takes longer.
func makeRequestID(now time.Time) (id ulid.ULID) {
	_ = id.SetTime(ulid.Timestamp(now)) // in a range of 8,900 years
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
