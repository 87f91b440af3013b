package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"licet/handlers"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/receipt"
)

// TestBadInput sends every route everything that it must refuse, and looks after
// each request whether anything in the store has changed. The routes and
// their inputs come from the request types: a route, a member of a body, a query
// parameter or a variable of a path that the table lacks fails the test.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--rate-limit-address", "0", "--rate-limit-authentication", "0")
	b := &badInputs{api: p.api, store: newStoreImage(t, p.socket())}
	weakKey := func(scope string) string {
		return p.want(t, 201, "POST", "/v1/keys", `{"name":"weak","scopes":["`+scope+`"]}`).Data.text("api_key")
	}
	weakest, weakOfWebhooks := weakKey("webhooks:read"), weakKey("products:read")
	table := badTable(t, p.badThings(t, b.store))
	// Callbacks of payment providers have a signature and no members: TestStripe sends bad ones.
	routes := slices.DeleteFunc(inputsOfRoutes(), func(r *routeInputs) bool {
		return strings.HasPrefix(r.Pattern, "/v1/callbacks/")
	})
	for _, r := range routes {
		row, listed := table[r.name()]
		if !listed {
			t.Errorf("the table of bad inputs lacks %s", r.name())
			continue
		}
		b.routeInputs, b.row = r, row
		weak := weakest // a key that lacks the route's scope
		if strings.HasPrefix(r.Pattern, "/v1/webhook_endpoints") {
			weak = weakOfWebhooks
		}
		t.Run(r.name(), func(t *testing.T) {
			b.T, b.before = t, b.store.read(t)
			b.complete()
			b.common(weak)
			b.order(weak)
			for _, in := range row.bad {
				b.input(in)
			}
		})
	}
	if len(routes) != len(table) {
		t.Errorf("there are %d routes, and the table has %d", len(routes), len(table))
	}
	// What all of this was done to is good: each route takes it.
	for _, r := range routes {
		b.T, b.routeInputs, b.row = t, r, table[r.name()]
		if a := b.send(b.good()); a.status > 303 && a.Code != b.row.refused {
			t.Errorf("%s refuses what is good: %s", r.name(), a.body)
		}
	}
	b.T = t
	if maps.Equal(b.before, b.store.read(t)) {
		t.Error("what is good has changed nothing: the store is not looked at")
	}
}

// badInputs sends one route what it must refuse.
type badInputs struct {
	*testing.T
	api
	*routeInputs
	row    badRoute
	store  *storeImage
	before map[string]string
}

// sent is a request, in parts.
type sent struct {
	path    map[string]string
	query   url.Values
	members map[string]string
	raw     string // in place of members
	headers http.Header
}

// good is a request that the route takes.
func (b *badInputs) good() sent {
	s := sent{path: maps.Clone(b.row.path), query: make(url.Values), members: maps.Clone(b.row.good),
		headers: make(http.Header)}
	if b.Auth == handlers.RequiredAuth {
		s.headers.Set("Authorization", "Bearer "+b.key)
	}
	for name, value := range b.row.query {
		s.query.Set(name, value)
	}
	if s.members == nil {
		s.members = make(map[string]string)
	}
	if b.MediaType != "" {
		s.headers.Set("Content-Type", b.MediaType)
	}
	return s
}

