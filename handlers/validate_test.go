package handlers_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// check sends a body and compares the names of the invalid members.
func (s *fixture) check(method, path, key, body string, want ...string) {
	s.t.Helper()
	a := s.send(method, path, key, body)
	if len(want) == 0 {
		if a.status > 299 {
			s.t.Errorf("%s: %s", cut(body), a.body)
		}
		return
	}
	got := slices.Sorted(maps.Keys(a.fields))
	slices.Sort(want)
	if a.code != 42200 || !slices.Equal(got, want) {
		s.t.Errorf("%s: %s, want %v", cut(body), a.body, want)
	}
}

func TestOrderFields(t *testing.T) {
	t.Parallel()
	s := newService(t)
	f := func(members string, want ...string) {
		t.Helper()
		given := func(name, fallback string) string {
			if strings.Contains(members, `"`+name+`":`) {
				return ""
			}
			return `"` + name + `":` + fallback + `,`
		}
		s.check("POST", "/v1/orders", keyAll,
			`{`+given("product_id", `"p"`)+given("amount", "1")+given("currency", `"USD"`)+members+`}`, want...)
	}
	long := func(n int) string { return strings.Repeat("ü", n) }
	f(`"product_id":"aZ09._-"`)
	f(`"product_id":"` + strings.Repeat("x", 64) + `"`)
	f(`"product_id":"`+strings.Repeat("x", 65)+`"`, "product_id")
	f(`"product_id":""`, "product_id")
	f(`"product_id":"a/b"`, "product_id")
	f(`"product_id":"é"`, "product_id")
	f(`"product_id":null`, "product_id")
	f(`"amount":0`)
	f(`"amount":1000000000000`)
	f(`"amount":1000000000001`, "amount")
	f(`"amount":-1`, "amount")
	f(`"amount":9223372036854775808`, "amount")
	f(`"amount":-99999999999999999999`, "amount")
	f(`"amount":null`, "amount")
	f(`"currency":"eur"`)
	f(`"currency":"EURO"`, "currency")
	f(`"currency":""`, "currency")
	f(`"currency":null`, "currency")
	f(`"description":"` + long(1000) + `"`)
	f(`"description":"`+long(1001)+`"`, "description")
	f(`"description":"a\r\n\tb"`)
	f(`"description":"a\u0000"`, "description")
	f(`"description":"a\u009b"`, "description")
	f(`"description":null`)
	for _, good := range []string{"a@example.com", "a.b+c@sub.example.co", "ü@example.com", "a@localhost",
		strings.Repeat("a", 242) + "@example.com"} {
		f(`"buyer_email":"` + good + `"`)
	}
	for _, bad := range []string{"", "a", "@example.com", "a@", "a@b", "A <a@example.com>",
		"a@example.com,b@example.com", "a@[127.0.0.1]", " a@example.com", "a@.", `a\n@example.com`, strings.Repeat("a",
			243) + "@example.com"} {
		f(`"buyer_email":"`+bad+`"`, "buyer_email")
	}
	for _, good := range []string{"https://example.com", "https://example.com:443/a%20b?c=d", "https://192.0.2.1x.com/",
		"http://localhost:3000/x", "http://127.0.0.1/", "http://[::1]:1/", "https://example.com/" + strings.Repeat("x",
			1980)} {
		f(`"success_url":"` + good + `"`)
	}
	for _, bad := range []string{"", "example.com", "/x", "//example.com", "http://example.com",
		"https://example.com:8443/", "https://example.com/#thanks", "https://10.0.0.1/", "https://2130706433/",
		"https://0x7f.1/", "https://[fe80::1%25eth0]/", "https://example.com:/", "https://ex ample.com/",
		"http://127.0.0.1.example.com/", "javascript:alert(1)", "https://", "https://a:b@example.com", "https://example.com/ x", "https://example.com/ü", `https://example.com/\r\nX: y`, "https://example.com/" + strings.Repeat("x", 1981)} {
		f(`"success_url":"`+bad+`"`, "success_url")
	}
	members := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"m%d":%d`, i, i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	f(`"metadata":{}`)
	f(`"metadata":` + members(50))
	f(`"metadata":`+members(51), "metadata")
	f(`"metadata":{"` + long(40) + `":null}`)
	f(`"metadata":{"`+long(41)+`":null}`, "metadata")
	f(`"metadata":{"":1}`, "metadata")
	f(`"metadata":{  "a" :  "` + strings.Repeat("x", 16<<10-8) + `"  }`)
	f(`"metadata":{"a":"`+strings.Repeat("x", 16<<10-7)+`"}`, "metadata")
	f(`"metadata":{"a":{"b":{"":"deep names are the client's own"}}}`)
	f(`"product_id":"","amount":-1,"currency":"?","buyer_email":"?"`, "product_id", "amount", "currency", "buyer_email")
}

func TestActivationFields(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"p","quantity":1,"max_devices":0}`).must(t, 0).
		data["licenses"].([]any)[0].(map[string]any)["license_key"].(string)
	f := func(members string, want ...string) {
		t.Helper()
		s.check("POST", "/v1/licenses/activate", "", `{"license_key":"`+key+`",`+members+`}`, want...)
	}
	long := func(n int) string { return strings.Repeat("😀", n) }
	f(`"device_id":"` + long(255) + `"`)
	f(`"device_id":"`+long(256)+`"`, "device_id")
	f(`"device_id":""`, "device_id")
	f(`"device_id":null`, "device_id")
	f(`"device_id":" "`)
	f(`"device_id":"a\u0000b"`, "device_id")
	f(`"device_id":"a\u007f"`, "device_id")
	f(`"device_id":"a\u0085"`, "device_id")
	f(`"device_id":"d","device_name":"` + long(255) + `"`)
	f(`"device_id":"d","device_name":"`+long(256)+`"`, "device_name")
	f(`"device_id":"d","device_name":"a\nb"`, "device_name")
	f(`"device_id":"d","device_name":null`)
	s.clock.advance(licensing.DefaultSeenStep)
	f(`"device_id":"d","device_name":""`)
	f(`"device_id":"d","product_id":"","account_id":"","mode":""`, "product_id", "account_id", "mode")
	f(`"device_id":"d","product_id":null,"account_id":null,"mode":null`)

	named := s.send("POST", "/v1/licenses/activate", "",
		`{"license_key":"`+key+`","device_id":"n","device_name":"N"}`).must(t, 0)
	kept := s.activate(key, "n").must(t, 0)
	if named.data["device_name"] != "N" || kept.data["device_name"] != "N" {
		t.Errorf("an omitted name did not stay: %s", kept.body)
	}
	for name, want := range map[string]any{"d": "", "never": nil} {
		if name == "never" {
			if got := s.activate(key, name).must(t, 0); got.data["device_name"] != want {
				t.Errorf("no name answers %v", got.data["device_name"])
			}
			continue
		}
		got := s.send("POST", "/v1/licenses/activate", "",
			`{"license_key":"`+key+`","device_id":"`+name+`","device_name":""}`).must(t, 0)
		if got.data["device_name"] != want {
			t.Errorf("an empty name answers %v", got.data["device_name"])
		}
	}
}

