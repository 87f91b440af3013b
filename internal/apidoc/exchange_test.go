package apidoc

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
)

const unknownOrder = `{"code":40403,"message":"no such order",` +
	`"error":{"reason":"order_not_found","retryable":false,"request_id":"1"}}`

// committed returns the committed document.
func committed(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(referenceFolder + "openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func read(t *testing.T, document string) *Exchanges {
	t.Helper()
	exchanges, err := newExchanges([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return exchanges
}

// answered returns the differences of a request and a response in JSON. Pairs of headers add to the headers of every
// response; an empty value removes the header.
func answered(exchanges *Exchanges, request *http.Request, status int, response string, headers ...string) []string {
	all := http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Date": {"Sun, 06 Nov 1994 08:49:37 GMT"},
		"X-Request-Id": {"1"}, "Cache-Control": {"no-store"}, "X-Content-Type-Options": {"nosniff"},
	}
	for i := 0; i < len(headers); i += 2 {
		if all.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			all.Del(headers[i])
		}
	}
	return exchanges.Check(request, &http.Response{StatusCode: status, Header: all}, []byte(response))
}

func TestResponses(t *testing.T) {
	document := committed(t)
	at := strings.Index(document, "    /v1/orders/{order_no}:\n")
	before, order := document[:at], document[at:]
	good := read(t, document)
	differences := func(exchanges *Exchanges, response string) []string {
		request := httptest.NewRequest(http.MethodGet, "/v1/orders/ord_1", http.NoBody)
		request.Header.Set("Authorization", "Bearer lk_test_1")
		return answered(exchanges, request, http.StatusNotFound, response)
	}
	if found := differences(good, unknownOrder); len(found) > 0 {
		t.Errorf("found %q in a good exchange", found)
	}
	for what, c := range map[string]struct {
		exchanges *Exchanges
		response  string
	}{
		"a route that the document lacks": {
			read(t, before+strings.Replace(order, "/v1/orders/", "/v1/none/", 1)), unknownOrder,
		},
		"a status that the document lacks": {
			read(t, before+strings.Replace(order, `"404":`, `"499":`, 1)), unknownOrder,
		},
		"a code that the route does not list": {good, strings.ReplaceAll(strings.ReplaceAll(unknownOrder,
			"40403", "40407"), "order_not_found", "api_key_not_found")},
		"a member that is missing":         {good, strings.Replace(unknownOrder, `"retryable":false,`, "", 1)},
		"a member of another type":         {good, strings.Replace(unknownOrder, `false`, "0", 1)},
		"a member that the document lacks": {good, strings.Replace(unknownOrder, `{"code"`, `{"cause":1,"code"`, 1)},
		"an inner member that the document lacks": {good,
			strings.Replace(unknownOrder, `"retryable"`, `"cause":1,"retryable"`, 1)},
		"a body that is no JSON": {good, unknownOrder[1:]},
	} {
		if found := differences(c.exchanges, c.response); len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}

func TestRequests(t *testing.T) {
	exchanges := read(t, committed(t))
	differences := func(method, target, body string, header ...string) []string {
		request := httptest.NewRequest(method, target, strings.NewReader(body))
		request.Header = http.Header{"Authorization": {"Bearer lk_test_1"}, "Content-Type": {"application/json"}}
		for i := 0; i < len(header); i += 2 {
			request.Header.Set(header[i], header[i+1])
		}
		return answered(exchanges, request, http.StatusNotFound, strings.NewReplacer(
			"40403", "40404", "order_not_found", "product_not_found").Replace(unknownOrder))
	}
	const order = `{"product_id":"editor","amount":4900,"currency":"USD","buyer_email":"b@example.com"}`
	if found := differences("POST", "/v1/orders", order, "Idempotency-Key", "k"); len(found) > 0 {
		t.Errorf("found %q in a good request", found)
	}
	for what, found := range map[string][]string{
		"no API key":               differences("POST", "/v1/orders", order, "Authorization", ""),
		"no body":                  differences("POST", "/v1/orders", ""),
		"another media type":       differences("POST", "/v1/orders", order, "Content-Type", "text/plain"),
		"a body that is no JSON":   differences("POST", "/v1/orders", order[1:]),
		"a member that is missing": differences("POST", "/v1/orders", strings.Replace(order, `"amount":4900,`, "", 1)),
		"a member of another type": differences("POST", "/v1/orders", strings.Replace(order, "4900", `"4900"`, 1)),
		"a member that is unknown": differences("POST", "/v1/orders", strings.Replace(order, "{", `{"tax":1,`, 1)),
		"a bad header":             differences("POST", "/v1/orders", order, "Idempotency-Key", "\u00e4"),
	} {
		if len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}

// A bad request differs from the document, unless the code of the response refuses its form or comes before the form.
func TestRefusedRequests(t *testing.T) {
	exchanges := read(t, committed(t))
	for code, refused := range map[int]bool{
		40000: true, 40001: true, 40100: true, 40102: true, 40300: true, 41300: true, 41500: true, 42200: true,
		42900: true, 50000: true, 50301: true,
		40309: false, 40404: false, 40900: false, 40904: false, 42201: false, 50200: false, 50400: false,
	} {
		request := httptest.NewRequest(http.MethodPost, "/v1/orders", strings.NewReader(`{"product_id":"editor"}`))
		request.Header = http.Header{"Authorization": {"Bearer lk_test_1"}, "Content-Type": {"application/json"}}
		found := answered(exchanges, request, code/100, `{"code":`+strconv.Itoa(code)+`}`)
		if differs := strings.Contains(strings.Join(found, "\n"), "the body of the request"); differs == refused {
			t.Errorf("%d: found %q", code, found)
		}
	}
}

func TestParameters(t *testing.T) {
	exchanges := read(t, committed(t))
	const page = `{"code":0,"message":"success","data":{"orders":[],"next_cursor":null}}`
	for query, good := range map[string]bool{
		"": true, "limit=100": true, "limit=101": false, "limit=x": false, "status=paid": true, "status=lost": false,
		"product_id=editor&limit=1": true, "product_id=a%20b&limit=1": false,
	} {
		request := httptest.NewRequest(http.MethodGet, "/v1/orders?"+query, http.NoBody)
		request.Header.Set("Authorization", "Bearer lk_test_1")
		if found := answered(exchanges, request, http.StatusOK, page); good != (len(found) == 0) {
			t.Errorf("found %q in %q", found, query)
		}
	}
}

// Each response has the headers that the document requires, and no header that the document lacks.
func TestHeaders(t *testing.T) {
	exchanges := read(t, committed(t))
	failure := func(code int, reason string) string {
		return strings.NewReplacer("40403", strconv.Itoa(code), "order_not_found", reason).Replace(unknownOrder)
	}
	check := func(method, path string, code int, reason string, headers ...string) []string {
		request := httptest.NewRequest(method, path, http.NoBody)
		request.Header.Set("Authorization", "Bearer lk_test_1")
		return answered(exchanges, request, code/100, failure(code, reason), headers...)
	}
	replayed := []string{"Idempotent-Replayed", "true"}
	limits := []string{"RateLimit", `"account";r=0;t=1`, "RateLimit-Policy", `"account";q=500;w=1`}
	limited := func(more ...string) []string {
		return check("GET", "/v1/orders/ord_1", 42900, "rate_limited",
			append(append(limits, "Retry-After", "1"), more...)...)
	}
	open := []string{"Access-Control-Allow-Origin", "*", "Access-Control-Expose-Headers", "X-Request-Id"}
	for what, found := range map[string][]string{
		"a limited request":     limited(),
		"an order that counted": check("GET", "/v1/orders/ord_1", 40403, "order_not_found", limits...),
		"a HEAD":                check("HEAD", "/v1/orders/ord_1", 40403, "order_not_found"),
		"a conflict":            check("POST", "/v1/orders/ord_1/cancel", 40902, "invalid_order_state"),
		"a conflict that may end": check("POST", "/v1/orders/ord_1/cancel", 40900, "request_in_progress",
			"Retry-After", "1"),
		"a replayed conflict": check("POST", "/v1/orders/ord_1/cancel", 40902, "invalid_order_state",
			replayed...),
		"an unknown route": check("GET", "/v1/order", 40400, "not_found"),
		"another method": check("PUT", "/v1/orders", 40500, "method_not_allowed", "Allow",
			"GET, HEAD, POST"),
		"an open route": check("POST", "/v1/licenses/validate", 42200, "invalid_field", open...),
		"a full node, before the route": check("POST", "/v1/licenses/validate", 50301, "overloaded", "Retry-After",
			"1"),
		"a page's request without frame": check("GET", "/pay/ord_1/x", 40000, "malformed_request"),
	} {
		if len(found) > 0 {
			t.Errorf("%s: %q", what, found)
		}
	}
	for what, found := range map[string][]string{
		"no request id":                    limited("X-Request-Id", ""),
		"another value of Cache-Control":   limited("Cache-Control", "private"),
		"no Retry-After":                   limited("Retry-After", ""),
		"a Retry-After that is no number":  limited("Retry-After", "soon"),
		"no RateLimit":                     limited("RateLimit", ""),
		"a RateLimit of the old draft":     limited("RateLimit", "limit=500, remaining=0, reset=1"),
		"an unknown header":                limited("X-Trace-Id", "1"),
		"a header of another response":     limited("Location", "https://example.com"),
		"no WWW-Authenticate":              check("GET", "/v1/orders/ord_1", 40100, "unauthenticated"),
		"an open route without its header": check("POST", "/v1/licenses/validate", 42200, "invalid_field", open[:2]...),
		"another method without Allow":     check("PUT", "/v1/orders", 40500, "method_not_allowed"),
		"an unknown route with Allow":      check("GET", "/v1/order", 40400, "not_found", "Allow", "GET"),
		"a replayed look-up":               check("GET", "/v1/orders/ord_1", 40403, "order_not_found", replayed...),
	} {
		if len(found) != 1 {
			t.Errorf("%s: found %q, want one difference", what, found)
		}
	}
}
