package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/handlers"
	"licet/licensing"
	"licet/payment"
)

// counter is a provider that counts refunds, and has a page for the card of a subscription. The test sets its answers.
type counter struct {
	payment.Sandbox
	refunds int
	says    error
}

func (c *counter) Refund(context.Context, licensing.Order, licensing.Payment) (payment.State, error) {
	c.refunds++
	return payment.State{Outcome: payment.OutcomeDone}, c.says
}

func (*counter) Portal(context.Context, licensing.Order) (string, error) {
	return "https://billing.stripe.com/p/session/test_YWNjdF8", nil
}

// withProvider replaces the payment provider of the service.
func (s *fixture) withProvider(p payment.Provider) {
	s.t.Helper()
	s.config.Desk = payment.NewDesk(s.node, payment.ForMode(licensing.Test, p))
	s.addr = serve(s.t, handlers.New(s.config))
}

func (s *fixture) changeOrder(made answer, verb, body string, headers ...string) answer {
	s.t.Helper()
	return s.send("POST", "/v1/orders/"+made.text("order_no")+"/"+verb, keyAll, body, headers...)
}

// transitions is the contract's table of orders: for each state and request, the status afterwards,
// and the code of a refusal.
const transitions = `
from     | pay      | cancel         | refund
unpaid   | paid     | canceled       | unpaid 40902
expired  | paid     | expired 40902  | expired 40902
canceled | refunded | canceled       | canceled 40902
paid     | paid     | paid 40902     | refunded
refunded | refunded | refunded 40902 | refunded
`

func TestOrderTransitions(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(transitions), "\n")
	head := strings.Split(lines[0], "|")
	for _, line := range lines[1:] {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		for i, cell := range cells[1:] {
			verb := strings.TrimSpace(head[i+1])
			t.Run(cells[0]+"/"+verb, func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				provider := &counter{}
				s.withProvider(provider)
				made := s.bring(cells[0])
				before := s.sendWire(s.lookup(made)).must(t, 0)
				if before.text("status") != cells[0] {
					t.Fatalf("the row is wrong: its order is %s before the request", before.text("status"))
				}
				s.clock.advance(time.Minute)
				status, refusal, _ := strings.Cut(cell, " ")
				if verb == "pay" {
					s.pay(made)
				} else {
					code := 0
					if refusal != "" {
						_, _ = fmt.Sscan(refusal, &code)
					}
					answered := s.changeOrder(made, verb, `{"reason":"because"}`).must(t, code)
					if code == 0 && answered.text("status") != status {
						t.Errorf("answered %s", answered.body)
					}
				}
				after := s.sendWire(s.lookup(made)).must(t, 0)
				if after.text("status") != status {
					t.Fatalf("the order became %s, want %s", after.text("status"), status)
				}
				if status == cells[0] && after.body != before.body {
					t.Errorf("a refused request changed the order:\n%s\n%s", before.body, after.body)
				}
				if late := after.data["late"]; late != (cells[0] == "expired" && status == "paid") {
					t.Errorf("late is %v", late)
				}
				s.checkLicenseOf(after)
				if want := map[bool]int{true: 1}[status == "refunded"]; provider.refunds != want {
					t.Errorf("the provider made %d refunds, want %d", provider.refunds, want)
				}
			})
		}
	}
}

// bring makes an order and brings it to a state.
func (s *fixture) bring(status string) answer {
	s.t.Helper()
	made := s.order("5")
	switch status {
	case "expired":
		s.clock.advance(25 * time.Hour)
	case "canceled":
		s.changeOrder(made, "cancel", "").must(s.t, 0)
	case "paid":
		s.pay(made)
	case "refunded":
		s.pay(made)
		s.changeOrder(made, "refund", "").must(s.t, 0)
	}
	return made
}

