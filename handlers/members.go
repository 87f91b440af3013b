package handlers

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
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
