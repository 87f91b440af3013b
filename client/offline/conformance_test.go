package offline

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/client"
	"licet/handlers"
)

// TestConformance drives a client for installed programs through every code that its requests can meet, against a
// service. LICET_DRIVER is the command of a client's driver, which reads calls and writes outcomes, one JSON text a
// line: see clients/testdata/conformance. Without LICET_DRIVER, the client of this package is driven.
func TestConformance(t *testing.T) {
	w := newWorld(t)
	leased := w.leasedTrial(t) // its lease lapses meanwhile
	for _, c := range conformanceCases() {
		t.Run(c.name, func(t *testing.T) { w.run(t, c) })
	}
	for _, route := range handlers.Routes() {
		do, named := map[string]string{
			"POST /v1/licenses/activate": "activate", "POST /v1/licenses/validate": "validate",
			"POST /v1/licenses/deactivate": "deactivate", "POST /v1/trials": "trial",
			"GET /v1/accounts/{account_id}/{mode}/jwks.json":   "activate",
			"GET /v1/accounts/{account_id}/{mode}/revocations": "refresh",
		}[route.Method+" "+route.Pattern]
		if !named {
			continue
		}
		for _, refusal := range route.Refusals {
			t.Run(fmt.Sprintf("%s %d", route.Pattern, refusal.Code), func(t *testing.T) {
				if do == "refresh" {
					w.refuseList(t, refusal)
					return
				}
				w.refuse(t, route.Pattern, do, refusal)
			})
		}
	}
	t.Run("lists of revocations", w.lists)
	t.Run("increments that do not fit", w.increments)
	t.Run("lists from before", w.replayed)
	t.Run("answers that do not end", w.endless)
	t.Run("sets of keys that are none", w.badSets)
	t.Run("lists that do not come", w.withoutLists)
	t.Run("what is known of a list", w.aboutLists)
	t.Run("states that are not of the device", w.states)
	t.Run("a state of another account or mode", w.switched)
	t.Run("a verdict, then unreachable", w.afterVerdict)
	t.Run("trials that were started before", func(t *testing.T) { w.trials(t, leased) })
}

// call is a call of a client. Each one is of a program that has just started.
type call struct {
	URL          string `json:"url"`
	Root         string `json:"root"`
	AccountID    string `json:"account_id"`
	ProductID    string `json:"product_id"`
	DeviceID     string `json:"device_id"`
	State        string `json:"state"`     // a file
	RetryFor     int    `json:"retry_for"` // seconds
	LeaseSeconds int    `json:"lease_seconds"`
	Grace        int    `json:"grace"` // seconds
	Ahead        int    `json:"ahead"` // how many seconds the device's clock is ahead
	// Do is activate, trial, validate, deactivate, check, or refresh: a check that gets the documents that are due.
	Do         string `json:"call"`
	LicenseKey string `json:"license_key"`
}

// outcome is how a call ends. A license that is not valid, and a check that does not allow the program, have a reason
// without a code.
type outcome struct {
	OK     bool   `json:"ok"`
	Code   int    `json:"code"`
	Reason string `json:"reason"`
}

// conformanceCase is a call that the service itself refuses, or does not.
type conformanceCase struct {
	name    string
	product string                    // empty: editor
	first   string                    // the call before; empty: none
	shop    func(*person, *testing.T) // what happens then
	do      string
	change  func(*call)
	want    outcome
	runs    bool // the program runs without a network afterwards
}

var good = outcome{OK: true}

