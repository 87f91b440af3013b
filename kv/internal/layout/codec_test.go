package layout

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares what is stored with a file, so that a change of the format
// shows as a diff.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func goldenLicense() *License {
	return &License{
		License: kvtest.License(),
		Writers: []Writer{{By: store.Incarnation{1, 2, 3, 4, 5, 6, 7, 8}, Swap: 9},
			{By: store.Incarnation{0xff}, Swap: 1 << 40}},
		Devices: inlined(kvtest.Devices()...),
	}
}

// leasedLicense has a device with a lease, and a device that was bound before.
func leasedLicense() *License {
	l := kvtest.License()
	l.Lease = licensing.LeaseTerms{Length: 10 * time.Minute, Longest: 24 * time.Hour}
	l.LeaseClock, l.LeasesUntil = kvtest.Time.Add(time.Minute), kvtest.Time.Add(11*time.Minute)
	devices := kvtest.Devices()[:2]
	devices[0].LeaseEnd = l.LeasesUntil
	return &License{License: l, Devices: inlined(devices...)}
}

// matchedLicense loses inactive devices, and compares the components of devices.
func matchedLicense() *License {
	l := kvtest.License()
	l.InactiveAfter, l.Match = licensing.Period{Days: 30}, licensing.DeviceMatch{AtLeast: 3, ChangesPerMonth: 4}
	l.LeaseClock, l.SeenFrom = kvtest.Time.Add(time.Hour), kvtest.Time.Add(-time.Minute)
	l.Changes = licensing.Removals{Month: 12 * 2026, Count: 2}
	devices := kvtest.Devices()[:2]
	devices[1].Components = matchedComponents()
	return &License{License: l, Devices: inlined(devices...)}
}

func matchedComponents() licensing.Components {
	components, _ := licensing.NewComponents(map[string]string{
		"disk": strings.Repeat("0f", 32), "board": strings.Repeat("a1", 32)})
	return components
}

// gracedLicense has a grace, and notices before its end.
func gracedLicense() *License {
	l := kvtest.License()
	l.Grace, l.GraceRecorded = licensing.Period{Days: 7}, kvtest.Time.AddDate(0, 0, 7)
	l.Notice = licensing.Notice{End: l.ExpiresAt, Day: 30}
	return &License{License: l}
}

func goldenOrder() *licensing.Order {
	return &licensing.Order{
		OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A", Owner: kvtest.Owner, ProductID: "pro",
		OrderPayment: licensing.OrderPayment{
			Amount: 1_000_000_000_000, Currency: "KWD", PaidAt: kvtest.Time.Add(2 * time.Hour),
			RefundedAt: kvtest.Time.Add(4 * time.Hour), Payment: "sandbox_1",
			RefundDue: true, RefundTries: 3, RefundRetryAt: kvtest.Time.Add(6 * time.Hour),
		},
		Description: "one seat\nfor ever", BuyerEmail: "ada@example.com",
		Metadata: `{"cart":[1,2]}`, SuccessURL: "https://shop.example/thanks",
		PayHash: keyring.HashPayToken("token"),
		PaySeed: licensing.PaySeed{MasterID: "mk_01jd4q8x2m7r3n5t9v1w4y6z8a",
			Salt: [16]byte([]byte("a salt, sixteen!"))},
		Terms: licensing.Terms{KeyPrefix: "ACME", MaxDevices: 5, Validity: licensing.Period{Months: 1},
			FromActivation: true},
		CreatedAt: kvtest.Time, ExpiresAt: kvtest.Time.Add(time.Hour),
		CanceledAt: kvtest.Time.Add(3 * time.Hour), ExpiredAt: kvtest.Time.Add(5 * time.Hour),
		LicenseKey: kvtest.Key, Late: true, StateReason: "too slow",
	}
}

func goldenClaims() []*licensing.Claim {
	made := licensing.Claim{Fingerprint: [32]byte{1, 2, 3}, CreatedAt: kvtest.Time}
	order, grant, change, refusal, key, redaction, endpoint := made, made, made, made, made, made, made
	endpoint.EndpointID = "we_vq01jd4q8x2m7r3n5t9v1w4y6z8a"
	redaction.Redaction = &licensing.Redaction{Orders: 214, Licenses: 200, Complete: true}
	key.APIKeyID = "key_01jd4q8x2m7r3n5t9v1w4y6z8a"
	order.OrderNo = "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"
	grant.Grant = &licensing.GrantProgress{Seed: [32]byte{4, 5, 6}, Terms: goldenOrder().Terms, Quantity: 1000,
		Done: 32}
	change.LicenseKey = kvtest.Key
	refusal.Refusal = licensing.ErrPaymentNotConfigured
	rollout := made
	rollout.ProductID = "pro"
	return []*licensing.Claim{&order, &grant, &change, &refusal, &key, &redaction, &endpoint, &rollout}
}

