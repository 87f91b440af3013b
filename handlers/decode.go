package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxDepth bounds how deeply a body may nest.
	maxDepth = 32
	// maxShownName bounds the member names that error messages repeat.
	maxShownName = 64
)

// errWrongType makes readMember name the type that a member must have.
var errWrongType = errors.New("wrong JSON type")

// decodeObject reads a body that must be one JSON object and nothing else. Names
// are compared exactly; a name that comes twice, anywhere, is refused, since
// two readers could take different ones of the two values. Members that are not
// listed are refused where strict, and skipped where not.
//
// What members mean is not judged here, only their JSON types.
func decodeObject(body []byte, strict bool, members ...member) error {
	if len(body) == 0 {
		return malformed("a JSON body is required")
	}
	if decodePlain(body, members) {
		return nil
	}
	return decodeAny(body, strict, members)
}

// decodeOptional is decodeObject for a body that need not be there, since all of
// its members are optional. It is for authenticated routes, and so is strict.
func decodeOptional(body []byte, members ...member) error {
	if len(body) == 0 {
		return nil
	}
	return decodeObject(body, true, members...)
}

// decodeAny is decodeObject for every body there may be.
func decodeAny(body []byte, strict bool, members []member) error {
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
	if _, err := decoder.ReadToken(); err != nil {
		return syntax(err)
	}
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return syntax(err)
		}
		if err := readMember(decoder, token.String(), strict, members); err != nil {
			return err
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return syntax(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return malformed("the body has something after its JSON object")
	}
	return nil
}

func readMember(decoder *jsontext.Decoder, name string, strict bool, members []member) error {
	for i := range members {
		m := &members[i]
		if m.name != name {
			continue
		}
		if decoder.PeekKind() == 'n' {
			break
		}
		want, err := m.read(decoder)
		if errors.Is(err, errWrongType) {
			return malformed(fmt.Sprintf("member %q must be %s", name, want))
		}
		if err != nil {
			return syntax(err)
		}
		return nil
	}
	if err := decoder.SkipValue(); err != nil {
		return syntax(err)
	}
	if strict && !listed(members, name) {
		return malformed("member " + shown(name) + " is unknown")
	}
	return nil
}

func listed(members []member, name string) bool {
	for _, m := range members {
		if m.name == name {
			return true
		}
	}
	return false
}

// syntax says what is wrong with JSON and where, but repeats no value.
func syntax(err error) error {
	var at *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return malformed("the body is not valid JSON: it ends too early")
	case errors.As(err, &at) && errors.Is(err, jsontext.ErrDuplicateName):
		return malformed(fmt.Sprintf("member %s comes twice in its object, at byte %d", shown(at.JSONPointer.LastToken()), at.ByteOffset))
	case errors.As(err, &at):
		return malformed(fmt.Sprintf("the body is not valid JSON in UTF-8, at byte %d", at.ByteOffset))
	default:
		return malformed("the body is not valid JSON")
	}
}

// shown quotes a member name for a message, if it is short enough to be one.
func shown(name string) string {
	if utf8.RuneCountInString(name) > maxShownName {
		return "with a very long name"
	}
	return strconv.Quote(name)
}

// depth is how deeply brackets nest in JSON, valid or not. It comes before the
// decoder, which bounds the depth too, but far above what anyone needs.
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
