package handlers_test

import (
	"strings"
	"testing"
)

func TestRouting(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.license()
	for _, id := range []string{"a/b", "..", "%2F"} {
		s.activate(key, id).must(t, 0)
	}
	devices := "/v1/licenses/" + key + "/devices/"
	for _, c := range []struct {
		method, path string
		code         int
		allow        string
	}{
		{"GET", "/", 40400, ""},
		{"GET", "/v1", 40400, ""},
		{"GET", "/v1/licenses/" + key + "/", 40400, ""},
		{"GET", "/v1//licenses/" + key, 40400, ""},
		{"GET", "/v1/licenses//devices", 40400, ""},
		{"GET", "/v1/./licenses/" + key, 40400, ""},
		{"GET", "/v1/orders/../licenses/" + key, 40400, ""},
		{"GET", "/V1/licenses/" + key, 40400, ""},
		{"GET", "/v1/licenses%2F" + key, 40400, ""},
		{"GET", "/v1/%6Cicenses/" + key, 40400, ""},
		{"GET", "/v1/licenses/%", 40400, ""},
		{"GET", "/v1/licenses/%zz", 40400, ""},
		{"DELETE", devices + "..", 40400, ""},
		{"DELETE", devices + ".", 40400, ""},
		{"DELETE", devices, 40400, ""},
		{"DELETE", devices + "a/b", 40400, ""},
		{"DELETE", devices + "%G1", 40400, ""},
		{"DELETE", devices + "a%2Fb", 0, ""},
		{"DELETE", devices + "%2E%2E", 0, ""},
		{"DELETE", devices + "%252F", 0, ""},
		{"DELETE", devices + "x?y=/../z", 42200, ""},
		{"DELETE", devices + "%00", 42200, ""},
		{"DELETE", devices + "%FF", 42200, ""},
		{"DELETE", devices + "%C2%80", 42200, ""},
		{"DELETE", devices + strings.Repeat("%C3%BC", 255), 0, ""},
		{"DELETE", devices + strings.Repeat("%C3%BC", 256), 42200, ""},
		{"GET", "/v1/licenses/" + strings.ToLower(key), 0, ""},
		{"GET", "/v1/licenses/%20" + key + "%20", 0, ""},
		{"GET", "/v1/licenses/activate", 40500, "OPTIONS, POST"},
		{"PATCH", "/v1/orders", 40500, "GET, HEAD, POST"},
		{"OPTIONS", "/v1/orders", 40500, "GET, HEAD, POST"},
		{"POST", "/v1/licenses/" + key, 40500, "GET, HEAD, PATCH"},
		{"GET", devices + "x", 40500, "DELETE"},
	} {
		a := s.send(c.method, c.path, keyAll, "")
		if a.code != c.code || a.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q: %s\nwant %d", c.method, c.path, a.status, a.header.Get("Allow"), a.body,
				c.code)
		}
		checkCommonHeaders(t, a)
	}
	left := s.send("GET", "/v1/licenses/"+key, keyAll, "").must(t, 0)
	if left.data["current_devices"] != 0.0 {
		t.Errorf("devices are left: %s", left.body)
	}
}

// Cross-origin scripts may call the routes with optional credentials, and read their errors. They may
// call no other routes.
func TestCORS(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const open = "/v1/licenses/activate"
	for _, c := range []struct {
		method, path, body string
		want               bool
	}{
		{"OPTIONS", open, "", true},
		{"POST", open, "{}", true},
		{"POST", open, "{", true},
		{"GET", open, "", true},
		{"POST", open, strings.Repeat("x", 17<<10), true},
		{"POST", "/v1/orders", "{}", false},
		{"OPTIONS", "/v1/orders", "", false},
		{"GET", "/livez", "", false},
		{"GET", "/v1/nothing", "", false},
		{"GET", "/pay/ord_x/y", "", false},
	} {
		a := s.send(c.method, c.path, "", c.body, "Origin", "https://app.example.com")
		origin, expose := a.header.Get("Access-Control-Allow-Origin"), a.header.Get("Access-Control-Expose-Headers")
		got := origin == "*" && expose == "X-Request-Id, Retry-After, ETag"
		if got != c.want || origin != "" != c.want {
			t.Errorf("%s %s: allow %q, expose %q", c.method, c.path, origin, expose)
		}
		if a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s allows credentials", c.method, c.path)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for given, kept := range map[string]bool{
		"a":                       true,
		"AZaz09._:+/=-":           true,
		strings.Repeat("x", 128):  true,
		strings.Repeat("x", 129):  false,
		"":                        false,
		"a@example.com":           false,
		keyAll:                    false,
		"lks_live_x":              false,
		s.license():               false,
		"a b":                     false,
		"a,b":                     false,
		"a\"b":                    false,
		"ä":                       false,
		"<script>":                false,
		"00-4bf92f3577b34da6a3ce": true,
	} {
		got := s.send("GET", "/livez", "", "", "X-Request-Id", given).header.Get("X-Request-Id")
		if kept && got != given || !kept && (got == given || len(got) != 26) {
			t.Errorf("X-Request-Id %q became %q", given, got)
		}
	}
}

