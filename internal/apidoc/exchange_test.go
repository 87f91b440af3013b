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

// differences returns what Check finds in the lookup of an unknown order, by a document that edit has changed.
func differences(t *testing.T, edit func(document string) string, response string) []string {
	t.Helper()
	committed, err := os.ReadFile(referenceFolder + "openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, err := newExchanges([]byte(edit(string(committed))))
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequest(http.MethodGet, "/v1/orders/ord_1", http.NoBody)
	request.Header.Set("Authorization", "Bearer lk_test_1")
	return document.Check(request, &http.Response{
		StatusCode: http.StatusNotFound, Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
		Body: io.NopCloser(bytes.NewReader([]byte(response))), Request: request,
	}, []byte(response))
}

func TestExchanges(t *testing.T) {
	same := func(document string) string { return document }
	if found := differences(t, same, unknownOrder); len(found) > 0 {
		t.Errorf("found %q in a good exchange", found)
	}
	for what, c := range map[string]struct {
		edit     func(string) string
		response string
	}{
		"a route that the document lacks": {
			func(d string) string {
				return strings.Replace(d, "    /v1/orders/{order_no}:\n", "    /v1/none/{order_no}:\n", 1)
			},
			unknownOrder,
		},
		"a status that the document lacks": {
			func(d string) string {
				at := strings.Index(d, "    /v1/orders/{order_no}:\n")
				return d[:at] + strings.Replace(d[at:], `"404":`, `"499":`, 1)
			},
			unknownOrder,
		},
		"a code that the route does not list": {same, strings.ReplaceAll(strings.ReplaceAll(unknownOrder,
			"40403", "40407"), "order_not_found", "api_key_not_found")},
		"a member that is missing": {same, strings.Replace(unknownOrder, `"retryable":false,`, "", 1)},
		"a member of another type": {same, strings.Replace(unknownOrder, `false`, "0", 1)},
	} {
		if found := differences(t, c.edit, c.response); len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}
