package stripe_test

import (
	"strings"
	"testing"

	"licet/internal/fakestripe"
)

// TestConnect: the endpoint gets the callbacks of a payment, signed with the secret. There is no second endpoint.
func TestConnect(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t)
	endpoint, err := f.provider.Connect(t.Context(), r.URL)
	if err != nil || !strings.HasPrefix(endpoint.Secret, "whsec_") || endpoint.ID == "" {
		t.Fatalf("%v", err)
	}
	f.secrets.Webhook = []string{endpoint.Secret}
	if err := f.secrets.Validate(false); err != nil {
		t.Error(err)
	}
	order, _ := f.paid(4900, "USD", fakestripe.CardPays)
	objects := f.objects(r)
	if len(objects) != 1 || objects[0].ID != order.Checkout {
		t.Errorf("callbacks about %+v", objects)
	}
	if _, err := f.provider.Connect(t.Context(), r.URL); err == nil || !strings.Contains(err.Error(), endpoint.ID) {
		t.Errorf("the second endpoint: %v", err)
	}
	f.fake.Forbid(testKey, "/v1/webhook_endpoints")
	if _, err := f.provider.Connect(t.Context(), r.URL+"/other"); err == nil || !strings.Contains(err.Error(),
		"permissions") {
		t.Errorf("without the permission: %v", err)
	}
}
