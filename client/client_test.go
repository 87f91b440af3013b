package client_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/client"
	"licet/internal/servicetest"
	usecases "licet/node/service"
)

// routes returns the routes of version 1 in docs/reference/api.md.
func routes(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /v1/[^`]+)` \\|").FindAllStringSubmatch(apiDoc(t), -1) {
		// Documents for installed programs are in package receipt, and payment providers send callbacks.
		if !strings.HasSuffix(row[1], ".json") && !strings.Contains(row[1], "/callbacks/") {
			found = append(found, row[1])
		}
	}
	if len(found) < 20 {
		t.Fatalf("docs/reference/api.md has the routes %q", found)
	}
	return found
}

func apiDoc(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/api.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEveryRoute calls all routes as a shop would. The calls must cover all routes in the documentation.
func TestEveryRoute(t *testing.T) {
	t.Parallel()
	for _, signed := range []bool{false, true} {
		w := newWire(0)
		shop := newShop(t, nil, w.option())
		if signed {
			key, err := service.NewKey(usecases.NewKey{Owner: servicetest.NewAccount(), Name: "signer",
				Scopes: []string{"*"}, RequireSignature: true})
			if err != nil {
				t.Fatal(err)
			}
			_, err = newClient(t, service.URL, key.Text).Orders.List(t.Context(), client.OrderFilter{}, client.Page{})
			refused(t, err, 40102)
			shop = newClient(t, service.URL, key.Text, w.option(), client.WithSigning(key.Key.ID, key.Secret))
		}
		walk(t, shop)
		var walked []string
		for _, r := range w.noted {
			if (r.Header.Get("Idempotency-Key") != "") != (r.Method == "POST") ||
				!strings.HasPrefix(r.Header.Get("User-Agent"), "licet-go/") {
				t.Errorf("%s %s has the headers %v", r.Method, r.URL.Path, r.Header)
			}
			if i := slices.IndexFunc(routes(t),
				func(route string) bool { return matches(route, r.Method+" "+r.URL.EscapedPath()) }); i >= 0 {
				walked = append(walked, routes(t)[i])
			} else {
				t.Errorf("%s %s is no documented route", r.Method, r.URL.Path)
			}
		}
		slices.Sort(walked)
		documented := routes(t)
		slices.Sort(documented)
		if diff := cmp.Diff(documented, slices.Compact(walked)); diff != "" {
			t.Errorf("documented and not walked (-), or walked only (+):\n%s", diff)
		}
	}
}

// matches reports whether a request belongs to a route. Fixed segments win over variable ones.
func matches(route, request string) bool {
	if strings.HasSuffix(route, "}") &&
		slices.Contains([]string{"activate", "validate", "deactivate"}, request[strings.LastIndex(request, "/")+1:]) {
		return false
	}
	pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(route), "[^/]+")
	return regexp.MustCompile("^" + pattern + "$").MatchString(request)
}

