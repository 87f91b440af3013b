package handlers_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"licet/handlers"
	"licet/internal/apidoc"
	"licet/metrics"
)

// unlisted returns the responses that the counters of a service have, and that the table of routes does not list for
// their routes. A known path with another method has no route: the response to such a request names the method, or a
// fault that comes before the method.
func unlisted(t *testing.T, registry *prometheus.Registry) (found []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Error(err)
	}
	type target struct{ method, pattern string }
	listed, patterns := make(map[target][]string), make(map[string]bool)
	for _, r := range handlers.Routes() {
		at := target{r.Method, r.Pattern}
		for _, status := range r.Statuses {
			listed[at] = append(listed[at], strconv.Itoa(status)+" ")
		}
		for _, refusal := range r.Refusals {
			listed[at] = append(listed[at], strconv.Itoa(refusal.Status)+" "+strconv.Itoa(refusal.Code))
		}
		patterns[r.Pattern] = true
	}
	for _, f := range families {
		if f.GetName() != "licet_http_responses_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			at := target{labels["method"], labels["route"]}
			if at.method == "HEAD" {
				at.method = "GET" // a HEAD is a GET without the body
			}
			got := labels["code"] + " " + labels["error"]
			allowed, known := listed[at]
			if !known {
				allowed = beforeRoutes
			}
			if patterns[at.pattern] && m.GetCounter().GetValue() > 0 && !slices.Contains(allowed, got) {
				found = append(found, at.method+" "+at.pattern+" "+got)
			}
		}
	}
	return found
}

// beforeRoutes are the responses to requests that name no route.
var beforeRoutes = []string{
	"204 ", "400 40000", "404 40400", "405 40500", "413 41300", "414 41400", "431 43100", "500 50000",
}

func TestUnlistedResponsesAreFound(t *testing.T) {
	registry := prometheus.NewRegistry()
	times := metrics.NewRequestTimes(metrics.New(registry, "", "", ""))
	for code, status := range map[int]int{0: 201, 40403: 404, 40901: 409} {
		times.Observe("GET", "/v1/orders/{order_no}", status, code, time.Millisecond, "")
	}
	got := unlisted(t, registry)
	slices.Sort(got)
	want := []string{"GET /v1/orders/{order_no} 201 ", "GET /v1/orders/{order_no} 409 40901"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// published is the committed API document.
var published = sync.OnceValues(func() (*apidoc.Exchanges, error) {
	return apidoc.ReadExchanges("../docs/reference/openapi.yaml")
})

// checkExchange fails the test if a request, or its response, differs from the API document. The routes of the listener
// for operators are not in the document.
func checkExchange(t *testing.T, ctx *fasthttp.RequestCtx) {
	if path := string(ctx.Path()); path == "/metrics" || strings.HasPrefix(path, "/debug/") {
		return
	}
	document, err := published()
	if err != nil {
		t.Error(err)
		return
	}
	request := new(http.Request)
	if fasthttpadaptor.ConvertRequest(ctx, request, true) != nil {
		return // the target is no URL
	}
	header := make(http.Header)
	for name, value := range ctx.Response.Header.All() {
		header.Add(string(name), string(value))
	}
	body, err := ctx.Response.BodyUncompressed()
	if err != nil {
		t.Error(err)
	}
	body = bytes.Clone(body)
	response := &http.Response{
		StatusCode: ctx.Response.StatusCode(), Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Request: request,
	}
	for _, problem := range document.Check(request, response, body) {
		t.Errorf("%s %s %d differs from the API document: %s",
			request.Method, request.RequestURI, response.StatusCode, problem)
	}
}
