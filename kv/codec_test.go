package kv

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

	"licet/licensing"
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

func goldenLicense() *storedLicense {
	return &storedLicense{
		license: goldenFacts(),
		writers: []writer{{by: store.Incarnation{1, 2, 3, 4, 5, 6, 7, 8}, swap: 9}, {by: store.Incarnation{0xff}, swap: 1 << 40}},
		devices: inlined(goldenDevices...),
	}
}

func goldenOrder() *licensing.Order {
	return &licensing.Order{
		OrderNo: "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A", Owner: goldenOwner, ProductID: "pro",
		Amount: 1_000_000_000_000, Currency: "KWD", Description: "one seat\nfor ever", BuyerEmail: "ada@example.com",
		Metadata: `{"cart":[1,2]}`, SuccessURL: "https://shop.example/thanks",
		PayToken:  "00112233445566778899aabbccddeeff",
		Terms:     licensing.Terms{KeyPrefix: "ACME", MaxDevices: 5, Validity: licensing.Period{Months: 1}, FromActivation: true},
		CreatedAt: testTime, ExpiresAt: testTime.Add(time.Hour), PaidAt: testTime.Add(2 * time.Hour),
		CanceledAt: testTime.Add(3 * time.Hour), RefundedAt: testTime.Add(4 * time.Hour), ExpiredAt: testTime.Add(5 * time.Hour),
		LicenseKey: goldenKey, Late: true, Payment: "sandbox_1", RefundDue: true,
		RefundTries: 3, RefundRetryAt: testTime.Add(6 * time.Hour), StateReason: "too slow",
	}
}

func goldenClaims() []*licensing.Claim {
	made := licensing.Claim{Fingerprint: [32]byte{1, 2, 3}, CreatedAt: testTime}
	order, grant, change, refusal, key, redaction, endpoint := made, made, made, made, made, made, made
	endpoint.EndpointID = "we_001jd4q8x2m7r3n5t9v1w4y6z8a"
	redaction.Redaction = &licensing.Redaction{Orders: 214, Licenses: 200, Complete: true}
	key.APIKeyID = "key_01jd4q8x2m7r3n5t9v1w4y6z8a"
	order.OrderNo = "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A"
	grant.Grant = &licensing.GrantProgress{Seed: [32]byte{4, 5, 6}, Terms: goldenOrder().Terms, Quantity: 1000, Done: 32}
	change.LicenseKey = goldenKey
	refusal.Refusal = licensing.ErrPaymentNotConfigured
	return []*licensing.Claim{&order, &grant, &change, &refusal, &key, &redaction, &endpoint}
}

func goldenProduct() *storedProduct {
	return &storedProduct{
		product: licensing.Product{
			ID: "pro", Owner: goldenOwner, Name: "The App", Metadata: `{"sku":7}`, CreatedAt: testTime,
			Terms: licensing.Terms{
				KeyPrefix: "ACME", MaxDevices: 5, Validity: licensing.Period{Months: 1}, FromActivation: true,
				SelfService: licensing.SelfService{RemovalsPerMonth: 3},
			},
		},
		writers: []writer{{by: store.Incarnation{1, 2, 3, 4, 5, 6, 7, 8}, swap: 9}},
	}
}

func goldenAPIKey() *storedAPIKey {
	return &storedAPIKey{key: licensing.APIKey{
		ID: "key_01", Hash: [32]byte{1, 2, 3}, Owner: goldenOwner, Name: "shop", Scopes: []string{"orders", "licenses:read"},
		SecretVersion: 2, MasterID: "2026", CreatedAt: testTime, ExpiresAt: testTime.Add(time.Hour), RevokedAt: testTime.Add(time.Minute),
		Previous: licensing.PreviousSecret{Version: 1, MasterID: "2025", Until: testTime.Add(2 * time.Hour)}, RequireSignature: true,
	}, writers: []writer{{by: store.Incarnation{1, 2, 3}, swap: 300}}}
}

func goldenWebhooks() *storedWebhooks {
	return &storedWebhooks{
		webhooks: licensing.Webhooks{Owner: goldenOwner, Sequence: 300, Endpoints: []licensing.Endpoint{
			{
				ID: "we_001jd4q8x2m7r3n5t9v1w4y6z8a", URL: "https://shop.example/licet", Description: "the shop",
				Types: []licensing.EventType{licensing.EventOrderPaid, licensing.EventDeviceBound}, SecretVersion: 2, MasterID: "2026",
				Previous: licensing.PreviousSecret{Version: 1, MasterID: "2025", Until: testTime.Add(2 * time.Hour)},
				Since:    "pos_000000000000", CreatedAt: testTime, ResetAt: testTime.Add(time.Minute),
				DisabledAt: testTime.Add(time.Hour), DisabledBecause: licensing.DisabledGone,
			},
			{ID: "we_0", URL: "https://shop.example/", SecretVersion: 1, MasterID: "2026", CreatedAt: testTime, ResetAt: testTime},
		}},
		writers: []writer{{by: store.Incarnation{1, 2, 3}, swap: 300}}, told: site{epoch: 0x0102030405},
	}
}

