package handlers

import (
	"context"
	"net/url"
	"reflect"
	"sync"

	"licet/licensing"
)

// endpoint is the work of a route: the types of its request and its answer, and the function
// between them.
type endpoint struct {
	request *requestType
	answer  reflect.Type
	run     func(*Server, *request) (any, error)
}

// function is the work of a route: it turns a request into an answer.
type function[R resourceRoutes, In, Out any] = func(R, context.Context, *call, In) (Out, error)

// resourceRoutes contains the functions of the routes of one kind of resource, such as orderRoutes.
type resourceRoutes interface{ ~struct{ *Server } }

// resolver is a request type that names a license, perhaps by a key that only the store can resolve.
type resolver interface {
	resolve(ctx context.Context, s *Server, c *call) error
}

// noInput is the request type of a route that reads nothing.
type noInput struct{}

// serve makes an endpoint of a function. It is the one adapter between HTTP and the functions of
// routes: it decodes the request into the function's request type, checks it, and calls the
// function. The answer goes into the envelope; a [document] is sent as it is.
func serve[In, Out any, R resourceRoutes](do function[R, In, Out]) *endpoint {
	of := compile(reflect.TypeFor[In]())
	inputs := sync.Pool{New: func() any { return new(In) }}
	run := func(s *Server, r *request) (any, error) {
		in := inputs.Get().(*In)
		defer func() {
			var empty In
			*in = empty
			inputs.Put(in)
		}()
		if err := s.read(r, of, in); err != nil {
			return nil, err
		}
		if in, ok := any(in).(resolver); ok {
			if err := in.resolve(r.ctx, s, &r.call); err != nil {
				return nil, err
			}
		}
		answer, err := do(R{s}, r.ctx, &r.call, *in)
		if err != nil {
			return nil, err
		}
		return answer, nil
	}
	return &endpoint{request: of, answer: reflect.TypeFor[Out](), run: run}
}

// read decodes a request into the value that in points to, and checks it. Errors in the body's
// syntax and types come first, then what check refuses, then all invalid inputs together.
func (s *Server) read(r *request, of *requestType, in any) error {
	value := reflect.ValueOf(in).Elem()
	switch {
	case of.body == formBody:
		if err := s.readForm(r, of, value); err != nil {
			return err
		}
	case of.body == jsonBody && (len(r.body()) > 0 || !of.optionalBody):
		if err := decodeObject(r.body(), r.route.access == RequiredAuth, of, in); err != nil {
			return err
		}
	}
	c := &r.checks
	*c = checks{server: s, caller: r.key}
	for i := range of.inputs {
		switch f := &of.inputs[i]; f.in {
		case InPath:
			*fieldOf[text](value, f) = text{value: r.values[f.name], given: true}
		case InQuery:
			p := fieldOf[param](value, f)
			ok := false
			if p.value, p.given, ok = queryValue(r.query, f.name); p.given && !ok {
				c.add(f.name, "must appear once, in valid percent-encoding")
			}
		}
	}
	if r.route.access == RequiredAuth && r.query != "" {
		c.unknownParameters(r.query, of)
	}
	if in, ok := in.(checked); ok {
		in.check(c)
	}
	if in, ok := in.(keyTaker); ok {
		in.setOnce(c.once(r))
	} else {
		c.fields = append(c.fields, c.late...)
	}
	return c.err()
}

// readForm reads the form of a page. It refuses forms that were sent from elsewhere.
func (s *Server) readForm(r *request, of *requestType, into reflect.Value) error {
	if !r.sameOrigin(s.origin) {
		return errForeignOrigin
	}
	form, err := url.ParseQuery(string(r.body()))
	if err != nil {
		return malformed("the form can't be read")
	}
	for i := range of.inputs {
		f := &of.inputs[i]
		if values := form[f.name]; f.in == InBody && len(values) == 1 {
			*fieldOf[text](into, f) = text{value: values[0], given: true}
		}
	}
	return nil
}

// invalidField is the error for one invalid input.
func invalidField(field, problem string) error {
	return invalidFields([]licensing.FieldProblem{{Field: field, Problem: problem}})
}
