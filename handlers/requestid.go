package handlers

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"licet/licensing"
)

const (
	headerRequestID = "X-Request-Id"
	maxRequestID    = 128
)

// requestID returns the id that the caller gave its request, or a new one. The log holds the ids, so requestID
// replaces an invalid id, and an id that looks like a secret of ours or contains one.
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

// secret reports whether text begins as an API key or an API secret, or contains, in any case, an API key, an API
// secret, the secret of a webhook endpoint, or a license key.
func (s *Server) secret(text string) bool {
	if strings.HasPrefix(text, "lk_") || strings.HasPrefix(text, "lks_") {
		return true
	}
	for at := range len(text) {
		switch text[at] {
		case '_':
			if endsInSecretPrefix(text[:at], text[at+1:]) {
				return true
			}
		case '-':
			if s.licenseKeyAt(text, at) {
				return true
			}
		}
	}
	return false
}

// endsInSecretPrefix reports whether before, an underscore and after are a text in which a secret begins.
func endsInSecretPrefix(before, after string) bool {
	ends := func(prefix string) bool {
		return len(before) >= len(prefix) && strings.EqualFold(before[len(before)-len(prefix):], prefix)
	}
	goesOn := func(mode licensing.Mode) bool {
		return len(after) > len(mode) && after[len(mode)] == '_' && strings.EqualFold(after[:len(mode)], string(mode))
	}
	return ends("whsec") || (ends("lk") || ends("lks")) && (goesOn(licensing.Live) || goesOn(licensing.Test))
}

// licenseKeyAt reports whether text contains a license key whose prefix ends before the dash at an index.
func (s *Server) licenseKeyAt(text string, dash int) bool {
	const group = 1 + 5 // a dash and five characters
	end := dash + 5*group
	if end > len(text) || dash < licensing.MinKeyPrefix {
		return false
	}
	for at := dash; at < end; at += group {
		if text[at] != '-' {
			return false
		}
	}
	for begin := dash - licensing.MinKeyPrefix; begin >= max(0, dash-licensing.MaxKeyPrefix); begin-- {
		if _, _, err := s.keys.Parse(text[begin:end]); err == nil {
			return true
		}
	}
	return false
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