func conformanceCases() []conformanceCase {
	key := func(key string) func(*call) { return func(c *call) { c.LicenseKey = key } }
	invalid := func(reason string) outcome { return outcome{Reason: reason} }
	cases := []conformanceCase{
		{name: "not activated", do: "check"},
		{name: "activate", do: "activate", want: good, runs: true},
		{name: "activate again", first: "activate", do: "activate", want: good, runs: true},
		{name: "activate the stored license", first: "activate", shop: (*person).removeDevice, do: "activate",
			change: key(""), want: good, runs: true},
		{name: "activate the license of a device without one", do: "activate", change: key(""),
			want: invalid(notActivated)},
		{name: "validate the license of a device without one", do: "validate", want: invalid(notActivated)},
		{name: "deactivate a device without a license", do: "deactivate", want: invalid(notActivated)},
		{name: "deactivate again", first: "activate", shop: (*person).deactivate, do: "deactivate",
			want: invalid(notActivated)},
		{name: "activate with a bad key", do: "activate", change: key("LIC-1"),
			want: outcome{Code: 40001, Reason: client.ReasonInvalidLicenseKey}},
		{name: "activate a license of another account", shop: (*person).takeForeign, do: "activate",
			want: outcome{Code: 40401, Reason: client.ReasonLicenseNotFound}},
		{name: "activate a license of another product", do: "activate",
			change: func(c *call) { c.ProductID = "fixed" },
			want:   outcome{Code: 40304, Reason: client.ReasonProductMismatch}},
		{name: "activate for an account that does not exist", do: "activate",
			change: func(c *call) { c.AccountID = "acct_nobody" },
			want:   outcome{Code: 40401, Reason: client.ReasonLicenseNotFound}},
		{name: "activate a full license", shop: (*person).fill, do: "activate",
			want: outcome{Code: 40901, Reason: client.ReasonDeviceLimitReached}},
		{name: "activate with an impossible lease", first: "activate", do: "activate",
			change: func(c *call) { c.LeaseSeconds = 1 },
			want:   outcome{Code: 42200, Reason: client.ReasonInvalidField}, runs: true},

		{name: "validate", first: "activate", do: "validate", want: good, runs: true},
		{name: "validate a device that was removed", first: "activate", shop: (*person).removeDevice, do: "validate",
			want: invalid("device_not_bound")},
		{name: "validate with a bad key", first: "activate", shop: (*person).spoilKey, do: "validate",
			want: outcome{Code: 40001, Reason: client.ReasonInvalidLicenseKey}},
		{name: "validate a license of another account", first: "activate", shop: (*person).storeForeign, do: "validate",
			want: outcome{Code: 40401, Reason: client.ReasonLicenseNotFound}},

		{name: "deactivate", first: "activate", do: "deactivate", want: good},
		{name: "deactivate with a bad key", first: "activate", shop: (*person).spoilKey, do: "deactivate",
			want: outcome{Code: 40001, Reason: client.ReasonInvalidLicenseKey}, runs: true},
		{name: "deactivate where only the shop may", product: "fixed", first: "activate", do: "deactivate",
			want: outcome{Code: 40305, Reason: client.ReasonSelfServiceNotAllowed}, runs: true},
		{name: "deactivate with a replaced key", first: "activate", shop: (*person).reissue, do: "deactivate",
			want: outcome{Code: 40306, Reason: client.ReasonLicenseKeyReplaced}, runs: true},

		{name: "trial", do: "trial", want: good, runs: true},
		{name: "trial again", first: "trial", do: "trial", want: good, runs: true},
		{name: "trial after it was paid", first: "trial", shop: (*person).upgrade, do: "trial",
			want: outcome{Code: 40307, Reason: client.ReasonTrialUsed}, runs: true},
		{name: "trial of a product without trials", product: "fixed", do: "trial",
			want: outcome{Code: 40308, Reason: client.ReasonTrialNotOffered}},
		{name: "trial of no product", product: "nothing", do: "trial",
			want: outcome{Code: 40404, Reason: client.ReasonProductNotFound}},
		{name: "trial by e-mail", product: "mailed", do: "trial",
			want: outcome{Code: 40100, Reason: client.ReasonUnauthenticated}},
	}
	for _, c := range []struct {
		name, reason string
		code         int
		shop         func(*person, *testing.T)
	}{
		{"revoked", client.ReasonLicenseRevoked, 40301, (*person).revoke},
		{"suspended", client.ReasonLicenseSuspended, 40302, (*person).suspend},
		{"expired", client.ReasonLicenseExpired, 40303, (*person).expire},
		{"reissued", client.ReasonLicenseKeyReplaced, 40306, (*person).reissue},
	} {
		cases = append(cases,
			conformanceCase{name: "activate a license that is " + c.name, shop: c.shop, do: "activate",
				want: outcome{Code: c.code, Reason: c.reason}},
			conformanceCase{name: "validate a license that is " + c.name, first: "activate", shop: c.shop,
				do: "validate", want: invalid(c.reason)})
	}
	return cases
}

