package migratetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Token is the token that a Fake accepts.
const Token = "token-of-the-other-service"

// License is a license of a Fake.
type License struct {
	ID, Key, Product string
	MaxDevices       int // 0: any number
	Expires          time.Time
	Blocked          bool // suspended or disabled
	Refunded         bool // at Gumroad
	Devices          []string
}

// Fake is the API of a service.
type Fake struct {
	URL      string // to read from
	Licenses []License

	// Answer may answer a request in its own way: it reports whether it has. number counts requests from 1.
	Answer func(w http.ResponseWriter, r *http.Request, number int) bool

	mu       sync.Mutex
	requests []string
}

// New starts the API of the named service.
func New(service string, licenses []License) (*Fake, func()) {
	f := &Fake{Licenses: licenses}
	mux := http.NewServeMux()
	prefix := ""
	switch service {
	case "keygen":
		prefix = "/v1/accounts/acme"
		mux.HandleFunc("GET /v1/accounts/acme/licenses", f.keygenLicenses)
		mux.HandleFunc("GET /v1/accounts/acme/machines", f.keygenMachines)
	case "lemonsqueezy":
		prefix = "/v1"
		mux.HandleFunc("GET /v1/license-keys", f.lemonSqueezyKeys)
		mux.HandleFunc("GET /v1/license-key-instances", f.lemonSqueezyInstances)
	case "gumroad":
		prefix = "/v2"
		mux.HandleFunc("GET /v2/sales", f.gumroadSales)
	case "polar":
		prefix = "/v1"
		mux.HandleFunc("GET /v1/license-keys/", f.polarKeys)
		mux.HandleFunc("GET /v1/license-keys/{id}", f.polarKey)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.URL.String())
		number := len(f.requests)
		f.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer "+Token:
			answer(w, http.StatusUnauthorized, map[string]any{"errors": []any{}})
		case f.Answer == nil || !f.Answer(w, r, number):
			mux.ServeHTTP(w, r)
		}
	}))
	f.URL = server.URL + prefix
	return f, server.Close
}

// Requests returns the requests so far.
func (f *Fake) Requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.requests...)
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

type values = map[string]any

// cut returns the bounds of a page of n items, and the number of pages. The size of a page is at most 100.
func cut(w http.ResponseWriter, n int, number, size string) (from, to, page, pages int, ok bool) {
	page, err := strconv.Atoi(number)
	each, err2 := strconv.Atoi(size)
	if err != nil || err2 != nil || page < 1 || each < 1 || each > 100 {
		answer(w, http.StatusBadRequest, values{"errors": []any{values{"title": "Bad request"}}})
		return 0, 0, 0, 0, false
	}
	pages = max(1, (n+each-1)/each)
	return min((page-1)*each, n), min(page*each, n), page, pages, true
}

func orNull[T comparable](value T) any {
	var zero T
	if value == zero {
		return nil
	}
	return value
}

func stamp(t time.Time, layout string) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(layout)
}

// keygenList answers with a page, by https://keygen.sh/docs/api/pagination/.
func keygenList(w http.ResponseWriter, r *http.Request, all []any) {
	from, to, page, pages, ok := cut(w, len(all), r.URL.Query().Get("page[number]"), r.URL.Query().Get("page[size]"))
	if !ok {
		return
	}
	link := func(number int) any {
		if number < 1 || number > pages {
			return nil
		}
		return fmt.Sprintf("%s?page[number]=%d&page[size]=%s", r.URL.Path, number, r.URL.Query().Get("page[size]"))
	}
	links := values{"self": link(page), "prev": link(page - 1), "next": link(page + 1), "first": link(1),
		"last": link(pages), "meta": values{"pages": pages, "count": len(all)}}
	answer(w, http.StatusOK, values{"data": append([]any{}, all[from:to]...), "links": links})
}

// keygenLicenses answers by https://keygen.sh/docs/api/licenses/. Keygen publishes no schema.
func (f *Fake) keygenLicenses(w http.ResponseWriter, r *http.Request) {
	var all []any
	for _, l := range f.Licenses {
		status := "ACTIVE"
		if l.Blocked {
			status = "SUSPENDED"
		} else if !l.Expires.IsZero() && l.Expires.Before(time.Now()) {
			status = "EXPIRED"
		}
		all = append(all, values{
			"id": l.ID, "type": "licenses",
			"links": values{"self": r.URL.Path + "/" + l.ID},
			"attributes": values{
				"name": "License of " + l.ID, "key": l.Key, "expiry": stamp(l.Expires, "2006-01-02T15:04:05.000Z"),
				"status": status, "uses": 3, "suspended": l.Blocked, "scheme": nil, "encrypted": false, "strict": false,
				"floating": true, "concurrent": true, "protected": true, "maxMachines": orNull(l.MaxDevices),
				"maxProcesses": nil, "maxCores": nil, "maxUses": 10, "requireHeartbeat": false,
				"requireCheckIn": false, "lastValidated": nil, "lastCheckIn": nil, "nextCheckIn": nil,
				"metadata": values{"seat": "3B"}, "created": "2021-01-02T03:04:05.000Z",
				"updated": "2021-01-02T03:04:05.000Z",
			},
			"relationships": values{
				"account":  values{"data": values{"type": "accounts", "id": "acme"}},
				"product":  values{"data": values{"type": "products", "id": l.Product}},
				"policy":   values{"data": values{"type": "policies", "id": "70af414f-df05-4bb6-a4ef-3cd52ffc5e8b"}},
				"user":     values{"data": nil},
				"machines": values{"meta": values{"cores": 0, "count": len(l.Devices)}},
			},
		})
	}
	keygenList(w, r, all)
}

