package apidoc

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

const unknownOrder = `{"code":40403,"message":"no such order",` +
	`"error":{"reason":"order_not_found","retryable":false,"request_id":"1"}}`

// excerpt returns the committed document with only the routes of orders, which a validator compiles in a fraction of the
// time.
func excerpt(t *testing.T) string {
	t.Helper()
	committed, err := os.ReadFile(referenceFolder + "openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	about, rest, _ := strings.Cut(string(committed), "\npaths:\n")
	paths, rest, _ := strings.Cut(rest, "\ncomponents:\n")
	components, _, whole := strings.Cut(rest, "\nwebhooks:\n")
	var orders strings.Builder
	for path := range strings.SplitAfterSeq("\n"+paths, "\n    /") {
		if strings.HasPrefix(path, "v1/orders:") || strings.HasPrefix(path, "v1/orders/{order_no}:") {
			orders.WriteString("    /" + strings.TrimSuffix(path, "    /"))
		}
	}
	if !whole || orders.Len() == 0 {
		t.Fatal("the document has other parts than paths, components and webhooks, or no orders")
	}
	return about + "\npaths:\n" + orders.String() + "components:\n" + components + "\n"
}

func TestExchanges(t *testing.T) {
	read := func(document string) *Exchanges {
		t.Helper()
		exchanges, err := newExchanges([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		return exchanges
	}
	differences := func(exchanges *Exchanges, response string) []string {
		request := httptest.NewRequest(http.MethodGet, "/v1/orders/ord_1", http.NoBody)
		request.Header.Set("Authorization", "Bearer lk_test_1")
		return exchanges.Check(request, &http.Response{
			StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
			Body: io.NopCloser(bytes.NewReader([]byte(response))), Request: request,
		}, []byte(response))
	}
	document := excerpt(t)
	at := strings.Index(document, "    /v1/orders/{order_no}:\n")
	before, order := document[:at], document[at:]
	good := read(document)
	if found := differences(good, unknownOrder); len(found) > 0 {
		t.Errorf("found %q in a good exchange", found)
	}
	for what, c := range map[string]struct {
		exchanges *Exchanges
		response  string
	}{
		"a route that the document lacks": {
			read(before + strings.Replace(order, "/v1/orders/", "/v1/none/", 1)), unknownOrder,
		},
		"a status that the document lacks": {read(before + strings.Replace(order, `"404":`, `"499":`, 1)), unknownOrder},
		"a code that the route does not list": {good, strings.ReplaceAll(strings.ReplaceAll(unknownOrder,
			"40403", "40407"), "order_not_found", "api_key_not_found")},
		"a member that is missing": {good, strings.Replace(unknownOrder, `"retryable":false,`, "", 1)},
		"a member of another type": {good, strings.Replace(unknownOrder, `false`, "0", 1)},
	} {
		if found := differences(c.exchanges, c.response); len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}