// checkLicenseOf compares an order with its license: a paid order has a license that is not revoked. A refunded order
// has a revoked license, or none if the order was canceled before.
func (s *fixture) checkLicenseOf(o answer) {
	s.t.Helper()
	key := o.text("license_key")
	switch {
	case o.text("status") == "paid":
		s.activate(key, "laptop").must(s.t, 0)
	case key != "" && o.text("status") == "refunded":
		s.activate(key, "laptop").must(s.t, 40301)
	case key != "":
		s.t.Errorf("%s has the license %s", o.text("status"), key)
	}
	if n := s.store.count(licensing.KindLicense); (n == 1) != (key != "") {
		s.t.Errorf("there are %d licenses", n)
	}
}

// TestOrderExpiryIsRecorded: an order has expired before the expiry is recorded, and stays so
// afterwards.
func TestOrderExpiryIsRecorded(t *testing.T) {
	t.Parallel()
	s := newService(t)
	made := s.order("5")
	s.clock.advance(24 * time.Hour)
	before := s.sendWire(s.lookup(made)).must(t, 0)
	s.clock.advance(time.Hour)
	if err := s.node.RecordOrderEnds(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := s.sendWire(s.lookup(made)).must(t, 0)
	if before.text("status") != "expired" || before.body != after.body &&
		before.data["status"] != after.data["status"] {
		t.Errorf("before and after it was recorded:\n%s\n%s", before.body, after.body)
	}
	s.pay(made)
	if paid := s.sendWire(s.lookup(made)).must(t, 0); paid.text("status") != "paid" || paid.data["late"] != true {
		t.Errorf("paid late: %s", paid.body)
	}
}

// TestOrderMembers names every member that a lookup answers, whatever the state.
func TestOrderMembers(t *testing.T) {
	t.Parallel()
	want := []string{"order_no", "status", "product_id", "amount", "currency", "description", "buyer_email", "metadata",
		"pay_url",
		"created_at", "expires_at", "paid_at", "canceled_at", "refunded_at", "license_id", "license_key", "late",
		"success_url", "state_reason", "refund_due", "amount_paid", "amount_refunded", "refund_pending", "fee",
		"upgrade_of",
		"account_id", "mode", "payment_provider",
		"payment_reference", "quantity", "licenses_issued", "license_keys"}
	slices.Sort(want)
	for _, status := range []string{"unpaid", "expired", "canceled", "paid", "refunded"} {
		s := newService(t)
		o := s.sendWire(s.lookup(s.bring(status))).must(t, 0)
		if got := slices.Sorted(maps.Keys(o.data)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", status, got, want)
		}
		set := map[string]bool{"pay_url": status == "unpaid", "canceled_at": status == "canceled",
			"paid_at":     status == "paid" || status == "refunded",
			"license_key": status == "paid" || status == "refunded",
			"refunded_at": status == "refunded", "description": false, "buyer_email": false, "success_url": false,
			"state_reason": false}
		for name, want := range set {
			if (o.data[name] != nil) != want {
				t.Errorf("%s: %s is %v", status, name, o.data[name])
			}
		}
	}
}

// TestBadOrderChanges: each request gets its error, changes nothing, and does not reach the provider.
func TestBadOrderChanges(t *testing.T) {
	t.Parallel()
	s := newService(t)
	provider := &counter{}
	s.withProvider(provider)
	for verb, status := range map[string]string{"cancel": "unpaid", "refund": "paid"} {
		made := s.bring(status)
		provider.refunds = 0
		path := "/v1/orders/" + made.text("order_no") + "/" + verb
		before := s.sendWire(s.lookup(made)).body
		absent := made.text("order_no")[:30] + "0"
		for name, c := range map[string]struct {
			method, path, key, body string
			headers                 []string
			code                    int
			field                   string
		}{
			"no key":            {"POST", path, "", "", nil, 40100, ""},
			"an unknown key":    {"POST", path, testKey("nobody"), "", nil, 40100, ""},
			"an expired key":    {"POST", path, keyExpired, "", nil, 40100, ""},
			"no scope":          {"POST", path, keyReadOnly, "", nil, 40300, ""},
			"GET":               {"GET", path, keyAll, "", nil, 40500, ""},
			"DELETE":            {"DELETE", path, keyAll, "", nil, 40500, ""},
			"a form":            {"POST", path, keyAll, "reason=x", asForm, 41500, ""},
			"not JSON":          {"POST", path, keyAll, `{"reason":`, nil, 40000, ""},
			"null":              {"POST", path, keyAll, `null`, nil, 40000, ""},
			"an array":          {"POST", path, keyAll, `[]`, nil, 40000, ""},
			"trailing bytes":    {"POST", path, keyAll, `{} {}`, nil, 40000, ""},
			"a number":          {"POST", path, keyAll, `{"reason":1}`, nil, 40000, ""},
			"twice":             {"POST", path, keyAll, `{"reason":"a","reason":"b"}`, nil, 40000, ""},
			"an unknown member": {"POST", path, keyAll, `{"amounts":5}`, nil, 40000, ""},
			"bad UTF-8":         {"POST", path, keyAll, "{\"reason\":\"\xff\"}", nil, 40000, ""},
			"a long reason": {"POST", path, keyAll, `{"reason":"` + strings.Repeat("ü", 1001) + `"}`, nil,
				42200, "reason"},
			"a control character": {"POST", path, keyAll, `{"reason":"\u0007"}`, nil, 42200, "reason"},
			"an empty key": {"POST", path, keyAll, "", []string{"Idempotency-Key", ""}, 42200,
				"Idempotency-Key"},
			"a long key": {"POST", path, keyAll, "", []string{"Idempotency-Key", strings.Repeat("k", 256)},
				42200, "Idempotency-Key"},
			"another account": {"POST", path, keyOther, "", nil, 40403, ""},
			"the other mode":  {"POST", path, keyLive, "", nil, 40403, ""},
			"no such order": {"POST", strings.Replace(path, made.text("order_no"), absent, 1), keyAll, "",
				nil, 40403, ""},
			"no order number": {"POST", "/v1/orders/x/" + verb, keyAll, "", nil, 40403, ""},
			"no order number, a key": {"POST", "/v1/orders/x/" + verb, keyAll, "",
				[]string{"Idempotency-Key", "k-" + verb}, 40403, ""},
			"fields before the order": {"POST", "/v1/orders/x/" + verb, keyAll, `{"reason":"\u0000"}`, nil, 42200,
				"reason"},
			"no such verb": {"POST", path + "s", keyAll, "", nil, 40400, ""},
		} {
			a := s.send(c.method, c.path, c.key, c.body, c.headers...)
			if a.code != c.code || c.field != "" && (len(a.fields) != 1 || a.fields[c.field] == "") {
				t.Errorf("%s, %s: %s, want %d", verb, name, a.body, c.code)
			}
			if after := s.sendWire(s.lookup(made)).body; after != before {
				t.Fatalf("%s, %s: the order changed\n%s\n%s", verb, name, before, after)
			}
		}
		if provider.refunds > 0 {
			t.Errorf("the provider was asked for %d refunds", provider.refunds)
		}
		good := `{"reason":"` + strings.Repeat("ü", 998) + `\n\t"}`
		if changed := s.changeOrder(made, verb, good).must(t, 0); len([]rune(changed.text("state_reason"))) != 1000 {
			t.Errorf("%s: %s", verb, changed.body)
		}
	}
	// Every member is optional, and so is the body. A member that is null counts as missing.
	for _, body := range []string{"", `{}`, `{"reason":null}`, `{"reason":""}`} {
		if canceled := s.changeOrder(s.order("5"), "cancel", body).must(t, 0); canceled.data["state_reason"] != nil {
			t.Errorf("%s: %s", body, canceled.body)
		}
	}
}

// TestOrderChangesUnderAKey replays changes and refusals.
func TestOrderChangesUnderAKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	provider := &counter{}
	s.withProvider(provider)
	f := func(made answer, verb, body, key string, code int, replayed bool) answer {
		t.Helper()
		a := s.changeOrder(made, verb, body, "Idempotency-Key", key).must(t, code)
		if got := a.header.Get("Idempotent-Replayed") == "true"; got != replayed {
			t.Errorf("%s under %s: replayed %v: %s", verb, key, got, a.body)
		}
		return a
	}
	made := s.bring("unpaid")
	f(made, "cancel", "", "a", 0, false)
	f(made, "cancel", "", "a", 0, true)
	f(made, "cancel", "{}", "a", 42201, false)
	f(made, "refund", "", "a", 42201, false)
	f(made, "refund", "", "b", 40902, false)
	s.pay(made) // the payment is refunded
	f(made, "refund", "", "b", 40902, true)
	f(made, "refund", "", "c", 0, false) // refunded already
	if again := f(made, "cancel", "", "a", 0, true); again.text("status") != "refunded" {
		t.Errorf("a replay shows the order as it is now: %s", again.body)
	}
	if provider.refunds != 1 {
		t.Errorf("%d refunds", provider.refunds)
	}
	paid := s.bring("paid")
	f(paid, "cancel", "", "d", 40902, false)
	f(paid, "refund", "", "e", 0, false)
	f(paid, "cancel", "", "d", 40902, true)
	f(paid, "refund", "", "e", 0, true)
	if provider.refunds != 2 {
		t.Errorf("%d refunds", provider.refunds)
	}
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
	unknown := s.changeOrder(s.order2(), "cancel", "").must(t, 50400)
	if retryable := unknown.raw["error"].(map[string]any)["retryable"]; retryable != true {
		t.Errorf("an unknown outcome: %s", unknown.body)
	}
}

