package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// sample is a body of every kind of member.
type sample struct {
	Text    text    `json:"text"`
	Integer integer `json:"integer"`
	Object  object  `json:"object"`
	Flag    flag    `json:"flag"`
}

func decodeSample(body string, strict bool) (sample, error) {
	var in sample
	err := decodeObject([]byte(body), strict, compile(reflect.TypeFor[sample]()), &in)
	return in, err
}

func TestDecodeAmountInMajorUnits(t *testing.T) {
	var in newOrder
	err := decodeObject([]byte(`{"amount":49.99}`), true, compile(reflect.TypeFor[newOrder]()), &in)
	if err == nil || !strings.Contains(err.Error(), "minor units of the currency: for 49.00 USD, write 4900") {
		t.Errorf("got %v", err)
	}
}

func TestDecodeAccepts(t *testing.T) {
	f := func(body string, want sample) {
		t.Helper()
		for _, strict := range []bool{true, false} {
			got, err := decodeSample(body, strict)
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if got != want {
				t.Errorf("%s: got %+v, want %+v", body, got, want)
			}
		}
	}
	f(`{}`, sample{})
	f(" \t\r\n{ } \n", sample{})
	f(`{"text":null,"integer":null,"object":null,"flag":null}`, sample{})
	f(`{"flag":true}`, sample{Flag: flag{true, true}})
	f(`{"flag" : false }`, sample{Flag: flag{false, true}})
	f(`{"text":""}`, sample{Text: text{"", true}})
	f(`{"text":"\u00e9\ud83d\ude00\u0000\"\\\/"}`, sample{Text: text{"é😀\x00\"\\/", true}})
	f(`{"te\u0078t":"a"}`, sample{Text: text{"a", true}})
	f(`{"integer":0}`, sample{Integer: integer{0, true}})
	f(`{"integer":-0}`, sample{Integer: integer{0, true}})
	f(`{"integer":9223372036854775807}`, sample{Integer: integer{1<<63 - 1, true}})
	f(`{"integer":-9223372036854775808}`, sample{Integer: integer{-1 << 63, true}})
	f(`{"object":{ "b" : [ 1.50 , 1e2 , null ] , "a" : { "" : "\u00e9" } }}`,
		sample{Object: object{`{"b":[1.50,1e2,null],"a":{"":"\u00e9"}}`, true}})
	f(`{"object":`+strings.Repeat(`{"a":`, maxDepth-1)+`1`+strings.Repeat(`}`, maxDepth-1)+`}`,
		sample{Object: object{compactObject(strings.Repeat(`{"a":`, maxDepth-1) + `1` + strings.Repeat(`}`,
			maxDepth-1)), true}})
	f(`{"text":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}`,
		sample{Text: text{strings.Repeat("[", 47), true}})
}

