package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lifeTable is the contract's table of transitions over HTTP. A cell is the error code, or the status
// of the license afterwards.
const lifeTable = `
from          | suspend   | reinstate     | revoke  | renew         | extend        | activate  | remove
not_activated | suspended | not_activated | revoked | not_activated | not_activated | activated | not_activated
activated     | suspended | activated     | revoked | activated     | activated     | activated | not_activated
suspended     | suspended | activated     | revoked | suspended     | suspended     | 40302     | suspended
expired       | suspended | expired       | revoked | activated     | activated     | 40303     | expired
revoked       | 40903     | 40903         | revoked | 40903         | 40903         | 40301     | revoked
`

func TestLicenseLifeOverHTTP(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(lifeTable), "\n")
	head := strings.Split(lines[0], "|")
	for _, line := range lines[1:] {
		cells := strings.Split(line, "|")
		from := strings.TrimSpace(cells[0])
		for i, cell := range cells[1:] {
			verb, want := strings.TrimSpace(head[i+1]), strings.TrimSpace(cell)
			t.Run(from+"/"+verb, func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				key := s.licenseThatIs(from)
				before := s.get(key).must(t, 0)
				if before.text("status") != from {
					t.Fatalf("the row is wrong: its license is %s before the request", before.text("status"))
				}
				asked := s.ask(key, verb)
				after := s.get(key).must(t, 0)
				if want[0] >= '0' && want[0] <= '9' {
					if fmt.Sprint(asked.code) != want || after.body != before.body {
						t.Errorf("answered %s\nthe license was %s\nand is %s", asked.body, before.body, after.body)
					}
					return
				}
				asked.must(t, 0)
				if after.text("status") != want {
					t.Errorf("the license became %s, want %s", after.text("status"), want)
				}
				if verb != "activate" && verb != "remove" && asked.body != after.body {
					t.Errorf("answered %s\nand a lookup shows %s", asked.body, after.body)
				}
				// The same request again has the same effect, except for an extension.
				if again := s.ask(key, verb).must(t, 0); verb != "extend" && verb != "remove" &&
					again.body != asked.body {
					t.Errorf("the repeated request answers %s\nafter %s", again.body, asked.body)
				}
			})
		}
	}
}

func (s *fixture) get(key string) answer {
	s.t.Helper()
	return s.send("GET", "/v1/licenses/"+key, keyAll, "")
}

// licenseThatIs makes a license with an end, and brings it to a status. In all statuses but the first,
// device d1 is bound.
func (s *fixture) licenseThatIs(status string) string {
	s.t.Helper()
	key := s.send("POST", "/v1/licenses", keyAll,
		`{"product_id":"editor","quantity":1,"expires_at":"2030-02-01T00:00:00Z"}`).must(s.t, 0).grantedKey()
	if status == "not_activated" {
		return key
	}
	s.activate(key, "d1").must(s.t, 0)
	switch status {
	case "suspended":
		s.change(key, "suspend", `{"reason":"chargeback"}`).must(s.t, 0)
	case "revoked":
		s.change(key, "revoke", `{"reason":"fraud"}`).must(s.t, 0)
	case "expired":
		s.clock.advance(60 * 24 * time.Hour)
	}
	return key
}

// ask sends the request of a column of the table.
func (s *fixture) ask(key, verb string) answer {
	s.t.Helper()
	switch verb {
	case "renew":
		return s.change(key, "renew", `{"expires_at":"2031-01-01T00:00:00Z"}`)
	case "extend":
		return s.change(key, "renew", `{"extend":"P1M"}`)
	case "activate":
		return s.activate(key, "d1")
	case "remove":
		return s.send("DELETE", "/v1/licenses/"+key+"/devices/d1", keyAll, "")
	}
	return s.change(key, verb, "")
}

func TestStateReason(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	f := func(a answer, want any) {
		t.Helper()
		a.must(t, 0)
		for _, shown := range []answer{a, s.get(key)} {
			if got := shown.data["state_reason"]; got != want {
				t.Errorf("state_reason is %v, want %v", got, want)
			}
		}
	}
	f(s.get(key), nil)
	f(s.change(key, "suspend", `{"reason":"chargeback\n\tno. 7"}`), "chargeback\n\tno. 7")
	f(s.change(key, "suspend", `{"reason":"another"}`), "chargeback\n\tno. 7")
	f(s.change(key, "reinstate", `{"reason":"all is well"}`), nil)
	f(s.change(key, "suspend", `{}`), nil)
	f(s.change(key, "reinstate", ``), nil)
	f(s.change(key, "suspend", `{"reason":null}`), nil)
	f(s.change(key, "revoke", `{"reason":"fraud"}`), "fraud")
	f(s.change(key, "revoke", `{"reason":"another"}`), "fraud")
}

