package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/migrate/migratetest"
	"licet/internal/servicetest"
	"licet/licensing"
)

// TestImportFromServices imports licenses from the API of each service, interrupted on the way. Installed software goes
// on with the old keys, on the devices that it had.
func TestImportFromServices(t *testing.T) {
	for _, service := range []string{"keygen", "lemonsqueezy", "gumroad", "polar"} {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			u.must("products", "put", "editor", "--max-devices", "3")
			sold := []migratetest.License{
				{ID: "1", Key: "OLD-" + service + "-1", Product: "4711", MaxDevices: 2,
					Devices: []string{"mac-1", "mac-2"}},
				{ID: "2", Key: "OLD-" + service + "-2", Product: "4711", MaxDevices: 2, Blocked: true},
				{ID: "3", Key: "OLD-" + service + "-3", Product: "4711", MaxDevices: 2,
					Expires: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)},
				{ID: "4", Key: "OLD-" + service + "-4", Product: "with blanks", MaxDevices: 2},
			}
			left := `4,"product_id is ""with blanks""`
			switch service {
			case "lemonsqueezy": // products have numbers
				sold[3].Product, sold[3].Key = "4711", strings.Repeat("x", 1025)
				left = "4,external_key must have 1 to 1024 characters"
			case "gumroad":
				for i := range sold {
					sold[i].Devices = nil
				}
			}
			fake, stop := migratetest.New(service, sold)
			defer stop()
			u.env[tokenVariable] = migratetest.Token
			path := filepath.Join(t.TempDir(), "sold.json")
			from := []string{"import", service, path, "--from-api", fake.URL, "--product", "4711=editor"}

			shown := u.must(append(from, "--dry-run")...)
			for _, part := range []string{path + ": 4 licenses of ", "; 1 of them can't be imported, see " + path +
				".left.csv. Nothing was sent.", "external_key", "4711", "editor"} {
				if !strings.Contains(shown, part) {
					t.Errorf("the dry run printed %q, without %q", shown, part)
				}
			}
			if o := u.asJSON(append(from, "--dry-run")...); fmt.Sprint(o["licenses"], o["rows"],
				o["not_importable"]) != "4 3 1" {
				t.Errorf("the dry run printed %v", o)
			}
			if text, err := os.ReadFile(path + ".left.csv"); err != nil || !strings.Contains(string(text), left) {
				t.Errorf("left: %s, %v", text, err)
			}
			if o := u.asJSON("licenses", "list"); fmt.Sprint(o["licenses"]) != "[]" {
				t.Errorf("the dry run granted %v", o)
			}

			if text := u.must(from...); !strings.Contains(text, "3 rows: 3 granted") {
				t.Errorf("the import printed %q", text)
			}
			if text := u.must(from...); !strings.Contains(text, "3 of them by earlier runs") {
				t.Errorf("the second import printed %q", text)
			}
			want := map[string]string{"1": "activated 2", "2": "suspended 0", "3": "expired 0"}
			if service == "gumroad" {
				want["1"], want["3"] = "not_activated 0", "not_activated 0"
			}
			for id, state := range want {
				key := "OLD-" + service + "-" + id
				o := u.asJSON("licenses", "list", "--external-key", key)
				l, ok := o["licenses"].([]any)
				if !ok || len(l) != 1 {
					t.Fatalf("%s: %v", key, o)
				}
				one, _ := l[0].(map[string]any)
				if got := fmt.Sprint(one["status"], " ", one["current_devices"]); got != state ||
					one["product_id"] != "editor" {
					t.Errorf("%s is %s, want %s", key, got, state)
				}
			}
			if service == "gumroad" {
				return
			}
			// The program on the first Mac goes on with its old key; a third Mac has no place.
			installed, err := client.New(svc.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			defer installed.CloseIdleConnections()
			account := u.asJSON("account", "show")
			try := func(device string) error {
				_, err := installed.Activate(t.Context(), client.Activation{LicenseKey: "OLD-" + service + "-1",
					DeviceID: device, AccountID: fmt.Sprint(account["account_id"]), Mode: fmt.Sprint(account["mode"])})
				return err
			}
			if err := try("mac-1"); err != nil {
				t.Error(err)
			}
			if err := try("mac-3"); !client.HasReason(err, client.ReasonDeviceLimitReached) {
				t.Errorf("a third device: %v", err)
			}
		})
	}
}

