package keyring

import (
	"encoding/base32"
	"strings"

	"licet/licensing"
)

// crockfordValues contains the value of each character of the canonical form.
var crockfordValues = func() (values [256]byte) {
	for i := range len(licensing.Crockford) {
		values[licensing.Crockford[i]] = byte(i)
	}
	return values
}()

// crockfordValue returns the value of a character as Crockford's base32 decoder reads it; -1 if the
// character is invalid. https://www.crockford.com/base32.html
func crockfordValue(c byte) int {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	switch c {
	case 'O':
		return 0
	case 'I', 'L':
		return 1
	}
	return strings.IndexByte(licensing.Crockford, c)
}

// upperASCII is strings.ToUpper for ASCII only: Unicode folding would turn other letters, such as ı or
// ſ, into letters that a prefix may have.
func upperASCII(s string) string {
	if !strings.ContainsAny(s, "abcdefghijklmnopqrstuvwxyz") {
		return s
	}
	upper := []byte(s)
	for i, c := range upper {
		if 'a' <= c && c <= 'z' {
			upper[i] = c - ('a' - 'A')
		}
	}
	return string(upper)
}

func crockfordText(b []byte) string {
	return base32.NewEncoding(licensing.Crockford).WithPadding(base32.NoPadding).EncodeToString(b)
}