// world is a shop, a driver, and a service behind a network that fails as it is told.
type world struct {
	*shop
	foreign string // a license key of another account
	network *failures
	url     string
	drive   func(call) outcome
	dir     string
	devices int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{shop: newShop(t), network: new(failures), drive: driver(t), dir: t.TempDir()}
	w.foreign = newShop(t).license(t)
	for id, terms := range map[string]client.ProductTerms{
		"fixed":  {Name: "Fixed"},
		"mailed": {Name: "Mailed", Trial: &client.TrialTerms{Validity: "P14D", Per: "email"}},
		"listed": {Name: "Listed", RevocationMaxAge: "PT10M"},
	} {
		must[*client.Product](t)(w.api.Products.Put(t.Context(), id, terms))
	}
	upstream := must[*url.URL](t)(url.Parse(svc.URL))
	w.network.service = httputil.NewSingleHostReverseProxy(upstream)
	front := httptest.NewServer(w.network)
	t.Cleanup(front.Close)
	w.url = front.URL
	return w
}

// person has a device and a license.
type person struct {
	*world
	key    string
	device call // what all calls of the device have
}

func (w *world) person(t *testing.T, product string) *person {
	t.Helper()
	w.devices++
	p := &person{world: w, device: call{
		URL: w.url, Root: w.keys.Root, AccountID: w.keys.AccountID, ProductID: product, RetryFor: 2,
		DeviceID: fmt.Sprintf("device-%d", w.devices), State: filepath.Join(w.dir, fmt.Sprintf("state-%d", w.devices)),
	}}
	if product == "editor" || product == "fixed" || product == "listed" {
		grant := client.Grant{ProductID: product, Quantity: 1}
		p.key = must[[]client.License](t)(w.api.Licenses.Grant(t.Context(), grant))[0].LicenseKey
	}
	return p
}

// does makes a call of the device.
func (p *person) does(what string, change ...func(*call)) outcome {
	c := p.device
	c.Do, c.LicenseKey = what, p.key
	for _, f := range change {
		f(&c)
	}
	return p.drive(c)
}

// runs reports whether the program starts without a network.
func (p *person) runs() bool {
	p.network.tell(func(f *failures) { f.away = true })
	defer p.network.tell(func(f *failures) { f.away = false })
	return p.does("check", func(c *call) { c.RetryFor = 0 }).OK
}

func (w *world) run(t *testing.T, c conformanceCase) {
	product := c.product
	if product == "" {
		product = "editor"
	}
	p := w.person(t, product)
	if c.first != "" {
		if got := p.does(c.first); got != good {
			t.Fatalf("%s: %+v", c.first, got)
		}
	}
	if c.shop != nil {
		c.shop(p, t)
	}
	var change []func(*call)
	if c.change != nil {
		change = append(change, c.change)
	}
	if got := p.does(c.do, change...); c.do != "check" && got != c.want || got.OK != c.want.OK {
		t.Errorf("%+v, want %+v", got, c.want)
	}
	if runs := p.runs(); runs != c.runs {
		t.Errorf("the program runs without a network: %v, want %v", runs, c.runs)
	}
}

