package handlers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// TestMessages compares a message of each type, as webhook endpoints receive it, with its golden file. The golden
// files are the examples of the API document.
func TestMessages(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.recordEachType()
	var feed struct {
		Data struct{ Events []json.RawMessage }
	}
	decode := func(text string, into any) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	decode(s.send("GET", "/v1/events?limit=100", keyAll, "").must(t, 0).body, &feed)
	messages := make(map[licensing.EventType]string)
	for _, e := range feed.Data.Events {
		var of struct{ Type licensing.EventType }
		decode(string(e), &of)
		if messages[of.Type] == "" {
			messages[of.Type] = string(e)
		}
	}
	messages["webhook.ping"] = s.testMessage()
	for _, typ := range append(licensing.EventTypes(), "webhook.ping") {
		if messages[typ] == "" {
			t.Errorf("no event has the type %s", typ)
			continue
		}
		checkMessage(t, string(typ), messages[typ])
	}
}

// renewed makes an order with a subscription that is renewed, then past due, and then canceled.
func (s *fixture) renewed() {
	s.t.Helper()
	s.product("cloud", `"billing":{"interval":"P1M"}`).must(s.t, 0)
	number := s.send("POST", "/v1/orders", keyAll, `{"product_id":"cloud","amount":900,"currency":"EUR"}`).
		must(s.t, 0).text("order_no")
	ctx, owner := s.t.Context(), licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	o, err := s.node.Order(ctx, owner, number)
	if err != nil {
		s.t.Fatal(err)
	}
	end := s.clock.Now().AddDate(0, 1, 0)
	if _, err := s.node.PayOrder(ctx, o, licensing.Payment{
		Provider: licensing.ProviderStripe, Reference: "pi_1", Subscription: "sub_1", PeriodEnd: end,
	}); err != nil {
		s.t.Fatal(err)
	}
	if err := s.node.RecordInvoice(ctx, o, licensing.Payment{
		OrderNo: number, Provider: licensing.ProviderStripe, Reference: "in_2", ProviderID: "pi_2", Amount: 900,
		Currency: "EUR", PeriodEnd: end.AddDate(0, 1, 0), ProductID: "cloud",
	}); err != nil {
		s.t.Fatal(err)
	}
	for _, status := range licensing.SubscriptionStatuses()[1:] {
		if o, _, err = s.node.NoteSubscription(ctx, o, licensing.NoteSubscription{Status: status}); err != nil {
			s.t.Fatal(err)
		}
	}
}

