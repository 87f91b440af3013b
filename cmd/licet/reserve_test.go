package main

import (
	"fmt"
	"strings"
	"testing"

	"licet/internal/etcdtest"
	"licet/kv"
	"licet/node/store"
)

// TestAlmostFullStore fills three members of etcd with a small quota to 90 %: requests that make the store grow are
// refused, all others go on. Below 85 % everything is possible again.
func TestAlmostFullStore(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.StartSmall(t, 3, 8<<20)
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	p := startServe(t, "--etcd-endpoints", strings.Join(cluster.Endpoints(), ","))
	p.key = key
	ballast := etcdtest.NewBallast(t, cluster.Members[0].Endpoint)
	t.Cleanup(func() { p.log.forgive("etcd is almost full") })

	finite, unlimited, spare := p.grant(t, 3), p.grant(t, 0), p.grant(t, 1)
	for _, license := range []string{finite, unlimited} {
		wantActivated(t, p, license, "bound", 200)
	}
	const newOrder = `{"product_id":"editor","amount":100,"currency":"USD"}`
	order := p.want(t, 201, "POST", "/v1/orders", newOrder).Data
	child := p.want(t, 201, "POST", "/v1/keys", `{"name":"child","scopes":["events:read"]}`).Data
	endpoint := p.want(t, 201, "POST", "/v1/webhook_endpoints", `{"url":"https://example.com/hook"}`).Data
	waitForSpace(t, p, store.SpaceFree)

	ballast.FillInUse(0.905)
	waitForSpace(t, p, store.SpaceReserve)
	for _, refused := range []struct{ method, path, body string }{
		{"POST", "/v1/licenses", `{"product_id":"pro","quantity":1}`},
		{"POST", "/v1/orders", newOrder},
		{"PUT", "/v1/products/new", `{"name":"New"}`},
		{"POST", "/v1/keys", `{"name":"another","scopes":["events:read"]}`},
		{"POST", "/v1/webhook_endpoints", `{"url":"https://example.com/other"}`},
		{"PATCH", "/v1/webhook_endpoints/" + endpoint.text("id"), `{"description":"text"}`},
		{"PATCH", "/v1/licenses/" + finite, `{"metadata":{"a":1}}`},
		{"POST", "/v1/licenses/activate", `{"license_key":"` + finite + `","device_id":"new"}`},
		{"POST", "/v1/licenses/activate", `{"license_key":"` + unlimited + `","device_id":"new"}`},
	} {
		r := p.want(t, 503, refused.method, refused.path, refused.body)
		if r.Code != 50300 || !strings.Contains(string(r.body), "the store is almost full") {
			t.Errorf("%s %s: %s", refused.method, refused.path, r.body)
		}
	}

	wantActivated(t, p, finite, "bound", 200)
	p.want(t, 200, "POST", "/v1/licenses/validate", `{"license_key":"`+finite+`","device_id":"bound"}`)
	p.want(t, 200, "GET", "/v1/licenses/"+finite, "")
	p.want(t, 200, "GET", "/v1/licenses", "")
	p.want(t, 200, "PATCH", "/v1/licenses/"+finite, `{"max_devices":2}`)
	p.want(t, 200, "PATCH", "/v1/webhook_endpoints/"+endpoint.text("id"), `{"status":"disabled"}`)
	p.want(t, 200, "DELETE", "/v1/licenses/"+finite+"/devices/bound", "")
	p.want(t, 200, "POST", "/v1/licenses/"+finite+"/suspend", `{"reason":"unpaid"}`)
	p.want(t, 200, "POST", "/v1/licenses/"+finite+"/reinstate", "")
	p.want(t, 200, "POST", "/v1/licenses/"+finite+"/renew", `{"expires_at":"2099-01-01T00:00:00Z"}`)
	p.want(t, 200, "POST", "/v1/licenses/"+finite+"/revoke", "")
	orderPath := "/v1/orders/" + order.text("order_no")
	if now := p.want(t, 200, "PUT", orderPath+"/sandbox_payment", "").Data; now.text("status") != "paid" ||
		now.text("license_key") == "" {
		t.Errorf("the order: %v", now)
	}
	p.want(t, 200, "POST", orderPath+"/refund", "")
	p.want(t, 200, "DELETE", "/v1/keys/"+child.text("id"), "")
	p.want(t, 200, "POST", "/v1/redactions", `{"buyer_email":"buyer@example.com"}`)
	events := fmt.Sprint(p.want(t, 200, "GET", "/v1/licenses/"+finite+"/events", "").Data)
	for _, kind := range []string{"license.suspended", "license.reinstated", "license.renewed", "license.revoked"} {
		if !strings.Contains(events, kind) {
			t.Errorf("the change has no event %s", kind)
		}
	}
	ballast.Free(0.84)
	waitForSpace(t, p, store.SpaceFree)
	p.want(t, 201, "POST", "/v1/orders", newOrder)
	wantActivated(t, p, unlimited, "new", 200)
	wantActivated(t, p, spare, "first", 200)
}

func waitForSpace(t *testing.T, p *process, space store.Space) {
	t.Helper()
	waitFor(t, func() bool {
		r, err := p.send(t.Context(), "GET", "/readyz", "")
		return err == nil && r.status == 200 && r.Data.text("store_space") == space.String()
	})
}

func wantActivated(t *testing.T, p *process, license, device string, status int) {
	t.Helper()
	if r, err := p.activate(t.Context(), license, device); err != nil || r.status != status {
		t.Errorf("activating %s: %s, %v", device, r.body, err)
	}
}
