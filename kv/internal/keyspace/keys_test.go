package keyspace

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func TestGoldenKeys(t *testing.T) {
	var b strings.Builder
	id, license := kvtest.Key.ID(), kvtest.License()
	customer := licensing.Customer{BuyerEmail: "Ada@example.com", Reference: "C-1"}
	for _, row := range []struct{ what, key string }{
		{"license", LicenseKey(id)},
		{"device", DeviceKey(id, kvtest.Hex)},
		{"metadata", MetadataKey(id)},
		{"alias", AliasKey(licensing.AliasName(id))},
		{"trial", TrialKey(licensing.TrialRef(kvtest.Owner, licensing.TrialName{1, 2}))},
		{"payment", PaymentKey(licensing.PaymentRef(kvtest.Owner, "outside", "INV-1"))},
		{"payment by its time", SaleKey(licensing.PaymentRef(kvtest.Owner, "outside", "INV-1"), kvtest.Time)},
		{"since when payments have this", BooksKey},
		{"payment in a listing", PaymentListingKey(licensing.PaymentRef(kvtest.Owner, "outside", "INV-1"),
			&licensing.Payment{OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A", RecordedAt: kvtest.Time})},
		{"order in the sandbox", SandboxKey(licensing.SandboxRef(licensing.Owner{AccountID: "acct_01jd4",
			Mode: licensing.Test}, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"settings", SettingsKey(kvtest.Owner)},
		{"receipt keys", ReceiptKeysKey(kvtest.Owner)},
		{"revocation", RevocationKey(kvtest.Owner, licensing.RevocationOf(kvtest.Key.ID(), ""))},
		{"mark of receipt keys", ReceiptKeysMark},
		{"events of a license", EventsKeyOf(kvtest.Owner, Location{Epoch: 0x0102030405}, LicenseInEvents(id), 7)},
		{"events of an order", EventsKeyOf(kvtest.Owner, Location{Epoch: 0x0102030405},
			OrderInEvents("ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"), 7)},
		{"events of several records", BlockKey(kvtest.Owner, Location{0x0102030405, 0x86070809})},
		{"events of endpoints",
			EventsKeyOf(kvtest.Owner, Location{Epoch: 0x0102030405}, WebhooksInEvents(kvtest.Owner), 7)},
		{"events of usage",
			EventsKeyOf(kvtest.Owner, Location{Epoch: 0x0102030405}, UsageInEvents(kvtest.Owner), 7)},
		{"usage", UsageKey(kvtest.Owner)},
		{"events at a payment provider", ProviderEventsKey(kvtest.Owner)},
		{"events at a shared account of a payment provider", ProviderEventsKey(licensing.Owner{Mode: licensing.Live})},
		{"mark of a recount", RecountKey},
		{"mark of an ended recount", RecountedKey},
		{"owner", OwnerKey(kvtest.Owner)},
		{"map of slots", SlotMapKey},
		{"slot in use", SlotKey(licensing.SlotOf(kvtest.Owner))},
		{"mark of events", MarkKey(0x0102030405)},
		{"ledger of events", LedgerKey(kvtest.Owner)},
		{"epoch", EpochKey},
		{"fence of those who listen", ListenKey},
		{"one who listens to activations", ListenerKey(kvtest.Owner)},
		{"request to listen", ListenRequestKey(kvtest.Owner)},
		{"the last epoch that is swept", TrimmedKey},
		{"the last backup", BackupKey},
		{"listing", ListingKey(kvtest.Owner, kvtest.Time, id)},
		{"product in the listing",
			CatalogKey(licensing.ProductRef(kvtest.Owner, "pro"), &licensing.Product{CreatedAt: kvtest.Time})},
		{"order among its buyer's", BuyerListingKey(&licensing.Order{Owner: kvtest.Owner,
			OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A", BuyerEmail: "ada@example.com"})},
		{"order of the same buyer", BuyerListingKey(&licensing.Order{Owner: kvtest.Owner,
			OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8B", BuyerEmail: "ADA@Example.com"})},
		{"license among its buyer's", CustomerKeys(&license, customer)[0]},
		{"license among those of its reference", CustomerKeys(&license, customer)[1]},
		{"listing, one level up", SkipKey(1, ListingKey(kvtest.Owner, kvtest.Time, id))},
		{"orders, two levels up", SkipKey(2, OrderKey(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"order", OrderKey(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A")},
		{"order in test mode", OrderKey(licensing.Owner{AccountID: "acct_01jd4", Mode: licensing.Test},
			"ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A")},
		{"owner of an order", OrderOwnerKey("ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A")},
		{"product", ProductKey(kvtest.Owner, "pro")},
		{"claim", ClaimKey(kvtest.Owner, "0123456789abcdef")},
		{"claim by age", ClaimAgeKey(kvtest.Time, kvtest.Owner, "0123456789abcdef")},
		{"endpoints of webhooks", WebhooksKey(kvtest.Owner)},
		{"mark of endpoints", WebhooksMark},
		{"deleted endpoint", DeletedWebhookKey("we_vq01jd4q8x2m7r3n5t9v1w4y6z8a")},
		{"license by its end",
			DueOf(licensing.Due{Kind: licensing.DueLicenseEnd, At: kvtest.Time}).Key(LicenseKey(id))},
		{"license by its leases",
			DueOf(licensing.Due{Kind: licensing.DueLeases, At: kvtest.Time}).Key(LicenseKey(id))},
		{"license by its next notice",
			DueOf(licensing.Due{Kind: licensing.DueLicenseNotice, At: kvtest.Time}).Key(LicenseKey(id))},
		{"order by its end", DueOf(licensing.Due{Kind: licensing.DueOrderEnd,
			At: kvtest.Time}).Key(OrderKey(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"order that lacks licenses", DueOf(licensing.Due{Kind: licensing.DueIssue}).
			Key(OrderKey(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"order by its next refund", DueOf(licensing.Due{Kind: licensing.DueRefund,
			At: kvtest.Time}).Key(OrderKey(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"order by its next invoice in the sandbox", DueOf(licensing.Due{Kind: licensing.DueSandbox,
			At: kvtest.Time}).Key(OrderKey(kvtest.Owner, "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A"))},
		{"product by its rollout", DueOf(licensing.Due{Kind: licensing.DueRollout,
			At: kvtest.Time}).Key(ProductKey(kvtest.Owner, "pro"))},
		{"API key", APIKeyKey([32]byte{1, 2, 3})},
		{"index of API keys", APIKeyIndexKey(kvtest.Owner, "key_01")},
		{"use of an API key", KeyUseKey([32]byte{1, 2, 3})},
		{"progress of an endpoint", ProgressKey("we_001")},
		{"pending message to an endpoint", PendingKey("we_001", "evt_001")},
		{"message that was given up", DeadKey("we_001", "evt_001")},
		{"page of the log of an endpoint", PageKey("we_001", 258)},
		{"replay at an endpoint", ReplayKey("we_001", kvtest.ULID)},
		{"lease on an endpoint", DeliveryLeaseKey("we_001")},
		{"worker that delivers", WorkerKey(store.Incarnation{1, 2, 3})},
		{"check key", CheckKey},
		{"sealed id key", IDKeyKey},
		{"mark of the API keys", APIKeysMark},
		{"mark of a part of the API keys", APIKeyPartMark(7)},
		{"fingerprint of a master key", MasterKeyKey("2026")},
		{"fingerprint of a retired master key", RetiredMasterKey("2025")},
	} {
		fmt.Fprintf(&b, "%s: %q\n", row.what, row.key)
	}
	const path = "testdata/keys.golden"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
