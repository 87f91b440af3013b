package service_test

import (
	"testing"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
)

// TestRequestsForEntitlements bounds the requests to etcd of activations that answer entitlements: a node reads each
// version of a product's terms once, and the entitlements of a license's own once.
func TestRequestsForEntitlements(t *testing.T) {
	owner := nodetest.NewOwner(licensing.Test)
	shop := nodetest.New(t, nodetest.OpenStore(t))
	_, _, err := shop.PutProduct(t.Context(), licensing.PutProduct{ID: "pro", Owner: owner,
		Terms: licensing.Terms{KeyPrefix: "LIC", MaxDevices: 3}, Entitlements: `{"export":true}`})
	nodetest.WantError(t, err, nil)
	grant := func(own licensing.Entitlements) licensing.LicenseKey {
		granted, _, err := shop.Grant(t.Context(), owner,
			service.Grant{ProductID: "pro", Quantity: 1, Entitlements: own})
		nodetest.WantError(t, err, nil)
		return granted[0].License.Key
	}
	first, second, special := grant(""), grant(""), grant(`{"beta":true}`)

	cfg := nodetest.StoreConfig()
	n := nodetest.New(t, nodetest.OpenWith(t, cfg))
	for _, step := range []struct {
		what     string
		key      licensing.LicenseKey
		device   string
		requests uint64
		entitled string
	}{
		{"the first license: its record, a swap, the terms", first, "a", 3, `{"export":true}`},
		{"another license: its record, a swap", second, "a", 2, `{"export":true}`},
		{"its next device: a swap", second, "b", 1, `{"export":true}`},
		{"entitlements of its own: its record, a swap, its metadata", special, "a", 3, `{"beta":true,"export":true}`},
		{"its next device: a swap", special, "b", 1, `{"beta":true,"export":true}`},
	} {
		before := etcdRequests(t, cfg.Metrics)
		result := nodetest.MustActivate(t, n, step.key, step.device)
		entitled, err := n.Entitled(t.Context(), &result.License)
		nodetest.WantError(t, err, nil)
		if got := etcdRequests(t, cfg.Metrics) - before; got != step.requests {
			t.Errorf("%s: %d requests, want %d", step.what, got, step.requests)
		}
		if got := entitled.At(result.License.TermsSince(), result.License.ActivatedAt); got != step.entitled {
			t.Errorf("%s: the entitlements are %s, want %s", step.what, got, step.entitled)
		}
	}
}
