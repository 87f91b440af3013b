package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestReadBack reads a license whose devices fill three pages, and an order
// with a license that no line of the journal names.
func TestReadBack(t *testing.T) {
	answers := map[string]string{
		"/v1/orders/O1": `{"status":"paid","license_key":"L"}`,
		"/v1/licenses/L": `{"order_no":"O1","max_devices":3,"current_devices":0,` +
			`"devices":[],"devices_next_cursor":null}`,
		"/v1/licenses/A": `{"order_no":null,"max_devices":0,"current_devices":4,` +
			`"devices":[{"device_id":"a"},{"device_id":"b"}],"devices_next_cursor":"x&1"}`,
		"/v1/licenses/A ":    `{"devices":[{"device_id":"a"},{"device_id":"b"}],"next_cursor":"x&1"}`,
		"/v1/licenses/A x&1": `{"devices":[{"device_id":"c"}],"next_cursor":"2"}`,
		"/v1/licenses/A 2":   `{"devices":[{"device_id":"d"}],"next_cursor":null}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if license, paged := strings.CutSuffix(path, "/devices"); paged {
			path = license + " " + r.URL.Query().Get("cursor")
		}
		switch data, found := answers[path]; {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"code":40100,"message":"no"}`)
		case !found:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"code":40401,"message":"no"}`)
		default:
			fmt.Fprintf(w, `{"code":0,"message":"success","data":%s}`, data)
		}
	}))
	defer server.Close()

	j := newJournal()
	for _, l := range []*licenseHistory{j.license("A"), j.license("gone")} {
		l.account = 1
	}
	for _, o := range []*orderHistory{j.order("O1"), j.order("O2")} {
		o.account = 1
	}
	read := func(apiKey string) (*stored, error) {
		accounts, err := (&service{apiKeys: []string{"other", apiKey}}).clients(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return readBack(t.Context(), accounts, j)
	}
	st, err := read("secret")
	if err != nil {
		t.Fatal(err)
	}
	if len(st.licenses) != 2 || len(st.licenses["A"].devices) != 4 || st.licenses["L"].OrderNo != "O1" {
		t.Errorf("got licenses %+v", st.licenses)
	}
	if len(st.orders) != 1 || st.orders["O1"].Status != "paid" || st.orders["O1"].LicenseKey != "L" {
		t.Errorf("got orders %+v", st.orders)
	}
	if _, err := read("wrong"); err == nil || !strings.Contains(err.Error(), "40100") {
		t.Errorf("with a wrong API key: %v", err)
	}
}