func TestDecodeRefuses(t *testing.T) {
	f := func(body, message string) {
		t.Helper()
		_, err := decodeSample(body, true)
		var known *licensing.Error
		if !errors.As(err, &known) || known.Reason != reasonMalformedRequest {
			t.Fatalf("%q: got %v", body, err)
		}
		if !strings.Contains(known.Message, message) {
			t.Errorf("%q: %q does not say %q", body, known.Message, message)
		}
		if strings.Contains(known.Message, "SECRET") {
			t.Errorf("%q: %q repeats a value", body, known.Message)
		}
	}
	f("", "is required")
	f(" ", "ends too early")
	f(`{`, "ends too early")
	f(`{"text":"SECRET`, "ends too early")
	f(`SECRET`, "not valid JSON")
	f(`{"text":SECRET}`, "not valid JSON")
	f("\ufeff{}", "not valid JSON")
	f(`{"text":'a'}`, "not valid JSON")
	f(`{text:"a"}`, "not valid JSON")
	f(`{"text":"a",}`, "not valid JSON")
	f(`{"text":"a" "integer":1}`, "not valid JSON")
	f(`{/**/}`, "not valid JSON")
	f(`{"integer":01}`, "not valid JSON")
	f(`{"integer":+1}`, "not valid JSON")
	f(`{"integer":NaN}`, "not valid JSON")
	f("{\"text\":\"SECRET\n\"}", "not valid JSON")
	f("{\"text\":\"SECRET\xff\"}", "not valid JSON in UTF-8")
	f("{\"text\":\"SECRET\xed\xa0\x80\"}", "not valid JSON in UTF-8")
	f("{\"object\":{\"a\":\"\xc0\x80\"}}", "not valid JSON in UTF-8")
	f(`{"text":"\ud800"}`, "not valid JSON in UTF-8")
	f(`{"text":"\udc00\ud800"}`, "not valid JSON in UTF-8")
	f(`{"object":{"\ud800":1}}`, "not valid JSON in UTF-8")
	f(`[]`, "must be a JSON object")
	f(`null`, "must be a JSON object")
	f(`"SECRET"`, "must be a JSON object")
	f(`1`, "must be a JSON object")
	f(`{}{}`, "after the JSON object of the body")
	f(`{} x`, "after the JSON object of the body")
	f("{}\x00", "after the JSON object of the body")
	f(`{"text":1}`, `member "text" must be a string`)
	f(`{"text":{"a":"SECRET"}}`, `member "text" must be a string`)
	f(`{"text":true}`, `member "text" must be a string`)
	f(`{"integer":"1"}`, `member "integer" must be an integer`)
	f(`{"integer":1.0}`, `member "integer" must be an integer`)
	f(`{"integer":1e2}`, `member "integer" must be an integer`)
	f(`{"integer":99999999999999999999.0}`, `member "integer" must be an integer`)
	f(`{"integer":true}`, `member "integer" must be an integer`)
	f(`{"object":[]}`, `member "object" must be an object`)
	f(`{"flag":1}`, `member "flag" must be true or false`)
	f(`{"flag":"true"}`, `member "flag" must be true or false`)
	f(`{"flag":{}}`, `member "flag" must be true or false`)
	f(`{"flag":tru}`, "not valid JSON")
	f(`{"flag":True}`, "not valid JSON")
	f(`{"object":"SECRET"}`, `member "object" must be an object`)
	f(`{"text":"a","text":"a"}`, `member "text" comes twice`)
	f(`{"text":null,"te\u0078t":null}`, `member "text" comes twice`)
	f(`{"object":{"a":1,"b":2,"a":3}}`, `member "a" comes twice`)
	f(`{"object":{"x":[{"a":1,"a":1}]}}`, `member "a" comes twice`)
	f(`{"other":1}`, `member "other" is unknown`)
	f(`{"Text":"a"}`, `member "Text" is unknown`)
	f(`{"other":null}`, `member "other" is unknown`)
	f(`{"`+strings.Repeat("a", 65)+`":null}`, `member "`+strings.Repeat("a", 64)+`…" is unknown`)
	f(`{"object":`+strings.Repeat(`[`, 1<<14), "nests deeper")
	f(`{"object":{"a":`+strings.Repeat(`[`, maxDepth)+strings.Repeat(`]`, maxDepth)+`}}`, "nests deeper")
}

// The error for a bad member names the member of the body.
func TestDecodeNamesTheMember(t *testing.T) {
	for body, field := range map[string]string{
		`{"text":1}`: "text", `{"other":1}`: "other", `{"text":"a","text":"b"}`: "text",
		`{"object":{"x":[{"a":1,"a":1}]}}`: "object", `{"object":{"object":{},"object":{}}}`: "object",
		`{"` + strings.Repeat("é", 65) + `":1}`: strings.Repeat("é", 64) + "…",
	} {
		_, err := decodeSample(body, true)
		var known *licensing.Error
		if !errors.As(err, &known) || len(known.Fields) != 1 || known.Fields[0].Field != field {
			t.Errorf("%s: %+v", body, known)
		}
	}
}