func walk(t *testing.T, shop *client.Client) {
	ctx := t.Context()
	const product = "editor"

	described := must[*client.Product](t)(shop.Products.Put(ctx, product, client.ProductTerms{
		Name: "Editor", KeyPrefix: "EDIT", MaxDevices: new(2), Validity: "P1Y", ValidityFrom: "activation",
		SelfServiceDeactivation: true, RemovalsPerMonth: 5, Metadata: map[string]any{"shelf": 7},
	}))
	if p := must[*client.Product](t)(shop.Products.Get(ctx, product)); !cmp.Equal(p, described) || p.Name != "Editor" ||
		p.KeyPrefix != "EDIT" || p.MaxDevices != 2 ||
		p.Validity != "P1Y" || p.ValidityFrom != "activation" || !p.SelfServiceDeactivation ||
		p.RemovalsPerMonth != 5 || string(p.Metadata) != `{"shelf":7}` {
		t.Errorf("the product is %+v", p)
	}
	if l := must[*client.List[client.Product]](t)(shop.Products.List(ctx, client.Page{Limit: 1})); len(l.Items) != 1 ||
		l.Items[0].ProductID != product {
		t.Errorf("listed %+v", l)
	}

	// The query must keep the + of the address.
	const buyer = "anna+walk@example.com"
	order := must[*client.Order](t)(shop.Orders.Create(ctx, client.NewOrder{
		ProductID: product, Amount: 4900, Currency: "usd", Description: "<b> & co", BuyerEmail: buyer,
		Metadata: json.RawMessage(`{"a":"<&>"}`), SuccessURL: "https://shop.example.com/thanks",
	}))
	if order.Status != "unpaid" || order.Currency != "USD" || order.Description != "<b> & co" ||
		string(order.Metadata) != `{"a":"<&>"}` ||
		order.BuyerEmail != buyer || order.LicenseKey != "" || !order.PaidAt.IsZero() ||
		!order.ExpiresAt.After(order.CreatedAt) {
		t.Errorf("the order is %+v", order)
	}
	declined := must[*client.Order](t)(shop.Sandbox.Play(ctx, order.OrderNo, client.SandboxDecline))
	if declined.Status != "unpaid" {
		t.Errorf("after a declined payment the order is %s", declined.Status)
	}
	answered := must[*client.Order](t)(shop.Sandbox.Pay(ctx, order.OrderNo))
	paid := must[*client.Order](t)(shop.Orders.Get(ctx, order.OrderNo))
	if !cmp.Equal(answered, paid) || paid.Status != "paid" || paid.PaidAt.IsZero() || paid.LicenseKey == "" ||
		paid.PayURL != "" || !slices.Equal(paid.LicenseKeys, []string{paid.LicenseKey}) {
		t.Errorf("the order is %+v", paid)
	}
	inList := *paid
	inList.LicenseKeys = nil
	if l := must[*client.List[client.Order]](t)(shop.Orders.List(ctx, client.OrderFilter{ProductID: product,
		Status: "paid", BuyerEmail: buyer}, client.Page{})); len(l.Items) != 1 || !cmp.Equal(l.Items[0], inList) {
		t.Errorf("listed %+v", l)
	}
	year := client.Period{From: paid.CreatedAt, To: paid.CreatedAt.AddDate(0, 6, 0)}
	if r := must[*client.SalesReport](t)(shop.Reports.Sales(ctx, client.SalesReportOf{Period: year, By: client.ByDay,
		ProductID: product})); !r.From.Equal(year.From) || r.By != client.ByDay || r.Revision == 0 {
		t.Errorf("the report is %+v", r)
	}
	if l := must[*client.List[client.License]](t)(shop.Licenses.List(ctx, client.LicenseFilter{OrderNo: order.OrderNo},
		client.Page{})); len(l.Items) != 1 || l.Items[0].LicenseKey != paid.LicenseKey {
		t.Errorf("listed %+v", l)
	}
	given := must[*client.Order](t)(shop.Orders.Create(ctx,
		client.NewOrder{ProductID: product, Amount: 1, Currency: "JPY"}))
	for created, err := range shop.Orders.AllEvents(ctx, given.OrderNo) {
		if err != nil || given.PayURL == "" || created.Data.Order.PayURL != given.PayURL {
			t.Errorf("the order is %+v, and its event %+v (%v)", given, created, err)
		}
	}
	if o := must[*client.Order](t)(shop.Orders.Cancel(ctx, given.OrderNo, "no more")); o.Status != "canceled" ||
		o.StateReason != "no more" {
		t.Errorf("the order is %+v", o)
	}

	key := paid.LicenseKey
	for _, device := range []string{"..", "a/b %2F+ü?#"} {
		a := must[*client.Activated](t)(shop.Activate(ctx, client.Activation{
			LicenseKey: key, DeviceID: device, DeviceName: "My laptop", ProductID: product,
			AccountID: described.AccountID, Mode: "test",
		}))
		if a.DeviceID != device || a.DeviceName != "My laptop" || a.Status != "activated" || a.ExpiresAt.IsZero() {
			t.Errorf("activated %+v", a)
		}
		if v := must[*client.Validity](t)(shop.Validate(ctx, client.Validation{LicenseKey: key,
			DeviceID: device})); !v.Valid || v.Reason != "" || v.CurrentDevices != a.CurrentDevices {
			t.Errorf("validated %+v", v)
		}
	}
	_, err := shop.Activate(ctx, client.Activation{LicenseKey: key, DeviceID: "one too many"})
	if e := refused(t, err, 40901); !client.HasReason(err, client.ReasonDeviceLimitReached) ||
		!cmp.Equal(e.Details, map[string]int{"max_devices": 2, "current_devices": 2}) {
		t.Errorf("refused with %+v", e)
	}
	if l := must[*client.List[client.Device]](t)(shop.Licenses.ListDevices(ctx, key,
		client.Page{Limit: 2})); len(l.Items) != 2 {
		t.Errorf("listed %+v", l)
	}
	if r := must[*client.Removal](t)(shop.Licenses.RemoveDevice(ctx, key, "..")); !r.Removed || r.CurrentDevices != 1 {
		t.Errorf("removed %+v", r)
	}
	if r := must[*client.Removal](t)(shop.Deactivate(ctx, client.Deactivation{
		LicenseKey: key, DeviceID: "a/b %2F+ü?#"})); !r.Removed || r.CurrentDevices != 0 {
		t.Errorf("deactivated %+v", r)
	}
	if v := must[*client.Validity](t)(shop.Validate(ctx, client.Validation{LicenseKey: key, DeviceID: "..",
		ProductID: product})); v.Valid || v.Reason != "device_not_bound" {
		t.Errorf("validated %+v", v)
	}

	must[*client.License](t)(shop.Licenses.Suspend(ctx, key, "chargeback"))
	if l := must[*client.License](t)(shop.Licenses.Get(ctx, key)); l.Status != "suspended" ||
		l.StateReason != "chargeback" || l.SuspendedAt.IsZero() || l.OrderNo != order.OrderNo {
		t.Errorf("the license is %+v", l)
	}
	if l := must[*client.License](t)(shop.Licenses.Reinstate(ctx, key, "")); l.Status != "not_activated" ||
		l.StateReason != "" || !l.SuspendedAt.IsZero() {
		t.Errorf("the license is %+v", l)
	}
	end := time.Date(2040, 2, 29, 12, 0, 0, 0, time.FixedZone("", 3600))
	must[*client.License](t)(shop.Licenses.Renew(ctx, key, client.Renewal{ExpiresAt: end}))
	if l := must[*client.License](t)(shop.Licenses.Renew(ctx, key,
		client.Renewal{Extend: "P1M"})); !l.ExpiresAt.Equal(end.UTC().AddDate(0, 1, 0)) {
		t.Errorf("the license ends %v", l.ExpiresAt)
	}
	must[*client.License](t)(shop.Licenses.Update(ctx, key,
		client.LicenseUpdate{Metadata: map[string]any{"seat": "3B", "trial": true}}))
	if l := must[*client.License](t)(shop.Licenses.Update(ctx, key, client.LicenseUpdate{MaxDevices: new(0),
		Metadata: map[string]any{"trial": nil}})); l.MaxDevices != 0 || string(l.Metadata) != `{"seat":"3B"}` {
		t.Errorf("the license is %+v", l)
	}
	for _, reference := range []string{"C-1042", ""} {
		if l := must[*client.License](t)(shop.Licenses.Update(ctx, key,
			client.LicenseUpdate{CustomerReference: &reference})); l.CustomerReference != reference {
			t.Errorf("the reference is %q, want %q", l.CustomerReference, reference)
		}
	}
	if o := must[*client.Order](t)(shop.Orders.Refund(ctx, order.OrderNo, "does not run")); o.Status != "refunded" ||
		o.RefundDue {
		t.Errorf("the order is %+v", o)
	}
	granted := must[[]client.License](t)(shop.Licenses.Grant(ctx,
		client.Grant{ProductID: product, Quantity: 2, MaxDevices: new(0), ExpiresAt: end, Metadata: struct {
			Lot int `json:"lot"`
		}{4}}))
	if len(granted) != 2 || granted[0].OrderNo != "" || granted[0].MaxDevices != 0 ||
		!granted[0].ExpiresAt.Equal(end) || string(granted[0].Metadata) != `{"lot":4}` {
		t.Errorf("granted %+v", granted)
	}
	if l := must[*client.License](t)(shop.Licenses.Reissue(ctx, granted[0].LicenseKey, client.Reissue{Reason: "leaked",
		Overlap: "P1D"})); l.LicenseKey == granted[0].LicenseKey || l.ID != granted[0].ID || l.Reissues != 1 ||
		l.ReissueReason != "leaked" || l.ReissuedAt.IsZero() {
		t.Errorf("the license is %+v", l)
	}
	if l := must[*client.License](t)(shop.Licenses.Revoke(ctx, granted[1].LicenseKey, "")); l.Status != "revoked" ||
		l.RevokedAt.IsZero() {
		t.Errorf("the license is %+v", l)
	}
	if d := must[*client.Redaction](t)(shop.Redactions.RedactBuyer(ctx,
		strings.ToUpper(buyer))); *d != (client.Redaction{Orders: 1, Licenses: 1, Complete: true}) {
		t.Errorf("redacted %+v", d)
	}
	if o := must[*client.Order](t)(shop.Orders.Get(ctx, order.OrderNo)); o.BuyerEmail != "" ||
		o.Description+o.StateReason != "" || string(o.Metadata) != "{}" || o.Status != "refunded" {
		t.Errorf("the order is %+v", o)
	}
	if l := must[*client.License](t)(shop.Licenses.Get(ctx, key)); string(l.Metadata) != "{}" || l.StateReason != "" ||
		l.Status != "revoked" {
		t.Errorf("the license is %+v", l)
	}
	walkEvents(t, shop, order.OrderNo, key)
	walkWebhooks(t, shop, order.OrderNo)
	walkKeys(t, shop)
	walkRollout(t, shop, product)
	walkTrial(t, shop)
	walkOutside(t, shop)
	walkSubscription(t, shop)
	if err := shop.Products.Delete(ctx, product); err != nil {
		t.Fatal(err)
	}
	refused(t, shop.Products.Delete(ctx, product), 40404)
}