// keygenMachines answers by https://keygen.sh/docs/api/machines/.
func (f *Fake) keygenMachines(w http.ResponseWriter, r *http.Request) {
	var all []any
	for _, l := range f.Licenses {
		for i, device := range l.Devices {
			all = append(all, values{
				"id": fmt.Sprintf("%s-%d", l.ID, i), "type": "machines",
				"attributes": values{"fingerprint": device, "name": nil, "ip": nil, "hostname": nil,
					"platform": "macOS", "cores": nil, "metadata": values{}, "requireHeartbeat": false,
					"heartbeatStatus": "NOT_STARTED",
					"created":         "2021-01-02T03:04:05.000Z", "updated": "2021-01-02T03:04:05.000Z"},
				"relationships": values{
					"product": values{"data": values{"type": "products", "id": l.Product}},
					"license": values{"data": values{"type": "licenses", "id": l.ID}},
					"user":    values{"data": nil},
				},
			})
		}
	}
	keygenList(w, r, all)
}

// lemonSqueezyList answers with a page, by https://docs.lemonsqueezy.com/api/getting-started/requests.
func lemonSqueezyList(w http.ResponseWriter, r *http.Request, all []any, included func(from, to int) []any) {
	query := r.URL.Query()
	from, to, page, pages, ok := cut(w, len(all), query.Get("page[number]"), query.Get("page[size]"))
	if !ok {
		return
	}
	link := func(number int) string {
		query.Set("page[number]", strconv.Itoa(number))
		return "https://api.lemonsqueezy.com" + r.URL.Path + "?" + query.Encode()
	}
	body := values{"meta": values{"page": values{"currentPage": page, "from": from + 1, "lastPage": pages,
		"perPage": 100, "to": to, "total": len(all)}}, "jsonapi": values{"version": "1.0"},
		"links": values{"first": link(1), "last": link(pages)}, "data": append([]any{}, all[from:to]...)}
	if included != nil {
		body["included"] = included(from, to)
	}
	answer(w, http.StatusOK, body)
}

func lemonSqueezyInstance(owner, number int, device string) any {
	return values{"type": "license-key-instances", "id": fmt.Sprint(owner*100 + number), "attributes": values{
		"license_key_id": owner, "identifier": device, "name": "Mac of somebody",
		"created_at": "2022-11-14T11:45:39.000000Z", "updated_at": "2022-11-14T11:45:39.000000Z"}}
}

// includedInstances is how many instances of a license key a page of license keys includes.
const includedInstances = 2

// lemonSqueezyKeys answers by https://docs.lemonsqueezy.com/api/license-keys/list-all-license-keys. Lemon Squeezy
// publishes no schema.
func (f *Fake) lemonSqueezyKeys(w http.ResponseWriter, r *http.Request) {
	var all []any
	for _, l := range f.Licenses {
		status, disabled := "active", 0
		switch {
		case l.Blocked:
			status, disabled = "disabled", 1
		case !l.Expires.IsZero() && l.Expires.Before(time.Now()):
			status = "expired"
		case len(l.Devices) == 0:
			status = "inactive"
		}
		product, _ := strconv.Atoi(l.Product)
		all = append(all, values{"type": "license-keys", "id": l.ID, "attributes": values{
			"store_id": 1, "customer_id": 7, "order_id": 8, "order_item_id": 9, "product_id": product,
			"user_name": "Ada", "user_email": "ada@example.com", "key": l.Key,
			"key_short":        "XXXX-" + l.Key[max(0, len(l.Key)-12):],
			"activation_limit": orNull(l.MaxDevices), "instances_count": len(l.Devices), "disabled": disabled,
			"status": status, "status_formatted": strings.ToUpper(status[:1]) + status[1:],
			"expires_at": stamp(l.Expires, "2006-01-02T15:04:05.000000Z"), "test_mode": false,
			"created_at": "2022-11-14T11:45:39.000000Z", "updated_at": "2022-11-14T11:45:39.000000Z"}})
	}
	lemonSqueezyList(w, r, all, func(from, to int) []any {
		included := []any{}
		for _, l := range f.Licenses[from:to] {
			owner, _ := strconv.Atoi(l.ID)
			for i, device := range l.Devices[:min(len(l.Devices), includedInstances)] {
				included = append(included, lemonSqueezyInstance(owner, i, device))
			}
		}
		return included
	})
}

