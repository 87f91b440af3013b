package handlers_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/handlers/limits"
	"licet/licensing"
)

// series returns the values of a counter by its labels, in the order of their names, without zeros.
func (s *fixture) series(name string, where ...string) map[string]float64 {
	s.t.Helper()
	values := make(map[string]float64)
	for _, m := range s.gather(name).GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		key := strings.Join(labels, " ")
		if len(where) == 1 && !strings.HasSuffix(key, where[0]) {
			continue
		}
		if value := m.GetCounter().GetValue(); value != 0 {
			values[key] = value
		}
	}
	return values
}

// TestActivationOutcomes: an activation counts once, by its response, whether or not it has reached its license.
func TestActivationOutcomes(t *testing.T) {
	t.Parallel()
	s := newService(t, smallest)
	want := make(map[string]float64)
	answered := 0.0
	check := func(outcome string, a answer, code int) {
		t.Helper()
		a.must(t, code)
		want[outcome]++
		answered++
		if got := s.series("licet_activations_total"); !maps.Equal(got, want) {
			t.Fatalf("after %s: %v, want %v", outcome, got, want)
		}
		sum := 0.0
		for _, value := range s.series("licet_http_responses_total", " POST /v1/licenses/activate") {
			sum += value
		}
		if sum != answered {
			t.Fatalf("after %s: %v answers, want %v", outcome, sum, answered)
		}
	}
	raw := func(body string, headers ...string) answer {
		return s.send("POST", "/v1/licenses/activate", "", body, headers...)
	}
	body := func(key, members string) string {
		return fmt.Sprintf(`{"license_key":%q,"device_id":"new"%s}`, key, members)
	}
	that := func(status string) string { // with d1 bound
		key := s.licenseThatIs(status)
		want["bound"], answered = want["bound"]+1, answered+1
		return key
	}

	key := s.license()
	check("bound", s.activate(key, "d1"), 0)
	check("again", s.activate(key, "d1"), 0)
	check("again", s.activate(key, "d1"), 0)
	for i := range licensing.DefaultTerms().MaxDevices - 1 {
		check("bound", s.activate(key, fmt.Sprint("more ", i)), 0)
	}
	check("device_limit_reached", s.activate(key, "one too many"), 40901)
	for _, c := range []struct {
		status string
		code   int
	}{{"revoked", 40301}, {"suspended", 40302}, {"expired", 40303}} {
		check("license_"+c.status, s.activate(that(c.status), "d1"), c.code)
	}
	check("license_not_found", s.activate(absentKey(), "d1"), 40401)
	check("invalid_license_key", s.activate("LIC-1", "d1"), 40001)
	check("product_mismatch", raw(body(key, `,"product_id":"viewer"`)), 40304)
	check("invalid_field", raw(body(key, `,"device_name":"\u0000"`)), 42200)
	check("malformed_request", raw("{"), 40000)
	check("unsupported_media_type", raw("{}", "Content-Type", "-", "Content-Type", "text/plain"), 41500)
	check("body_too_large", raw(`{"license_key":"`+strings.Repeat("x", 20<<10)+`"}`), 41300)
	check("headers_too_large", raw("{}", "X-Much", strings.Repeat("x", 13<<10)), 43100)
	check("unauthenticated", s.send("POST", "/v1/licenses/activate", testKey("nobody"), body(key, "")), 40100)

	fresh := s.license()
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown) // although the device is bound
	check("outcome_unknown", s.activate(fresh, "d1"), 50400)
	s.store.breakWith(nil, nil)
	check("again", s.activate(fresh, "d1"), 0)
	s.store.breakWith(licensing.ErrUnavailable, nil)
	check("unavailable", s.activate(fresh, "d2"), 50300)
	s.store.breakWith(errors.New("a bug"), nil)
	check("internal", s.activate(fresh, "d2"), 50000)
	s.store.breakWith(nil, nil)

	free := s.fill()
	c := s.dial()
	c.write(activationText(body(key, "")))
	refused := c.read()
	if !early(refused) {
		t.Error("the activation was not refused on its connection")
	}
	check("overloaded", refused, 50301)
	check("overloaded", raw(body(key, "")), 50301)
	free()
	check("bound", s.activate(fresh, "d2"), 0)
}

// TestActivationsLimited: the refusal of a limit is an outcome too.
func TestActivationsLimited(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{License: limits.Rate{Count: 1, Per: time.Minute}})...)
	key := s.license()
	s.activate(key, "d1").must(t, 0)
	s.activate(key, "d1").must(t, 42900)
	if got := s.series("licet_activations_total"); !maps.Equal(got, map[string]float64{"bound": 1, "rate_limited": 1}) {
		t.Error(got)
	}
}

// TestResponses: each response counts by the code in its envelope.
func TestResponses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	s.send("GET", "/v1/licenses/"+absentKey(), keyAll, "").must(t, 40401)
	s.send("GET", "/v1/licenses/"+key, keyOther, "").must(t, 40401)
	s.send("GET", "/v1/licenses/"+key+"x", keyAll, "").must(t, 40001)
	s.send("GET", "/v1/licenses/"+key, "", "").must(t, 40100)
	s.send("PUT", "/v1/licenses/"+key, keyAll, "").must(t, 40500)
	s.send("BREW", "/v1/nothing/"+key, "", "").must(t, 40400)
	s.exchangeRaw("nonsense\r\n\r\n")
	want := map[string]float64{ // labels in order of their names: code, error, method, route
		"201  POST /v1/orders":                     1,
		"200  GET /v1/licenses/{license_key}":      2,
		"404 40401 GET /v1/licenses/{license_key}": 2,
		"400 40001 GET /v1/licenses/{license_key}": 1,
		"401 40100 GET /v1/licenses/{license_key}": 1,
		"405 40500 PUT /v1/licenses/{license_key}": 1,
		"404 40400 other none":                     1,
		"400 40000 other none":                     1,
	}
	if got := s.series("licet_http_responses_total"); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestSeriesFromTheStart: the series of responses and of activations exist with the value 0 before the first request.
func TestSeriesFromTheStart(t *testing.T) {
	t.Parallel()
	s := newService(t)
	there := make(map[string]bool)
	for _, m := range s.gather("licet_http_responses_total").GetMetric() {
		var labels []string
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		there[strings.Join(labels, " ")] = true
	}
	for _, series := range []string{
		"200  POST /v1/licenses/activate", "201  POST /v1/orders", "200  GET /v1/licenses/{license_key}",
		"500 50000 POST /v1/licenses/activate", "503 50300 GET /v1/events", "503 50301 POST /v1/orders",
		"504 50400 POST /v1/licenses/activate",
	} {
		if !there[series] {
			t.Errorf("there is no %s", series)
		}
	}
	outcomes := make(map[string]bool)
	for _, m := range s.gather("licet_activations_total").GetMetric() {
		outcomes[m.GetLabel()[0].GetValue()] = true
	}
	for _, r := range handlers.Routes() {
		if r.Pattern != "/v1/licenses/activate" {
			continue
		}
		for _, refusal := range r.Refusals {
			if !outcomes[string(refusal.Reason)] {
				t.Errorf("activations that fail with %d %s count as other", refusal.Code, refusal.Reason)
			}
		}
	}
	if moved := s.series("licet_activations_total"); len(moved) != 0 {
		t.Error(moved)
	}
}
