package apidoc

import (
	"net/http"
	"net/http/httptest"
	"os"
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

// answered returns the differences of a request and a response in JSON.
func answered(exchanges *Exchanges, request *http.Request, status int, response string) []string {
	return exchanges.Check(request, &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
	}, []byte(response))
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
		"a member that is missing": {good, strings.Replace(unknownOrder, `"retryable":false,`, "", 1)},
		"a member of another type": {good, strings.Replace(unknownOrder, `false`, "0", 1)},
		"a body that is no JSON":   {good, unknownOrder[1:]},
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