func TestGoldenValues(t *testing.T) {
	var b strings.Builder
	show := func(name string, value []byte) { fmt.Fprintf(&b, "%s\n%s\n", name, hex.Dump(value)) }
	license, order := goldenLicense(), goldenOrder()
	show("license", license.encode())
	license.license.Owner.AccountID = "acct_01jd4q8x2m7r3n5t9v1w4y6z8a"
	show("license of an account with a ULID", license.encode())
	show("device", encodeDevice(&goldenDevices[0]))
	value, err := (&storedOrder{order: *order, writers: license.writers}).encode()
	if err != nil {
		t.Fatal(err)
	}
	show("order", value)
	show("owner of an order", encodeOwner(goldenOwner))
	show("product", goldenProduct().encode())
	for _, c := range goldenClaims() {
		show("claim", encodeClaim(c, license.writers))
	}
	show("API key", goldenAPIKey().encode())
	show("use of an API key", encodeKeyUse(testTime))
	told := goldenLicense()
	told.told, told.license.Sequence = site{0x0102030405, 0x86070809}, 300
	show("license of which events tell", told.encode())
	show("events of a license", encodeEvents(goldenEvents(), site{epoch: 0x0102030405}))
	newer := goldenEvents()[2:]
	newer[0].Type, newer[0].Actor = "license.paused", "robot"
	newer[0].Members = []licensing.EventMember{{Of: "license", Name: "pauses", JSON: "3"}, {Name: "pause", JSON: `{"days":30}`}}
	show("event of a kind without a number, with further members", encodeEvents(newer, site{epoch: 0x0102030405}))
	orders := licensing.NewOrder(goldenOrder(), "key_01")
	show("event of an order", encodeEvents(orders.Events, site{}))
	show("endpoints of webhooks", goldenWebhooks().encode())
	disabled := licensing.Record{Webhooks: &goldenWebhooks().webhooks}
	disable := licensing.DisableEndpoint{ID: "we_0", ResetAt: testTime, Because: licensing.DisabledFailing}
	if _, err := licensing.Apply(&disabled, disable, testTime); err != nil {
		t.Fatal(err)
	}
	show("block of two records", encodeBlock([]eventRun{
		{record: orderInEvents("ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A"), last: 1, value: []byte("events")},
		{record: webhooksInEvents(goldenOwner), last: 300, value: []byte("others")},
	}))
	show("event of an endpoint", encodeEvents(disabled.Events, site{epoch: 0x0102030405}))
	show("fence of those who listen", (&listenFence{moved: 300, moves: []listenMove{
		{after: 200, changes: []assumption{{goldenOwner, true}, {goldenOther, false}}}, {changes: []assumption{{goldenOther, true}}},
	}}).encode())
	show("request to listen", encodeListenRequest(true))
	show("mark of events", (&eventMark{at: testTime, measured: true}).encode())
	show("ledger of events", goldenLedger().encode())
	golden(t, "values.golden", b.String())
}

