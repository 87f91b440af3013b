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

// member is one member that a body may have: its name, and what takes its
// value, which is one of these. A member that is null is as if it were not
// there.
type member struct {
	name    string
	text    *text
	integer *integer
	object  *object
	texts   *texts
	flag    *flag
}

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

// text is a string member that may be missing.
type text struct {
	value string
	given bool
}

// integer is an integer member that may be missing.
type integer struct {
	value int64
	given bool
}

// object is an object member that may be missing, as compact JSON.
type object struct {
	value string
	given bool
}

// texts is a member that may be missing: an array of strings.
type texts struct {
	values []string
	given  bool
}

// flag is a boolean member that may be missing.
type flag struct {
	value bool
	given bool
}

func textMember(name string, into *text) member { return member{name: name, text: into} }

func integerMember(name string, into *integer) member { return member{name: name, integer: into} }

func objectMember(name string, into *object) member { return member{name: name, object: into} }

func textsMember(name string, into *texts) member { return member{name: name, texts: into} }

func flagMember(name string, into *flag) member { return member{name: name, flag: into} }

// read takes the member's value.
func (m *member) read(decoder *jsontext.Decoder) (typeName string, err error) {
	switch {
	case m.text != nil:
		return "a string", m.text.read(decoder)
	case m.integer != nil:
		return "an integer (a number without a fraction or an exponent)", m.integer.read(decoder)
	case m.texts != nil:
		return "an array of strings", m.texts.read(decoder)
	case m.flag != nil:
		return "true or false", m.flag.read(decoder)
	default:
		return "an object", m.object.read(decoder)
	}
}

func (t *text) read(decoder *jsontext.Decoder) error {
	if kind := decoder.PeekKind(); kind != '"' && kind != 0 {
		return errWrongType
	}
	token, err := decoder.ReadToken()
	if err != nil {
		return err
	}
	t.value, t.given = token.String(), true
	return nil
}

func (n *integer) read(decoder *jsontext.Decoder) error {
	if kind := decoder.PeekKind(); kind != '0' && kind != 0 {
		return errWrongType
	}
	raw, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	if bytes.ContainsAny(raw, ".eE") {
		return errWrongType
	}
	// One that is too large for us is an integer all the same: it is cut to
	// the largest, and refused by the member's own bounds.
	n.value, err = strconv.ParseInt(string(raw), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return errWrongType
	}
	n.given = true
	return nil
}

func (o *object) read(decoder *jsontext.Decoder) error {
	if kind := decoder.PeekKind(); kind != '{' && kind != 0 {
		return errWrongType
	}
	raw, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	compact := raw.Clone()
	if err := compact.Compact(); err != nil {
		return err
	}
	o.value, o.given = string(compact), true
	return nil
}

func (t *texts) read(decoder *jsontext.Decoder) error {
	if kind := decoder.PeekKind(); kind != '[' && kind != 0 {
		return errWrongType
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	t.values, t.given = []string{}, true
	for decoder.PeekKind() != ']' {
		var one text
		if err := one.read(decoder); err != nil {
			return err
		}
		t.values = append(t.values, one.value)
	}
	_, err := decoder.ReadToken()
	return err
}

func (f *flag) read(decoder *jsontext.Decoder) error {
	if kind := decoder.PeekKind(); kind != 't' && kind != 'f' && kind != 0 {
		return errWrongType
	}
	token, err := decoder.ReadToken()
	if err != nil {
		return err
	}
	f.value, f.given = token.Bool(), true
	return nil
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