// walkOutside records an outside payment twice, and refunds it.
func walkOutside(t *testing.T, shop *client.Client) {
	ctx := t.Context()
	outside := must[*client.Order](t)(shop.Orders.Create(ctx, client.NewOrder{ProductID: "invoiced", Amount: 100,
		Currency: "USD", PaymentProvider: "outside"}))
	received := time.Now().Add(-48 * time.Hour).Truncate(time.Millisecond)
	for range 2 {
		o := must[*client.Order](t)(shop.Orders.RecordPayment(ctx, outside.OrderNo,
			client.OutsidePayment{Reference: "INV-1", Amount: 100, PaidAt: received}))
		if outside.PayURL != "" || o.Status != "paid" || o.PaymentProvider != "outside" ||
			o.PaymentReference != "INV-1" || !o.PaidAt.Equal(received) || o.LicenseKey == "" {
			t.Errorf("the order is %+v", o)
		}
	}
	paid := must[*client.List[client.Payment]](t)(shop.Orders.ListPayments(ctx, outside.OrderNo, client.Page{})).Items
	if len(paid) != 1 || paid[0].Reference != "INV-1" || paid[0].Amount != 100 || !paid[0].PaidAt.Equal(received) ||
		paid[0].Status != "succeeded" || paid[0].Fee != nil {
		t.Errorf("the payments are %+v", paid)
	}
	must[*client.Order](t)(shop.Orders.Refund(ctx, outside.OrderNo, ""))
}

