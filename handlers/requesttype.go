package handlers

import (
	"bytes"
	"iter"
	"mime"
	"reflect"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// Location is the part of a request that contains an input.
type Location string

// The parts of a request.
const (
	InPath  Location = "path"
	InQuery Location = "query"
	InBody  Location = "body"
)

// inputField is a field of a request type that contains an input.
type inputField struct {
	name  string
	in    Location
	kind  Kind
	index []int // see [reflect.Value.FieldByIndex]
}

// requestType is the compiled form of a request type: a struct whose exported fields are the inputs
// of a route. The tags path, query, json and form name an input and its place. In types with a JSON
// body, the other inputs also have the tag json:"-", so that no member fills them.
type requestType struct {
	typ          reflect.Type
	inputs       []inputField
	plain        []inputField // members of a JSON body that decodePlain reads: texts and flags
	body         bodyForm
	optionalBody bool
}

// optionalBody is embedded by request types whose body may be missing.
type optionalBody struct{}

func (optionalBody) bodyIsOptional() {}

// readsBody is embedded by request types whose route reads the raw body itself.
type readsBody struct{}

func (readsBody) bodyIsRaw() {}

// checked is a request type that checks its inputs; see [checks].
type checked interface{ check(c *checks) }

// compile reads the fields of a request type. TestRequestTypes finds types that are no request types.
func compile(typ reflect.Type) *requestType {
	t := &requestType{typ: typ}
	if _, t.optionalBody = reflect.New(typ).Interface().(interface{ bodyIsOptional() }); t.optionalBody {
		t.body = jsonBody
	}
	if _, raw := reflect.New(typ).Interface().(interface{ bodyIsRaw() }); raw {
		t.body = rawBody
	}
	for _, field := range reflect.VisibleFields(typ) {
		if !field.Anonymous && field.IsExported() {
			t.add(field)
		}
	}
	return t
}

func (t *requestType) add(field reflect.StructField) {
	f := inputField{index: field.Index, kind: reflect.New(field.Type).Interface().(input).kind()}
	for _, place := range []struct {
		tag  string
		in   Location
		body bodyForm
	}{{"path", InPath, t.body}, {"query", InQuery, t.body}, {"form", InBody, formBody}, {"json", InBody, jsonBody}} {
		if f.name = field.Tag.Get(place.tag); f.name != "" {
			f.in, t.body = place.in, place.body
			break
		}
	}
	t.inputs = append(t.inputs, f)
	isPlain := field.Type == reflect.TypeFor[text]() || field.Type == reflect.TypeFor[flag]()
	if f.in == InBody && t.body == jsonBody && isPlain {
		t.plain = append(t.plain, f)
	}
}

// names iterates over the names of the inputs in a part of the request.
func (t *requestType) names(in Location) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range t.inputs {
			if t.inputs[i].in == in && !yield(t.inputs[i].name) {
				return
			}
		}
	}
}

// kind returns the kind of a member of the body.
func (t *requestType) kind(name string) Kind {
	at := slices.IndexFunc(t.inputs, func(f inputField) bool { return f.in == InBody && f.name == name })
	return t.inputs[at].kind
}

// fieldOf returns a pointer to an input of a request, which must be of type T.
func fieldOf[T any](request reflect.Value, f *inputField) *T {
	return request.FieldByIndex(f.index).Addr().Interface().(*T)
}

// Limits are what the value of an input must keep to, beside its kind. Zero fields limit nothing.
type Limits struct {
	Required             bool
	MinLength, MaxLength int // in Unicode code points
	Bounded              bool
	Minimum, Maximum     int64 // if Bounded
	Pattern              string
	Format               string   // as in JSON Schema, or a name of ours
	Enum                 []string // of an array: of its items
	MinItems, MaxItems   int
	MaxProperties        int
	MaxNameLength        int // of the members' names
}