func (b *badInputs) send(s sent) reply {
	b.Helper()
	path := b.Pattern
	for name, value := range s.path {
		path = strings.Replace(path, "{"+name+"}", value, 1)
	}
	if len(s.query) > 0 {
		path += "?" + s.query.Encode()
	}
	body := s.raw
	if body == "" && b.readsJSON() {
		var members []string
		for _, name := range slices.Sorted(maps.Keys(s.members)) {
			members = append(members, fmt.Sprintf("%q:%s", name, s.members[name]))
		}
		body = "{" + strings.Join(members, ",") + "}"
	} else if body == "" && len(s.members) > 0 {
		body = "action=" + s.members["action"]
	}
	request, err := http.NewRequestWithContext(b.Context(), b.Method, b.url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	request.URL.Opaque = path // as it is
	request.Header = s.headers
	a, err := b.do(request)
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// refused demands that a request is refused with a code, that exactly these fields
// are named, and that nothing has changed.
func (b *badInputs) refused(s sent, code int, fields ...string) {
	b.Helper()
	a := b.send(s)
	var failure struct {
		Error struct {
			Retryable *bool
			Fields    []struct{ Field, Problem string }
		}
	}
	var named []string
	if !strings.HasPrefix(b.Pattern, "/pay/") {
		if err := json.Unmarshal([]byte(a.body), &failure); err != nil {
			b.Fatalf("%v: %s", err, a.body)
		}
		if a.Code != code || failure.Error.Retryable == nil || *failure.Error.Retryable {
			b.Errorf("%s is answered\n%s\nwant %d, not retryable", s, a.body, code)
		}
		for _, f := range failure.Error.Fields {
			named = append(named, f.Field)
		}
	}
	if a.status != code/100 || !slices.Equal(named, fields) {
		b.Errorf("%s is answered\n%d %s\nwant %d and %v", s, a.status, a.body, code, fields)
	}
	if after := b.store.read(b.T); !maps.Equal(after, b.before) {
		b.Errorf("%s changed the store\n%s", s, storeDifference(b.before, after))
		b.before = after
	}
}

// String shows a request, cut to what a line takes.
func (s sent) String() string {
	text := fmt.Sprintf("%v %v %v %s %v", s.path, s.query, s.members, s.raw, s.headers)
	return text[:min(len(text), 400)]
}

// complete demands that the table has all that the route reads.
func (b *badInputs) complete() {
	have := make(map[string]bool)
	for _, in := range b.row.bad {
		have[in.where+" "+in.name] = true
		if len(in.values) == 0 && b.members[in.name] != handlers.Boolean {
			b.Errorf("the table has no value of %s", in.name)
		}
	}
	var want []string
	for name := range b.members {
		want = append(want, "body "+name)
	}
	for _, name := range b.queries {
		want = append(want, "query "+name)
	}
	for _, name := range b.variables {
		want = append(want, "path "+name)
	}
	for _, input := range want {
		if !have[input] {
			b.Errorf("the table has no bad value of %s", input)
		}
		delete(have, input)
	}
	for input := range have {
		b.Errorf("the table has %s, and the route does not read it", input)
	}
	// The link of a portal is not stored, so that another request can't get it.
	keyed := b.Auth == handlers.RequiredAuth && !strings.HasSuffix(b.Pattern, "/portal")
	if keyedPost := keyed && b.Method == http.MethodPost; keyedPost != b.IdempotencyKey {
		b.Errorf("an Idempotency-Key is read: %v, and want %v", b.IdempotencyKey, keyedPost)
	}
}

// input sends each value of one input.
func (b *badInputs) input(in badInput) {
	b.Helper()
	named := []string{in.name}
	if in.code != 42200 {
		named = nil
	}
	for _, value := range in.values {
		s := b.good()
		if slices.Contains(b.row.apart, in.name) {
			clear(s.members)
		}
		in.put(&s, value)
		b.refused(s, in.code, named...)
	}
}

func (in *badInput) put(s *sent, value string) {
	switch in.where {
	case "body":
		s.members[in.name] = value
	case "query":
		s.query.Set(in.name, value)
	case "path":
		s.path[in.name] = value
	}
}

// order sends requests of which two things are wrong: the first one of the
// contract's order must be answered.
func (b *badInputs) order(weak string) {
	type fault struct {
		code int
		make func(*sent)
	}
	var faults []fault
	wrong := func(code int, make func(*sent)) { faults = append(faults, fault{code, make}) }
	header := func(name, value string) func(*sent) {
		return func(s *sent) { s.headers.Set(name, value) }
	}
	switch b.Auth {
	case handlers.RequiredAuth:
		wrong(40100, header("Authorization", "Bearer lk_test_none"))
		wrong(40101, header("Signature-Input", "x"))
		wrong(40300, header("Authorization", "Bearer "+weak))
	case handlers.OptionalAuth:
		wrong(40100, header("Authorization", "Bearer lk_test_none"))
		wrong(40101, header("Signature-Input", "x"))
	}
	if b.readsJSON() {
		wrong(41500, header("Content-Type", "text/plain"))
		wrong(40000, func(s *sent) {
			s.members["license_key"], s.members["reason"], s.members["device_id"] = "7", "7", "7"
			s.members["request"], s.members["requests"], s.members["release"] = "7", "7", "7"
		})
	}
	// Of each kind of refusal of the table the first one.
	for _, kind := range []func(code int) bool{
		func(code int) bool { return code == 40001 },
		func(code int) bool { return code == 42200 },
		func(code int) bool { return code/100 == 404 },
	} {
		at := slices.IndexFunc(b.row.bad, func(in badInput) bool { return kind(in.code) && len(in.values) > 0 })
		if at >= 0 {
			in := &b.row.bad[at]
			wrong(in.code, func(s *sent) { in.put(s, in.values[0]) })
		}
	}
	for i, first := range faults {
		for _, second := range faults[i+1:] {
			s := b.good()
			second.make(&s)
			first.make(&s)
			a := b.send(s)
			if a.status != first.code/100 || a.Code != first.code && !strings.HasPrefix(b.Pattern, "/pay/") {
				b.Errorf("%s is answered\n%s\nwant %d before %d", s, a.body, first.code, second.code)
			}
		}
	}
	if after := b.store.read(b.T); !maps.Equal(after, b.before) {
		b.Errorf("requests with two faults changed the store\n%s", storeDifference(b.before, after))
	}
}

// common sends what every route refuses that reads the same kinds of things.
func (b *badInputs) common(weak string) {
	with := func(code int, headers ...string) {
		b.Helper()
		s := b.good()
		for i := 0; i < len(headers); i += 2 {
			s.headers.Add(headers[i], headers[i+1])
		}
		var named []string
		if code == 42200 {
			named = []string{headers[0]}
		}
		b.refused(s, code, named...)
	}
	replaced := func(code int, name, value string) {
		b.Helper()
		s := b.good()
		s.headers.Del(name)
		if value != "" {
			s.headers.Set(name, value)
		}
		b.refused(s, code)
	}
	switch b.Auth {
	case handlers.RequiredAuth:
		for _, credentials := range []string{"", "Bearer", "Basic " + b.key, b.key, "Bearer " + b.key + "x",
			"Bearer " + b.key + ", Bearer " + b.key} {
			replaced(40100, "Authorization", credentials)
		}
		with(40100, "Authorization", "Bearer "+b.key)
		replaced(40300, "Authorization", "Bearer "+weak)
		with(40101, "Signature-Input", "sig1=()", "Signature", "sig1=:AAAA:")
		with(40101, "Signature", "sig1=:AAAA:")
	case handlers.OptionalAuth:
		replaced(40100, "Authorization", "Bearer lk_test_none")
		with(40101, "Signature-Input", "sig1=()")
	}
	if b.IdempotencyKey {
		for _, key := range []string{"", "ü", "a\tb", strings.Repeat("k", 256)} {
			with(42200, "Idempotency-Key", key)
		}
		with(42200, "Idempotency-Key", "a", "Idempotency-Key", "a")
	}
	for _, name := range b.variables {
		s := b.good()
		for _, segment := range []string{"%zz", "%2", ".", "..", ""} {
			s.path[name] = segment
			b.refused(s, 40400)
		}
	}
	for _, name := range b.queries {
		s := b.good()
		s.query[name] = []string{"1", "1"}
		b.refused(s, 42200, name)
	}
	if b.MediaType != "" {
		for _, mediaType := range []string{"", "text/plain", "application/json; charset=latin1",
			"multipart/form-data; boundary=x", "application/jsonp", ";"} {
			replaced(41500, "Content-Type", mediaType)
		}
		with(41500, "Content-Encoding", "gzip")
	}
	if b.readsJSON() {
		b.json()
	}
}

// wrongTypes are values that a member of a kind can't be.
func wrongTypes(kind handlers.Kind) []string {
	return map[handlers.Kind][]string{
		handlers.String:   {"7", "true", "{}", `["x"]`},
		handlers.Integer:  {`"1"`, "1.0", "1e2", "-0.5", "true", "{}", "[1]"},
		handlers.Object:   {`"x"`, "7", "[]", "false"},
		handlers.Strings:  {`"x"`, "{}", "7", "[7]", "[null]", `[["x"]]`},
		handlers.Integers: {`"x"`, "{}", "7", `["7"]`, "[null]", "[[7]]", "[1.5]"},
		handlers.Boolean:  {`"true"`, "0", "{}", "[]"},
	}[kind]
}

// json sends bodies that are not what the route reads.
func (b *badInputs) json() {
	raw := func(text string, fields ...string) {
		b.Helper()
		s := b.good()
		s.raw = text
		b.refused(s, 40000, fields...)
	}
	for _, text := range []string{"{", "}", " ", "null", "[]", `"x"`, "7", "{}{}", "{},", "{} x", "{'a':1}", `{"a":}`,
		"\xef\xbb\xbf{}", `{"a":"` + "\xff" + `"}`, `{"a":"\ud800"}`,
		`{"a":"` + "\x00" + `"}`, strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40)} {
		raw(text)
	}
	if b.Auth == handlers.RequiredAuth {
		raw(`{"a":1,}`, "a")
	} else {
		raw(`{"a":1,}`)
	}
	for name, kind := range b.members {
		for _, value := range wrongTypes(kind) {
			s := b.good()
			s.members[name] = value
			b.refused(s, 40000, name)
		}
		value := b.row.good[name]
		if value == "" {
			value = "null"
		}
		raw(fmt.Sprintf(`{%q:%s,%q:%s}`, name, value, name, value), name)
	}
	if b.Auth == handlers.RequiredAuth {
		for _, unknown := range []string{"colour", "", "Reason", "product_id ", "license_keys"} {
			s := b.good()
			s.members[unknown] = "null"
			b.refused(s, 40000, unknown)
		}
	}
	for _, name := range b.row.required {
		s := b.good()
		s.members[name] = "null"
		b.refused(s, 42200, name)
		delete(s.members, name)
		b.refused(s, 42200, name)
	}
}

// badThings makes what is asked for.
func (p *process) badThings(t *testing.T, db *storeImage) *badThings {
	t.Helper()
	editor := p.want(t, 201, "PUT", "/v1/products/editor",
		`{"self_service_deactivation":true,"trial":{"validity":"P14D","per":"device"}}`).Data
	p.want(t, 201, "PUT", "/v1/products/spare", `{}`)
	their := api{url: p.url, client: p.client}
	created := runLicet(t, "store", "keys", "create", "--account", "acct_theirs", "--mode", "test", "--name", "theirs",
		"--scopes", "*", "--output", "json",
		"--etcd-endpoints", p.socket(), "--master-key-file", p.dir+"/"+masterFile)
	var key object
	if err := json.Unmarshal([]byte(created.stdout), &key); err != nil {
		t.Fatalf("%v: %+v", err, created)
	}
	their.key = key.text("api_key")
	their.want(t, 201, "PUT", "/v1/products/theirs", `{}`)

	order := func(a api) object {
		return a.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":1,"currency":"USD"}`).Data
	}
	x := &badThings{license: p.grant(t, 3), doomed: p.grant(t, 3), theirLicense: their.grant(t, 3),
		account: editor.text("account_id"), theirKey: key.text("id"), cursors: make(map[string]string)}
	for _, device := range []string{"bound", "also"} {
		if r, err := p.activate(t.Context(), x.license, device); err != nil || r.Code != 0 {
			t.Fatalf("%v %s", err, r.body)
		}
	}
	asked, err := (&receipt.Request{LicenseKey: x.license, DeviceID: "bad", Nonce: "n"}).Armor()
	if err != nil {
		t.Fatal(err)
	}
	x.request = inJSON(t, asked)
	x.release = releaseOf(t, p.api, x.doomed)
	unpaid, paid := order(p.api), order(p.api)
	x.unpaid, x.paid = unpaid.text("order_no"), paid.text("order_no")
	p.want(t, 200, "PUT", "/v1/orders/"+x.paid+"/sandbox_payment", "")
	x.canceled, x.theirOrder = order(p.api).text("order_no"), order(their).text("order_no")
	x.outside = order(p.api).text("order_no")
	// A year: no sweep plans notices about the end of the license meanwhile.
	p.want(t, 201, "PUT", "/v1/products/cloud", `{"billing":{"interval":"P1Y"}}`)
	x.subscribed = p.want(t, 201, "POST", "/v1/orders", `{"product_id":"cloud","amount":1,"currency":"USD"}`).
		Data.text("order_no")
	p.want(t, 200, "PUT", "/v1/orders/"+x.subscribed+"/sandbox_payment", "")
	x.token = unpaid.text("pay_url")[strings.LastIndexByte(unpaid.text("pay_url"), '/')+1:]
	x.keyID = p.want(t, 201, "POST", "/v1/keys", `{"name":"shop","scopes":["orders"]}`).Data.text("id")
	x.doomedKey = p.want(t, 201, "POST", "/v1/keys", `{"name":"old","scopes":["orders"]}`).Data.text("id")
	order(their)

	cursor := func(a api, path string) string {
		next := a.want(t, 200, "GET", path, "").Data.text("next_cursor")
		if next == "" {
			t.Fatalf("%s has but one page", path)
		}
		return next
	}
	endpoint := func(a api) string {
		id := a.want(t, 201, "POST", "/v1/webhook_endpoints",
			`{"url":"http://127.0.0.1:1/licet","event_types":["order.refunded"]}`).Data.text("id")
		// Nothing is sent to it, which would change the store.
		a.want(t, 200, "PATCH", "/v1/webhook_endpoints/"+id, `{"status":"disabled"}`)
		return id
	}
	x.endpoint, x.doomedEndpoint, x.theirEndpoint = endpoint(p.api), endpoint(p.api), endpoint(their)
	for _, listing := range []string{"licenses", "orders", "products", "keys", "webhook_endpoints"} {
		x.cursors[listing] = cursor(p.api, "/v1/"+listing+"?limit=1")
	}
	x.cursors["license events"] = cursor(p.api, "/v1/licenses/"+x.license+"/events?limit=1")
	x.cursors["order events"] = cursor(p.api, "/v1/orders/"+x.paid+"/events?limit=1")
	x.event = p.want(t, 200, "GET", "/v1/licenses/"+x.license+"/events?limit=1", "").Data.list("events")[0].text("id")
	x.theirEvent = their.want(t, 200, "GET", "/v1/licenses/"+x.theirLicense+"/events",
		"").Data.list("events")[0].text("id")
	x.theirCursor = cursor(their, "/v1/orders?limit=1")
	x.filteredCursor = cursor(p.api, "/v1/orders?limit=1&product_id=editor")
	x.deviceEnd = cursor(p.api, "/v1/licenses/"+x.license+"/devices?limit=1")

	stored, err := db.client.Get(t.Context(), "lc2/cell/check")
	if err != nil || len(stored.Kvs) != 1 {
		t.Fatalf("the check key: %v, %v", stored, err)
	}
	keys := keyring.NewLicenseKeys(keyring.NewKeyCheck(stored.Kvs[0].Value), keyring.IDKey{})
	x.absentKey = keys.Text(keys.Mint("LIC", licensing.Owner{}, [keyring.LicenseKeyEntropy]byte{1}))
	x.absentOrder = licensing.NewOrderNo(licensing.Owner{}, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
	return x
}

// storeImage reads a whole store, but for when API keys were used, and the epoch of events.
type storeImage struct{ client *clientv3.Client }

func newStoreImage(t *testing.T, endpoint string) *storeImage {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &storeImage{client}
}

// read returns every key with its revision and value.
func (s *storeImage) read(t *testing.T) map[string]string {
	t.Helper()
	all, err := s.client.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	image := make(map[string]string, len(all.Kvs))
	for _, kv := range all.Kvs {
		if !slices.ContainsFunc(byItself,
			func(prefix string) bool {
				path := strings.TrimPrefix(string(kv.Key), "lc2/")
				return strings.HasPrefix(path, prefix) || strings.HasPrefix(path[min(len("00/"), len(path)):], prefix)
			}) {
			image[string(kv.Key)] = fmt.Sprintf("%d %x", kv.ModRevision, kv.Value)
		}
	}
	return image
}

// byItself lists the keys that the service writes without a request: last uses of API keys, epochs of events, marks of
// their age, ledgers of their number, what accounts store and its recounts, the leases on endpoints, and nodes with
// their times.
var byItself = []string{
	"u/", "cell/epoch", "r/", "s/", "cell/recount", "cell/t/", "cell/g/", "cell/n/",
}

func storeDifference(before, after map[string]string) (text string) {
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if before[key] != after[key] {
			text += fmt.Sprintf("%q: %.80s, was %.80s\n", key, after[key], before[key])
		}
	}
	for key := range before {
		if _, is := after[key]; !is {
			text += fmt.Sprintf("%q is gone\n", key)
		}
	}
	return text
}

// releaseOf binds a device without network, and returns the device's release as JSON.
func releaseOf(t *testing.T, a api, key string) string {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	bound := a.want(t, 200, "POST", "/v1/licenses/activate", fmt.Sprintf(
		`{"license_key":%q,"device_id":"lab","receipt":true,"nonce":"n","device_key":%q}`, key,
		base64.RawURLEncoding.EncodeToString(public))).Data
	text, err := (&receipt.Release{Receipt: bound.text("receipt"), IssuedAt: 1}).Sign(private)
	if err != nil {
		t.Fatal(err)
	}
	return inJSON(t, text)
}

func inJSON(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(quoted)
}