// walkSubscription ends a subscription, and lets it renew.
func walkSubscription(t *testing.T, shop *client.Client) {
	ctx := t.Context()
	must[*client.Product](t)(shop.Products.Put(ctx, "cloud",
		client.ProductTerms{Billing: &client.Billing{Interval: "P1M"}}))
	order := must[*client.Order](t)(shop.Orders.Create(ctx,
		client.NewOrder{ProductID: "cloud", Amount: 900, Currency: "EUR"}))
	must[*client.Order](t)(shop.Sandbox.Pay(ctx, order.OrderNo))
	o := must[*client.Order](t)(shop.Subscriptions.Cancel(ctx, order.OrderNo, client.EndOfPeriod))
	if !o.Subscription.CancelAt.Equal(o.Subscription.CurrentPeriodEnd) || o.Subscription.Status != "active" {
		t.Errorf("to end: %+v", o.Subscription)
	}
	o = must[*client.Order](t)(shop.Subscriptions.Resume(ctx, order.OrderNo))
	if !o.Subscription.CancelAt.IsZero() {
		t.Errorf("resumed: %+v", o.Subscription)
	}
	five := 5
	o = must[*client.Order](t)(shop.Subscriptions.Change(ctx, order.OrderNo,
		client.SubscriptionChange{Amount: 1800, MaxDevices: &five}))
	if c := o.Subscription.PlannedChange; c == nil || c.ProductID != "cloud" || c.Amount != 1800 ||
		*c.MaxDevices != five || !c.From.Equal(o.Subscription.CurrentPeriodEnd) || o.Subscription.Amount != 900 {
		t.Errorf("planned: %+v", o.Subscription)
	}
	o = must[*client.Order](t)(shop.Subscriptions.Cancel(ctx, order.OrderNo, client.EndNow))
	if o.Subscription.Status != "canceled" {
		t.Errorf("ended: %+v", o.Subscription)
	}
	_, err := shop.Subscriptions.Portal(ctx, order.OrderNo)
	refused(t, err, 40904)
}