// TestHintsForExternalKeys names the flags that find a license by its key of another service.
func TestHintsForExternalKeys(t *testing.T) {
	u := newUser(t)
	u.must("account", "update", "--external-keys", "exact")
	account := fmt.Sprint(u.asJSON("account", "show")["account_id"])
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte("external_key,product_id\nKEY-1,editor\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must("licenses", "import", path)
	u.refuses(false, []string{"licet licenses list --external-key KEY"}, "licenses", "get", "KEY-1")
	u.must("licenses", "list", "--external-key", "KEY-1")
	for _, command := range []string{"activate", "validate"} {
		with := []string{"licenses", command, "KEY-1", "mac"}
		u.refuses(false, []string{"add --account-id, and in test mode --mode test"}, with...)
		with = append(with, "--account-id", account)
		u.refuses(false, []string{"; if this is a key of another service in test mode, add --mode test"}, with...)
		u.must(append(with, "--mode", "test")...)
	}
}

// TestImportInterrupted interrupts the reading of an API, and says how to go on.
func TestImportInterrupted(t *testing.T) {
	u := newUser(t)
	u.env[tokenVariable] = migratetest.Token
	var sold []migratetest.License
	for i := range 250 {
		sold = append(sold, migratetest.License{ID: fmt.Sprint(i), Key: fmt.Sprintf("K-%d", i), Product: "editor"})
	}
	fake, stop := migratetest.New("lemonsqueezy", sold)
	defer stop()
	path := filepath.Join(t.TempDir(), "sold.json")
	from := []string{"import", "lemonsqueezy", path, "--from-api", fake.URL, "--dry-run"}

	ctx, cancel := context.WithCancel(t.Context())
	fake.Answer = func(http.ResponseWriter, *http.Request, int) bool {
		if len(fake.Requests()) == 2 {
			cancel()
		}
		return false
	}
	u.ctx = ctx
	if got := u.run(from...); got.err == nil || got.stdout != "" {
		t.Fatalf("%v, printed %q", got.err, got.stdout)
	}
	fake.Answer, u.ctx = nil, t.Context()
	u.env[tokenVariable] = "wrong"
	u.refuses(false, []string{"interrupted after response 1", "repeat the command to continue", "refuses the token"},
		from...)
	u.env[tokenVariable] = migratetest.Token
	if o := u.asJSON(from...); fmt.Sprint(o["licenses"]) != "250" {
		t.Errorf("read %v", o)
	}
	if n := len(fake.Requests()); n != 5 { // one was interrupted, and one was refused
		t.Errorf("%d requests", n)
	}
}

func TestImportRefuses(t *testing.T) {
	u := newUser(t)
	path := filepath.Join(t.TempDir(), "none.json")
	u.refuses(true, []string{"name a file", "--from-api https://api.polar.sh/v1"}, "import", "polar")
	u.refuses(true, []string{"--product is", "= and a product_id"}, "import", "polar", path, "--product", "editor")
	u.refuses(true, []string{"--parallel is 0"}, "import", "polar", path, "--parallel", "0")
	u.refuses(true, []string{"$LICET_IMPORT_TOKEN or --token-file must have"}, "import", "polar", path, "--from-api",
		"https://api.polar.sh/v1")
	u.refuses(true, []string{"takes only [FILE]"}, "import", "polar", path, "more")
	u.refuses(false, []string{"no such file"}, "import", "polar", path)
}

// TestCheckKnowsHowKeysAreMatched finds external keys that the account takes for the same one, before a row is sent.
func TestCheckKnowsHowKeysAreMatched(t *testing.T) {
	u := newUser(t)
	path := filepath.Join(t.TempDir(), "in.csv")
	if err := os.WriteFile(path, []byte("external_key,product_id\nAB-1,editor\nab 1,editor\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.must("licenses", "import", path, "--dry-run")
	u.must("account", "update", "--external-keys", "compact")
	for _, more := range [][]string{{"--dry-run"}, nil} {
		got := u.run(append([]string{"licenses", "import", path}, more...)...)
		if want := "line 3, column external_key: is also in line 2"; got.err == nil ||
			!strings.Contains(got.stderr, want) {
			t.Errorf("%v, %q, want %q", got.err, got.stderr, want)
		}
	}
}

// TestImportWithOtherFlags changes the flags of an import that has begun. The import begins again as long as no row was
// granted, and refuses other rows afterwards.
func TestImportWithOtherFlags(t *testing.T) {
	t.Parallel()
	key, err := svc.Key(licensing.Owner{AccountID: servicetest.NewAccount().AccountID, Mode: licensing.Live})
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t)
	u.env["LICET_API_KEY"] = key.Text
	delete(u.env, "LICET_API_KEY_ID")
	u.must("products", "put", "editor")
	path := filepath.Join(t.TempDir(), "sales.csv")
	sales := "Purchase ID,Product ID,License Key\na,edt,K-1\nb,edt,K-2\nc,edt,K-2\n"
	if err := os.WriteFile(path, []byte(sales), 0o600); err != nil {
		t.Fatal(err)
	}
	from := []string{"import", "gumroad", path}
	shown := u.must(append(from, "--dry-run")...)
	if !strings.Contains(shown, "2 licenses of Gumroad; 1 more with the key of an earlier one. Nothing was sent.") {
		t.Errorf("the dry run printed %q", shown)
	}
	if !strings.Contains(shown, `These products do not exist: "edt". In live mode, the service refuses`) {
		t.Errorf("the dry run printed %q", shown)
	}
	if got := u.run(from...); got.err == nil || !strings.Contains(got.err.Error(), "2 of 2 rows not done: fix the") {
		t.Errorf("the import without the product printed %q, %v", got.stdout, got.err)
	}
	got := u.run(append(from, "--product", "edt=editor", "--product", "etd=viewer", "--dry-run")...)
	if want := `no license in ` + path + ` has the product "etd"; the products are "edt"`; got.err != nil ||
		!strings.Contains(got.stderr, want) || strings.Contains(got.stdout, "do not exist") {
		t.Errorf("the dry run ended with %v, %q; it printed %q", got.err, got.stderr, got.stdout)
	}
	edited := append(from, "--product", "edt=editor")
	if o := u.asJSON(append(from, "--dry-run")...); fmt.Sprint(o["missing_products"]) != "[edt]" {
		t.Errorf("the dry run printed %v", o)
	}
	if text := u.must(edited...); !strings.Contains(text, "2 rows: 2 granted") {
		t.Errorf("the import with another product printed %q", text)
	}
	rows, err := os.ReadFile(path + ".csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{{"--max-devices", "7"}, {"--max-devices", "7", "--dry-run"}} {
		u.refuses(false, []string{"2 rows may have been granted", path + ".csv.journal", path + ".csv.results.csv"},
			append(edited, more...)...)
	}
	if text := u.must(edited...); !strings.Contains(text, "2 of them by earlier runs") {
		t.Errorf("the import with the flags that it has begun with printed %q", text)
	}
	if after, err := os.ReadFile(path + ".csv"); err != nil || string(after) != string(rows) {
		t.Errorf("the rows were %q and are %q, %v", rows, after, err)
	}
	// The import begins again without its files. The licenses exist already, and stay as they are.
	for _, suffix := range []string{".csv.journal", ".csv.results.csv"} {
		if err := os.Remove(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	again := u.must(append(edited, "--max-devices", "7")...)
	licenses := fmt.Sprint(u.asJSON("licenses", "list")["licenses"])
	if !strings.Contains(again, "2 rows: 2 already existing") || strings.Count(licenses, "max_devices:0") != 2 {
		t.Errorf("the import that began again printed %q, and there are %s", again, licenses)
	}
}

// TestImportContinuesUnreachable continues an import while the service is unreachable. The service decides how keys are
// matched, and so which rows there are; the message names the service, not the rows.
func TestImportContinuesUnreachable(t *testing.T) {
	u := newUser(t)
	u.must("account", "update", "--external-keys", "compact")
	path := filepath.Join(t.TempDir(), "sales.csv")
	sales := "Purchase ID,Product ID,License Key\na,edt,K-1\nb,edt,K 1\n"
	if err := os.WriteFile(path, []byte(sales), 0o600); err != nil {
		t.Fatal(err)
	}
	from := []string{"import", "gumroad", path}
	if text := u.must(from...); !strings.Contains(text, "1 row: 1 granted") {
		t.Errorf("the import printed %q", text)
	}
	u.env["LICET_URL"] = "http://127.0.0.1:1"
	u.refuses(false, []string{"no service listens"}, from...)
}