func TestGrantFields(t *testing.T) {
	t.Parallel()
	s := newService(t)
	f := func(body string, want ...string) {
		t.Helper()
		s.check("POST", "/v1/licenses", keyAll, body, want...)
	}
	f(`{}`, "product_id", "quantity")
	f(`{"product_id":"p","quantity":1}`)
	f(`{"product_id":"p","quantity":1000}`)
	f(`{"product_id":"p","quantity":0}`, "quantity")
	f(`{"product_id":"p","quantity":1001}`, "quantity")
	f(`{"product_id":"p","quantity":1,"max_devices":1000000}`)
	f(`{"product_id":"p","quantity":1,"max_devices":1000001}`, "max_devices")
	f(`{"product_id":"p","quantity":1,"max_devices":-1}`, "max_devices")
	f(`{"product_id":"p","quantity":1,"expires_at":"2030-01-02T04:04:05.679+01:00"}`)
	f(`{"product_id":"p","quantity":1,"expires_at":"2030-01-02T04:04:05.678+01:00"}`, "expires_at")
	f(`{"product_id":"p","quantity":1,"expires_at":"2031-01-02"}`, "expires_at")
	f(`{"product_id":"p","quantity":1,"expires_at":"9999-12-31T23:59:59-01:00"}`, "expires_at")
	f(`{"product_id":"p","quantity":1,"expires_at":"2031-01-01T00:00:00,5Z"}`, "expires_at")
	f(`{"product_id":"p","quantity":1,"expires_at":"2031-01-01T1:00:00Z"}`, "expires_at")
	f(`{"product_id":"p","quantity":1,"expires_at":"2031-01-01t00:00:00z"}`)
	f(`{"product_id":"p","quantity":1,"expires_at":"0001-01-01T00:00:00Z"}`, "expires_at") // Go's zero time
	f(`{"product_id":"p","quantity":1,"expires_at":""}`, "expires_at")
	f(`{"product_id":"p","quantity":1,"metadata":{"":1}}`, "metadata")
	large := func(bytes int) string { return `{"a":"` + strings.Repeat("x", bytes-len(`{"a":""}`)) + `"}` }
	f(`{"product_id":"p","quantity":64,"metadata":` + large(16384) + `}`) // 1 MiB in all
	f(`{"product_id":"p","quantity":65,"metadata":`+large(16384)+`}`, "metadata")
	f(`{"product_id":"p","quantity":1000,"metadata":` + large(1048) + `}`)
	f(`{"product_id":"p","quantity":1000,"metadata":`+large(1049)+`}`, "metadata")
}

