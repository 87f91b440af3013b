package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// api calls a service with an API key.
type api struct {
	url, key string
	client   *http.Client
}

func newClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64},
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   string
	Code   int    `json:"code"`
	Data   object `json:"data"`
	Error  struct {
		Reason  string         `json:"reason"`
		Details map[string]int `json:"details"`
	} `json:"error"`
}

// object is a JSON object as tests look into it.
type object map[string]any

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

func (o object) number(name string) int {
	n, ok := o[name].(float64)
	if !ok {
		return -1
	}
	return int(n)
}

func (o object) list(name string) []object {
	var list []object
	items, _ := o[name].([]any)
	for _, item := range items {
		member, _ := item.(map[string]any)
		list = append(list, member)
	}
	return list
}

// send makes one request; body is JSON text or empty.
func (a api) send(ctx context.Context, method, path, body string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if a.key != "" {
		request.Header.Set("Authorization", "Bearer "+a.key)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	return a.do(request)
}

func (a api) do(request *http.Request) (reply, error) {
	response, err := a.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return reply{}, err
	}
	r := reply{status: response.StatusCode, header: response.Header, body: string(body)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		err = json.Unmarshal(body, &r)
	}
	return r, err
}

// want makes one request and demands its status. If a busy machine is too slow for the request,
// and the answer says that nothing was changed, want repeats the request, as clients should.
func (a api) want(t *testing.T, status int, method, path, body string) reply {
	t.Helper()
	r, err := a.send(t.Context(), method, path, body)
	for until := time.Now().Add(30 * time.Second); err == nil && r.status == 503 && status != 503 &&
		time.Now().Before(until); {
		t.Logf("%s %s: %s", method, path, r.body)
		time.Sleep(100 * time.Millisecond)
		r, err = a.send(t.Context(), method, path, body)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.status != status {
		t.Fatalf("%s %s: status %d, want %d: %s", method, path, r.status, status, r.body)
	}
	if status < 300 && strings.HasPrefix(path, "/v1/") && r.Code != 0 {
		t.Fatalf("%s %s: code %d: %s", method, path, r.Code, r.body)
	}
	return r
}

// pay pays an order without a buyer, and returns the order after the payment.
func (a api) pay(ctx context.Context, orderNo string) (reply, error) {
	return a.send(ctx, http.MethodPut, "/v1/orders/"+orderNo+"/sandbox_payment", "")
}

// press presses a button of the pay page, as a buyer does.
func (a api) press(ctx context.Context, payURL, action string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, payURL, strings.NewReader("action="+action))
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return a.do(request)
}

// get fetches a page by its whole address, with no credentials.
func (a api) get(t *testing.T, address string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.do(request)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// grant makes one license without an order and returns its key.
func (a api) grant(t *testing.T, maxDevices int) string {
	t.Helper()
	r := a.want(t, 201, "POST", "/v1/licenses",
		fmt.Sprintf(`{"product_id":"editor","quantity":1,"max_devices":%d}`, maxDevices))
	return r.Data.list("licenses")[0].text("license_key")
}

func (a api) activate(ctx context.Context, licenseKey, device string) (reply, error) {
	open := api{url: a.url, client: a.client}
	return open.send(ctx, "POST", "/v1/licenses/activate",
		fmt.Sprintf(`{"license_key":%q,"device_id":%q}`, licenseKey, device))
}