// walkTrial starts a trial and upgrades it.
func walkTrial(t *testing.T, shop *client.Client) {
	ctx := t.Context()
	const product = "tryout"
	terms := client.TrialTerms{Validity: "P14D", MaxDevices: 2, Per: "device",
		Entitlements: map[string]any{"preview": true}}
	p := must[*client.Product](t)(shop.Products.Put(ctx, product, client.ProductTerms{Trial: &terms}))
	if p.Trial.Validity != "P14D" || p.Trial.MaxDevices != 2 || p.Trial.Per != "device" || p.Trial.Entitlements == nil {
		t.Errorf("the product is %+v", p)
	}
	ask := client.NewTrial{ProductID: product, DeviceID: "laptop", DeviceName: "My laptop"}
	started := must[*client.Activated](t)(shop.StartTrial(ctx, ask))
	if again := must[*client.Activated](t)(shop.StartTrial(ctx, ask)); !started.Trial || started.MaxDevices != 2 ||
		string(started.Entitlements["preview"]) != "true" || again.LicenseKey != started.LicenseKey {
		t.Errorf("started %+v, and again %+v", started, again)
	}
	order := must[*client.Order](t)(shop.Orders.Create(ctx, client.NewOrder{ProductID: product, Amount: 100,
		Currency: "USD", UpgradeOf: started.LicenseKey}))
	if paid := must[*client.Order](t)(shop.Sandbox.Pay(ctx, order.OrderNo)); paid.LicenseKey !=
		started.LicenseKey || paid.UpgradeOf != started.LicenseKey {
		t.Errorf("the order is %+v", paid)
	}
	if l := must[*client.License](t)(shop.Licenses.Get(ctx, started.LicenseKey)); l.Trial || l.CurrentDevices != 1 {
		t.Errorf("the license is %+v", l)
	}
	_, err := shop.StartTrial(ctx, ask)
	if refused(t, err, 40307); !client.HasReason(err, client.ReasonTrialUsed) {
		t.Error(err)
	}
}

