package handlers

import "licet/licensing"

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
	formatTimestamp  = "date-time"
	formatURL        = "uri"
)

// checks checks the inputs of one request. The methods are the rules for inputs: each either
// notes what is wrong with a value, or, while limits is set, notes what the rule demands. The
// check method of a request type therefore calls every rule, whatever the request holds.
type checks struct {
	server *Server
	caller *licensing.APIKey // nil: an end user

	fields  []licensing.FieldProblem // one for each invalid input
	late    []licensing.FieldProblem // times that have passed; see once
	refused error                    // wins over all fields
	limits  map[string]Limits        // by the input's name; nil: values are checked
}

// owner returns the owner that the caller's API key acts for.
func (c *checks) owner() licensing.Owner { return ownerOf(c.caller) }

// describe records the limits of an input, and reports whether limits are all that is wanted.
func (c *checks) describe(field string, l Limits) bool {
	if c.limits == nil {
		return false
	}
	c.limits[field] = l
	return true
}

// limitsOf returns the limits of the inputs of a request type, by name.
func limitsOf(request any) map[string]Limits {
	c := checks{limits: make(map[string]Limits)}
	if request, ok := request.(checked); ok {
		request.check(&c)
	}
	return c.limits
}

// refuse makes an error the answer, unless an earlier one is.
func (c *checks) refuse(err error) {
	if c.refused == nil && c.limits == nil {
		c.refused = err
	}
}

// err returns what is wrong with the request; nil if nothing is.
func (c *checks) err() error {
	if c.refused != nil {
		return c.refused
	}
	return invalidFields(c.fields)
}

// invalidFields is the error for invalid inputs; nil if there are none.
func invalidFields(fields []licensing.FieldProblem) error {
	if len(fields) == 0 {
		return nil
	}
	return &licensing.Error{
		Reason:  licensing.ReasonInvalidField,
		Message: "the request has invalid members",
		Fields:  fields,
	}
}
