package handlers

import (
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"

	"licet/licensing"
)

// Every variable of a path is an input, and every input outside paths has limits, except flags.
func TestInputsAreDescribed(t *testing.T) {
	variable := regexp.MustCompile(`\{(\w+)\}`)
	for _, r := range Routes() {
		name := r.Method + " " + r.Pattern
		var want, got []string
		for _, found := range variable.FindAllStringSubmatch(r.Pattern, -1) {
			want = append(want, found[1])
		}
		limits := limitsOf(reflect.New(r.Request).Interface())
		for _, in := range r.Inputs {
			if in.In == InPath {
				got = append(got, in.Name)
			} else if _, described := limits[in.Name]; !described && in.Kind != Boolean {
				t.Errorf("%s has no limits for %s", name, in.Name)
			}
			delete(limits, in.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s reads the variables %v of its path, want %v", name, got, want)
		}
		for unknown := range limits {
			t.Errorf("%s checks %s, which is no input", name, unknown)
		}
		if len(r.Statuses) == 0 || r.Response == nil {
			t.Errorf("%s answers %v with %v", name, r.Response, r.Statuses)
		}
	}
}

// Members of a body fill members of the request type, and nothing else.
func TestRequestTypes(t *testing.T) {
	for _, r := range Routes() {
		for _, in := range r.Inputs {
			if in.Name == "" || in.Name == "-" {
				t.Errorf("%v has an input without a name", r.Request)
			}
		}
		if r.MediaType != "application/json" {
			continue
		}
		if err := json.Unmarshal([]byte("{}"), reflect.New(r.Request).Interface()); err != nil {
			t.Errorf("%v is no type for a body: %v", r.Request, err)
		}
		for _, f := range compile(r.Request).inputs {
			if field := r.Request.FieldByIndex(f.index); f.in != InBody && field.Tag.Get("json") != "-" {
				t.Errorf("field %s of %v lacks the tag json:\"-\"", field.Name, r.Request)
			}
		}
	}
}

func TestLimits(t *testing.T) {
	at := func(method, pattern string) Route {
		routes := Routes()
		return routes[slices.IndexFunc(routes,
			func(r Route) bool { return r.Method == method && r.Pattern == pattern })]
	}
	f := func(r Route, want Input) {
		t.Helper()
		if !slices.ContainsFunc(r.Inputs, func(in Input) bool { return reflect.DeepEqual(in, want) }) {
			t.Errorf("%s %s reads %+v, want %+v", r.Method, r.Pattern, r.Inputs, want)
		}
	}
	f(at("POST", "/v1/orders"),
		Input{"amount", InBody, Integer, Limits{Required: true, Bounded: true, Maximum: licensing.MaxAmount}})
	f(at("POST", "/v1/orders"),
		Input{"description", InBody, String, Limits{MaxLength: maxDescription, Pattern: patternLines}})
	f(at("GET", "/v1/events"), Input{"wait", InQuery, Integer, Limits{Bounded: true, Maximum: maxEventWait}})
	f(at("PATCH", "/v1/webhook_endpoints/{endpoint_id}"),
		Input{"status", InBody, String, Limits{Enum: []string{"enabled", "disabled"}}})
	f(at("POST", "/v1/licenses/{license_key}/suspend"),
		Input{"license_key", InPath, String, Limits{Required: true, Format: formatLicense}})
	if r := at("POST", "/v1/licenses/{license_key}/suspend"); !r.OptionalBody || !r.IdempotencyKey {
		t.Errorf("a suspension has an optional body: %v, and an Idempotency-Key: %v", r.OptionalBody, r.IdempotencyKey)
	}
	if r := at("PUT", "/v1/products/{product_id}"); !slices.Equal(r.Statuses, []int{200, 201}) || r.OptionalBody {
		t.Errorf("a product is answered with %v", r.Statuses)
	}
}