func TestDecodeSkipsUnknownMembersIfAllowed(t *testing.T) {
	got, err := decodeSample(`{"Text":"x","other":{"text":"y"},"text":"a","more":[1.5e3]}`, false)
	if want := (sample{Text: text{"a", true}}); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{`{"other":tru}`, `{"other":1,"other":2}`, `{"other":{"a":1,"a":2}}`, `{"other":"` + "\xff" + `"}`} {
		if _, err := decodeSample(bad, false); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// An accepted body has the same value as for encoding/json.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"text":"a","integer":-12,"object":{"a":[1,{"b":null}]}}`, `{"text":"\ud83d\ude00"}`, `{"integer":1e2}`, `{"flag":true}`,
		`{"text":null}`, `{"TEXT":"a","unknown":[]}`, `{"object":{"a":1,"a":2}}`, "{\"text\":\"\xff\"}", `{}x`, `[{}]`, `{"text":"\ud800"}`,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, body string, strict bool) {
		got, err := decodeSample(body, strict)
		if err != nil {
			var known *licensing.Error
			if !errors.As(err, &known) || known.Reason != reasonMalformedRequest || !utf8.ValidString(known.Message) {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !utf8.ValidString(body) {
			t.Fatalf("%q is accepted", body)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(body), &members); err != nil {
			t.Fatalf("%q is accepted, but %v", body, err)
		}
		for name := range members {
			if strict && name != "text" && name != "integer" && name != "object" && name != "flag" {
				t.Fatalf("%q: unknown member %q is accepted", body, name)
			}
		}
		var want sample
		given := func(name string) bool { return members[name] != nil && string(members[name]) != "null" }
		if want.Text.given = given("text"); want.Text.given {
			if err := json.Unmarshal(members["text"], &want.Text.value); err != nil {
				t.Fatal(err)
			}
		}
		if want.Integer.given = given("integer"); want.Integer.given {
			if err := json.Unmarshal(members["integer"], &want.Integer.value); err != nil {
				t.Fatal(err)
			}
		}
		if want.Object.given = given("object"); want.Object.given {
			var compact bytes.Buffer
			if err := json.Compact(&compact, members["object"]); err != nil {
				t.Fatal(err)
			}
			want.Object.value = compactObject(compact.String())
		}
		if want.Flag.given = given("flag"); want.Flag.given {
			if err := json.Unmarshal(members["flag"], &want.Flag.value); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(sample{}, text{}, integer{}, object{}, flag{})); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", body, diff)
		}
	})
}

// Decoding and checking bodies never panics, and accepted values are within their limits.
func FuzzReadBodies(f *testing.F) {
	f.Add(`{"product_id":"editor","amount":4900,"currency":"USD","description":"d","buyer_email":"a@example.com","metadata":{"a":1},"success_url":"https://example.com/x?y=1"}`)
	f.Add(`{"name":"Editor","key_prefix":"ED","max_devices":5,"validity":"P1Y","validity_from":"activation","self_service_deactivation":true,"removals_per_month":2,"metadata":{}}`)
	f.Add(`{"product_id":"editor","quantity":2,"max_devices":0,"expires_at":"2031-01-01T00:00:00Z"}`)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	instruments := metrics.New(prometheus.NewRegistry(), "", "", "")
	clock := func() time.Time { return now }
	server := New(Config{Node: service.New(service.Config{Config: node.Config{Clock: clock, Metrics: instruments}}),
		Metrics: instruments})
	f.Fuzz(func(t *testing.T, body string) {
		if o, err := readBody[newOrder](server, body); err == nil {
			metadata := string(o.Metadata.value)
			if !validProductID(o.ProductID.value) || o.Amount.value < 0 || o.Amount.value > licensing.MaxAmount ||
				len(o.currency) != 3 || utf8.RuneCountInString(o.Description.value) > maxDescription ||
				len(metadata) > licensing.MaxMetadataBytes ||
				metadata != "" && !json.Valid([]byte(metadata)) {
				t.Fatalf("%q: %+v", body, o)
			}
		}
		if p, err := readBody[productDescription](server, body); err == nil {
			terms := p.terms()
			if !licensing.ValidKeyPrefix(terms.KeyPrefix) || terms.MaxDevices < 0 || terms.MaxDevices > maxMaxDevices ||
				terms.SelfService.RemovalsPerMonth < 0 ||
				!terms.Validity.IsZero() && !terms.Validity.AddTo(now).After(now) {
				t.Fatalf("%q: %+v", body, p)
			}
		}
		if g, err := readBody[grant](server, body); err == nil {
			if !validProductID(g.ProductID.value) || g.Quantity.value < 1 || g.Quantity.value > licensing.MaxQuantity ||
				!g.expires.IsZero() && !g.expires.After(now) {
				t.Fatalf("%q: %+v", body, g)
			}
		}
	})
}