// lemonSqueezyInstances answers by
// https://docs.lemonsqueezy.com/api/license-key-instances/list-all-license-key-instances.
func (f *Fake) lemonSqueezyInstances(w http.ResponseWriter, r *http.Request) {
	var all []any
	for _, l := range f.Licenses {
		if only := r.URL.Query().Get("filter[license_key_id]"); only != "" && only != l.ID {
			continue
		}
		owner, _ := strconv.Atoi(l.ID)
		for i, device := range l.Devices {
			all = append(all, lemonSqueezyInstance(owner, i, device))
		}
	}
	lemonSqueezyList(w, r, all, nil)
}

// gumroadSales answers by https://gumroad.com/api#sales: ten sales on each page. Gumroad publishes no schema.
func (f *Fake) gumroadSales(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("page_key"), "key-"))
	to := min(from+10, len(f.Licenses))
	sales := []any{}
	for i, l := range f.Licenses[from:to] {
		sale := values{"id": l.ID, "email": "ada@example.com", "seller_id": "RkCCaDkPPciPd9155vcaJg==",
			"timestamp": "about 1 month ago", "created_at": "2021-01-29T12:26:44Z", "product_name": "Editor",
			"product_id": l.Product, "product_permalink": "licenses", "price": 1000, "gumroad_fee": 60,
			"order_id": 524459995 + from + i, "quantity": 1, "partially_refunded": false, "refunded": l.Refunded,
			"chargedback": false, "disputed": false, "dispute_won": false, "license_key": l.Key,
			"license_id": "id-" + l.ID, "license_disabled": l.Blocked}
		if l.Key == "" {
			delete(sale, "license_key")
		}
		sales = append(sales, sale)
	}
	body := values{"success": true, "sales": sales}
	if to < len(f.Licenses) {
		body["next_page_key"] = fmt.Sprintf("key-%d", to)
		body["next_page_url"] = fmt.Sprintf("/v2/sales?page_key=key-%d", to)
	}
	answer(w, http.StatusOK, body)
}

const polarCustomer = "992fae2a-2a17-4b7a-8d9e-e287cf90131b"

func polarLicense(l *License) values {
	status := "granted"
	if l.Blocked {
		status = "disabled"
	}
	return values{"id": l.ID, "created_at": "2024-01-02T03:04:05.678Z", "modified_at": nil,
		"organization_id": "1dbfc517-0bbf-4301-9ba8-555ca42b9737",
		"customer_id":     polarCustomer, "customer": values{"id": polarCustomer,
			"created_at": "2024-01-02T03:04:05.678Z", "modified_at": nil, "metadata": values{}, "external_id": nil,
			"email": "ada@example.com", "email_verified": true, "name": "Ada", "billing_address": nil, "tax_id": nil,
			"organization_id": "1dbfc517-0bbf-4301-9ba8-555ca42b9737", "deleted_at": nil,
			"avatar_url": "https://example.com/ada.png"},
		"benefit_id": l.Product, "key": l.Key, "display_key": "****-" + l.Key[max(0, len(l.Key)-6):],
		"status": status, "limit_activations": orNull(l.MaxDevices), "usage": 0, "limit_usage": nil, "validations": 0,
		"last_validated_at": nil, "expires_at": stamp(l.Expires, "2006-01-02T15:04:05.000Z")}
}

// polarKeys answers by https://polar.sh/docs/api-reference/license-keys/list.
func (f *Fake) polarKeys(w http.ResponseWriter, r *http.Request) {
	from, to, _, pages, ok := cut(w, len(f.Licenses), r.URL.Query().Get("page"), r.URL.Query().Get("limit"))
	if !ok {
		return
	}
	items := []any{}
	for i := range f.Licenses[from:to] {
		items = append(items, polarLicense(&f.Licenses[from+i]))
	}
	answer(w, http.StatusOK, values{"items": items, "pagination": values{"total_count": len(f.Licenses),
		"max_page": pages}})
}

// polarKey answers by https://polar.sh/docs/api-reference/license-keys/get.
func (f *Fake) polarKey(w http.ResponseWriter, r *http.Request) {
	for i := range f.Licenses {
		l := &f.Licenses[i]
		if l.ID != r.PathValue("id") {
			continue
		}
		activations := []any{}
		for _, device := range l.Devices {
			activations = append(activations, values{"id": device, "license_key_id": l.ID, "label": "Mac",
				"meta": values{}, "created_at": "2024-01-02T03:04:05.678Z", "modified_at": nil})
		}
		body := polarLicense(l)
		body["activations"] = activations
		answer(w, http.StatusOK, body)
		return
	}
	answer(w, http.StatusNotFound, values{"error": "ResourceNotFound", "detail": "Not found"})
}