func TestGoldenKeys(t *testing.T) {
	var b strings.Builder
	id := goldenKey.ID()
	for _, row := range []struct{ what, key string }{
		{"license", licenseKey(id)},
		{"device", deviceKey(id, goldenHex)},
		{"metadata", metadataKey(id)},
		{"events of a license", eventsKey(goldenOwner, site{epoch: 0x0102030405}, licenseInEvents(id), 7)},
		{"events of an order", eventsKey(goldenOwner, site{epoch: 0x0102030405}, orderInEvents("ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A"), 7)},
		{"events of several records", blockKey(goldenOwner, site{0x0102030405, 0x86070809})},
		{"events of endpoints", eventsKey(goldenOwner, site{epoch: 0x0102030405}, webhooksInEvents(goldenOwner), 7)},
		{"owner of events", eventOwnerKey(goldenOwner)},
		{"mark of events", markKey(0x0102030405)},
		{"ledger of events", ledgerKey(goldenOwner)},
		{"epoch", epochKey},
		{"fence of those who listen", listenKey},
		{"one who listens to activations", listenerKey(goldenOwner)},
		{"request to listen", listenRequestKey(goldenOwner)},
		{"the last epoch that is swept", sweptKey},
		{"the last backup", backupKey},
		{"listing", listingKey(goldenOwner, testTime, id)},
		{"product in the listing", placeOfProduct(licensing.ProductRef(goldenOwner, "pro"), &licensing.Product{CreatedAt: testTime})},
		{"order among its buyer's", placeOfOrder(goldenOrder())},
		{"order of the same buyer", placeOfOrder(&licensing.Order{Owner: goldenOwner, OrderNo: "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8B", BuyerEmail: "ADA@Example.com"})},
		{"listing, one level up", skipKey(1, listingKey(goldenOwner, testTime, id)[len(layout):])},
		{"orders, two levels up", skipKey(2, orderKey(goldenOwner, "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A")[len(layout):])},
		{"order", orderKey(goldenOwner, "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A")},
		{"order in test mode", orderKey(licensing.Owner{AccountID: "acct_01jd4", Mode: licensing.Test}, "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A")},
		{"owner of an order", orderOwnerKey("ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A")},
		{"product", productKey(goldenOwner, "pro")},
		{"claim", claimKey(goldenOwner, "0123456789abcdef")},
		{"claim by age", claimAgeKey(testTime, goldenOwner, "0123456789abcdef")},
		{"endpoints of webhooks", webhooksKey(goldenOwner)},
		{"mark of endpoints", webhooksMark},
		{"deleted endpoint", deletedWebhookKey("we_001jd4q8x2m7r3n5t9v1w4y6z8a")},
		{"license by its end", dueOf(licensing.Due{Kind: licensing.DueLicenseEnd, At: testTime}).key(licenseKey(id))},
		{"order by its end", dueOf(licensing.Due{Kind: licensing.DueOrderEnd, At: testTime}).key(orderKey(goldenOwner, "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"order by its next refund", dueOf(licensing.Due{Kind: licensing.DueRefund, At: testTime}).key(orderKey(goldenOwner, "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"API key", apiKeyKey([32]byte{1, 2, 3})},
		{"index of API keys", apiKeyIndexKey(goldenOwner, "key_01")},
		{"use of an API key", keyUseKey([32]byte{1, 2, 3})},
		{"progress of an endpoint", progressKey("we_001")},
		{"pending message to an endpoint", pendingKey("we_001", "evt_001")},
		{"message that was given up", deadKey("we_001", "evt_001")},
		{"page of the log of an endpoint", pageKey("we_001", 258)},
		{"replay at an endpoint", replayKey("we_001", goldenULID)},
		{"claim on an endpoint", claimOfKey("we_001")},
		{"worker that delivers", workerKey(store.Incarnation{1, 2, 3})},
		{"check key", checkKey},
		{"mark of the API keys", apiKeysMark},
		{"mark of a part of the API keys", apiKeyPartMark(7)},
		{"fingerprint of a master key", masterKeyKey("2026")},
		{"fingerprint of a retired master key", retiredMasterKey("2025")},
	} {
		fmt.Fprintf(&b, "%s: %q\n", row.what, row.key)
	}
	golden(t, "keys.golden", b.String())
}

func TestRoundTrip(t *testing.T) {
	license := goldenLicense()
	got, err := decodeLicense(goldenKey.ID(), license.encode())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got, license)

	order := goldenOrder()
	stored := &storedOrder{order: *order, writers: license.writers}
	value, err := stored.encode()
	if err != nil {
		t.Fatal(err)
	}
	gotOrder, err := decodeOrder(licensing.OrderRef(goldenOwner, order.OrderNo), value)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gotOrder, stored)

	product := goldenProduct()
	product.unknown = appendString(nil, 99, "of a newer node")
	gotProduct, err := decodeProduct(licensing.ProductRef(goldenOwner, "pro"), product.encode())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gotProduct, product)

	webhooks := goldenWebhooks()
	webhooks.unknown = appendString(nil, 99, "of a newer node")
	webhooks.unknownOf = map[string][]byte{"we_0": appendString(nil, 99, "of a newer node")}
	gotWebhooks, err := decodeWebhooks(goldenOwner, webhooks.encode())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gotWebhooks, webhooks)

	gotKey, err := decodeAPIKey([32]byte{1, 2, 3}, goldenAPIKey().encode())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, gotKey, goldenAPIKey())
}

// TestDeviceRoundTrip tries any device; its id comes back to the byte, whether
// it was packed or not.
func TestDeviceRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := testTime.Add(time.Duration(rapid.Int64Range(-1e9, 1e9).Draw(t, "bound")) * time.Millisecond)
		d := licensing.Device{
			ID:         rapid.OneOf(rapid.StringMatching(`[0-9a-f]{1,64}`), rapid.StringN(1, 255, -1)).Draw(t, "id"),
			BoundAt:    at,
			LastSeenAt: at.Add(time.Duration(rapid.Int64Range(-1e9, 1e12).Draw(t, "seen")) * time.Millisecond),
		}
		if rapid.Bool().Draw(t, "named") {
			d.Named, d.Name = true, rapid.String().Draw(t, "name")
		}
		got, err := decodeDeviceValue(encodeDevice(&d))
		if err != nil {
			t.Fatal(err)
		}
		if got != d {
			t.Fatalf("got %+v, want %+v", got, d)
		}
	})
}