// readBody reads a request with a body and a product in its path.
func readBody[In any](s *Server, body string) (In, error) {
	var in In
	r := &request{call: call{fast: &fasthttp.RequestCtx{}}, route: &route{access: RequiredAuth},
		values: map[string]string{"product_id": "editor"}}
	r.fast.Request.SetBodyString(body)
	return in, s.read(r, compile(reflect.TypeFor[In]()), &in)
}

func FuzzCursor(f *testing.F) {
	f.Add(formatCursor(store.DeviceCursor{}))
	f.Add(formatCursor(store.DeviceCursor{1, 2, 3}))
	f.Add("AQAAAAAAAAAAAAAAAAAAAAB")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAA")
	f.Add("AQAAAAAAAAAAAAAA\nAAAAAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, cursor string) {
		at, ok := parseCursor(cursor)
		if ok && formatCursor(at) != cursor {
			t.Errorf("%q and %q are one position", cursor, formatCursor(at))
		}
	})
}

func TestCursor(t *testing.T) {
	at := store.DeviceCursor{0: 0xff, 15: 1}
	if got, ok := parseCursor(formatCursor(at)); !ok || got != at {
		t.Errorf("got %v, %v", got, ok)
	}
	good := formatCursor(at)
	for _, bad := range []string{"", good + "A", good[1:], good[:22], "Ag" + good[2:], good + "=",
		good[:10] + "\n" + good[10:], good[:22] + "F"} {
		if _, ok := parseCursor(bad); ok {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// A value is decoded once, also if the decoded value looks encoded itself.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"/v1/licenses/x/devices/a%2Fb?limit=1", "//", "/..", "/%2E%2E/a", "http://x/y?z", "*", "/a?limit=%zz&limit=2", "/%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		path, query, ok := splitTarget(target)
		if !ok {
			return
		}
		if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "?#") {
			t.Fatalf("%q: path %q", target, path)
		}
		queryValue(query, "limit")
		if !plainPath(path) {
			return
		}
		for segment := range strings.SplitSeq(path[1:], "/") {
			value, ok := pathValue(segment)
			if !ok {
				continue
			}
			again, ok := pathValue(strings.ReplaceAll(value, "%", "%25"))
			if !ok || again != value {
				t.Fatalf("%q: %q is decoded more than once", target, value)
			}
		}
	})
}

func TestQueryValue(t *testing.T) {
	f := func(query, want string, wantGiven, wantOK bool) {
		t.Helper()
		got, given, ok := queryValue(query, "limit")
		if got != want || given != wantGiven || ok != wantOK {
			t.Errorf("%q: %q, %v, %v", query, got, given, ok)
		}
	}
	f("", "", false, false)
	f("other=1&%zz=2&=3", "", false, false)
	f("limit=5", "5", true, true)
	f("a=b&l%69mit=5&c", "5", true, true)
	f("limit", "", true, true)
	f("limit=a%20b+c", "a b c", true, true)
	f("limit=%zz", "", true, false)
	f("limit=1&limit=1", "", true, false)
}