func TestRenewals(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license() // perpetual
	ends := func(body, want string) {
		t.Helper()
		if got := s.change(key, "renew", body).must(t, 0).text("expires_at"); got != want {
			t.Errorf("%s: ends at %s, want %s", body, got, want)
		}
	}
	s.change(key, "renew", `{"extend":"P1M"}`).must(t, 42200)
	ends(`{"expires_at":"2030-01-31T12:00:00Z"}`, "2030-01-31T12:00:00.000Z")
	ends(`{"extend":"P1M"}`, "2030-02-28T12:00:00.000Z")
	ends(`{"extend":"P1Y","expires_at":null}`, "2031-02-28T12:00:00.000Z")
	ends(`{"expires_at":"2030-01-02T03:04:05.679Z"}`, "2030-01-02T03:04:05.679Z")
	s.clock.advance(24 * time.Hour)
	if got := s.get(key).text("status"); got != "expired" {
		t.Fatalf("the license is %s", got)
	}
	ends(`{"extend":"PT1H"}`, "2030-01-03T04:04:05.678Z") // from now, not from the earlier end
	ends(`{"extend":"P2W"}`, "2030-01-17T04:04:05.678Z")
	ends(`{"extend":"P1000Y"}`, "3030-01-17T04:04:05.678Z")
}

// badChanges are requests that each of the named routes refuses with a code, and, for 42200, with the
// names of the invalid members.
var badChanges = []struct {
	verbs  string
	body   string
	code   int
	fields string
}{
	{"suspend reinstate revoke renew patch", `{`, 40000, ""},
	{"suspend reinstate revoke renew patch", `[]`, 40000, ""},
	{"suspend reinstate revoke renew patch", `null`, 40000, ""},
	{"suspend reinstate revoke renew patch", ` `, 40000, ""},
	{"suspend reinstate revoke renew patch", `{}x`, 40000, ""},
	{"suspend reinstate revoke renew patch", `{"colour":"red"}`, 40000, "colour"},
	{"suspend reinstate revoke renew patch", "{\"\xff\":1}", 40000, ""},
	{"renew patch", ``, 40000, ""},
	{"suspend reinstate revoke", `{"reason":1}`, 40000, "reason"},
	{"suspend reinstate revoke", `{"reason":{}}`, 40000, "reason"},
	{"suspend reinstate revoke", `{"reason":"a","reason":"b"}`, 40000, "reason"},
	{"suspend reinstate revoke", `{"reason":"a\u0000b"}`, 42200, "reason"},
	{"suspend reinstate revoke", `{"reason":"` + strings.Repeat("ü", 1001) + `"}`, 42200, "reason"},
	{"renew", `{"expires_at":2031}`, 40000, "expires_at"},
	{"renew", `{"extend":1}`, 40000, "extend"},
	{"renew", `{}`, 42200, "expires_at"},
	{"renew", `{"expires_at":null,"extend":null}`, 42200, "expires_at"},
	{"renew", `{"expires_at":""}`, 42200, "expires_at"},
	{"renew", `{"expires_at":"2031-01-01"}`, 42200, "expires_at"},
	{"renew", `{"expires_at":"2030-01-02T03:04:05.678Z"}`, 42200, "expires_at"}, // now
	{"renew", `{"expires_at":"2020-01-01T00:00:00Z"}`, 42200, "expires_at"},
	{"renew", `{"expires_at":"9999-12-31T23:59:59-01:00"}`, 42200, "expires_at"},
	{"renew", `{"expires_at":"0001-01-01T00:00:00Z"}`, 42200, "expires_at"}, // Go's zero time
	{"renew", `{"expires_at":"0001-01-01T00:00:00.0009Z"}`, 42200, "expires_at"},
	{"renew", `{"expires_at":"0000-12-31T23:00:00-01:00"}`, 42200, "expires_at"},
	{"renew", `{"extend":""}`, 42200, "extend"},
	{"renew", `{"extend":"1M"}`, 42200, "extend"},
	{"renew", `{"extend":"P0D"}`, 42200, "extend"},
	{"renew", `{"extend":"P-1M"}`, 42200, "extend"},
	{"renew", `{"extend":"P1.5M"}`, 42200, "extend"},
	{"renew", `{"extend":"P1001Y"}`, 42200, "extend"},
	{"renew", `{"expires_at":"2031-01-01T00:00:00Z","extend":"P1M"}`, 42200, "extend"},
	{"renew", `{"expires_at":"x","extend":"x"}`, 42200, "expires_at extend"},
	{"patch", `{"max_devices":"3"}`, 40000, "max_devices"},
	{"patch", `{"max_devices":1.0}`, 40000, "max_devices"},
	{"patch", `{"max_devices":1e2}`, 40000, "max_devices"},
	{"patch", `{"metadata":"x"}`, 40000, "metadata"},
	{"patch", `{"metadata":[]}`, 40000, "metadata"},
	{"patch", `{"metadata":{"a":1,"a":2}}`, 40000, "metadata"},
	{"patch", `{"max_devices":-1}`, 42200, "max_devices"},
	{"patch", `{"max_devices":1000001}`, 42200, "max_devices"},
	{"patch", `{"metadata":{"":1}}`, 42200, "metadata"},
	{"patch", `{"metadata":{"` + strings.Repeat("ü", 41) + `":1}}`, 42200, "metadata"},
	{"patch", `{"metadata":` + membersOf(51) + `}`, 42200, "metadata"},
	{"patch", `{"metadata":` + membersOf(50) + `}`, 42200, "metadata"}, // the license has one member already
	{"patch", `{"metadata":{"b":"` + strings.Repeat("x", 16<<10) + `"}}`, 42200, "metadata"},
	{"patch", `{"metadata":{"b":"` + strings.Repeat("x", 16<<10-8) + `"}}`, 42200, "metadata"}, // together with the stored metadata
	{"patch", `{"max_devices":-1,"metadata":{"":1}}`, 42200, "max_devices metadata"},
}