// TestNewerVersion refuses a value of a format version that this build does not know.
func TestNewerVersion(t *testing.T) {
	value := goldenLicense().encode()
	value[0] = 2
	if _, err := decodeLicense(goldenKey.ID(), value); err == nil {
		t.Error("a value of format version 2 was read")
	}
}

// TestMissingLimit refuses a license that does not say how many devices it
// allows, rather than to allow any number.
func TestMissingLimit(t *testing.T) {
	stored := goldenLicense()
	stored.devices = nil
	whole := stored.encode()
	limit := appendCount(nil, licenseMaxDevices, stored.license.MaxDevices)
	at := bytes.Index(whole, limit)
	cut := append(append([]byte{}, whole[:at]...), whole[at+len(limit):]...)
	if _, err := decodeLicense(goldenKey.ID(), cut); !errors.Is(err, errMalformed) {
		t.Errorf("got %v", err)
	}
}

// FuzzDecode reads any bytes as every kind of value: none may panic, and what
// is accepted must be stored and read again as the same thing.
func FuzzDecode(f *testing.F) {
	license, order := goldenLicense(), goldenOrder()
	value, err := (&storedOrder{order: *order, writers: license.writers}).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(license.encode())
	f.Add(value)
	f.Add(encodeDevice(&goldenDevices[0]))
	f.Add(goldenAPIKey().encode())
	f.Add(encodeKeyUse(testTime))
	f.Add(goldenProduct().encode())
	f.Add(goldenWebhooks().encode())
	for _, c := range goldenClaims() {
		f.Add(encodeClaim(c, license.writers))
	}
	f.Add(encodeOwner(goldenOwner))
	f.Add(encodeEvents(goldenEvents(), site{epoch: 0x0102030405}))
	f.Add(encodeBlock([]eventRun{{record: "la", last: 1, value: []byte("events")}, {record: "lb", last: 300, value: []byte("others")}}))
	f.Add([]byte{})
	f.Add([]byte{formatVersion, 0xff})
	f.Fuzz(func(t *testing.T, value []byte) {
		id := goldenKey.ID()
		if got, err := decodeLicense(id, value); err == nil {
			again, err := decodeLicense(id, got.encode())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, again, got)
		}
		if got, err := decodeDeviceValue(value); err == nil {
			again, err := decodeDeviceValue(encodeDevice(&got))
			if err != nil || again != got {
				t.Fatalf("device %+v, again %+v, %v", got, again, err)
			}
		}
		if got, err := decodeWebhooks(goldenOwner, value); err == nil {
			again, err := decodeWebhooks(goldenOwner, got.encode())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, again, got)
		}
		ref := licensing.OrderRef(goldenOwner, order.OrderNo)
		if got, err := decodeOrder(ref, value); err == nil {
			encoded, err := got.encode()
			if err != nil {
				t.Fatal(err)
			}
			again, err := decodeOrder(ref, encoded)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, again, got)
		}
		if got, writers, err := decodeClaim(value); err == nil {
			again, _, err := decodeClaim(encodeClaim(got, writers))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, again, got)
		}
		if got, err := decodeAPIKey([32]byte{}, value); err == nil {
			again, err := decodeAPIKey([32]byte{}, got.encode())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, again, got)
		}
		if got, err := decodeProduct(licensing.ProductRef(goldenOwner, "pro"), value); err == nil {
			again, err := decodeProduct(licensing.ProductRef(goldenOwner, "pro"), got.encode())
			if err != nil {
				t.Fatal(err)
			}
			equal(t, again, got)
		}
		if got, err := decodeKeyUse(value); err == nil {
			if again, err := decodeKeyUse(encodeKeyUse(got)); err != nil || !again.Equal(got) {
				t.Fatalf("use at %v, again %v, %v", got, again, err)
			}
		}
		_, _ = decodeOwner(value)
		for _, record := range []string{licenseInEvents(id), orderInEvents(order.OrderNo), webhooksInEvents(goldenOwner), "s1"} {
			stored, err := decodeEvents(goldenOwner, record, 7, value)
			if n := len(stored.events); n == 0 || stored.events[n-1].Sequence != 7 {
				t.Fatalf("events of %q: %+v, %v", record, stored, err)
			}
		}
		if runs, err := runsOf(&dirEntry{site: site{1, 1 << 31}}, value); len(runs) == 0 {
			t.Fatalf("no runs, and %v", err)
		}
	})
}

func inlined(devices ...licensing.Device) (stored []inlineDevice) {
	for i := range devices {
		stored = append(stored, inline(&devices[i], testTime))
	}
	return stored
}
