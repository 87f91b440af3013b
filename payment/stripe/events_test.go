package stripe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/internal/fakestripe"
	"licet/payment"
)

// TestLongEvents: Stripe lists all events, also if the events of disputes contain as much evidence as Stripe accepts.
func TestLongEvents(t *testing.T) {
	f := newFixture(t)
	order, _ := f.paid(4900, "USD", fakestripe.CardPays)
	id, err := f.fake.Dispute(order.Payment)
	if err != nil {
		t.Fatal(err)
	}
	const changes = 15
	evidence := strings.Repeat("証", 150_000) // which is longer than as many letters
	for range changes {
		f.fake.Contest(id, evidence)
	}
	seen, after := map[string]bool{}, ""
	for more := true; more; {
		page, err := f.provider.Events(t.Context(), time.Time{}, after)
		if err != nil || len(page.Events) == 0 {
			t.Fatalf("after %d events: %+v, %v", len(seen), page, err)
		}
		for _, event := range page.Events {
			if event.Object != (payment.Object{Kind: payment.ObjectDispute, ID: id}) || seen[event.ID] {
				t.Errorf("%+v", event)
			}
			seen[event.ID], after = true, event.ID
		}
		more = page.More
	}
	if len(seen) != changes+2 { // that the dispute is there, and has taken the money
		t.Errorf("%d events", len(seen))
	}
}

// TestReinstatedFunds: Stripe gives back the money of a won dispute after the dispute is closed. The event about that
// names the dispute, in a callback and in the list of events.
func TestReinstatedFunds(t *testing.T) {
	f := newFixture(t)
	r := newReceiver(t)
	order, _ := f.paid(4900, "USD", fakestripe.CardPays)
	id, err := f.fake.Dispute(order.Payment)
	if err != nil {
		t.Fatal(err)
	}
	f.secrets.Webhook = []string{f.fake.AddEndpoint(testKey, r.URL)}
	f.fake.Decide(id, true)
	dispute := payment.Object{Kind: payment.ObjectDispute, ID: id}
	if called := f.objects(r); !slices.Equal(called, []payment.Object{dispute, dispute}) {
		t.Errorf("the callbacks name %v", called)
	}
	page, err := f.provider.Events(t.Context(), time.Time{}, "")
	if err != nil || len(page.Events) != 4 { // the dispute is there, has taken the money, is closed, and gives it back
		t.Errorf("%+v, %v", page.Events, err)
	}
	if kept := f.fake.Kept(order.OrderNo); kept != 4900 {
		t.Errorf("the shop has %d", kept)
	}
}

// TestEventsOfKeys: another secret key has another EventPage.Key. A wrong key is no missing permission.
func TestEventsOfKeys(t *testing.T) {
	f := newFixture(t)
	const other = "rk_test_other0123456789"
	f.fake.AddKey(other)
	keys := map[string]bool{}
	for _, key := range []string{testKey, other, testKey} {
		f.secrets.Key = key
		page, err := f.provider.Events(t.Context(), time.Time{}, "")
		if err != nil || page.Key == "" || len(page.Key) > 64 || strings.Contains(page.Key, key) {
			t.Errorf("%+v, %v", page, err)
		}
		keys[page.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("the keys are %v", keys)
	}
	f.secrets.Key = "sk_test_revoked0123456789"
	if _, err := f.provider.Events(t.Context(), time.Time{}, ""); err == nil || errors.Is(err, payment.ErrForbidden) {
		t.Errorf("with a wrong key: %v", err)
	}
	f.secrets.Key = other
	f.fake.Forbid(other, "/v1/events")
	f.fake.Forbid(other, "/v1/disputes")
	if _, err := f.provider.Events(t.Context(), time.Time{}, ""); !errors.Is(err, payment.ErrForbidden) {
		t.Errorf("without the permission: %v", err)
	}
	object := payment.Object{Kind: payment.ObjectDispute, ID: "du_1"}
	if _, err := f.provider.Look(t.Context(), object); !errors.Is(err, payment.ErrForbidden) {
		t.Errorf("without the permission to read disputes: %v", err)
	}
}
