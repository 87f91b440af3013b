package handlers_test

import (
	"strings"
	"testing"
	"time"
)

// entitlements returns those of an answer, as JSON.
func (a answer) entitlements() string {
	_, after, _ := strings.Cut(a.body, `"entitlements":`)
	end := strings.IndexByte(after, '}')
	return after[:end+1]
}

// TestEntitlements: a license has the entitlements of its product at its issue, with its own on top, until they end.
func TestEntitlements(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"entitlements":{"export":true,"projects":3,"early":{"value":true,"validity":"P1D"}}`).must(t, 0)
	bought := s.license()
	s.product("editor", `"entitlements":{"projects":5}`).must(t, 0)
	grant := s.send("POST", "/v1/licenses", keyAll,
		`{"product_id":"editor","quantity":1,"entitlements":{"beta":"yes","projects":null}}`).must(t, 0)
	granted := grant.data["licenses"].([]any)[0].(map[string]any)["license_key"].(string)
	check := func(what, key, want string) {
		t.Helper()
		for answered, a := range map[string]answer{
			"an activation": s.activate(key, "laptop").must(t, 0),
			"a validation": s.send("POST", "/v1/licenses/validate", "",
				`{"license_key":"`+key+`","device_id":"laptop"}`).must(t, 0),
			"a look-up": s.get(key).must(t, 0),
		} {
			if got := a.entitlements(); got != want {
				t.Errorf("%s: %s has %s, want %s", what, answered, got, want)
			}
		}
	}
	check("bought before the change", bought, `{"early":true,"export":true,"projects":3}`)
	check("granted after it", granted, `{"beta":"yes"}`)
	update := func(key, object string) answer {
		return s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"entitlements":`+object+`}`)
	}
	update(bought, `{"projects":{"value":50,"validity":"P2D"},"export":null}`).must(t, 0)
	check("changed", bought, `{"early":true,"projects":50}`)
	s.clock.advance(24 * time.Hour)
	check("a day later", bought, `{"projects":50}`)
	s.clock.advance(24 * time.Hour)
	check("two days later", bought, `{"projects":3}`)
	if listed := s.send("GET", "/v1/licenses", keyAll, "").must(t, 0); strings.Count(listed.body,
		`"entitlements":{"projects":3}`) != 1 || strings.Count(listed.body, `"entitlements":{"beta":"yes"}`) != 1 {
		t.Errorf("the list: %s", listed.body)
	}

	for object, want := range map[string]string{
		`{"a":false}`:                    "has the entitlement a, which must be true, an integer",
		`{"A":true}`:                     "must have codes of",
		`{"a":{"value":1,"until":"x"}}`:  "has the entitlement a, which must have no other members",
		`{"a":{"value":1,"validity":1}}`: "has the entitlement a, which must have an ISO 8601 duration",
	} {
		if refused := update(bought, object).must(t, 42200); !strings.Contains(refused.body, want) {
			t.Errorf("%s: %s", object, refused.body)
		}
	}
	s.send("PUT", "/v1/products/editor", keyAll, `{"entitlements":{"a":null}}`).must(t, 42200)
	check("after refused changes", bought, `{"projects":3}`)
}
