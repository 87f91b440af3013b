package stripe_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	sdk "github.com/stripe/stripe-go/v86"

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
	if _, err := f.provider.Connect(t.Context(), r.URL); err == nil || !strings.Contains(err.Error(), endpoint.ID) ||
		strings.Contains(err.Error(), "does not send") {
		t.Errorf("the second endpoint: %v", err)
	}
	old, err := http.NewRequest(http.MethodPost, f.fake.URL+"/v1/webhook_endpoints", strings.NewReader(url.Values{
		"url": {r.URL + "/old"}, "enabled_events[0]": {"refund.created"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	old.Header = http.Header{"Authorization": {"Bearer " + testKey}, "Stripe-Version": {sdk.APIVersion},
		"Content-Type": {"application/x-www-form-urlencoded"}}
	made, err := http.DefaultClient.Do(old)
	if err != nil || made.Body.Close() != nil || made.StatusCode != http.StatusOK {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := f.provider.Connect(t.Context(), r.URL+"/old"); err == nil ||
		!strings.Contains(err.Error(), "does not send checkout.session.completed, ") ||
		!strings.Contains(err.Error(), ", charge.updated, which") || strings.Contains(err.Error(), "refund.created") {
		t.Errorf("the endpoint of an earlier version: %v", err)
	}
	f.fake.Forbid(testKey, "/v1/webhook_endpoints")
	if _, err := f.provider.Connect(t.Context(), r.URL+"/other"); err == nil || !strings.Contains(err.Error(),
		"permissions") {
		t.Errorf("without the permission: %v", err)
	}
}