func goldenProduct() *Product {
	return &Product{
		Product: licensing.Product{
			ID: "pro", Owner: kvtest.Owner, Name: "The App", Metadata: `{"sku":7}`, CreatedAt: kvtest.Time,
			Terms: licensing.Terms{
				KeyPrefix: "ACME", MaxDevices: 5, Validity: licensing.Period{Months: 1}, FromActivation: true,
				SelfService: licensing.SelfService{RemovalsPerMonth: 3},
			},
		},
		Writers: []Writer{{By: store.Incarnation{1, 2, 3, 4, 5, 6, 7, 8}, Swap: 9}},
	}
}

func goldenRollout() licensing.Rollout {
	return licensing.Rollout{
		Terms:   licensing.Terms{KeyPrefix: "ACME", Version: 7},
		Applies: licensing.RolloutEntitlements | licensing.RolloutRemovals,
		DryRun:  true, By: "key_01", StartedAt: kvtest.Time, EndedAt: kvtest.Time.Add(time.Hour), Canceled: true,
		OverBudget: true, Cursor: "\x00\x01", NextAt: kvtest.Time.Add(time.Minute),
		Counts: licensing.RolloutCounts{Licenses: 300, Updated: 200, LimitsKept: 20, Failed: 1},
	}
}

func goldenAPIKey() *APIKey {
	return &APIKey{Key: licensing.APIKey{
		ID: "key_01", Hash: [32]byte{1, 2, 3}, Owner: kvtest.Owner, Name: "shop", Scopes: []string{"orders",
			"licenses:read"},
		SecretVersion: 2, MasterID: "2026", CreatedAt: kvtest.Time, ExpiresAt: kvtest.Time.Add(time.Hour),
		RevokedAt:        kvtest.Time.Add(time.Minute),
		Previous:         licensing.PreviousSecret{Version: 1, MasterID: "2025", Until: kvtest.Time.Add(2 * time.Hour)},
		RequireSignature: true,
	}, Writers: []Writer{{By: store.Incarnation{1, 2, 3}, Swap: 300}}}
}

func goldenWebhooks() *Webhooks {
	return &Webhooks{
		Webhooks: licensing.Webhooks{Owner: kvtest.Owner, Sequence: 300, Endpoints: []licensing.Endpoint{
			{
				ID: "we_vq01jd4q8x2m7r3n5t9v1w4y6z8a", URL: "https://shop.example/licet", Description: "the shop",
				Types: []licensing.EventType{licensing.EventOrderPaid, licensing.EventDeviceBound}, SecretVersion: 2,
				MasterID: "2026",
				Previous: licensing.PreviousSecret{Version: 1, MasterID: "2025", Until: kvtest.Time.Add(2 * time.Hour)},
				Since:    "pos_000000000000", CreatedAt: kvtest.Time, ResetAt: kvtest.Time.Add(time.Minute),
				DisabledAt: kvtest.Time.Add(time.Hour), DisabledBecause: licensing.DisabledGone,
			},
			{ID: "we_0", URL: "https://shop.example/", SecretVersion: 1, MasterID: "2026", CreatedAt: kvtest.Time,
				ResetAt: kvtest.Time},
		}},
		Writers:   []Writer{{By: store.Incarnation{1, 2, 3}, Swap: 300}},
		LastEvent: keyspace.Location{Epoch: 0x0102030405},
	}
}

func goldenUsage() *Usage {
	return &Usage{
		Usage: licensing.Usage{
			Owner: kvtest.Owner, Size: licensing.Size{Bytes: 1 << 30, Keys: 4_000_000}, CountedAt: 300, RecountAt: 400,
			Since: licensing.Size{Bytes: -5, Keys: 1}, WarnedAt: kvtest.Time, Warned: true, Sequence: 300,
		},
		Writers:   []Writer{{By: store.Incarnation{1, 2, 3}, Swap: 300}},
		LastEvent: keyspace.Location{Epoch: 0x0102030405},
	}
}

