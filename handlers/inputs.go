package handlers

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"licet/node"
)

// input is a field of a request type.
type input interface{ kind() Kind }

// optional is a member of a body, or a variable of a path. A member that is null counts as missing.
type optional[T any] struct {
	value T
	given bool
}

// The inputs of bodies and paths.
type (
	text    = optional[string]
	flag    = optional[bool]
	integer = optional[wholeNumber]
	object  = optional[compactObject]
	texts   = optional[stringList]
	numbers = optional[numberList]
)

// param is a query parameter. The value of a repeated parameter, or of one in an invalid encoding, is empty: read
// refuses the request.
type param struct {
	value string
	given bool
}

func (param) kind() Kind { return String }

// Kind is the JSON type of an input.
type Kind string

// The kinds of inputs.
const (
	String  Kind = "string"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	Object  Kind = "object"
	Strings Kind = "array" // of strings
	// Integers is an array of integers.
	Integers Kind = "array of integers"
)

func (o *optional[T]) kind() Kind {
	switch any(o.value).(type) {
	case bool:
		return Boolean
	case wholeNumber:
		return Integer
	case compactObject:
		return Object
	case stringList:
		return Strings
	case numberList:
		return Integers
	default:
		return String
	}
}

// json returns the kinds of JSON values that the kind takes, see [jsontext.Kind], and a description
// for people.
func (k Kind) json() (takes, description string) {
	switch k {
	case Integer:
		return "0", "an integer (a number without a fraction or an exponent)"
	case Boolean:
		return "tf", "true or false"
	case Object:
		return "{", "an object"
	case Strings:
		return "[", "an array of strings"
	case Integers:
		return "[", "an array of integers"
	default:
		return `"`, "a string"
	}
}

// errWrongType makes decodeObject name the type that a member must have.
var errWrongType = errors.New("wrong JSON type")

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (o *optional[T]) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	takes, _ := o.kind().json()
	switch kind := decoder.PeekKind(); {
	case kind == 'n':
		return decoder.SkipValue()
	case kind != 0 && !strings.ContainsRune(takes, rune(kind)): // 0: the decoder returns the syntax error
		return errWrongType
	}
	if err := json.UnmarshalDecode(decoder, &o.value); err != nil {
		return err
	}
	o.given = true
	return nil
}

// removable is a text member of a change: null removes the text, and a missing member leaves it.
type removable struct {
	text
	null bool
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (r *removable) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	r.null = decoder.PeekKind() == 'n'
	return r.text.UnmarshalJSONFrom(decoder)
}

// change returns the new text, which is empty if it is to be removed; nil: it stays.
func (r *removable) change() *string {
	if !r.given && !r.null {
		return nil
	}
	return &r.value
}

// wholeNumber is a JSON number without a fraction or an exponent. A number beyond 64 bits becomes
// the largest or the smallest one, so that the limits of its member refuse it.
type wholeNumber int64

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (n *wholeNumber) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	raw, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	value, err := strconv.ParseInt(string(raw), 10, 64)
	if bytes.ContainsAny(raw, ".eE") || err != nil && !errors.Is(err, strconv.ErrRange) {
		return errWrongType
	}
	*n = wholeNumber(value)
	return nil
}

// compactObject is a JSON object without white space around its tokens.
type compactObject string

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (o *compactObject) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	raw, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	compact := raw.Clone()
	err = compact.Compact()
	*o = compactObject(compact)
	return err
}

// stringList is a JSON array of strings. Unlike in a []string, no element can be null.
type stringList []string

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *stringList) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	var elements []text
	if err := json.UnmarshalDecode(decoder, &elements); err != nil {
		return err
	}
	*l = make(stringList, len(elements))
	for i, element := range elements {
		if (*l)[i] = element.value; !element.given {
			return errWrongType
		}
	}
	return nil
}

// numberList is a JSON array of integers. Unlike in a []wholeNumber, no element can be null.
type numberList []int64

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (l *numberList) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	var elements []integer
	if err := json.UnmarshalDecode(decoder, &elements); err != nil {
		return err
	}
	*l = make(numberList, len(elements))
	for i, element := range elements {
		if (*l)[i] = int64(element.value); !element.given {
			return errWrongType
		}
	}
	return nil
}

const (
	headerIdempotencyKey = "Idempotency-Key"
	headerReplayed       = "Idempotent-Replayed"

	maxIdempotencyKey = 255
)

// idempotencyKey is embedded by the request types of routes that take an Idempotency-Key.
type idempotencyKey struct {
	once  *node.Once // nil: no key was sent
	stale error      // why a request that is made for the first time must be refused; see [checks.once]
}

func (k *idempotencyKey) setOnce(once *node.Once, stale error) { k.once, k.stale = once, stale }

// keyTaker is a request type that embeds idempotencyKey.
type keyTaker interface {
	setOnce(once *node.Once, stale error)
}

// once reads the Idempotency-Key of a request with an API key
// (draft-ietf-httpapi-idempotency-key-header); nil if there is none. Of the key only a hash is
// kept, and of the request only a fingerprint.
//
// A time that has passed since is no reason to refuse a request that repeats an earlier one. With a
// good key, that reason is returned as stale, and the use case applies it unless it finds the
// earlier request. Without a key it is one more invalid field.
func (c *checks) once(r *request) (once *node.Once, stale error) {
	keys := r.fast.Request.Header.PeekAll(headerIdempotencyKey)
	switch {
	case len(keys) == 0:
	case len(keys) > 1 || !validIdempotencyKey(keys[0]):
		c.add(headerIdempotencyKey, "must be one header of 1 to 255 printable ASCII characters")
	default:
		hash := sha256.Sum256(keys[0])
		once = &node.Once{Hash: string(hash[:16]), Fingerprint: fingerprint(r, keys[0])}
		r.once = once
	}
	if once != nil && len(c.fields) == 0 {
		return once, invalidFields(c.late)
	}
	c.fields = append(c.fields, c.late...)
	return once, nil
}

func validIdempotencyKey(key []byte) bool {
	if len(key) == 0 || len(key) > maxIdempotencyKey {
		return false
	}
	for _, c := range key {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// fingerprint identifies a request by method, path and raw body. It is keyed with the
// Idempotency-Key, which is not stored: a body may contain nothing but an e-mail address,
// and a plain hash would let readers of the store try addresses.
func fingerprint(r *request, key []byte) [32]byte {
	sum := hmac.New(sha256.New, key)
	sum.Write(r.fast.Request.Header.Method())
	sum.Write([]byte{'\n'})
	sum.Write([]byte(r.path))
	sum.Write([]byte{'\n'})
	sum.Write(r.body())
	return [32]byte(sum.Sum(nil))
}

// isIdempotent reports whether the same request sent twice has the effect of one.
func (r *request) isIdempotent() bool {
	return r.route != nil && r.route.is(idempotent) || r.repeatable || r.once != nil
}
