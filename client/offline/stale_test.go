package offline

import (
	"net/http"
	"testing"
	"time"

	"licet/client"
	"licet/receipt"
)

// TestStaleList: a program whose list of revocations is too old, after a time without network, goes on with a newer
// list from a cache: without an answer of the service, and with a receipt from a file. Once the receipt is void, the
// program does not go on.
func TestStaleList(t *testing.T) {
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor",
		MaxDevices: new(1), RevocationMaxAge: "PT1M"})
	for _, way := range []string{"activated", "from a file"} {
		licenseKey := granted(t, api)
		network := &switching{RoundTripper: http.DefaultTransport}
		l := laptop(t, service, keys, clock.now,
			client.RetryFor(0), client.WithHTTPClient(&http.Client{Transport: network}))
		if way == "activated" {
			must[*receipt.Receipt](t)(l.Activate(t.Context(), licenseKey, ""))
		} else {
			asked := must[string](t)(l.Request(licenseKey, "", nil))
			file := must[*client.ReceiptFile](t)(api.Receipts.MakeFile(t.Context(),
				client.DeviceRequest{Request: asked}))
			must[*receipt.Receipt](t)(l.Import(file.Text))
		}
		cache := &cdn{now: clock.now, kept: map[string]keptAnswer{}}
		network.RoundTripper = cache
		for round := range 2 {
			cache.away.Store(true)
			clock.ahead.Add(int64(10 * time.Minute))
			want(t, way+", without network", check(t, l), false, string(receipt.Stale))
			cache.away.Store(false)
			want(t, way+", with a cache", check(t, l), true, "")
			if asked := cache.asked; asked != round+1 {
				t.Errorf("%s: the cache has asked the service %d times in %d rounds", way, asked, round+1)
			}
		}
		must[*client.License](t)(api.Licenses.Revoke(t.Context(), licenseKey, ""))
		clock.ahead.Add(int64(10 * time.Minute))
		want(t, way+", revoked, with a cache", check(t, l), false, string(receipt.Voided))
		cache.away.Store(true)
		want(t, way+", revoked, without network", check(t, l), false, string(receipt.Voided))
	}
}
