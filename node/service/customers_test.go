package service_test

import (
	"strings"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// TestRedactGranted redacts granted licenses of a buyer beside orders, more than one request redacts. Licenses of other
// buyers, of other owners, and of no buyer keep their customers.
func TestRedactGranted(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner, other := nodetest.NewOwner(licensing.Test), nodetest.NewOwner(licensing.Test)
	grant := func(owner licensing.Owner, quantity int, customer licensing.Customer) []store.LicenseView {
		t.Helper()
		granted, _, err := n.Grant(nodetest.Context(t), owner, service.Grant{
			ProductID: "pro", Quantity: quantity, ExpiresAt: n.Now().Add(time.Hour), Metadata: `{"seat":"secret"}`,
			Customer: customer, Once: &node.Once{Hash: "0123456789abcde" + string(rune('a'+quantity%26))},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range granted {
			if granted[i].Metadata.Customer != customer {
				t.Fatalf("granted %+v, want the customer %+v", granted[i], customer)
			}
		}
		return granted
	}
	gone := licensing.Customer{BuyerEmail: strings.ToUpper(buyer), Reference: "C-1"}
	var want []licensing.LicenseKey
	for _, view := range grant(owner, service.MaxRedact+7, gone) {
		want = append(want, view.License.Key)
	}
	order := sell(t, n, bought(t, n, owner, buyer))
	kept := licensing.Customer{BuyerEmail: "bob@example.com", Reference: "C-1"}
	unnamed := licensing.Customer{Reference: "C-2"}
	var others []licensing.LicenseKey
	for _, view := range append(grant(owner, 1, kept), grant(owner, 2, unnamed)...) {
		others = append(others, view.License.Key)
	}
	strangers := grant(other, 3, gone)

	by := func(owner licensing.Owner, of licensing.Customer) []licensing.LicenseKey {
		return licensesOf(t, n, owner, service.LicenseFilter{Customer: of})
	}
	same(t, "the buyer's licenses", by(owner, licensing.Customer{BuyerEmail: buyer}), append(want, order.LicenseKey))
	once := &node.Once{Hash: "redact redact re"}
	wantRedaction(t, n, owner, once, licensing.Redaction{Orders: 1, Licenses: service.MaxRedact + 1}, false)
	done := licensing.Redaction{Orders: 1, Licenses: service.MaxRedact + 8, Complete: true}
	wantRedaction(t, n, owner, once, done, false)
	wantRedaction(t, n, owner, once, done, true)
	wantRedaction(t, n, owner, nil, licensing.Redaction{Complete: true}, false)
	for _, key := range append(want, order.LicenseKey) {
		view, err := n.License(nodetest.Context(t), owner, key, store.DevicePage{})
		if err != nil || view.Metadata != (licensing.Metadata{}) {
			t.Fatalf("after the redaction: %+v, %v", view, err)
		}
	}
	same(t, "the buyer's licenses", by(owner, licensing.Customer{BuyerEmail: buyer}), nil)
	same(t, "licenses with a reference", by(owner, licensing.Customer{Reference: "C-1"}), others[:1])
	same(t, "licenses with another reference", by(owner, unnamed), others[1:])
	same(t, "another buyer's licenses", by(owner, licensing.Customer{BuyerEmail: kept.BuyerEmail}), others[:1])
	same(t, "another owner's licenses", by(other, gone),
		[]licensing.LicenseKey{strangers[0].License.Key, strangers[1].License.Key, strangers[2].License.Key})
}