func TestGoldenValues(t *testing.T) {
	var b strings.Builder
	show := func(name string, value []byte) { fmt.Fprintf(&b, "%s\n%s\n", name, hex.Dump(value)) }
	license, order := goldenLicense(), goldenOrder()
	show("license", license.Encode())
	license.License.Owner.AccountID = "acct_01jd4q8x2m7r3n5t9v1w4y6z8a"
	show("license of an account with a ULID", license.Encode())
	show("device", EncodeDevice(&kvtest.Devices()[0]))
	value := (&Order{Order: *order, Writers: license.Writers}).Encode()
	show("order", value)
	many := *order
	many.Quantity, many.LicensesIssued, many.KeySeed = 1000, 32, licensing.KeySeed{4, 5, 6}
	show("order for many licenses", (&Order{Order: many, Writers: license.Writers}).Encode())
	many.OrderOthers = licensing.OrderOthers{Others: licensing.OthersReinstate, OthersFrom: 9}
	show("order whose other licenses must change", (&Order{Order: many, Writers: license.Writers}).Encode())
	changing := *order
	changing.Change, changing.AskFailures = licensing.SubscriptionChange{Kind: licensing.ChangeEnd}, 3
	show("order with a change of its subscription", (&Order{Order: changing, Writers: license.Writers}).Encode())
	planned := licensing.Plan{ProductID: "team", Amount: 3000, SetMaximum: true, MaxDevices: 25,
		Terms: licensing.DefaultTerms()}
	changing.Change = licensing.SubscriptionChange{
		Kind: licensing.ChangePlan, Number: "chg_1", Later: true, Plan: new(planned),
	}
	planned.From = order.CreatedAt.AddDate(0, 1, 0)
	changing.RefusedChanges = "chg_2 chg_3"
	changing.Next, changing.Plan = &planned, &licensing.Plan{ProductID: "solo", Amount: 900}
	show("order with changes of what its subscription pays for",
		(&Order{Order: changing, Writers: license.Writers}).Encode())
	disputed := goldenOrder()
	disputed.Disputes, disputed.DisputeAskAt, disputed.Uncounted = "du_1 du_2", kvtest.Time, 200
	show("order whose payment is disputed", (&Order{Order: *disputed, Writers: license.Writers}).Encode())
	show("dispute", (&Payment{Payment: licensing.Payment{
		OrderNo: disputed.OrderNo, Kind: licensing.KindOfDispute, Provider: licensing.ProviderStripe,
		Reference: "du_3", Refunds: "pi_1", Amount: 700, Currency: "USD", State: licensing.PaymentLost,
		PaidAt: kvtest.Time, RecordedAt: kvtest.Time, Fee: new(int64(1500)), Answers: 3, Counted: 500,
	}, Writers: license.Writers}).Encode())
	changing.Returned, changing.InvoiceRefunds, changing.Fee = 1800, 2, new(int64(59))
	show("order whose invoices were refunded", (&Order{Order: changing, Writers: license.Writers}).Encode())
	twice := goldenOrder()
	twice.Invoices, twice.Invoiced = 1, 900
	twice.Returns = &[]licensing.Return{
		{Number: "ref_pi_2", Of: "pi_2", Amount: 900, By: licensing.Provider, Second: true, Refused: true},
		{Number: "ref_1", Of: "in_1", Amount: 5, By: "key_1", Pending: true, Tries: 3, RetryAt: kvtest.Time},
	}
	show("order with open refunds of further payments", (&Order{Order: *twice, Writers: license.Writers}).Encode())
	ending := goldenOrder()
	ending.Paid, ending.Refunded, ending.Refunds = 4900, 900, 1
	ending.RefundDue, ending.RefundNo, ending.Refunding, ending.RefundEnds = true, "ref_1", 4000, true
	show("order that ends with its open refund", (&Order{Order: *ending, Writers: license.Writers}).Encode())
	show("owner of an order", EncodeOwner(kvtest.Owner))
	show("product", goldenProduct().Encode())
	rolledOut := goldenProduct()
	rolledOut.Product.Rollout = goldenRollout()
	show("product with a rollout", rolledOut.Encode())
	for _, c := range goldenClaims() {
		show("claim", EncodeClaim(c, license.Writers))
	}
	show("API key", goldenAPIKey().Encode())
	show("use of an API key", EncodeKeyUse(kvtest.Time))
	withEvents := goldenLicense()
	withEvents.LastEvent, withEvents.License.Sequence = keyspace.Location{Epoch: 0x0102030405, Block: 0x86070809}, 300
	show("license of which events tell", withEvents.Encode())
	show("license with leases", leasedLicense().Encode())
	show("license that loses inactive devices and compares components", matchedLicense().Encode())
	show("license with a grace and notices", gracedLicense().Encode())
	expiring := kvtest.Events()[2:]
	expiring[0].Type, expiring[0].Device, expiring[0].License = licensing.EventLicenseExpiring, nil,
		&gracedLicense().License
	expiring[0].License.Sequence = 7
	expiring[0].Members = []licensing.EventMember{{Name: "days_before_end", JSON: "7"}}
	show("event of a license that ends soon", EncodeEvents(expiring, keyspace.Location{}))
	show("events of a license", EncodeEvents(kvtest.Events(), keyspace.Location{Epoch: 0x0102030405}))
	newer := kvtest.Events()[2:]
	newer[0].Type, newer[0].Actor = "license.paused", "robot"
	newer[0].Members = []licensing.EventMember{{Of: "license", Name: "pauses", JSON: "3"},
		{Name: "pause", JSON: `{"days":30}`}}
	show("event of a kind without a number, with further members",
		EncodeEvents(newer, keyspace.Location{Epoch: 0x0102030405}))
	orders := licensing.NewOrder(goldenOrder(), "key_01")
	show("event of an order", EncodeEvents(orders.Events, keyspace.Location{}))
	show("endpoints of webhooks", goldenWebhooks().Encode())
	disabled := licensing.Record{Webhooks: &goldenWebhooks().Webhooks}
	disable := licensing.DisableEndpoint{ID: "we_0", ResetAt: kvtest.Time, Because: licensing.DisabledFailing}
	if _, err := licensing.Apply(&disabled, disable, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	show("block of two records", EncodeBlock([]Run{
		{Record: keyspace.OrderInEvents("ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"), Last: 1, Value: []byte("events")},
		{Record: keyspace.WebhooksInEvents(kvtest.Owner), Last: 300, Value: []byte("others")},
	}))
	show("event of an endpoint", EncodeEvents(disabled.Events, keyspace.Location{Epoch: 0x0102030405}))
	show("usage", goldenUsage().Encode())
	show("events at a payment provider", EncodeProviderEvents(store.ProviderEvents{From: kvtest.Time,
		To: kvtest.Time.Add(time.Minute), After: "evt_1", Next: kvtest.Time.Add(time.Hour),
		Again: []store.ProviderEventAgain{{Kind: "refund", ID: "re_1", Since: kvtest.Time, Tries: 300,
			AccountID: kvtest.Owner.AccountID}}, Key: "0123456789abcdef"}))
	show("recount", (&Recount{Begun: kvtest.Time, By: store.Incarnation{1, 2, 3}, Revision: 300}).Encode())
	warned := licensing.Record{}
	grown := licensing.AddUsage{Owner: kvtest.Owner, Budget: licensing.Budget{Bytes: 1000, Keys: 10},
		Changes: []licensing.SizeChange{{Revision: 1, Size: licensing.Size{Bytes: 700, Keys: 3}}}}
	if _, err := licensing.Apply(&warned, grown, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	show("event of usage", EncodeEvents(warned.Events, keyspace.Location{Epoch: 0x0102030405}))
	show("fence of those who listen", (&ListenFence{Moved: 300, moves: []ListenMove{
		{After: 200, Changes: []Listening{{kvtest.Owner, true},
			{kvtest.OtherOwner, false}}}, {Changes: []Listening{{kvtest.OtherOwner, true}}},
	}}).Encode())
	show("request to listen", EncodeListenRequest(true))
	show("metadata", EncodeMetadata(licensing.Metadata{Object: `{"seat":1}`, ExternalKey: "sealed"}, nil))
	trial := goldenLicense()
	trial.License.Trial, trial.License.UpgradedAt = licensing.TrialName{1, 2}, kvtest.Time.Add(time.Hour)
	show("license that was a trial", trial.Encode())
	if again, err := DecodeLicense(kvtest.Key.ID(), trial.Encode()); err != nil || again.License != trial.License {
		t.Errorf("a license that was a trial is read as %+v, %v", again, err)
	}
	trial.License.Trial = licensing.TrialName{} // a sweep has forgotten it
	if again, err := DecodeLicense(kvtest.Key.ID(), trial.Encode()); err != nil || again.License != trial.License {
		t.Errorf("a license whose trial is forgotten is read as %+v, %v", again, err)
	}
	tried := Trial{Trial: licensing.Trial{License: kvtest.Key, Device: licensing.TrialDevice{3, 4}},
		Writers: license.Writers}
	show("trial", tried.Encode())
	if again, err := DecodeTrial(tried.Encode()); err != nil || again.Trial != tried.Trial {
		t.Errorf("a trial is read as %+v, %v", again, err)
	}
	paid := Payment{Writers: license.Writers, Payment: licensing.Payment{
		OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A", Provider: "outside", Reference: "INV-1", Amount: 990,
		Currency: "EUR", PaidAt: kvtest.Time, RecordedAt: kvtest.Time.Add(time.Hour), By: "key_1",
	}}
	show("payment", paid.Encode())
	if again, err := DecodePayment(paid.Encode()); err != nil || again.Payment != paid.Payment {
		t.Errorf("a payment is read as %+v, %v", again, err)
	}
	paid.Payment.ProductID = "pro"
	show("payment of a product", paid.Encode())
	if again, err := DecodePayment(paid.Encode()); err != nil || again.Payment != paid.Payment {
		t.Errorf("a payment of a product is read as %+v, %v", again, err)
	}
	entry := SaleEntry(licensing.PaymentRef(kvtest.Owner, "outside", "INV-1"), &goldenSale)
	show("payment by its time", []byte(entry.Value))
	wantSale, _ := goldenSale.Sale()
	position := entry.Key[len(keyspace.InSlot(licensing.SlotOf(kvtest.Owner), keyspace.SalesOf(kvtest.Owner))):]
	if again, err := DecodeSale(position, []byte(entry.Value)); err != nil || again != wantSale {
		t.Errorf("a sale is read as %+v, %v", again, err)
	}
	paid.Payment.Fee = new(int64(-30))
	show("payment with a fee", paid.Encode())
	withFee, err := DecodePayment(paid.Encode())
	if fee := withFee.Payment.Fee; err != nil || fee == nil || *fee != -30 {
		t.Errorf("a payment with a fee is read as %+v, %v", withFee, err)
	}
	played := Sandbox{Writers: license.Writers, Sandbox: licensing.SandboxOrder{Attempt: 2,
		Outcome: licensing.SandboxLate, PaidAt: kvtest.Time}}
	show("order in the sandbox", played.Encode())
	if again, err := DecodeSandbox(played.Encode()); err != nil || again.Sandbox != played.Sandbox {
		t.Errorf("an order in the sandbox is read as %+v, %v", again, err)
	}
	played.Sandbox.RefundFails, played.Sandbox.RefundNo = true, "ref_1"
	played.Sandbox.RefundEnds = kvtest.Time
	played.Sandbox.Subscription = licensing.SandboxSubscription{Ahead: 2, Unpaid: 3, Periods: 4,
		EndedAt: kvtest.Time, Amount: 990, Changed: "chg_1", ChangedFrom: kvtest.Time.Add(time.Hour)}
	show("order in the sandbox with a refund that fails and a subscription", played.Encode())
	if again, err := DecodeSandbox(played.Encode()); err != nil || again.Sandbox != played.Sandbox {
		t.Errorf("an order in the sandbox is read as %+v, %v", again, err)
	}
	trialProduct := goldenProduct()
	trialProduct.Product.TrialEntitlements, trialProduct.Product.Trial = `{"export":true}`, licensing.TrialTerms{
		Validity: licensing.Period{Days: 14}, MaxDevices: 1, PerEmail: true, Entitled: true, Version: 7}
	show("product with trials", trialProduct.Encode())
	upgrade := *goldenOrder()
	upgrade.UpgradeOf = kvtest.Key
	show("order that names a trial", (&Order{Order: upgrade, Writers: license.Writers}).Encode())
	show("customer", EncodeMetadata(licensing.Metadata{Customer: goldenCustomer}, nil))
	show("alias", EncodeAlias(licensing.Alias{License: kvtest.Key.ID(), Owner: kvtest.Owner}))
	show("settings", (&Settings{Settings: licensing.Settings{ExternalKeys: licensing.MatchCompact, KeysFixed: true},
		Writers: license.Writers}).Encode())
	show("settings with days", (&Settings{Settings: licensing.Settings{ChosenDays: "\x1e\x01", DaysChosen: true},
		Writers: license.Writers}).Encode())
	signing := ReceiptKeys{ReceiptKeys: licensing.ReceiptKeys{Owner: kvtest.Owner,
		Root: licensing.SealedRoot{MasterID: "2026", Sealed: [licensing.SealedRootSize]byte{1, 2, 3}},
		Keys: []licensing.ReceiptKey{{Number: 2, CreatedAt: kvtest.Time}, {Number: 3, CreatedAt: kvtest.Time}}},
		Writers: license.Writers}
	show("receipt keys", signing.Encode())
	void := licensing.Revocation{Name: licensing.RevocationOf(kvtest.Key.ID(), "laptop"), Revision: 300, Until: 21_900}
	show("revocation", EncodeRevocation(void))
	if again, err := DecodeRevocation(void.Name, EncodeRevocation(void)); err != nil || again != void {
		t.Errorf("a revocation is read as %+v, %v", again, err)
	}
	receipted := *license
	receipted.License.Receipts = licensing.ReceiptTerms{Always: true, ValiditySeconds: 3600}
	receipted.License.ReceiptsUntil, receipted.License.Revision = 21_900, 300
	show("license with receipts", receipted.Encode())
	receipted.License.Receipts.RevocationAgeSeconds = 90 * 24 * 3600
	receipted.License.Receipts.ValiditySeconds = 90 * 24 * 3600
	receipted.License.Revocations = licensing.RevocationCount{Day: 21_893, Count: licensing.MaxRevocationsADay}
	show("license with revocations", receipted.Encode())
	if again, err := DecodeLicense(kvtest.Key.ID(), receipted.Encode()); err != nil ||
		again.License.Receipts != receipted.License.Receipts || again.License.Revision != 300 ||
		again.License.Revocations != receipted.License.Revocations ||
		again.License.ReceiptsUntil != 21_900 {
		t.Errorf("a license with receipts is read as %+v, %v", again, err)
	}
	if again, err := DecodeReceiptKeys(kvtest.Owner, signing.Encode()); err != nil || !cmp.Equal(*again, signing) {
		t.Errorf("receipt keys are read as %+v, %v", again, err)
	}
	show("mark of events", (&RetentionMark{At: kvtest.Time, Measured: true}).Encode())
	show("ledger of events", goldenLedger().Encode())
	golden(t, "values.golden", b.String())
}

var goldenCustomer = licensing.Customer{BuyerEmail: "Ada@example.com", Reference: "C-1"}

var goldenSale = licensing.Payment{Amount: 990, Currency: "EUR", PaidAt: kvtest.Time, ProductID: "pro"}

func TestRoundTrip(t *testing.T) {
	license := goldenLicense()
	got, err := DecodeLicense(kvtest.Key.ID(), license.Encode())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, got, license)

	leased := leasedLicense()
	if got, err = DecodeLicense(kvtest.Key.ID(), leased.Encode()); err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, got, leased)
	leased.License.Lease.Longest = leased.License.Lease.Length
	if got, err = DecodeLicense(kvtest.Key.ID(), leased.Encode()); err != nil || got.License != leased.License {
		t.Errorf("the longest lease is as others: %+v, %v", got, err)
	}

	matched := matchedLicense()
	if got, err = DecodeLicense(kvtest.Key.ID(), matched.Encode()); err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, got, matched)
	device, err := got.Devices[1].Decode(got.License.CreatedAt)
	if err != nil || device.Components != matchedComponents() {
		t.Errorf("the components are %q, %v", device.Components, err)
	}
	alone, err := got.Devices[1].Alone(got.License.CreatedAt)
	if err != nil {
		t.Fatal(err)
	}
	device.Components = ""
	if own, err := DecodeDeviceValue(alone); err != nil || own != device {
		t.Errorf("with a key of its own, the device is %+v, %v", own, err)
	}
	device.Components = "\x04disk"
	if _, err := NewInlineDevice(&device, got.License.CreatedAt).Decode(got.License.CreatedAt); err == nil {
		t.Error("malformed components are read")
	}

	order := goldenOrder()
	stored := &Order{Order: *order, Writers: license.Writers}
	value := stored.Encode()
	gotOrder, err := DecodeOrder(licensing.OrderRef(kvtest.Owner, order.OrderNo), value)
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, gotOrder, stored)

	product := goldenProduct()
	product.Product.Rollout = goldenRollout()
	product.Unknown = appendString(nil, 99, "of a newer node")
	gotProduct, err := DecodeProduct(licensing.ProductRef(kvtest.Owner, "pro"), product.Encode())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, gotProduct, product)

	webhooks := goldenWebhooks()
	webhooks.Unknown = appendString(nil, 99, "of a newer node")
	webhooks.UnknownOf = map[string][]byte{"we_0": appendString(nil, 99, "of a newer node")}
	gotWebhooks, err := DecodeWebhooks(kvtest.Owner, webhooks.Encode())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, gotWebhooks, webhooks)

	usage := goldenUsage()
	usage.Unknown = appendString(nil, 99, "of a newer node")
	gotUsage, err := DecodeUsage(kvtest.Owner, usage.Encode())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, gotUsage, usage)

	gotKey, err := DecodeAPIKey([32]byte{1, 2, 3}, goldenAPIKey().Encode())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, gotKey, goldenAPIKey())
}

