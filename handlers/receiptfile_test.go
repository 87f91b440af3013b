package handlers_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/handlers/limits"
	"licet/node/store"
	"licet/receipt"
)

// request returns the request of a device without network, whose key is labKey.
func request(t *testing.T, key, device string, change ...func(*receipt.Request)) string {
	t.Helper()
	r := &receipt.Request{LicenseKey: key, DeviceID: device, Nonce: "n1",
		DeviceKey: base64.RawURLEncoding.EncodeToString(labKey().Public().(ed25519.PublicKey))}
	for _, f := range change {
		f(r)
	}
	text, err := r.Armor()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// makeFile sends the request of a device, with more members.
func (s *fixture) makeFile(apiKey, request, members string) answer {
	s.t.Helper()
	return s.send("POST", "/v1/receipts", apiKey, `{"request":`+quoted(request)+members+`}`)
}

// TestReceiptFiles: the request of a device binds it as an activation does, and its receipt file is good on the device.
func TestReceiptFiles(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":1,"self_service_deactivation":true,"device_match":{"at_least":1}`).must(t, 0)
	key := s.license()
	named := func(r *receipt.Request) {
		r.DeviceName, r.Components = "Lab 7", map[string]string{"disk": strings.Repeat("ab", 32)}
	}
	got := s.makeFile("", "Dear shop,\n"+request(t, key, "lab-7", named), `,"receipt_seconds":3600`).must(t, 0)
	if got.text("license_id") != s.get(key).text("id") || got.text("product_id") != "editor" ||
		got.text("device_id") != "lab-7" || strings.Contains(got.body, key) {
		t.Errorf("answered %s", got.body)
	}
	file, err := receipt.ParseFile(got.text("receipt_file"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := receipt.ParseRoot(s.receiptKeys().text("root"))
	if err != nil {
		t.Fatal(err)
	}
	v := receipt.Verifier{Root: root, AccountID: "acct_acme", Mode: "test", ProductID: "editor", DeviceID: "lab-7",
		Nonce: "n1"}
	r, err := v.VerifyFile(file, s.clock.Now())
	if err != nil || r.ExpiresAt != s.clock.Now().Unix()+3600 || !receipt.NamesKey(file.Receipt,
		labKey().Public().(ed25519.PublicKey)) {
		t.Errorf("the receipt is %+v: %v", r, err)
	}
	if name := s.send("GET", "/v1/licenses/"+key+"/devices", keyAll, "").must(t, 0).body; !strings.Contains(name,
		`"device_name":"Lab 7"`) || !strings.Contains(name, `"disk"`) {
		t.Errorf("the devices are %s", name)
	}
	s.makeFile(keyAll, request(t, key, "lab-7"), "").must(t, 0) // again, and with an API key
	s.makeFile(keyOther, request(t, key, "lab-7"), "").must(t, 40401)
	s.makeFile("", request(t, key, "lab-8"), "").must(t, 40901)
	s.makeFile("", request(t, "LIC-1", "lab-7"), "").must(t, 40001)
	renewed := s.change(key, "reissue", `{}`).must(t, 0).text("license_key")
	s.makeFile("", request(t, key, "lab-7"), "").must(t, 40306)
	if again := s.makeFile("", request(t, renewed, "lab-7"), "").must(t, 0); again.text("license_id") !=
		got.text("license_id") {
		t.Errorf("with the new key: %s", again.body)
	}
}

// TestBadReceiptRequests: each request that is not good says why, and binds no device.
func TestBadReceiptRequests(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", "").must(t, 0)
	key := s.license()
	good := request(t, key, "lab-7")
	for name, c := range map[string]struct{ text, problem string }{
		"none":    {"x", "-----BEGIN LICET REQUEST-----"},
		"cut":     {good[:len(good)/2], "-----END LICET REQUEST-----"},
		"two":     {good + good, "two armored texts"},
		"release": {strings.ReplaceAll(good, "LICET REQUEST", "LICET RELEASE"), "a licet release"},
		"no device, and a key without a nonce": {request(t, key, "", func(r *receipt.Request) { r.Nonce = "" }),
			"device_id is required; nonce is required if device_key is set"},
		"bad key": {request(t, key, "lab-7", func(r *receipt.Request) { r.DeviceKey = "x" }), "device_key"},
		"bad component": {request(t, key, "lab-7", func(r *receipt.Request) {
			r.Components = map[string]string{"disk": "serial"}
		}), "device_components"},
	} {
		var answered struct {
			Error struct {
				Fields []struct{ Field, Problem string }
			}
		}
		got := s.makeFile("", c.text, "").must(t, 42200)
		err := json.Unmarshal([]byte(got.body), &answered)
		if fields := answered.Error.Fields; err != nil || len(fields) != 1 || fields[0].Field != "request" ||
			!strings.Contains(fields[0].Problem, c.problem) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	s.send("POST", "/v1/receipts", "", `{}`).must(t, 42200)
	s.makeFile("", good, `,"receipt_seconds":1`).must(t, 42200)
	s.makeFile("", good+strings.Repeat(" ", 16<<10), "").must(t, 41300)
	if n := s.get(key).data["current_devices"]; n != float64(0) {
		t.Errorf("%v devices after bad requests", n)
	}
}

// TestReceiptFilesAreLimited: who guesses keys is limited by address as with activations, and a license by its own
// limit.
func TestReceiptFilesAreLimited(t *testing.T) {
	t.Parallel()
	s := newService(t, limited(limits.Config{Address: limits.Rate{Count: 10, Per: time.Hour}})...)
	refused := 0
	for i := range 15 {
		if s.makeFile("", request(t, fmt.Sprintf("LIC-%d", i), "lab-7"), "").code == 42900 {
			refused++
		}
	}
	if refused != 5 {
		t.Errorf("%d of 15 guesses were refused", refused)
	}
}

// TestReceiptFilesInReserve: a store that is almost full has room for the first receipt of a device that is bound, and
// for the keys that sign it.
func TestReceiptFilesInReserve(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("editor", `"max_devices":2`).must(t, 0)
	key := s.license()
	s.activate(key, "lab-7").must(t, 0)
	s.store.fill(store.SpaceReserve)
	s.makeFile("", request(t, key, "lab-8"), "").must(t, 50300)
	s.makeFile("", request(t, key, "lab-7"), "").must(t, 0)
}

// TestReceiptFilesOfLeases: a device without network borrows a lease of the length that its request's carrier asks for,
// and gives it back by a release.
func TestReceiptFilesOfLeases(t *testing.T) {
	t.Parallel()
	s := newService(t)
	key := s.leased()
	root, err := receipt.ParseRoot(s.receiptKeys().text("root"))
	if err != nil {
		t.Fatal(err)
	}
	good := func(what, text, device string, length time.Duration) (document string) {
		t.Helper()
		file, err := receipt.ParseFile(text)
		if err != nil {
			t.Fatal(err)
		}
		v := receipt.Verifier{Root: root, DeviceID: device}
		r, err := v.VerifyFile(file, s.clock.Now())
		if err != nil || r.LeaseEndsAt == nil || time.Duration(r.ExpiresAt-r.IssuedAt)*time.Second != length {
			t.Errorf("%s: %+v, %v, want a receipt for %v", what, r, err, length)
		}
		return file.Receipt
	}
	file := func(device, members string) string {
		t.Helper()
		return s.makeFile("", request(t, key, device), members).must(t, 0).text("receipt_file")
	}
	good("the product's length", file("lab-7", ""), "lab-7", 10*time.Minute)
	borrowed := good("a day", file("lab-7", `,"lease_seconds":86400`), "lab-7", 24*time.Hour)
	got := s.send("POST", "/v1/receipts/batch", "", `{"requests":[`+quoted(request(t, key, "lab-8"))+
		`],"lease_seconds":3600}`).must(t, 0)
	var batch struct {
		Data struct{ Results []batchResult }
	}
	if err := json.Unmarshal([]byte(got.body), &batch); err != nil || batch.Data.Results[0].File == nil {
		t.Fatalf("%s: %v", got.body, err)
	}
	good("in a batch", batch.Data.Results[0].File.ReceiptFile, "lab-8", time.Hour)
	for _, refused := range []answer{
		s.makeFile("", request(t, key, "lab-7"), `,"lease_seconds":29`),
		s.send("POST", "/v1/receipts/batch", "",
			`{"requests":[`+quoted(request(t, key, "lab-7"))+`],"lease_seconds":29}`),
	} {
		if !strings.Contains(refused.must(t, 42200).body, `"field":"lease_seconds"`) {
			t.Errorf("a lease of 29 seconds: %s", refused.body)
		}
	}

	s.clock.advance(2 * time.Hour)
	if n := s.get(key).data["current_devices"]; n != float64(1) {
		t.Errorf("after two hours %v devices have a lease, want the device that has borrowed one for a day", n)
	}
	release, err := (&receipt.Release{Receipt: borrowed, IssuedAt: 1}).Sign(labKey())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.carry(release).must(t, 0); got.data["removed"] != true || got.data["current_devices"] != float64(0) {
		t.Errorf("the release: %s", got.body)
	}
}
