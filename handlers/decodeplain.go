package handlers

import (
	"bytes"
	"reflect"
	"unicode/utf8"
)

// maxPlainMembers is how many members decodePlain can tell apart.
const maxPlainMembers = 8

// decodePlain reads the body that nearly every activation has: one object,
// strings only, no escapes, and no member twice or unknown. It takes a tenth of
// the time that the decoder takes.
//
// decodePlain never refuses a body: it leaves every body that it is not sure of
// to the decoder, with the request untouched. So it may accept only what the
// decoder accepts, and must read the same from it.
func decodePlain(body []byte, of *requestType, request reflect.Value) bool {
	if len(of.strings) > maxPlainMembers {
		return false
	}
	var found [maxPlainMembers][]byte // nil: not yet seen
	rest, ok := plainByte(body, '{')
	for first := true; ok; first = false {
		if end, ended := plainByte(rest, '}'); ended && first {
			rest = end
			break
		}
		var name, value []byte
		if name, rest, ok = plainString(rest); !ok {
			return false
		}
		if rest, ok = plainByte(rest, ':'); !ok {
			return false
		}
		if value, rest, ok = plainString(rest); !ok {
			return false
		}
		at := stringNamed(of.strings, name)
		if at < 0 || found[at] != nil {
			return false
		}
		found[at] = value
		if end, ended := plainByte(rest, '}'); ended {
			rest = end
			break
		}
		rest, ok = plainByte(rest, ',')
	}
	if !ok || len(skipBlanks(rest)) > 0 {
		return false
	}
	for i, value := range found[:len(of.strings)] {
		if value != nil {
			*fieldOf[text](request, &of.strings[i]) = text{value: string(value), given: true}
		}
	}
	return true
}

// stringNamed returns the index of the member with a name, or -1.
func stringNamed(members []inputField, name []byte) int {
	for i := range members {
		if members[i].name == string(name) {
			return i
		}
	}
	return -1
}

// plainByte skips blanks and then one byte.
func plainByte(from []byte, b byte) (rest []byte, ok bool) {
	from = skipBlanks(from)
	if len(from) == 0 || from[0] != b {
		return from, false
	}
	return from[1:], true
}

// plainString skips blanks and then a string without escapes. Its content is
// never nil.
func plainString(from []byte) (inside, rest []byte, ok bool) {
	from, ok = plainByte(from, '"')
	end := bytes.IndexByte(from, '"')
	if !ok || end < 0 {
		return nil, from, false
	}
	ascii := true
	for _, c := range from[:end] {
		if c < ' ' || c == '\\' {
			return nil, from, false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return from[:end:end], from[end+1:], ascii || utf8.Valid(from[:end])
}

func skipBlanks(from []byte) []byte {
	for len(from) > 0 && (from[0] == ' ' || from[0] == '\t' || from[0] == '\r' || from[0] == '\n') {
		from = from[1:]
	}
	return from
}