func membersOf(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// changeOf is a request to one of the routes that change a license.
func changeOf(key, verb, body string) wire {
	if verb == "patch" {
		return wire{method: "PATCH", path: "/v1/licenses/" + key, key: keyAll, body: body}
	}
	return changing(key, verb, body)
}

// TestBadChanges: a refused request changes nothing. Its own faults come before a missing license.
func TestBadChanges(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"editor","quantity":1,"metadata":{"a":1}}`).must(t,
		0).grantedKey()
	s.change(key, "suspend", `{"reason":"r"}`).must(t, 0)
	before := s.get(key).body
	for _, c := range badChanges {
		for verb := range strings.FieldsSeq(c.verbs) {
			w := changeOf(key, verb, c.body)
			a := s.sendWire(w)
			if a.code != c.code || strings.Join(a.fieldNames(), " ") != c.fields {
				t.Errorf("%s %s: %d %v, want %d %s", verb, cut(c.body), a.code, a.fieldNames(), c.code, c.fields)
			}
			if strings.Contains(fmt.Sprint(a.raw["error"]), "retryable:true") {
				t.Errorf("%s %s is marked as retryable", verb, cut(c.body))
			}
		}
	}
	for _, key := range []string{key + "X", "x", key[:len(key)-1], "%00"} {
		for _, verb := range []string{"suspend", "reinstate", "revoke", "renew", "patch"} {
			s.sendWire(changeOf(key, verb, `{}`)).must(t, 40001)
		}
	}
	for _, verb := range []string{"suspend", "reinstate", "revoke"} {
		s.sendWire(changeOf(key, verb, `{}`).once("")).must(t, 42200)
		s.sendWire(changeOf(key, verb, `{}`).once("ü")).must(t, 42200)
		s.sendWire(changeOf(key, verb, `{}`).once(strings.Repeat("k", 256))).must(t, 42200)
		s.sendWire(changeOf(key, verb, `{}`).once("a").once("b")).must(t, 42200)
		s.send("GET", "/v1/licenses/"+key+"/"+verb, keyAll, "").must(t, 40500)
	}
	if after := s.get(key).body; after != before {
		t.Errorf("the license was %s\nand is %s", before, after)
	}
}

// fieldNames lists the invalid members of a response, in its order.
func (a answer) fieldNames() (names []string) {
	failure, _ := a.raw["error"].(map[string]any)
	fields, _ := failure["fields"].([]any)
	for _, f := range fields {
		names = append(names, f.(map[string]any)["field"].(string))
	}
	return names
}

func TestUpdateLicense(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.send("POST", "/v1/licenses", keyAll,
		`{"product_id":"editor","quantity":1,"max_devices":2,"metadata":{"a":1}}`).must(t, 0).grantedKey()
	patch := func(body, metadata string, most int) {
		t.Helper()
		a := s.send("PATCH", "/v1/licenses/"+key, keyAll, body).must(t, 0)
		if a.body != s.get(key).body || !strings.Contains(a.body, `"metadata":`+metadata+`,`) ||
			a.data["max_devices"] != float64(most) {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	patch(`{}`, `{"a":1}`, 2)
	patch(`{"metadata":null,"max_devices":null}`, `{"a":1}`, 2)
	patch(`{"metadata":{}}`, `{"a":1}`, 2)
	patch(`{"metadata":{"b":[1.50,{"c":null}]}}`, `{"a":1,"b":[1.50,{"c":null}]}`, 2)
	patch(`{"max_devices":5}`, `{"a":1,"b":[1.50,{"c":null}]}`, 5)
	patch(`{"metadata":{"a":null,"b":"x"},"max_devices":0}`, `{"b":"x"}`, 0)
	patch(`{"metadata":{"b":null}}`, `{}`, 0)
	patch(`{"metadata":`+membersOf(50)+`}`, membersOf(50), 0)
	patch(`{"metadata":{"m0":null,"x":0}}`,
		strings.Replace(strings.Replace(membersOf(50), `"m0":0,`, ``, 1), `}`, `,"x":0}`, 1), 0)

	customer := func(body string, email, reference any) {
		t.Helper()
		a := s.send("PATCH", "/v1/licenses/"+key, keyAll, body).must(t, 0)
		if a.body != s.get(key).body || a.data["buyer_email"] != email || a.data["customer_reference"] != reference {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	customer(`{"buyer_email":"Ada@example.com"}`, "Ada@example.com", nil)
	customer(`{"customer_reference":"C-1"}`, "Ada@example.com", "C-1")
	customer(`{"buyer_email":null}`, nil, "C-1")
	customer(`{"buyer_email":"bob@example.com","customer_reference":null}`, "bob@example.com", nil)
	for _, bad := range []string{`"buyer_email":""`, `"buyer_email":"ada"`, `"customer_reference":""`,
		`"customer_reference":"` + strings.Repeat("x", 65) + `"`, `"customer_reference":"a\nb"`} {
		s.send("PATCH", "/v1/licenses/"+key, keyAll, `{`+bad+`}`).must(t, 42200)
	}
	customer(`{}`, "bob@example.com", nil)

	// Below the number of bound devices: they stay bound, and no further device can bind.
	for _, d := range []string{"d1", "d2", "d3"} {
		s.activate(key, d).must(t, 0)
	}
	a := s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":1}`).must(t, 0)
	if a.data["current_devices"] != 3.0 || a.text("status") != "activated" {
		t.Errorf("lowered: %s", a.body)
	}
	s.activate(key, "d3").must(t, 0)
	s.activate(key, "d4").must(t, 40901)
	// In every state.
	s.change(key, "revoke", "").must(t, 0)
	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":9,"metadata":{"m1":null,"refund":"7"}}`).must(t, 0)
}

// TestOptionalBodies: where all members are optional, so is the body.
func TestOptionalBodies(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, verb := range []string{"suspend", "reinstate", "revoke"} {
		key := s.licenseThatIs("activated")
		s.change(key, verb, "").must(t, 0)
		s.change(key, verb, `{}`).must(t, 0)
		s.change(key, verb, "", "Content-Type", "text/plain").must(t, 0) // of nothing
		s.change(key, verb, "x", "Content-Type", "-", "Content-Type", "text/plain").must(t, 41500)
		bare := "POST /v1/licenses/" + key + "/" + verb + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + keyAll +
			"\r\nConnection: close\r\n"
		if answers, _ := s.exchangeRaw(bare + "\r\n"); len(answers) != 1 || answers[0].status != 200 {
			t.Errorf("%s without a Content-Length: %+v", verb, answers)
		}
	}
}