// walkRollout counts the licenses of a product, and then changes them.
func walkRollout(t *testing.T, shop *client.Client, product string) {
	ctx := t.Context()
	_, err := shop.Rollouts.Get(ctx, product)
	if refused(t, err, 40408); !client.HasReason(err, client.ReasonRolloutNotFound) {
		t.Error(err)
	}
	must[*client.Product](t)(shop.Products.Put(ctx, product,
		client.ProductTerms{Entitlements: map[string]int{"seats": 9}}))
	for _, dry := range []bool{true, false} {
		begun := must[*client.Rollout](t)(shop.Rollouts.Begin(ctx, product,
			client.NewRollout{Terms: []string{client.RolloutEntitlements}, DryRun: dry}))
		if begun.ProductID != product || begun.DryRun != dry || !slices.Equal(begun.Terms, []string{"entitlements"}) ||
			begun.StartedAt.IsZero() || begun.Mode != "test" {
			t.Errorf("began %+v", begun)
		}
		for begun.EndedAt.IsZero() {
			begun = must[*client.Rollout](t)(shop.Rollouts.Get(ctx, product))
		}
		if begun.Status != client.RolloutDone || begun.Licenses != 3 || begun.Updated != 3 || begun.LimitsKept != 0 ||
			begun.Failed != 0 {
			t.Errorf("the rollout has ended as %+v", begun)
		}
	}
	if ended := must[*client.Rollout](t)(shop.Rollouts.Cancel(ctx, product)); ended.Status != client.RolloutDone {
		t.Errorf("canceled after the end: %+v", ended)
	}
}