// refuse lets requests to a route be refused with a code. A client sends again what is retryable, and reports what is
// not. Only the answer to a validation that there is no such license costs the device its receipt.
func (w *world) refuse(t *testing.T, pattern, do string, refusal handlers.Refusal) {
	p := w.person(t, "editor")
	p.device.RetryFor = 60 // as long as a busy machine may need for the first request
	activated := do == "validate" || do == "deactivate"
	if activated {
		if got := p.does("activate"); got != good {
			t.Fatalf("activate: %+v", got)
		}
	}
	times := 1 << 30
	if refusal.RetryAfter {
		times = 1
	}
	w.network.tell(func(f *failures) { f.refuse(pattern[strings.LastIndex(pattern, "/"):], times, refusal) })
	got := p.does(do)
	var requests int
	w.network.tell(func(f *failures) { f.last, requests = "", f.requests })
	if refusal.RetryAfter {
		if got != good || requests != 2 {
			t.Errorf("%+v after %d requests, want a second request that succeeds", got, requests)
		}
		return
	}
	want := outcome{Code: refusal.Code, Reason: string(refusal.Reason)}
	if strings.HasSuffix(pattern, "jwks.json") {
		got.Reason = want.Reason // that of the receipt that lacks its keys, with some clients
	}
	if got != want || requests != 1 {
		t.Errorf("%+v after %d requests, want %+v after one", got, requests, want)
	}
	gone := do == "validate" && (refusal.Code == 40001 || refusal.Code == 40401)
	if runs := p.runs(); runs != (activated && !gone) {
		t.Errorf("the program runs without a network: %v", runs)
	}
}

// failures is a network before a service.
type failures struct {
	service http.Handler

	mu       sync.Mutex
	away     bool   // no answer comes
	last     string // the end of the path whose requests are refused; empty: none
	times    int    // that they are refused
	status   int
	body     string
	requests int // to that path

	list        string        // the answer to requests for lists of revocations; empty: that of the service
	increment   string        // the answer to requests for increments only; empty: that of the service
	maxAge      string        // of lists, as the service did not say; empty: as the service says
	asked       []listRequest // since a test has last looked
	validations int           // requests
	endless     string        // what comes without an end as the answer to each request; empty: none
	patient     bool          // a client has read such an answer for a minute
}

func (f *failures) tell(change func(*failures)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// refuse refuses so many requests to paths with an end.
func (f *failures) refuse(last string, times int, refusal handlers.Refusal) {
	f.last, f.times, f.status, f.requests = last, times, refusal.Status, 0
	f.body = fmt.Sprintf(`{"code":%d,"message":"no","error":{"reason":%q,"retryable":%v,"request_id":"r"}}`,
		refusal.Code, refusal.Reason, refusal.RetryAfter)
}

func (f *failures) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	away, status, body := f.away, 0, f.body
	isList := strings.HasSuffix(r.URL.Path, "/revocations")
	if strings.HasSuffix(r.URL.Path, "/validate") {
		f.validations++
	}
	if f.last != "" && strings.HasSuffix(r.URL.Path, f.last) {
		f.requests++
		if f.times > 0 {
			f.times--
			status = f.status
		}
	}
	endless, list := f.endless, f.list
	if list == "" && r.URL.RawQuery != "" {
		list = f.increment
	}
	f.mu.Unlock()
	switch {
	case away:
		panic(http.ErrAbortHandler) // closes the connection
	case endless != "":
		f.answerForEver(w, endless)
	case isList && status == 0:
		f.answerList(w, r, list)
	case status != 0:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	default:
		f.service.ServeHTTP(w, r)
	}
}

// What happens at the shop, and to the state of a device.

func (p *person) removeDevice(t *testing.T) {
	must[*client.Removal](t)(p.api.Licenses.RemoveDevice(t.Context(), p.key, p.device.DeviceID))
}

func (p *person) deactivate(t *testing.T) {
	if got := p.does("deactivate"); got != good {
		t.Fatalf("deactivate: %+v", got)
	}
}

func (p *person) suspend(t *testing.T) {
	must[*client.License](t)(p.api.Licenses.Suspend(t.Context(), p.key, "chargeback"))
}

func (p *person) revoke(t *testing.T) {
	must[*client.License](t)(p.api.Licenses.Revoke(t.Context(), p.key, "fraud"))
}

func (p *person) reissue(t *testing.T) {
	must[*client.License](t)(p.api.Licenses.Reissue(t.Context(), p.key, client.Reissue{}))
}

func (p *person) expire(t *testing.T) {
	var l *client.License
	err := errors.New("not asked yet")
	for in := time.Second; err != nil; in *= 2 { // a busy machine may send the request only after the end
		if l, err = p.api.Licenses.Renew(t.Context(), p.key,
			client.Renewal{ExpiresAt: time.Now().Add(in)}); err != nil && in > time.Minute {
			t.Fatal(err)
		}
	}
	for l.Status != "expired" {
		l = must[*client.License](t)(p.api.Licenses.Get(t.Context(), p.key))
	}
}

