package fakestripe

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
)

// Faults are the chances of faults of requests, in a thousand.
type Faults struct {
	Busy       int // answer 429, and do nothing
	BadGateway int // answer 502, and do nothing
	Before     int // answer 500, and do nothing; kept under the idempotency key
	After      int // answer 500 after the work is done; kept under the idempotency key
	Lost       int // do the work and lose the answer; the answer is kept under the idempotency key
	// Slow is how long each request with an idempotency key takes.
	Slow time.Duration
}

// Fault is a fault of one request.
type Fault int

// The faults.
const (
	NoFault Fault = iota
	Busy
	BadGateway
	Before
	After
	Lost
)

// plan is a fault of the next requests for a path.
type plan struct {
	method, path string
	fault        Fault
	times        int
}

// breaker decides which requests have a fault.
type breaker struct {
	*state
	faults  Faults
	planned []*plan
}

// SetFaults sets the chances of faults.
func (b *breaker) SetFaults(faults Faults) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = faults
}

// Fail gives a fault to the next requests with a method and a path.
func (b *breaker) Fail(method, path string, fault Fault, times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planned = append(b.planned, &plan{method, path, fault, times})
}

func (b *breaker) nextFault(method, path string) Fault {
	for _, p := range b.planned {
		if p.times > 0 && p.method == method && p.path == path {
			p.times--
			return p.fault
		}
	}
	for _, c := range []struct {
		chance int
		fault  Fault
	}{
		{b.faults.Busy, Busy}, {b.faults.BadGateway, BadGateway}, {b.faults.Before, Before}, {b.faults.After, After},
		{b.faults.Lost, Lost},
	} {
		if b.chance(c.chance) {
			return c.fault
		}
	}
	return NoFault
}

// answer is the answer to a request.
type answer struct {
	status int
	body   object
	begun  bool // Stripe has begun to execute the request, so the answer is kept under the idempotency key
}

func ok(o object) answer { return answer{http.StatusOK, o, true} }

// refuse answers with an error. Errors of parameters are not kept under the idempotency key.
func refuse(status int, kind sdk.ErrorType, code sdk.ErrorCode, message, param string) answer {
	problem := object{"type": string(kind), "message": message}
	if code != "" {
		problem["code"] = string(code)
	}
	if param != "" {
		problem["param"] = param
	}
	return answer{status: status, body: object{"error": problem}}
}

func badParameter(param, message string) answer {
	return refuse(http.StatusBadRequest, sdk.ErrorTypeInvalidRequest, "", message, param)
}

// refusal answers with an error of a request that Stripe has begun to execute.
func refusal(code sdk.ErrorCode, message string) answer {
	a := refuse(http.StatusBadRequest, sdk.ErrorTypeInvalidRequest, code, message, "")
	a.begun = true
	return a
}

func missing(kind, id string) answer {
	return refuse(http.StatusNotFound, sdk.ErrorTypeInvalidRequest, sdk.ErrorCodeResourceMissing,
		fmt.Sprintf("No such %s: '%s'", kind, id), "id")
}