// walkEvents reads the events of the order and the license of TestEveryRoute.
func walkEvents(t *testing.T, shop *client.Client, orderNo, licenseKey string) {
	ctx := t.Context()
	var types []string
	var last client.Event
	for e, err := range shop.Orders.AllEvents(ctx, orderNo) {
		if err != nil {
			t.Fatal(err)
		}
		types, last = append(types, e.Type), e
		if e.Data.Order == nil || e.Data.Order.OrderNo != orderNo || e.Data.License != nil {
			t.Errorf("the event is %+v", e)
		}
	}
	if want := []string{"order.refunded", "order.paid", "order.created"}; !slices.Equal(types, want) ||
		last.Sequence != 1 || last.Data.Order.Status != "unpaid" || last.Data.Order.PayURL != "" {
		t.Errorf("the order's events are %q, and the first is %+v", types, last)
	}
	if e := must[*client.Event](t)(shop.Events.Get(ctx, last.ID)); !cmp.Equal(*e, last) {
		t.Errorf("the event is %+v", e)
	}
	_, err := shop.Events.Get(ctx, "evt_x")
	if refused(t, err, 40406); !client.HasReason(err, client.ReasonEventNotFound) {
		t.Error(err)
	}
	var ofLicense []client.Event
	for e, err := range shop.Licenses.AllEvents(ctx, licenseKey) {
		if err != nil {
			t.Fatal(err)
		}
		ofLicense = append(ofLicense, e)
	}
	slices.Reverse(ofLicense)
	// The feed shows the same events in the same order after a moment.
	var followed []client.Event
	for e, err := range shop.Events.Follow(ctx, client.EventFilter{After: last.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Data.License != nil && e.Data.License.LicenseKey == licenseKey {
			followed = append(followed, e)
		}
		if e.ID == ofLicense[len(ofLicense)-1].ID {
			break
		}
	}
	if diff := cmp.Diff(ofLicense, followed); diff != "" || followed[0].Type != "license.issued" ||
		followed[0].Actor != "provider" || followed[2].Data.Device.DeviceID != ".." {
		t.Errorf("of the license (-), followed (+):\n%s", diff)
	}
	count := 0
	for e, err := range shop.Events.All(ctx, client.EventFilter{Types: []string{"order.paid"}}) {
		if err != nil || e.Type != "order.paid" {
			t.Fatalf("%+v, %v", e, err)
		}
		count++
	}
	if page := must[*client.EventPage](t)(shop.Events.List(ctx, client.EventFilter{After: client.Now}, client.Page{},
		0)); count != 1 || len(page.Items) != 0 || page.NextCursor == "" {
		t.Errorf("%d orders were paid, and in the end there is %+v", count, page)
	}
}

func walkKeys(t *testing.T, shop *client.Client) {
	ctx := t.Context()
	end := time.Now().Add(time.Hour)
	made := must[*client.IssuedKey](t)(shop.APIKeys.Create(ctx,
		client.NewKey{Name: "child", Scopes: []string{"orders", "keys:read"}, ExpiresAt: end, RequireSignature: true}))
	if !strings.HasPrefix(made.APIKey, "lk_test_") || !strings.HasPrefix(made.APISecret, "lks_test_") ||
		!made.ExpiresAt.Equal(end.Truncate(time.Millisecond)) {
		t.Errorf("made %+v", made)
	}
	child := newClient(t, service.URL, made.APIKey, client.WithSigning(made.ID, made.APISecret))
	if k := must[*client.Key](t)(child.APIKeys.Get(ctx, made.ID)); k.Name != "child" || !k.RequireSignature ||
		!slices.Equal(k.Scopes, []string{"orders", "keys:read"}) {
		t.Errorf("the key is %+v", k)
	}
	_, err := child.Licenses.List(ctx, client.LicenseFilter{}, client.Page{})
	refused(t, err, 40300)
	plain := must[*client.IssuedKey](t)(shop.APIKeys.Create(ctx,
		client.NewKey{Name: "plain", Scopes: []string{"orders"}}))
	turned := must[*client.IssuedKey](t)(shop.APIKeys.Rotate(ctx, plain.ID,
		client.Rotation{Overlap: new(90 * time.Second)}))
	if turned.APIKey != "" || turned.APISecret == plain.APISecret ||
		time.Until(turned.PreviousSecretUntil) > 91*time.Second {
		t.Errorf("rotated to %+v", turned)
	}
	if l := must[*client.List[client.Key]](t)(shop.APIKeys.List(ctx, client.Page{Limit: 1})); len(l.Items) != 1 ||
		l.NextCursor == "" {
		t.Errorf("listed %+v", l)
	}
	if k := must[*client.Key](t)(shop.APIKeys.Get(ctx, made.ID)); k.Status != "active" ||
		k.LastUsedAt.After(time.Now()) {
		t.Errorf("the key is %+v", k)
	}
	signing := must[*client.ReceiptKeys](t)(shop.Receipts.Keys(ctx))
	if rotated := must[*client.ReceiptKeys](t)(shop.Receipts.RotateKeys(ctx)); rotated.Root != signing.Root ||
		!strings.HasPrefix(signing.Root, "licet_root_") || len(signing.Keys) != 1 || len(rotated.Keys) != 2 ||
		rotated.Keys[0].KeyID != signing.Keys[0].KeyID || !rotated.Keys[1].EndsAt.IsZero() {
		t.Errorf("the receipt keys are %+v, then %+v", signing, rotated)
	}
	if _, err := shop.Receipts.MakeFile(ctx, client.DeviceRequest{Request: "no request"}); !client.HasReason(err,
		client.ReasonInvalidField) {
		t.Errorf("a request that is none: %v", err)
	}
	answers := must[[]client.ReceiptResult](t)(shop.Receipts.MakeFiles(ctx,
		client.DeviceRequests{Requests: []string{"no request", "none either"}}))
	if len(answers) != 2 || answers[1].File != nil || !client.HasReason(answers[1].Err, client.ReasonInvalidField) {
		t.Errorf("a batch of requests that are none: %+v", answers)
	}
	list := must[client.Document](t)(shop.Revocations(ctx, signing.AccountID, signing.Mode, 0, ""))
	same := must[client.Document](t)(shop.Revocations(ctx, signing.AccountID, signing.Mode, 0, list.ETag))
	if strings.Count(list.Text, ".") != 2 || list.MaxAge != 20*time.Second || !same.Unchanged || same.Text != "" {
		t.Errorf("the list of revocations is %+v, then %+v", list, same)
	}
	if _, err := shop.Receipts.ReleaseSeat(ctx, "no release"); !client.HasReason(err, client.ReasonInvalidField) {
		t.Errorf("a release that is none: %v", err)
	}
	if a := must[*client.Account](t)(shop.Account.Get(ctx)); a.AccountID == "" || a.Mode != "test" ||
		a.ExternalKeys != client.MatchExact {
		t.Errorf("the account is %+v", a)
	}
	compact := client.AccountUpdate{ExternalKeys: client.MatchCompact}
	if a := must[*client.Account](t)(shop.Account.Update(ctx, compact)); a.ExternalKeys != client.MatchCompact ||
		a.ExternalKeysFixed || !slices.Equal(a.ExpiringDays, []int{30, 7, 1}) {
		t.Errorf("the account is %+v", a)
	}
	for _, days := range [][]int{{14}, {}, {30, 7, 1}} {
		a := must[*client.Account](t)(shop.Account.Update(ctx, client.AccountUpdate{ExpiringDays: days}))
		if !slices.Equal(a.ExpiringDays, days) {
			t.Errorf("the account is %+v", a)
		}
	}
	if k := must[*client.Key](t)(shop.APIKeys.Revoke(ctx, made.ID)); k.Status != "revoked" {
		t.Errorf("the key is %+v", k)
	}
	must[*client.Key](t)(shop.APIKeys.Revoke(ctx, plain.ID))
	_, err = shop.APIKeys.Rotate(ctx, plain.ID, client.Rotation{})
	refused(t, err, 40407)
}

// TestLists: the iterators read more than one page of each list.
func TestLists(t *testing.T) {
	t.Parallel()
	shop := newShop(t, nil)
	ctx := t.Context()
	must[[]client.License](t)(shop.Licenses.Grant(ctx,
		client.Grant{ProductID: "many", Quantity: 250, MaxDevices: new(0)}))
	seen := map[string]bool{}
	last := ""
	for l, err := range shop.Licenses.All(ctx, client.LicenseFilter{ProductID: "many"}) {
		if err != nil {
			t.Fatal(err)
		}
		last = l.LicenseKey
		seen[last] = true
	}
	if len(seen) != 250 {
		t.Errorf("listed %d licenses", len(seen))
	}
	n := 0
	for range shop.Licenses.All(ctx, client.LicenseFilter{ProductID: "many"}) {
		if n++; n == 5 {
			break
		}
	}
	for i := range 20 {
		must[*client.Activated](t)(shop.Activate(ctx,
			client.Activation{LicenseKey: last, DeviceID: strings.Repeat("d", i+1)}))
	}
	devices := map[string]bool{}
	page := client.Page{Limit: 7}
	for {
		list := must[*client.List[client.Device]](t)(shop.Licenses.ListDevices(ctx, last, page))
		for _, d := range list.Items {
			devices[d.DeviceID] = true
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	count := 0
	for d, err := range shop.Licenses.AllDevices(ctx, last) {
		if err != nil || !devices[d.DeviceID] {
			t.Errorf("%+v, %v", d, err)
		}
		count++
	}
	if count != 20 || len(devices) != 20 {
		t.Errorf("listed %d and %d devices", count, len(devices))
	}
	for _, err := range shop.Orders.All(ctx, client.OrderFilter{Status: "nonsense"}) {
		if e := refused(t, err, 42200); len(e.Fields) != 1 || e.Fields[0].Field != "status" {
			t.Errorf("refused with %+v", e)
		}
	}
	keys := 0
	for _, err := range shop.APIKeys.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		keys++
	}
	products := 0
	for p, err := range shop.Products.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if p.ProductID == "many" {
			products++
		}
	}
	if keys == 0 || products != 1 {
		t.Errorf("listed %d keys, %d times the product", keys, products)
	}
}

// TestRecord: a recorded response has members that the types lack.
func TestRecord(t *testing.T) {
	t.Parallel()
	shop := newShop(t, nil)
	var r client.Response
	must[*client.Order](t)(shop.Orders.Create(t.Context(), client.NewOrder{ProductID: "editor", Currency: "USD"},
		client.Record(&r), client.IdempotencyKey("r "+t.Name())))
	if r.Status != 201 || r.RequestID == "" || r.Replayed || r.Tries != 1 ||
		!strings.HasPrefix(string(r.Data), `{"order_no":"ord_`) {
		t.Errorf("recorded %+v", r)
	}
	must[*client.Order](t)(shop.Orders.Create(t.Context(), client.NewOrder{ProductID: "editor", Currency: "USD"},
		client.Record(&r), client.IdempotencyKey("r "+t.Name())))
	if r.Status != 201 || !r.Replayed {
		t.Errorf("recorded %+v", r)
	}
	_, err := shop.Orders.Get(t.Context(), "ord_none", client.Record(&r))
	refused(t, err, 40403)
	if r.Status != 404 || r.Data != nil || r.Replayed {
		t.Errorf("recorded %+v", r)
	}
}
