package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxDepth is how many levels values may lie below the object. This format has three.
	maxDepth = 8
	// maxInteger is the largest integer that all languages read exactly (RFC 8259).
	maxInteger = 1<<53 - 1
)

func exact(n int64) bool { return -maxInteger <= n && n <= maxInteger }

// decode decodes one JSON object into the struct that v points to. It refuses what parsers of different languages read
// differently: duplicate members, names beyond lower-case ASCII letters, digits, dots, hyphens and underscores, halves
// of surrogate pairs, and data after the object. It ignores members that v does not have: later versions add some.
func decode(text []byte, v any) error {
	if !utf8.Valid(text) {
		return refuse(Malformed, "not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := walk(d, 0); err != nil {
		return refuse(Malformed, "%v", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse(Malformed, "data after the object")
	}
	if halvesPair(text) {
		return refuse(Malformed, "half of a surrogate pair")
	}
	return fill(text, v)
}

// fill decodes an object into the struct that v points to. A member must be there unless its field has omitempty, and
// may be null only if its field is a pointer: encoding/json takes both for the zero value.
func fill(text []byte, v any) error {
	var members map[string]json.RawMessage
	err := json.Unmarshal(text, &members)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return refuse(Malformed, "%v", err)
	}
	fields := reflect.ValueOf(v).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		member, found := members[name]
		switch {
		case !found && option != "omitempty":
			return refuse(Malformed, "%s is missing", name)
		case string(member) == "null" && field.Type.Kind() != reflect.Pointer:
			return refuse(Malformed, "%s is null", name)
		case fields.Field(i).CanInt() && !exact(fields.Field(i).Int()):
			return refuse(Malformed, "%s is beyond 2^53-1", name)
		}
	}
	return nil
}

// halvesPair reports whether JSON escapes half of a surrogate pair. encoding/json replaces such a half.
func halvesPair(text []byte) bool {
	for {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return false
		}
		text = text[at:]
		unit := escaped(text)
		switch {
		case !utf16.IsSurrogate(unit):
			text = text[2:]
		case utf16.DecodeRune(unit, escaped(text[6:])) == utf8.RuneError:
			return true
		default:
			text = text[12:]
		}
	}
}

// escaped returns the code unit of an escape \uXXXX at the beginning of a text, -1 if there is none.
func escaped(text []byte) rune {
	if !bytes.HasPrefix(text, []byte(`\u`)) {
		return -1
	}
	unit, _ := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(unit)
}

// walk reads one value, and fails at the second member of a name.
func walk(d *json.Decoder, depth int) error {
	if depth > maxDepth {
		return errors.New("values lie too deep")
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	opened, _ := token.(json.Delim)
	if depth == 0 && opened != '{' {
		return errors.New("not an object")
	}
	if opened == 0 {
		return nil
	}
	names := map[string]bool{}
	for d.More() {
		if opened == '{' {
			token, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
				return errors.New("a member has a name that the format does not allow")
			}
			if names[name] {
				return errors.New("a member is there twice")
			}
			names[name] = true
		}
		if err := walk(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// appendText appends a JSON string as json.Marshal encodes it.
func appendText(to []byte, text string) []byte {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' || c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			encoded, _ := json.Marshal(text) // does not fail on a string
			return append(to, encoded...)
		}
	}
	return append(append(append(to, '"'), text...), '"')
}

func appendOptional(to []byte, text *string) []byte {
	if text == nil {
		return append(to, "null"...)
	}
	return appendText(to, *text)
}