// ServeHTTP implements [http.Handler].
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if id, found := strings.CutPrefix(r.URL.Path, payPath); found {
		f.servePage(w, r, id)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	query := r.URL.RawQuery
	if r.Method == http.MethodPost {
		query = string(body)
	}
	in, err := url.ParseQuery(query)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	a, replayed, fault := f.request(r, input(in), in.Encode())
	f.mu.Unlock()
	if fault == Lost {
		panic(http.ErrAbortHandler) // closes the connection
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_fake")
	w.Header().Set("Date", f.Now().UTC().Format(http.TimeFormat))
	if replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

// request executes a request. The caller holds the lock.
func (f *Fake) request(r *http.Request, in input, raw string) (a answer, replayed bool, fault Fault) {
	f.catchUp()
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	account := f.accounts[key]
	if account == nil {
		return refuse(http.StatusUnauthorized, sdk.ErrorTypeInvalidRequest, "",
			"Invalid API Key provided: "+key[:min(len(key), 8)]+"****", ""), false, NoFault
	}
	for path := range account.forbidden {
		if strings.HasPrefix(r.URL.Path, path) {
			return refuse(http.StatusForbidden, sdk.ErrorTypeInvalidRequest, "",
				"The provided key does not have the required permissions for this endpoint", ""), false, NoFault
		}
	}
	if got := r.Header.Get("Stripe-Version"); got != sdk.APIVersion {
		return badParameter("", "the fake knows the version "+sdk.APIVersion+" only, not "+got), false, NoFault
	}
	fault = f.nextFault(r.Method, r.URL.Path)
	switch fault {
	case Busy:
		return refuse(http.StatusTooManyRequests, sdk.ErrorTypeInvalidRequest, sdk.ErrorCodeRateLimit,
			"Too many requests", ""), false, fault
	case BadGateway:
		return answer{status: http.StatusBadGateway, body: object{}}, false, fault
	}
	execute := func() answer { return f.execute(account, r.Method, r.URL.Path, in) }
	if r.Method != http.MethodPost {
		return f.faulty(fault, execute), false, fault
	}
	a, replayed = f.keep(account, r.Header.Get("Idempotency-Key"), r.URL.Path, raw, func() answer {
		return f.faulty(fault, execute)
	})
	return a, replayed, fault
}

// faulty executes a request, or fails, or both.
func (f *Fake) faulty(fault Fault, execute func() answer) answer {
	failure := answer{http.StatusInternalServerError,
		object{"error": object{"type": string(sdk.ErrorTypeAPI), "message": "An unknown error occurred"}}, true}
	switch fault {
	case Before:
		return failure
	case After:
		if a := execute(); !a.begun { // refused as it is without the fault
			return a
		}
		return failure
	}
	return execute()
}

// execute runs the handler of a route.
func (f *Fake) execute(a *account, method, path string, in input) answer {
	parts := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	if parts[0] == "checkout" {
		parts = append([]string{"checkout/sessions"}, parts[2:]...)
	}
	switch {
	case len(parts) == 1 && method == http.MethodGet:
		return f.listRoute(a, parts[0], path, in)
	case len(parts) == 1:
		return f.createRoute(a, parts[0], in)
	case len(parts) == 2 && method == http.MethodGet:
		kind := kinds[parts[0]]
		o := f.of(a, kind, parts[1])
		if o == nil {
			return missing(kind, parts[1])
		}
		return ok(f.render(o, in))
	case len(parts) == 2 && parts[0] == "subscriptions" && method == http.MethodDelete:
		return f.cancelSubscription(a, parts[1], in)
	case len(parts) == 2 && parts[0] == "subscriptions":
		return f.updateSubscription(a, parts[1], in)
	case len(parts) == 2 && parts[0] == "billing_portal":
		return f.createPortal(a, in)
	case len(parts) == 3 && parts[0] == "checkout/sessions" && parts[2] == "expire":
		return f.expireSession(a, parts[1], in)
	}
	return missing("route", path)
}

// kinds are the types of objects, by the names of their routes.
var kinds = map[string]string{
	"checkout/sessions": "checkout.session", "payment_intents": "payment_intent", "charges": "charge",
	"refunds": "refund", "disputes": "dispute", "balance_transactions": "balance_transaction",
	"webhook_endpoints": "webhook_endpoint", "subscriptions": "subscription", "invoices": "invoice",
	"products": "product", "prices": "price", "customers": "customer", "events": "event",
}

func (f *Fake) listRoute(a *account, route, path string, in input) answer {
	if route == "invoice_payments" {
		return f.invoicePayments(a, path, in)
	}
	kind := kinds[route]
	switch {
	case kind == "":
		return missing("route", path)
	case kind == "event":
		return f.listEvents(a, path, in)
	}
	return ok(f.page(a, kind, path, in, func(o object) bool {
		for _, name := range []string{"payment_intent", "status", "charge", "subscription", "customer"} {
			if want := in.text(name); want != "" && o.text(name) != want && o.text("_"+name) != want {
				return false
			}
		}
		return o.number("created") >= in.number("created[gte]")
	}))
}

func (f *Fake) createRoute(a *account, route string, in input) answer {
	switch route {
	case "checkout/sessions":
		return f.createSession(a, in)
	case "refunds":
		return f.createRefund(a, in)
	case "webhook_endpoints":
		return f.createEndpoint(a, in)
	}
	return missing("route", route)
}