// The pages of a listing show every device of a license once.
func TestDevicePages(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"p","quantity":1,"max_devices":0}`).must(t, 0).
		data["licenses"].([]any)[0].(map[string]any)["license_key"].(string)
	const count = 1005
	for i := range count {
		s.activate(key, fmt.Sprintf("device-%d", i)).must(t, 0)
	}
	ids := func(a answer) (ids []string) {
		for _, d := range a.data["devices"].([]any) {
			ids = append(ids, d.(map[string]any)["device_id"].(string))
		}
		return ids
	}
	path := "/v1/licenses/" + key
	license := s.send("GET", path, keyAll, "").must(t, 0)
	got := ids(license)
	if len(got) != 1000 || license.data["current_devices"] != float64(count) {
		t.Fatalf("%d devices inline", len(got))
	}
	rest := s.send("GET", path+"/devices?cursor="+license.text("devices_next_cursor"), keyAll, "").must(t, 0)
	got = append(got, ids(rest)...)
	if rest.data["next_cursor"] != nil {
		t.Errorf("a page comes after the last page: %s", rest.body)
	}
	var paged []string
	for query := ""; ; {
		page := s.send("GET", path+"/devices"+query, keyAll, "").must(t, 0)
		paged = append(paged, ids(page)...)
		if page.data["next_cursor"] == nil {
			break
		}
		query = "?limit=334&cursor=" + page.text("next_cursor")
	}
	if !slices.Equal(got, paged) {
		t.Error("the license and its pages list other devices")
	}
	slices.Sort(paged)
	if len(slices.Compact(paged)) != count {
		t.Errorf("%d different devices, want %d", len(slices.Compact(paged)), count)
	}
	for _, query := range []string{"limit=", "limit=0", "limit=1001", "limit=-1", "limit=1.0", "limit=1&limit=1",
		"limit=%zz", "limit=99999999999999999999"} {
		a := s.send("GET", path+"/devices?"+query, keyAll, "").must(t, 42200)
		if len(a.fields) != 1 || a.fields["limit"] == "" {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for _, query := range []string{"cursor=", "cursor=x", "cursor=" + license.text("devices_next_cursor") + "A"} {
		a := s.send("GET", path+"/devices?"+query, keyAll, "").must(t, 42200)
		if len(a.fields) != 1 || a.fields["cursor"] == "" {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	for _, query := range []string{"limit=1&limit=1", "limit=%zz", "cursor=x&cursor=x"} {
		a := s.send("GET", path+"/devices?"+query, keyAll, "").must(t, 42200)
		name, _, _ := strings.Cut(query, "=")
		if a.fields[name] != "must appear once, in valid percent-encoding" {
			t.Errorf("%s: %s", query, a.body)
		}
	}
	s.send("GET", path+"/devices?limit=1000&&", keyAll, "").must(t, 0)
	a := s.send("GET", path+"/devices?limt=1&other=%zz&Cursr=&%zz&l=", keyAll, "").must(t, 42200)
	want := map[string]string{
		"limt":  "is not a query parameter of this route; did you mean limit?",
		"other": "is not a query parameter of this route; the route has limit, cursor",
		"Cursr": "is not a query parameter of this route; did you mean cursor?",
		"l":     "is not a query parameter of this route; the route has limit, cursor",
		"query": "has a parameter that this route does not have",
	}
	if diff := cmp.Diff(want, a.fields); diff != "" {
		t.Errorf("unknown parameters (-want +got):\n%s", diff)
	}
	var many strings.Builder
	for i := range 100 {
		fmt.Fprintf(&many, "&p%d=", i)
	}
	if a := s.send("GET", path+"/devices?"+many.String(), keyAll, "").must(t, 42200); len(a.fields) != 10 {
		t.Errorf("%d problems of 100 parameters", len(a.fields))
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	f := func(code int, headers ...string) {
		t.Helper()
		a := s.send("POST", "/v1/orders", keyAll, `{}`, append([]string{"Content-Type", "-"}, headers...)...)
		if a.code != code {
			t.Errorf("%q: %s", headers, a.body)
		}
	}
	const good, refused = 42200, 41500
	f(good, "Content-Type", "application/json")
	f(good, "Content-Type", "application/json; charset=utf-8")
	f(good, "Content-Type", `Application/JSON;Charset="UTF-8"`)
	f(good, "Content-Type", "application/json; profile=x")
	f(good, "Content-Type", "application/json", "Content-Encoding", "identity")
	f(refused)
	f(refused, "Content-Type", "")
	f(refused, "Content-Type", "application/json; charset=latin1")
	f(refused, "Content-Type", "application/jsonx")
	f(refused, "Content-Type", "application/problem+json")
	f(refused, "Content-Type", "text/json")
	f(refused, "Content-Type", "application/json;;;=")
	f(refused, "Content-Type", "application/json, text/plain")
	f(refused, "Content-Type", "application/json", "Content-Encoding", "gzip")
}