// TestRouteSuggestions: a path that belongs to no route is named, with the route that was probably meant.
func TestRouteSuggestions(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for path, want := range map[string]string{
		"/v1/licences": "no such route: GET /v1/licences; did you mean /v1/licenses?",
		"/v1/order/x":  "no such route: GET /v1/order/x; did you mean /v1/orders/{order_no}?",
		"/v1/licenses/x/device": "no such route: GET /v1/licenses/x/device; " +
			"did you mean /v1/licenses/{license_key}/devices?",
		"/v1/orders/": "no such route: GET /v1/orders/; did you mean /v1/orders?",
		"/orders":     "no such route: GET /orders; did you mean /v1/orders?",
		"/licences/":  "no such route: GET /licences/; did you mean /v1/licenses?",
		"/v1/licenses/deactivate/": "no such route: GET /v1/licenses/deactivate/; " +
			"did you mean /v1/licenses/deactivate?",
		"/v1/":                                "no such route: GET /v1/",
		"/v2/orders":                          "no such route: GET /v2/orders; did you mean /v1/orders?",
		"/favourites":                         "no such route: GET /favourites",
		"/v1/x%00":                            "no such route: GET /v1/x%00",
		"/v1/%zz":                             "no such route: GET /v1/%zz",
		"/v1/" + strings.Repeat("x", 200):     "no such route",
		"/v1/licenses/x/y/z/w/v/u/" + "t/s/r": "no such route: GET /v1/licenses/x/y/z/w/v/u/t/s/r",
	} {
		if a := s.send("GET", path, keyAll, "").must(t, 40400); a.raw["message"] != want {
			t.Errorf("%s: %v, want %s", path, a.raw["message"], want)
		}
	}
}

// TestMethodSuggestions: a path without the method is answered with its methods, and with the route that was probably
// meant. The message does not repeat license keys.
func TestMethodSuggestions(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const license = "/v1/licenses/{license_key} does not have the method "
	for request, want := range map[string]string{
		"POST /v1/licenses/activat": license + "POST: its methods are GET, HEAD, PATCH; " +
			"did you mean /v1/licenses/activate?",
		"POST /v1/licenses/" + s.license(): license + "POST: its methods are GET, HEAD, PATCH",
		"PATCH /v1/orders": "/v1/orders does not have the method PATCH: " +
			"its methods are GET, HEAD, POST",
		"X" + strings.Repeat("Y", 200) + " /v1/orders": "/v1/orders does not have this method: " +
			"its methods are GET, HEAD, POST",
	} {
		method, path, _ := strings.Cut(request, " ")
		if a := s.send(method, path, keyAll, "").must(t, 40500); a.raw["message"] != want {
			t.Errorf("%s: %v, want %s", request, a.raw["message"], want)
		}
	}
}

// TestMemberSuggestions: an unknown member is named, with the member that was probably meant.
func TestMemberSuggestions(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for member, want := range map[string]string{
		"produkt_id": "is unknown; did you mean product_id?", "product": "is unknown; did you mean product_id?",
		"Buyer": "is unknown; did you mean buyer_email?", "pro": "is unknown", "_": "is unknown",
	} {
		a := s.send("POST", "/v1/orders", keyAll, `{"`+member+`":1}`).must(t, 40000)
		if a.fields[member] != want {
			t.Errorf("%s: %v, want %s", member, a.fields, want)
		}
	}
}
