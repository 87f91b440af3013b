package main

import (
	"bytes"
	"encoding/base32"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// crockfordBase32 decodes the characters of license keys.
var crockfordBase32 = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// TestNothingHoldsLicenseKeys sells, grants, changes and reissues licenses, and then searches etcd's files, the log and
// a backup for all keys that the licenses had: as texts, and as the bits of their characters. All of these name the
// licenses by their ids.
func TestNothingHoldsLicenseKeys(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), "--log-level", "debug")
	order := p.want(t, 201, "POST", "/v1/orders", `{"product_id":"editor","amount":4900,"currency":"USD"}`).Data
	sold := p.want(t, 200, "PUT", "/v1/orders/"+order.text("order_no")+"/sandbox_payment", "").Data
	// The keys of each license, by its id, the oldest first.
	keys := map[string][]string{sold.text("license_id"): {sold.text("license_key")}}
	granted, err := p.sendOnce(t.Context(), "/v1/licenses", "grant-1",
		`{"product_id":"editor","quantity":3,"max_devices":40}`)
	if err != nil || granted.status != 201 {
		t.Fatalf("%v %s", err, granted.body)
	}
	for _, l := range granted.Data.list("licenses") {
		keys[l.text("id")] = []string{l.text("license_key")}
	}
	const external = "Old-Key-0042-from-elsewhere"
	bought := p.want(t, 201, "POST", "/v1/licenses",
		`{"product_id":"editor","quantity":1,"external_key":"`+external+`"}`).Data.list("licenses")[0]
	keys[bought.text("id")] = []string{bought.text("license_key")}
	activateExternal := func() {
		p.want(t, 200, "POST", "/v1/licenses/activate", `{"license_key":"`+external+`","device_id":"laptop-3",`+
			`"account_id":"`+bought.text("account_id")+`","mode":"test"}`)
	}
	activateExternal()
	activate := func(key, device string) {
		t.Helper()
		if r, err := p.activate(t.Context(), key, device); err != nil || r.status != 200 {
			t.Fatalf("%v %s", err, r.body)
		}
	}
	for id := range keys {
		old := keys[id][0]
		activate(old, "laptop-1")
		activate(old, "laptop-2")
		p.want(t, 200, "PATCH", "/v1/licenses/"+id, `{"metadata":{"seat":1}}`)
		p.want(t, 200, "DELETE", "/v1/licenses/"+id+"/devices/laptop-2", "")
		key := p.want(t, 200, "POST", "/v1/licenses/"+id+"/reissue", `{"overlap":"P1D","reason":"leaked"}`).
			Data.text("license_key")
		keys[id] = append(keys[id], key)
		activate(key, "laptop-2")
		activate(old, "laptop-1")
		if id == bought.text("id") {
			activateExternal()
		}
		p.want(t, 200, "POST", "/v1/licenses/"+id+"/suspend", `{"reason":"late"}`)
		if l := p.want(t, 200, "GET", "/v1/licenses/"+id, "").Data; l.text("license_key") != key || l.text("id") != id {
			t.Errorf("%s is %s with the key %s", id, l.text("id"), l.text("license_key"))
		}
		refused := p.want(t, 400, "POST", "/v1/licenses/activate", `{"license_key":"`+id+`","device_id":"laptop-1"}`)
		if refused.Code != 40001 {
			t.Errorf("an id as a key: %d", refused.Code)
		}
		if r := p.want(t, 404, "GET", "/v1/licenses/"+otherID(id), ""); r.Code != 40401 {
			t.Errorf("an id of no license: %d", r.Code)
		}
	}

	backup := filepath.Join(t.TempDir(), "store.db")
	if got := runLicet(t, "store", "backup", backup, "--etcd-endpoints", "unix://"+filepath.Join(p.dir, "run",
		"etcd.sock")); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	if code := p.terminate(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	files := map[string][]byte{"the log": []byte(p.log.String() + p.stdout), backup: readFile(t, backup)}
	err = filepath.WalkDir(filepath.Join(p.dir, "etcd"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path] = bytes.TrimRight(readFile(t, path), "\x00") // etcd allocates 64 MB for each log
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	anyKey := regexp.MustCompile(`(?i)[0-9A-Z]{5}(-[0-9A-Z]{5}){4}`)
	stored := 0
	for name, content := range files {
		if found := anyKey.Find(content); found != nil {
			t.Errorf("%s contains %q, which looks like a key", name, found)
		}
		if bytes.Contains(bytes.ToLower(content), []byte(strings.ToLower(external))) {
			t.Errorf("%s contains an external key", name)
		}
		upper := bytes.ToUpper(content)
		for id, had := range keys {
			for i, key := range had {
				body := strings.ReplaceAll(key[strings.Index(key, "-"):], "-", "")
				packed, err := crockfordBase32.DecodeString(body[:24])
				if err != nil {
					t.Fatal(err)
				}
				// The first 13 bytes contain 104 of the 105 bits that matter.
				if bytes.Contains(content, packed[:13]) || bytes.Contains(upper, []byte(body)) {
					t.Errorf("%s contains key %d of %s", name, i, id)
				}
			}
			block, err := crockfordBase32.DecodeString(strings.ToUpper(strings.TrimPrefix(id, "lic_")))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(content, block) {
				stored++
			}
		}
	}
	if stored < 2*len(keys) {
		t.Errorf("ids were found %d times: the search looks at the wrong files", stored)
	}
	if got := runLicet(t, "store", "verify", "--data-dir", p.dir); got.code != exitOK ||
		strings.Contains(got.stdout, "license ids were not checked") {
		t.Errorf("%+v", got)
	}
}

// otherID returns an id that differs in one character.
func otherID(id string) string {
	other := "0"
	if strings.HasPrefix(id, "lic_0") {
		other = "1"
	}
	return "lic_" + other + id[len("lic_0"):]
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