// fill binds as many other devices as the license has slots.
func (p *person) fill(t *testing.T) {
	for _, id := range []string{"another", "a third"} {
		must[*client.Activated](t)(p.api.Activate(t.Context(), client.Activation{LicenseKey: p.key, DeviceID: id}))
	}
}

// upgrade pays for the trial of the device.
func (p *person) upgrade(t *testing.T) {
	order := must[*client.Order](t)(p.api.Orders.Create(t.Context(), client.NewOrder{ProductID: p.device.ProductID,
		Amount: 4900, Currency: "USD", UpgradeOf: p.state(t)["license_key"].(string)}))
	must[*client.Order](t)(p.api.Sandbox.Pay(t.Context(), order.OrderNo))
}

func (p *person) takeForeign(*testing.T) { p.key = p.foreign }

func (p *person) storeForeign(t *testing.T) { p.store(t, p.foreign) }

func (p *person) spoilKey(t *testing.T) { p.store(t, "LIC-1") }

// store puts another license key into the state.
func (p *person) store(t *testing.T, key string) {
	state := p.state(t)
	state["license_key"] = key
	text := must[[]byte](t)(json.Marshal(state))
	if err := os.WriteFile(p.device.State, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *person) state(t *testing.T) (state map[string]any) {
	t.Helper()
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(p.device.State)), &state); err != nil {
		t.Fatal(err)
	}
	return state
}

// driver returns the driver of the client under test.
func driver(t *testing.T) func(call) outcome {
	t.Helper()
	command := strings.Fields(os.Getenv("LICET_DRIVER"))
	if len(command) == 0 {
		connections := &http.Transport{}
		t.Cleanup(connections.CloseIdleConnections)
		return func(c call) outcome { return driveThis(t.Context(), c, connections) }
	}
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	calls, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	outcomes, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(outcomes)
	t.Cleanup(func() {
		if err := errors.Join(calls.Close(), cmd.Wait()); err != nil {
			t.Errorf("the driver ends with %v", err)
		}
	})
	return func(c call) (o outcome) {
		text, err := json.Marshal(c)
		if err == nil {
			_, err = calls.Write(append(text, '\n'))
		}
		if err != nil {
			t.Fatalf("the driver takes no call: %v", err)
		}
		line, err := lines.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &o)
		}
		if err != nil {
			t.Fatalf("the driver answers %q to %s: %v", line, text, err)
		}
		return o
	}
}

// driveThis makes a call of the client of this package.
func driveThis(ctx context.Context, c call, connections http.RoundTripper) outcome {
	l, err := New(Config{URL: c.URL, Root: c.Root, AccountID: c.AccountID, Mode: "test", ProductID: c.ProductID,
		DeviceID: c.DeviceID, Store: FileStore(c.State), Lease: time.Duration(c.LeaseSeconds) * time.Second,
		Grace: time.Duration(c.Grace) * time.Second,
		Options: []client.Option{client.RetryFor(time.Duration(c.RetryFor) * time.Second),
			client.WithHTTPClient(&http.Client{Transport: connections})}})
	if err != nil {
		return outcome{Reason: err.Error()}
	}
	l.now = func() time.Time { return time.Now().Add(time.Duration(c.Ahead) * time.Second) }
	switch c.Do {
	case "activate":
		_, err = l.Activate(ctx, c.LicenseKey, "")
	case "trial":
		_, err = l.Trial(ctx, "")
	case "validate":
		_, err = l.Validate(ctx)
	case "deactivate":
		err = l.Deactivate(ctx)
	case "check", "refresh":
		check, err := l.Check(ctx)
		return outcome{OK: check.Allowed && err == nil, Reason: check.Reason}
	}
	if err == nil {
		return good
	}
	o := outcome{Reason: reasonOf(err)}
	if answered := new(client.Error); errors.As(err, &answered) {
		o.Code = answered.Code
	}
	return o
}