// disputed records that the buyer disputes the payment of an order.
func (s *fixture) disputed(number string) {
	s.t.Helper()
	ctx, owner := s.t.Context(), licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	o, err := s.node.Order(ctx, owner, number)
	if err == nil {
		err = s.node.NoteDispute(ctx, o, licensing.NoteDispute{Dispute: licensing.Payment{
			Provider: o.PaidThrough(), Reference: "du_1", State: licensing.PaymentOpen, Amount: o.Amount,
			Currency: o.Currency,
		}}, true)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// recordEachType makes changes that record events of all types.
func (s *fixture) recordEachType() {
	s.t.Helper()
	key := s.eventful()
	s.change(key, "reinstate", "").must(s.t, 0)
	s.send("PATCH", "/v1/licenses/"+key, keyAll, `{"max_devices":3}`).must(s.t, 0)
	s.change(key, "renew", `{"expires_at":"2030-02-01T00:00:00Z"}`).must(s.t, 0)
	s.press(s.order("5"), "cancel")
	s.bring("refunded")
	s.changeOrder(s.bring("paid"), "refund", `{"amount":2}`).must(s.t, 0)
	s.renewed()
	s.order("5")
	s.clock.advance(60 * 24 * time.Hour)
	if err := errors.Join(s.node.RecordOrderEnds(s.t.Context()), s.node.RecordLicenseEnds(s.t.Context())); err != nil {
		s.t.Fatal(err)
	}
	s.change(key, "renew", `{"expires_at":"2031-02-01T00:00:00Z"}`).must(s.t, 0)
	s.change(key, "revoke", `{"reason":"fraud"}`).must(s.t, 0)

	owner := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	id := s.webhook("https://shop.example.com/licet")
	endpoint, err := s.node.Webhook(s.t.Context(), owner, id)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.node.DisableWebhook(s.t.Context(), owner, licensing.DisableEndpoint{
		ID: id, ResetAt: endpoint.ResetAt, Because: licensing.DisabledGone,
	}); err != nil {
		s.t.Fatal(err)
	}
	// The usage becomes 64 MiB of a budget of 100 MiB: 4/5 of what ordinary growth may store.
	var usage licensing.Record
	if _, err := licensing.Apply(&usage, licensing.AddUsage{
		Owner: owner, Budget: licensing.Budget{Bytes: 100 << 20, Keys: 100_000},
		Changes: []licensing.SizeChange{{Revision: 1, Size: licensing.Size{Bytes: 64 << 20, Keys: 71_203}}},
	}, s.clock.Now()); err != nil {
		s.t.Fatal(err)
	}
	// The store returns an event of this type in place of an event that it can't decode.
	usage.Events = append(usage.Events, licensing.Event{
		Type: licensing.EventUnreadable, At: s.clock.Now(), Sequence: 2, Actor: licensing.System,
	})
	s.store.put(usage, licensing.UsageRef(owner))
	s.change(s.license(), "reissue", `{"reason":"leaked"}`).must(s.t, 0)
	s.activate(s.leased(), "workstation").must(s.t, 0)
	s.clock.advance(time.Hour)
	if err := s.node.RemoveLapsedLeases(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.product("desk", `"device_match":{"at_least":1}`).must(s.t, 0)
	desk := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"desk","quantity":1}`).must(s.t, 0).grantedKey()
	for _, parts := range []string{`"old","device_components":{"disk":%[2]q,"board":%[2]q}`,
		`"new","device_components":{"disk":%[2]q}`} {
		s.send("POST", "/v1/licenses/activate", "", fmt.Sprintf(`{"license_key":%[1]q,"device_id":`+parts+`}`, desk,
			strings.Repeat("1a", 32))).must(s.t, 0)
	}
	s.tried("editor", `{"validity":"P14D","per":"device"}`)
	// The end of a revoked license is not recorded: nothing else happens in the sweep.
	s.change(s.trial(keyAll, `"device_id":"laptop"`).must(s.t, 0).text("license_key"), "revoke", "").must(s.t, 0)
	s.clock.advance(15*24*time.Hour + licensing.TrialMemory)
	if err := s.node.SweepTrials(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	bought := s.trial(keyAll, `"device_id":"workstation"`).must(s.t, 0).text("license_key")
	order := s.send("POST", "/v1/orders", keyAll,
		`{"product_id":"editor","amount":4900,"currency":"USD","upgrade_of":"`+bought+`"}`).must(s.t, 0).text("order_no")
	s.send("PUT", "/v1/orders/"+order+"/sandbox_payment", keyAll, "").must(s.t, 0)
	s.graced()
	s.giveNotices()
	s.clock.advance(3 * 24 * time.Hour)
	s.giveNotices()
	s.disputed(s.bring("paid").text("order_no"))
}

// testMessage returns the test message that an endpoint receives.
func (s *fixture) testMessage() string {
	s.t.Helper()
	r := newReceiver(s.t, 200, "")
	s.send("POST", webhookPath(s.webhook(r.URL+"/licet"), "/test"), keyAll, "").must(s.t, 0)
	r.mu.Lock()
	defer r.mu.Unlock()
	message := strings.ReplaceAll(string(r.body), r.URL, "https://shop.example.com")
	return pingID.ReplaceAllString(message, "ping_01M8CDR5AE"+strings.Repeat("0", 16))
}

// checkMessage compares a message, with its JSON indented, with its golden file.
func checkMessage(t *testing.T, name, message string) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(message), "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	path := filepath.Join("testdata", "golden", "messages", name+".json")
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