// The patterns and formats of inputs.
const (
	patternProductID = `^[A-Za-z0-9._-]+$`
	patternKeyPrefix = `^[A-Z0-9]{2,8}$`
	patternOneLine   = `^\P{Cc}*$`
	patternLines     = `^(\P{Cc}|[\n\r\t])*$`

	formatCurrency   = "iso-4217"
	formatDuration   = "duration"
	formatEmail      = "email"
	formatLicenseKey = "license-key"
	formatLicense    = "license" // the id of a license, or its key
	formatTimestamp  = "date-time"
	formatMoment     = "date-or-date-time"
	formatURL        = "uri"
)

// checks checks the inputs of one request. Its own methods are the rules that depend on the server or on the caller.
type checks struct {
	rules
	server *Server
	caller *licensing.APIKey // nil: an end user
}

// rules are the rules for inputs that depend on nothing but the values. Each method either notes what is wrong with a
// value, or, while limits is set, notes what the rule demands. The check method of a request type therefore calls every
// rule, whatever the request contains.
type rules struct{ problems }

// problems collects what is wrong with the inputs of a request, or the limits of the inputs.
type problems struct {
	fields  []licensing.FieldProblem // one for each invalid input
	late    []licensing.FieldProblem // times that have passed; see once
	refused error                    // wins over all fields
	absent  error                    // what the path names does not exist; all fields win over it
	limits  map[string]Limits        // by the input's name; nil: values are checked
}

// owner returns the owner that the caller's API key acts for.
func (c *checks) owner() licensing.Owner { return ownerOf(c.caller) }

// describe records the limits of an input, and reports whether limits are all that is wanted.
func (c *problems) describe(field string, l Limits) bool {
	if c.limits == nil {
		return false
	}
	c.limits[field] = l
	return true
}

// limitsOf returns the limits of the inputs of a request type, by name.
func limitsOf(request any) map[string]Limits {
	c := checks{rules: rules{problems{limits: make(map[string]Limits)}}}
	if request, ok := request.(checked); ok {
		request.check(&c)
	}
	return c.limits
}

// refuse makes an error the answer, unless an earlier one is.
func (c *problems) refuse(err error) {
	if c.refused == nil && c.limits == nil {
		c.refused = err
	}
}

// err returns what is wrong with the request; nil if nothing is.
func (c *problems) err() error {
	if c.refused != nil {
		return c.refused
	}
	if err := invalidFields(c.fields); err != nil {
		return err
	}
	return c.absent
}

// invalidFields is the error for invalid inputs; nil if there are none.
func invalidFields(fields []licensing.FieldProblem) error {
	if len(fields) == 0 {
		return nil
	}
	return licensing.InvalidFields("the request", fields)
}

// bodyForm says what a route reads as its body.
type bodyForm int

const (
	noBody bodyForm = iota
	jsonBody
	formBody
	rawBody // JSON that the function of the route reads itself
)

// mediaType returns the media type of a body; empty if there is none.
func (f bodyForm) mediaType() string {
	switch f {
	case jsonBody, rawBody:
		return "application/json"
	case formBody:
		return "application/x-www-form-urlencoded"
	default:
		return ""
	}
}

// checkMediaType refuses a body of another media type than the route reads. A
// request without a body needs no media type.
func checkMediaType(form bodyForm, h *fasthttp.RequestHeader, hasBody bool) error {
	if form == noBody || !hasBody {
		return nil
	}
	want, refusal := form.mediaType(), errNotJSONMedia
	if form == formBody {
		refusal = errNotFormMedia
	}
	encoding := h.Peek(fasthttp.HeaderContentEncoding)
	if len(encoding) > 0 && !bytes.EqualFold(encoding, []byte("identity")) {
		return refusal
	}
	if string(h.ContentType()) == want {
		return nil
	}
	mediaType, parameters, err := mime.ParseMediaType(string(h.ContentType()))
	if err != nil || mediaType != want {
		return refusal
	}
	if charset, given := parameters["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return refusal
	}
	return nil
}