// TestClearPayToken reads an order as the first builds stored it, with the pay token itself. The token is stored as its
// hash from then on.
func TestClearPayToken(t *testing.T) {
	order := *goldenOrder()
	order.PayHash, order.PaySeed = [32]byte{}, licensing.PaySeed{}
	token := []byte("sixteen bytes!!!")
	value := appendBytes((&Order{Order: order}).Encode(), 8, token)
	stored, err := DecodeOrder(licensing.OrderRef(kvtest.Owner, order.OrderNo), value)
	if err != nil || stored.Order.PayHash != keyring.HashPayToken(hex.EncodeToString(token)) {
		t.Errorf("got the hash %x, %v", stored.Order.PayHash, err)
	}
	if written := stored.Encode(); bytes.Contains(written, token) || !bytes.Contains(written, stored.Order.PayHash[:]) {
		t.Errorf("the token is written again: %q", written)
	}
}

// TestDeviceRoundTrip tries any device; its id comes back to the byte, whether
// it was packed or not.
func TestDeviceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := kvtest.Time.Add(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "bound")) * time.Millisecond)
		d := licensing.Device{
			ID:         rapid.OneOf(rapid.StringMatching(`[0-9a-f]{1,64}`), rapid.StringN(1, 255, -1)).Draw(t, "id"),
			BoundAt:    at,
			LastSeenAt: at.Add(time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, "seen")) * time.Millisecond),
		}
		if rapid.Bool().Draw(t, "named") {
			d.Named, d.Name = true, rapid.String().Draw(t, "name")
		}
		got, err := DecodeDeviceValue(EncodeDevice(&d))
		if err != nil {
			t.Fatal(err)
		}
		if got != d {
			t.Fatalf("got %+v, want %+v", got, d)
		}
		if got, err = DecodeDeviceOf(d.ID, EncodeDevice(&d)); err != nil || got != d {
			t.Fatalf("with the id from the key: got %+v, %v, want %+v", got, err, d)
		}
	})
}

