package licensing

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxExternalKey is the greatest length of an external key, in Unicode code points.
const MaxExternalKey = 1024

// ParseExternalKey parses a key that another service has issued: 1 to MaxExternalKey printable characters, in
// Unicode's Normalization Form C. It converts the text to that form, and removes spaces around the text. problem says
// what is wrong with the text; empty if nothing is.
func ParseExternalKey(text string) (key, problem string) {
	if !utf8.ValidString(text) {
		return "", "must be UTF-8"
	}
	if len(text) > utf8.UTFMax*MaxExternalKey { // before the conversion, which takes time
		return "", problemExternalKey()
	}
	key = strings.TrimSpace(norm.NFC.String(text))
	switch n := utf8.RuneCountInString(key); {
	case n == 0, n > MaxExternalKey:
		return "", problemExternalKey()
	case strings.ContainsFunc(key, func(c rune) bool { return !unicode.IsPrint(c) }):
		return "", "must contain printable characters only"
	}
	return key, ""
}

func problemExternalKey() string { return fmt.Sprintf("must have 1 to %d characters", MaxExternalKey) }

// KeyMatching says when two texts are the same external key.
type KeyMatching string

// The ways to match external keys.
const (
	// MatchExact tells all texts apart. It is the default.
	MatchExact KeyMatching = "exact"
	// MatchCompact ignores case, blanks and dashes.
	MatchCompact KeyMatching = "compact"
)

// Of returns the text by which an external key is found; empty if nothing of the key remains.
func (m KeyMatching) Of(key string) string {
	if m != MatchCompact {
		return key
	}
	compact := strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.Is(unicode.Pd, c) {
			return -1
		}
		return c
	}, strings.ToUpper(key))
	return norm.NFC.String(compact)
}