// order2 makes an order although the store reports an unknown outcome.
func (s *fixture) order2() answer {
	s.t.Helper()
	s.store.breakWith(nil, nil)
	made := s.order("5")
	s.store.breakWith(nil, licensing.ErrOutcomeUnknown)
	return made
}

// TestRefundWhileTheProviderFails: while the provider fails, the order keeps its status and the refund
// is due. After a refusal of the provider, nothing has changed.
func TestRefundWhileTheProviderFails(t *testing.T) {
	t.Parallel()
	s := newService(t)
	provider := &counter{says: errors.New("no answer")}
	s.withProvider(provider)
	made := s.bring("paid")
	shown := func() answer { return s.sendWire(s.lookup(made)).must(t, 0) }
	before := shown()
	failed := s.changeOrder(made, "refund", `{"reason":"too slow"}`).must(t, 50200)
	if failed.reason != "provider_failed" || failed.raw["error"].(map[string]any)["retryable"] != false {
		t.Errorf("answered %s", failed.body)
	}
	o := shown()
	if o.text("status") != "paid" || o.data["refund_due"] != true || o.text("state_reason") != "too slow" ||
		o.data["refunded_at"] != nil {
		t.Errorf("meanwhile the order is %s", o.body)
	}
	s.activate(o.text("license_key"), "laptop").must(t, 0)
	page := s.send("GET", strings.TrimPrefix(made.text("pay_url"), publicURL), "", "").mustPage(t, 200)
	if !strings.Contains(page.body, "Payment received") || !strings.Contains(page.body, o.text("license_key")) {
		t.Errorf("the buyer sees:\n%s", page.body)
	}
	provider.says = payment.ErrRefused
	s.changeOrder(made, "refund", "").must(t, 50200)
	if o := shown(); o.body != before.body {
		t.Errorf("after the provider refused:\n%s\nbefore\n%s", o.body, before.body)
	}
	provider.says = nil
	s.changeOrder(made, "refund", "").must(t, 0)
	s.checkLicenseOf(shown())
}