// TestDeviceWithoutID refuses the value of a device that has no id, also if the id is known from the key.
func TestDeviceWithoutID(t *testing.T) {
	value := EncodeDevice(&licensing.Device{Name: "Ada's laptop", Named: true, BoundAt: kvtest.Time})
	if got, err := DecodeDeviceOf("laptop", value); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestNewerVersion refuses a value of a format version that this build does not know.
func TestNewerVersion(t *testing.T) {
	value := goldenLicense().Encode()
	for version, newer := range map[byte]bool{2: true, 0: false} {
		value[0] = version
		if _, err := DecodeLicense(kvtest.Key.ID(), value); !errors.Is(err, ErrMalformed) ||
			errors.Is(err, store.ErrNewerFormat) != newer {
			t.Errorf("a value of format version %d is read with %v", version, err)
		}
	}
}

// TestMissingLimit refuses a license that does not say how many devices it
// allows, rather than to allow any number.
func TestMissingLimit(t *testing.T) {
	stored := goldenLicense()
	stored.Devices = nil
	whole := stored.Encode()
	limit := appendCount(nil, licenseMaxDevices, stored.License.MaxDevices)
	at := bytes.Index(whole, limit)
	cut := append(append([]byte{}, whole[:at]...), whole[at+len(limit):]...)
	if _, err := DecodeLicense(kvtest.Key.ID(), cut); !errors.Is(err, ErrMalformed) {
		t.Errorf("got %v", err)
	}
}

// FuzzDecode reads any bytes as every kind of value: none may panic, and what
// is accepted must be stored and read again as the same thing.
func FuzzDecode(f *testing.F) {
	license, order := goldenLicense(), goldenOrder()
	value := (&Order{Order: *order, Writers: license.Writers}).Encode()
	f.Add(license.Encode())
	f.Add(value)
	f.Add(EncodeDevice(&kvtest.Devices()[0]))
	f.Add(goldenAPIKey().Encode())
	f.Add(EncodeKeyUse(kvtest.Time))
	f.Add(goldenProduct().Encode())
	f.Add(goldenWebhooks().Encode())
	f.Add(goldenUsage().Encode())
	for _, c := range goldenClaims() {
		f.Add(EncodeClaim(c, license.Writers))
	}
	f.Add(EncodeOwner(kvtest.Owner))
	f.Add(EncodeEvents(kvtest.Events(), keyspace.Location{Epoch: 0x0102030405}))
	f.Add(EncodeBlock([]Run{{Record: "la", Last: 1, Value: []byte("events")}, {Record: "lb", Last: 300,
		Value: []byte("others")}}))
	f.Add([]byte{})
	f.Add([]byte{formatVersion, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		id := kvtest.Key.ID()
		if got, err := DecodeLicense(id, value); err == nil {
			again, err := DecodeLicense(id, got.Encode())
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		if got, err := DecodeDeviceValue(value); err == nil {
			again, err := DecodeDeviceValue(EncodeDevice(&got))
			if err != nil || again != got {
				t.Fatalf("device %+v, again %+v, %v", got, again, err)
			}
		}
		if got, err := DecodeWebhooks(kvtest.Owner, value); err == nil {
			again, err := DecodeWebhooks(kvtest.Owner, got.Encode())
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		if got, err := DecodeUsage(kvtest.Owner, value); err == nil {
			again, err := DecodeUsage(kvtest.Owner, got.Encode())
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		ref := licensing.OrderRef(kvtest.Owner, order.OrderNo)
		if got, err := DecodeOrder(ref, value); err == nil {
			again, err := DecodeOrder(ref, got.Encode())
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		if got, writers, err := DecodeClaim(value); err == nil {
			again, _, err := DecodeClaim(EncodeClaim(got, writers))
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		if got, err := DecodeAPIKey([32]byte{}, value); err == nil {
			again, err := DecodeAPIKey([32]byte{}, got.Encode())
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		if got, err := DecodeProduct(licensing.ProductRef(kvtest.Owner, "pro"), value); err == nil {
			again, err := DecodeProduct(licensing.ProductRef(kvtest.Owner, "pro"), got.Encode())
			if err != nil {
				t.Fatal(err)
			}
			kvtest.Equal(t, again, got)
		}
		if got, err := DecodeKeyUse(value); err == nil {
			if again, err := DecodeKeyUse(EncodeKeyUse(got)); err != nil || !again.Equal(got) {
				t.Fatalf("use at %v, again %v, %v", got, again, err)
			}
		}
		_, _ = DecodeOwner(value)
		for _, record := range []string{keyspace.LicenseInEvents(id), keyspace.OrderInEvents(order.OrderNo),
			keyspace.WebhooksInEvents(kvtest.Owner), keyspace.UsageInEvents(kvtest.Owner), "s1"} {
			stored, err := DecodeEvents(kvtest.Owner, record, 7, value)
			if n := len(stored.Events); n == 0 || stored.Events[n-1].Sequence != 7 {
				t.Fatalf("events of %q: %+v, %v", record, stored, err)
			}
		}
		block := &keyspace.EventsKey{Location: keyspace.Location{Epoch: 1, Block: 1 << 31}}
		if runs, err := DecodeRuns(block, value); len(runs) == 0 {
			t.Fatalf("no runs, and %v", err)
		}
	})
}

func inlined(devices ...licensing.Device) (stored []InlineDevice) {
	for i := range devices {
		stored = append(stored, NewInlineDevice(&devices[i], kvtest.Time))
	}
	return stored
}
