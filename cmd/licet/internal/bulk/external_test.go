package bulk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/internal/servicetest"
)

// TestImportExternalKeys brings licenses from elsewhere, with their devices and states, while answers are lost. It goes
// on a day later, when the service has forgotten the Idempotency-Keys.
func TestImportExternalKeys(t *testing.T) {
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	c := caller(t, key.Text)
	im := newImport(t, nil, `external_key,product_id,max_devices,status,state_reason,devices
OLD-1,editor,3,active,,"[""a"",""b""]"
OLD-2,editor,3,suspended,late,"[""c""]"
OLD-3,editor,1,,,"[""d"",""e""]"
OLD-4,editor,,revoked,,
LIC-01H3X-5RK2M-9QZ7T-WB4NC-8YGDA,editor,,,,
`)
	im.Parallel = 1
	started := time.Now()
	im.Now = func() time.Time { return started }
	asked := 0
	_, option := newWire(t, func(r *http.Request) bool {
		asked++
		return asked == 2 || asked == 5 // the first grant, and then an activation
	})
	im.Service = caller(t, key.Text, option, client.RetryFor(0))
	for range 3 {
		if _, err = im.Run(t.Context()); err == nil {
			t.Fatal("it did not break off")
		}
		if asked >= 5 {
			break
		}
	}
	late := im.again(c)
	late.Now = func() time.Time { return started.Add(25 * time.Hour) }
	late.want(t, bulk.ImportSummary{Rows: 5, Granted: 5, Licenses: 5})
	if len(late.failures) != 1 || !strings.Contains(late.failures[0], `device "e" was not bound: device limit reached`) {
		t.Errorf("%q", late.failures)
	}
	want := map[string]struct {
		devices int
		status  string
	}{"OLD-1": {2, "activated"}, "OLD-2": {1, "suspended"}, "OLD-3": {1, "activated"}, "OLD-4": {0, "revoked"},
		"LIC-01H3X-5RK2M-9QZ7T-WB4NC-8YGDA": {0, "not_activated"}} // another store's license key
	all := listed(t, c)
	if len(all) != len(want) {
		t.Errorf("there are %d licenses", len(all))
	}
	for _, l := range all {
		if w := want[l.ExternalKey]; l.CurrentDevices != w.devices || l.Status != w.status {
			t.Errorf("%s has %d devices and is %s", l.ExternalKey, l.CurrentDevices, l.Status)
		}
		if l.ExternalKey == "OLD-2" && l.StateReason != "late" {
			t.Errorf("the reason is %q", l.StateReason)
		}
	}

	// Another file with one of the keys changes nothing in that row, also if the import is repeated.
	second := "external_key,product_id,status,devices\nOLD-1,editor,revoked,\"[\"\"f\"\"]\"\nOLD-9,editor,,\n"
	other := newImport(t, c, second)
	for i, other := range []*importer{other, other.again(c)} {
		other.want(t, bulk.ImportSummary{Rows: 2, Before: 2 * i, Granted: 1, Licenses: 1, Existing: 1})
		differs := `it is not revoked, does not have the device "f"`
		if results := other.results(t); results[0]["result"] != "exists" || len(other.failures) != 1-i ||
			!strings.Contains(results[0]["error"], differs) {
			t.Errorf("%q, %q", other.failures, results)
		}
	}
	// The same holds if the response was lost, and the service has forgotten the Idempotency-Key since.
	begun := time.Now().Add(2 * time.Hour)
	lost := newImport(t, nil, second)
	lost.Parallel = 1
	lost.Now = func() time.Time { return begun }
	_, option = newWire(t, func(*http.Request) bool { return true })
	lost.Service = caller(t, key.Text, option, client.RetryFor(0))
	if _, err := lost.Run(t.Context()); err == nil {
		t.Fatal("it did not break off")
	}
	last := lost.again(c)
	last.Now = func() time.Time { return begun.Add(25 * time.Hour) }
	last.want(t, bulk.ImportSummary{Rows: 2, Existing: 2})
	for _, l := range listed(t, c) {
		if l.ExternalKey == "OLD-1" && (l.Status != "activated" || l.CurrentDevices != 2) {
			t.Errorf("OLD-1 has %d devices and is %s", l.CurrentDevices, l.Status)
		}
	}
}

// TestUnusableExternalRows refuses keys and device ids that the service would refuse row by row, after it has granted
// the rows before them.
func TestUnusableExternalRows(t *testing.T) {
	text := "external_key,product_id,devices\n" +
		"Caf\u00e9-1,editor,\n" +
		"cafe\u0301 1,editor,\n" +
		"Cafe\u0301-1,editor,\n" +
		"a\u0007b,editor,\n" +
		"- -,editor,\n" +
		`D-1,editor,"[""ok"",""a\u0007b"",""` + strings.Repeat("x", 256) + `""]"` + "\n" +
		"D-2,editor,null\n"
	always := []string{
		"line 4, column external_key: is also in line 2",
		"line 5, column external_key: must contain printable characters only",
		`line 7, column devices: has the device id "a\ab", which must not contain control characters`,
		`line 7, column devices: has the device id "` + strings.Repeat("x", 40) +
			`…", which must have 1 to 255 characters`,
		"line 8, column devices: must be a JSON array",
	}
	compact := []string{
		"line 3, column external_key: is also in line 2",
		"line 6, column external_key: must not consist of blanks and dashes only",
	}
	for matching, want := range map[string][]string{
		"": always, client.MatchExact: always, client.MatchCompact: append(compact, always...),
	} {
		im := newImport(t, nil, text)
		im.ExternalKeys = matching
		_, err := im.Check()
		wantError(t, err, fmt.Sprintf("in.csv has %d problems", len(want)))
		for _, part := range want {
			if !strings.Contains(strings.Join(im.problems, "\n"), part) {
				t.Errorf("%q: %q lack %q", matching, im.problems, part)
			}
		}
	}
}

// TestBadExternalRows finds what is wrong with rows that bring licenses from elsewhere, and sends none.
func TestBadExternalRows(t *testing.T) {
	im := newImport(t, shop(t), `external_key,license_key,product_id,quantity,status,devices
OLD-1,,editor,2,,
OLD-2,,editor,1,,"[1]"
OLD-3,,editor,1,,"[""""]"
OLD-4,,editor,,,
OLD-4,,editor,,,
,,editor,2,suspended,
,LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1,,,,"[""a""]"
`+strings.Repeat("x", 1025)+`,,editor,,,
`)
	if _, err := im.Run(t.Context()); err == nil {
		t.Fatal("it was sent")
	}
	for _, part := range []string{"line 2, column quantity", "line 3, column devices", "line 4, column devices",
		"line 6, column external_key: is also in line 5", "line 7, column quantity", "line 8, column devices",
		"line 9, column external_key: must have 1 to 1024 characters"} {
		if !strings.Contains(strings.Join(im.problems, "\n"), part) {
			t.Errorf("%q lack %q", im.problems, part)
		}
	}
}
