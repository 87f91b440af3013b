package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"licet/licensing"
)

// maxDepth bounds how deeply a body may nest.
const maxDepth = 32

// decodeObject reads a body, which must be one JSON object and nothing else, into the request type
// that in points to. Names are compared exactly. decodeObject refuses a name that appears twice in an
// object: two readers could use different values. It refuses members that the type lacks if strict is
// set, and skips them otherwise.
//
// decodeObject checks the JSON types of members, not their values.
func decodeObject(body []byte, strict bool, of *requestType, in any) error {
	if len(body) == 0 {
		return malformed("a JSON body is required")
	}
	if decodePlain(body, of, reflect.ValueOf(in).Elem()) {
		return nil
	}
	return decodeAny(body, strict, of, in)
}

// decodeAny is decodeObject for every kind of body.
func decodeAny(body []byte, strict bool, of *requestType, in any) error {
	if depth(body) > maxDepth {
		return malformed(fmt.Sprintf("the body nests deeper than %d levels", maxDepth))
	}
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body)) // of all readers, this one is not copied
	if decoder.PeekKind() != '{' {
		if _, err := decoder.ReadValue(); err != nil {
			return syntax(err)
		}
		return malformed("the body must be a JSON object")
	}
	if err := json.UnmarshalDecode(decoder, in, json.RejectUnknownMembers(strict)); err != nil {
		return decodeError(body, of, err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return malformed("remove everything after the JSON object of the body")
	}
	return nil
}

// decodeError says what is wrong with a body that UnmarshalDecode has refused.
func decodeError(body []byte, of *requestType, err error) error {
	var semantic *json.SemanticError
	var wrong *jsontext.SyntacticError
	if errors.As(err, &wrong) || !errors.As(err, &semantic) {
		return syntax(err)
	}
	if errors.Is(err, json.ErrUnknownName) {
		if err := skipMembers(body, semantic.ByteOffset); err != nil {
			return syntax(err)
		}
		name := semantic.JSONPointer.LastToken()
		return malformedMember(name, "is unknown"+didYouMean(name, of.names(InBody)))
	}
	for name := range semantic.JSONPointer.Tokens() {
		_, want := of.kind(name).json()
		if name == "amount" {
			want = "an integer in minor units of the currency: for 49.00 USD, write 4900"
		}
		return malformedMember(name, "must be "+want)
	}
	return syntax(err)
}

// skipMembers skips the members of an object up to the member at an offset, and that member. UnmarshalDecode
// refuses a member's name before it sees the value, but a syntax error in the value comes first.
func skipMembers(object []byte, until int64) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.InputOffset() <= until {
		if _, err := decoder.ReadToken(); err != nil {
			return err
		}
		if err := decoder.SkipValue(); err != nil {
			return err
		}
	}
	return nil
}

// syntax says what is wrong with JSON and where, but repeats no value.
func syntax(err error) error {
	var at *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed("the body is not valid JSON: it ends too early")
	case errors.As(err, &at) && errors.Is(err, jsontext.ErrDuplicateName):
		return duplicate(at)
	case errors.As(err, &at):
		return malformed(fmt.Sprintf("the body is not valid JSON in UTF-8, at byte %d", at.ByteOffset))
	default:
		return malformed("the body is not valid JSON")
	}
}

// duplicate is the error for a member that comes twice in an object. Its field is the member of the body that has the
// object.
func duplicate(at *jsontext.SyntacticError) error {
	problem := fmt.Sprintf("comes twice in its object, at byte %d", at.ByteOffset)
	err := malformedMember(at.JSONPointer.LastToken(), problem)
	for field := range at.JSONPointer.Tokens() {
		if at.JSONPointer.Parent() != "" {
			err.Fields[0] = licensing.FieldProblem{Field: cutName(field), Problem: "is not valid: " + err.Message}
		}
		break
	}
	return err
}

// malformedMember is the error for a member of a body that is unknown or of another JSON type. The error cuts a long
// name.
func malformedMember(name, problem string) *licensing.Error {
	name = cutName(name)
	return &licensing.Error{
		Reason:  reasonMalformedRequest,
		Message: fmt.Sprintf("member %q %s", name, problem),
		Fields:  []licensing.FieldProblem{{Field: name, Problem: problem}},
	}
}

// depth returns how deeply brackets nest in JSON, valid or not. The decoder has a limit of its own,
// far above maxDepth.
func depth(body []byte) int {
	deepest, level := 0, 0
	inString := false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// maxPlainMembers is how many members decodePlain can tell apart.
const maxPlainMembers = 12

// decodePlain reads the body that nearly every activation has: one object of
// strings, true and false only, no escapes, and no member twice or unknown. It
// takes a tenth of the time that the decoder takes.
//
// decodePlain never refuses a body: it leaves every body that it is not sure of
// to the decoder, with the request untouched. So it may accept only what the
// decoder accepts, and must read the same from it.
func decodePlain(body []byte, of *requestType, request reflect.Value) bool {
	if len(of.plain) > maxPlainMembers {
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
		at := memberNamed(of.plain, name)
		if at < 0 || found[at] != nil {
			return false
		}
		if of.plain[at].kind == Boolean {
			value, rest, ok = plainFlag(rest)
		} else {
			value, rest, ok = plainString(rest)
		}
		if !ok {
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
	for i, value := range found[:len(of.plain)] {
		switch member := &of.plain[i]; {
		case value == nil:
		case member.kind == Boolean:
			*fieldOf[flag](request, member) = flag{value: value[0] == 't', given: true}
		default:
			*fieldOf[text](request, member) = text{value: string(value), given: true}
		}
	}
	return true
}

// memberNamed returns the index of the member with a name, or -1.
func memberNamed(members []inputField, name []byte) int {
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

// plainFlag skips blanks and then true or false.
func plainFlag(from []byte) (literal, rest []byte, ok bool) {
	from = skipBlanks(from)
	for _, word := range [...]string{"true", "false"} {
		if rest, found := bytes.CutPrefix(from, []byte(word)); found {
			return from[:len(word)], rest, true
		}
	}
	return nil, from, false
}

func skipBlanks(from []byte) []byte {
	for len(from) > 0 && (from[0] == ' ' || from[0] == '\t' || from[0] == '\r' || from[0] == '\n') {
		from = from[1:]
	}
	return from
}
