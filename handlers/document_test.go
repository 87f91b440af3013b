package handlers_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"licet/handlers"
	"licet/licensing"
)

// servedDocument returns the API document as a service serves it.
func (s *fixture) servedDocument() map[string]any {
	s.t.Helper()
	var document map[string]any
	if err := json.Unmarshal([]byte(s.send("GET", "/openapi.json", "", "").body), &document); err != nil {
		s.t.Fatal(err)
	}
	return document
}

// linkInText finds links in Markdown, and codeInText finds code, which has none.
var (
	linkInText = regexp.MustCompile(`\]\(([^)\s]+)\)|(https?://[^\s)>]+)`)
	codeInText = regexp.MustCompile("`[^`]*`")
)

// links returns the links of a part of a document, by place: references to other parts, and addresses. Schemas and
// examples contain values, which are not links.
func links(place string, part any) (references, addresses map[string]string) {
	references, addresses = make(map[string]string), make(map[string]string)
	add := func(place string, part any) {
		more, further := links(place, part)
		maps.Copy(references, more)
		maps.Copy(addresses, further)
	}
	switch part := part.(type) {
	case []any:
		for i, item := range part {
			add(place+"/"+string(rune('0'+i%10)), item)
		}
	case map[string]any:
		for name, member := range part {
			text, isText := member.(string)
			switch {
			case name == "examples", name == "properties" && strings.Contains(place, "schemas/"):
				if name == "properties" {
					add(place, slices.Collect(maps.Values(member.(map[string]any))))
				}
			case !isText:
				add(place+"/"+name, member)
			case name == "$ref":
				references[place] = text
			case strings.HasSuffix(strings.ToLower(name), "url"):
				addresses[place] = text
			case name == "description", name == "summary":
				for _, found := range linkInText.FindAllStringSubmatch(codeInText.ReplaceAllString(text, ""), -1) {
					addresses[place+"/"+name] = found[1] + found[2]
				}
			}
		}
	}
	return references, addresses
}

// TestLinksOfTheAPIDocument follows every link of the document from the address at which a service serves the document.
func TestLinksOfTheAPIDocument(t *testing.T) {
	t.Parallel()
	s := newService(t)
	document := s.servedDocument()
	references, addresses := links("#", document)
	if len(references) < 300 || len(addresses) < 1 {
		t.Errorf("found %d references and %d addresses", len(references), len(addresses))
	}
	for place, to := range references {
		part := any(document)
		for name := range strings.SplitSeq(strings.TrimPrefix(to, "#/"), "/") {
			of, _ := part.(map[string]any)
			part = of[name]
		}
		if !strings.HasPrefix(to, "#/") || part == nil {
			t.Errorf("%s refers to %s, which does not exist", place, to)
		}
	}
	at, err := url.Parse("http://" + s.addr + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	for place, to := range addresses {
		target, err := at.Parse(to)
		if err != nil || target.Host != at.Host {
			t.Errorf("%s leads to %s, not to the service: %v", place, to, err)
			continue
		}
		path := target.RequestURI()
		if strings.HasPrefix(place, "#/servers/") {
			path = strings.TrimSuffix(path, "/") + "/livez" // the paths of the document follow the address
		}
		if got := s.send("GET", path, "", ""); got.status != http.StatusOK {
			t.Errorf("%s leads to %s: status %d", place, to, got.status)
		}
	}
	behind, err := url.Parse("https://example.com/licenses/openapi.json") // a proxy removes the path
	if err != nil {
		t.Fatal(err)
	}
	server := document["servers"].([]any)[0].(map[string]any)["url"].(string)
	if address, err := behind.Parse(server); err != nil || address.String() != "https://example.com/licenses/" {
		t.Errorf("below a path, the server of the document is %v, %v", address, err)
	}
}

// TestBodyLimitsOfTheAPIDocument sends each route a body of as many bytes as the document allows, and one byte more.
func TestBodyLimitsOfTheAPIDocument(t *testing.T) {
	t.Parallel()
	s := newService(t)
	paths := s.servedDocument()["paths"].(map[string]any)
	tried := 0
	for _, r := range handlers.Routes() {
		if r.MediaType == "" {
			continue
		}
		body := paths[r.Pattern].(map[string]any)[strings.ToLower(r.Method)].(map[string]any)["requestBody"]
		limit, _ := body.(map[string]any)["x-max-bytes"].(float64)
		path := regexp.MustCompile(`{\w+}`).ReplaceAllString(r.Pattern, "x")
		var head []string
		if r.MediaType != "application/json" {
			head = asForm
		}
		for over, refused := range []bool{false, true} {
			text := "{}" + strings.Repeat(" ", max(0, int(limit)+over-len("{}")))
			if got := s.send(r.Method, path, keyAll, text, head...); (got.status == 413) != refused || limit == 0 {
				t.Errorf("%s %s with %d bytes, x-max-bytes %v: status %d", r.Method, r.Pattern, len(text), limit,
					got.status)
			}
		}
		tried++
	}
	if tried < 20 {
		t.Errorf("%d routes read a body", tried)
	}
}

// TestHead compares HEAD with GET on every route: the same status and headers, without the body (RFC 9110, section
// 9.3.2).
func TestHead(t *testing.T) {
	t.Parallel()
	s := newService(t, withDocs)
	made, payPath := s.payable("")
	variables := strings.NewReplacer("/pay/{order_no}/{token}", payPath, "{license_key}", s.eventful(),
		"{account_id}/{mode}", "acct_acme/test", "{order_no}", made.text("order_no"), "{product_id}", "editor",
		"{event_id}", "evt_00000000000000000000000002",
		"{endpoint_id}", s.webhook("http://127.0.0.1:1/licet"),
		"{key_id}", s.createKey(keyKeys, `"scopes":["keys"]`).must(t, 0).text("id"))
	s.rollout(licensing.Rollout{Applies: licensing.RolloutMaxDevices})
	s.receiptKeys()
	same := func(addr, path string, want int) {
		t.Helper()
		get, head := s.sendTo(addr, "GET", path, keyAll, "", "Accept-Encoding", "identity"),
			s.sendTo(addr, "HEAD", path, keyAll, "", "Accept-Encoding", "identity")
		for _, h := range []http.Header{get.header, head.header} {
			for _, changing := range []string{"X-Request-Id", "Date"} {
				h.Del(changing)
			}
			if addr != s.addr {
				h.Del("Content-Length") // metrics and profiles change
			}
		}
		// The id of the request in a failure has always as many characters.
		if get.status != want || head.status != want || head.body != "" ||
			!maps.EqualFunc(get.header, head.header, slices.Equal) {
			t.Errorf("HEAD %s: %d %v %q, GET: %d %v", path, head.status, head.header, head.body, get.status, get.header)
		}
	}
	routes := 0
	for _, r := range handlers.Routes() {
		if r.Method == http.MethodGet {
			path := variables.Replace(r.Pattern)
			if r.Pattern == "/v1/reports/sales" {
				path += "?from=2031-01-01&to=2031-02-01"
			}
			same(s.addr, path, http.StatusOK)
			routes++
		}
	}
	if routes < 25 {
		t.Errorf("%d routes have GET", routes)
	}
	for path, want := range map[string]int{
		"/v1/orders/absent": 404, "/v1/orders?limit=0": 422, "/v1/licenses/activate": 405, "/pay/ord_1/x": 404,
		"/v1/nothing": 404,
	} {
		same(s.addr, path, want)
	}
	admin := serve(t, handlers.NewAdmin(s.config, s.registry, true))
	for _, path := range []string{"/livez", "/readyz", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline"} {
		same(admin, path, http.StatusOK)
	}
	for path, want := range map[string]int{"/v1/events": 401, "/v1/nothing": 404} {
		if got := s.send("HEAD", path, "", ""); got.status != want || got.body != "" {
			t.Errorf("HEAD %s without an API key: %d %q, want %d", path, got.status, got.body, want)
		}
	}
}
