package bulk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/internal/servicetest"
)

// wantGranted checks that the service lists exactly the licenses in the results, and that each line has the requested
// quantity.
func wantGranted(t *testing.T, im *importer, c *client.Client, quantities map[int]int) {
	t.Helper()
	all := listed(t, c)
	total := 0
	for _, n := range quantities {
		total += n
	}
	got := map[int]int{}
	for _, row := range im.results(t) {
		if row["result"] != "granted" {
			continue
		}
		l, there := all[row["license_key"]]
		if !there {
			t.Fatalf("%s is in the results, twice or not listed", row["license_key"])
		}
		if row["id"] != l.ID {
			t.Errorf("%s has the id %q in the results, want %s", row["license_key"], row["id"], l.ID)
		}
		delete(all, row["license_key"])
		line, err := strconv.Atoi(row["line"])
		if err != nil || l.ProductID != row["product_id"] {
			t.Errorf("line %s has a license of %s, want %s", row["line"], l.ProductID, row["product_id"])
		}
		got[line]++
	}
	for line, n := range quantities {
		if got[line] != n {
			t.Errorf("line %d has %d licenses, want %d", line, got[line], n)
		}
	}
	if len(all) > 0 {
		t.Errorf("%d of %d licenses are listed and not in the results", len(all), total)
	}
}

func TestImportGrants(t *testing.T) {
	c := shop(t)
	im := newImport(t, c, "\ufeffquantity,product_id,expires_at,status,metadata,max_devices\r\n"+
		"2,editor,2041-02-03T04:05:06Z,whatever,\"{\"\"seat\"\": \"\"<3B>\"\"}\",7\r\n"+
		",viewer,,,,\r\n"+
		"1000,editor,,,,0\r\n")
	check, err := im.Check()
	if want := (bulk.CheckSummary{Rows: 3, Grants: 3, Licenses: 1003}); err != nil || check != want {
		t.Fatal(check, err)
	}
	wantFiles(t, filepath.Dir(im.Input), []string{"in.csv"})
	im.want(t, bulk.ImportSummary{Rows: 3, Granted: 3, Licenses: 1003})
	wantGranted(t, im, c, map[int]int{2: 2, 3: 1, 4: 1000})
	wantFiles(t, filepath.Dir(im.Input), []string{"in.csv"}, "in.csv.journal", "in.csv.results.csv")
	all := listed(t, c)
	lines := map[string]client.License{}
	order := []string{}
	for _, row := range im.results(t) {
		lines[row["line"]] = all[row["license_key"]]
		if !slices.Contains(order, row["line"]) {
			order = append(order, row["line"])
		}
	}
	if !slices.Equal(order, []string{"2", "3", "4"}) {
		t.Errorf("the results are in the order %q", order)
	}
	if l := lines["2"]; l.MaxDevices != 7 || !l.ExpiresAt.Equal(time.Date(2041, 2, 3, 4, 5, 6, 0, time.UTC)) ||
		string(l.Metadata) != `{"seat":"<3B>"}` {
		t.Errorf("line 2 made %+v", l)
	}
	if l := lines["3"]; l.MaxDevices != 3 || !l.ExpiresAt.IsZero() || l.ProductID != "viewer" {
		t.Errorf("line 3 made %+v", l)
	}
	if l := lines["4"]; l.MaxDevices != 0 {
		t.Errorf("line 4 made %+v", l)
	}
	// The same command again finds nothing to do, and needs no service.
	im.again(nil).want(t, bulk.ImportSummary{Rows: 3, Before: 3, Granted: 3, Licenses: 1003})
	wantGranted(t, im, c, map[int]int{2: 2, 3: 1, 4: 1000})
}

// TestExportEditImport changes some of what an export has, and imports it.
func TestExportEditImport(t *testing.T) {
	c := shop(t)
	made, err := c.Licenses.Grant(t.Context(), client.Grant{
		ProductID: "editor", Quantity: 12, ExpiresAt: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC),
		Metadata: json.RawMessage(`{"seat":"3B","old":1}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Licenses.Revoke(t.Context(), made[0].LicenseKey, "=1+1"); err != nil {
		t.Fatal(err)
	}
	// One is expired by the time it is imported.
	soon := time.Now().Add(1500 * time.Millisecond)
	brief, err := c.Licenses.Grant(t.Context(), client.Grant{ProductID: "editor", Quantity: 1, ExpiresAt: soon})
	if err != nil {
		t.Fatal(err)
	}
	for expired := false; !expired; time.Sleep(10 * time.Millisecond) {
		l, err := c.Licenses.Get(t.Context(), brief[0].LicenseKey)
		if err != nil {
			t.Fatal(err)
		}
		expired = l.Status == "expired"
	}
	before := listed(t, c)
	var out strings.Builder
	if _, err := newExport(c).To(t.Context(), &out); err != nil {
		t.Fatal(err)
	}

	im := newImport(t, c, out.String())
	im.want(t, bulk.ImportSummary{Rows: 13, Unchanged: 13})
	wantSame(t, listed(t, c), before, nil)

	edited := out.String()
	edit := func(key, old, new string) {
		lines := strings.SplitAfter(edited, "\n")
		for i, line := range lines {
			if strings.Contains(line, ","+key+",") {
				if !strings.Contains(line, old) {
					t.Fatalf("%q is not in %q", old, line)
				}
				lines[i] = strings.Replace(line, old, new, 1)
			}
		}
		edited = strings.Join(lines, "")
	}
	edit(made[1].LicenseKey, "editor,,3,", "editor,,8,")
	edit(made[2].LicenseKey, "2040-01-01T00:00:00.000Z", "2050-01-01T00:00:00Z")
	edit(made[3].LicenseKey, `"{""seat"":""3B"",""old"":1}"`, `"{""seat"":""4A"",""old"":null}"`)
	edit(made[4].LicenseKey, `"{""seat"":""3B"",""old"":1}"`, "")
	edit(made[5].LicenseKey, "editor,,3,", "editor,,,")
	edit(made[0].LicenseKey, "2040-01-01T00:00:00.000Z", "2050-01-01T00:00:00Z") // of the revoked one
	edit(brief[0].LicenseKey, "editor,,3,", "editor,,1,")
	edited += "," + "" + strings.Repeat(",", len(bulk.Columns())-2) + "\n"
	edited += ",,,,viewer,,2" + strings.Repeat(",", len(bulk.Columns())-7) + "\n"

	im = newImport(t, c, edited)
	im.want(t, bulk.ImportSummary{Rows: 14, Granted: 1, Licenses: 1, Changed: 4, Unchanged: 8, Refused: 1})
	if len(im.failures) != 1 || !strings.Contains(im.failures[0], "40903") {
		t.Errorf("%q", im.failures)
	}
	after := listed(t, c)
	for key, l := range after {
		if _, old := before[key]; !old {
			if l.ProductID != "viewer" || l.MaxDevices != 2 {
				t.Errorf("%+v was granted", l)
			}
			delete(after, key)
		}
	}
	wantSame(t, after, before, func(key string, l *client.License) {
		switch key {
		case made[1].LicenseKey:
			l.MaxDevices = 8
		case made[2].LicenseKey:
			l.ExpiresAt = time.Date(2050, 1, 1, 0, 0, 0, 0, time.UTC)
		case made[3].LicenseKey:
			l.Metadata = json.RawMessage(`{"seat":"4A"}`)
		case brief[0].LicenseKey:
			l.MaxDevices = 1
		}
	})
}

// TestImportEntitlements grants with entitlements, and changes a license's own without a change of the product's.
func TestImportEntitlements(t *testing.T) {
	c := shop(t)
	if _, err := c.Products.Put(t.Context(), "editor", client.ProductTerms{
		Entitlements: json.RawMessage(`{"export":true,"projects":10}`),
	}); err != nil {
		t.Fatal(err)
	}
	wantEntitlements := func(id, want string) {
		t.Helper()
		l, err := c.Licenses.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(l.Entitlements); err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	im := newImport(t, c, "product_id,entitlements\n"+
		`editor,"{ ""beta"": ""yes"", ""export"": null }"`+"\neditor,{}\n")
	im.want(t, bulk.ImportSummary{Rows: 2, Granted: 2, Licenses: 2})
	rows := im.results(t)
	wantEntitlements(rows[0]["id"], `{"beta":"yes","projects":10}`)
	wantEntitlements(rows[1]["id"], `{"export":true,"projects":10}`)

	var out strings.Builder
	if _, err := newExport(c).To(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	newImport(t, c, out.String()).want(t, bulk.ImportSummary{Rows: 2, Unchanged: 2})

	change := "id,entitlements\n" + rows[1]["id"] + `,"{""export"":true,""projects"":50,""x"":null,` +
		`""brief"":{""value"":1,""expires_at"":""2001-01-01T00:00:00Z""}}"` + "\n"
	newImport(t, c, change).want(t, bulk.ImportSummary{Rows: 1, Changed: 1})
	wantEntitlements(rows[1]["id"], `{"export":true,"projects":50}`)

	for cell, want := range map[string]string{
		`[]`:                       "must be a JSON object",
		`"{""a"":1,""a"":2}"`:      "must be a JSON object",
		`"{""A"":1}"`:              "must have codes of",
		`"{""a"":false}"`:          "has the entitlement a, which must be true",
		`"{""a"":{""value"":1}}x"`: "must be a JSON object",
		`"{""a"":""` + strings.Repeat("x", 256) + `""}"`: "has the entitlement a, which must be true",
	} {
		bad := newImport(t, c, "product_id,entitlements\neditor,"+cell+"\n")
		if _, err := bad.Run(t.Context()); err == nil || len(bad.problems) != 1 ||
			!strings.Contains(bad.problems[0], "line 2, column entitlements: "+want) {
			t.Errorf("%s: %v, %q", cell, err, bad.problems)
		}
	}
}

// TestImportOfAnExportKeepsEnds imports an export unedited, before and after an entitlement of the export has ended: an
// import changes nothing, and the entitlement stays ended.
func TestImportOfAnExportKeepsEnds(t *testing.T) {
	c := shop(t)
	if _, err := c.Products.Put(t.Context(), "editor", client.ProductTerms{
		Entitlements: json.RawMessage(`{"early":{"value":1,"validity":"P1D"},"support":"basic"}`),
	}); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Hour)
	made, err := c.Licenses.Grant(t.Context(), client.Grant{ProductID: "editor", Quantity: 1,
		Entitlements: map[string]any{"support": map[string]any{"value": "gold", "expires_at": end}}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if _, err := newExport(c).To(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := `""support"":{""value"":""gold"",""expires_at"":""` + end.UTC().Format("2006-01-02T15:04:05."); !strings.
		Contains(out.String(), want) {
		t.Errorf("the export has no %s: %s", want, &out)
	}
	newImport(t, c, out.String()).want(t, bulk.ImportSummary{Rows: 1, Unchanged: 1})

	// The end comes, and the product's value shows again.
	if _, err := c.Licenses.Update(t.Context(), made[0].ID, client.LicenseUpdate{Entitlements: map[string]any{
		"support": map[string]any{"value": "gold", "expires_at": time.Now().Add(-time.Hour)}}}); err != nil {
		t.Fatal(err)
	}
	late := newImport(t, c, out.String())
	late.Now = func() time.Time { return end.Add(time.Minute) }
	late.want(t, bulk.ImportSummary{Rows: 1, Unchanged: 1})
	if l, err := c.Licenses.Get(t.Context(), made[0].ID); err != nil ||
		string(l.Entitlements["support"]) != `"basic"` || len(l.EntitlementEnds) != 1 {
		t.Errorf("%s ends %v, %v", l.Entitlements["support"], l.EntitlementEnds, err)
	}
}

// TestImportCustomers grants licenses to customers, and changes the customers of licenses.
func TestImportCustomers(t *testing.T) {
	c := shop(t)
	im := newImport(t, c, "product_id,buyer_email,customer_reference\n"+
		"editor,Ada@example.com,C-1\neditor,,=C-2\neditor,not an address,\n")
	im.want(t, bulk.ImportSummary{Rows: 3, Granted: 2, Licenses: 2, Refused: 1})
	rows := im.results(t)
	wantCustomer := func(id, email, reference string) {
		t.Helper()
		l, err := c.Licenses.Get(t.Context(), id)
		if err != nil || l.BuyerEmail != email || l.CustomerReference != reference {
			t.Errorf("%+v, %v, want %q and %q", l, err, email, reference)
		}
	}
	wantCustomer(rows[0]["id"], "Ada@example.com", "C-1")
	wantCustomer(rows[1]["id"], "", "=C-2")

	var out strings.Builder
	if _, err := newExport(c).To(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), ",Ada@example.com,C-1,false,,bound,,,,,\n") ||
		!strings.Contains(out.String(), ",,'=C-2,false,,bound,,,,,\n") {
		t.Errorf("exported: %s", out.String())
	}
	newImport(t, c, out.String()).want(t, bulk.ImportSummary{Rows: 2, Unchanged: 2})
	newImport(t, c, "id,buyer_email,customer_reference\n"+rows[0]["id"]+",,C-9\n"+rows[1]["id"]+",bob@example.com,\n").
		want(t, bulk.ImportSummary{Rows: 2, Changed: 2})
	wantCustomer(rows[0]["id"], "Ada@example.com", "C-9")
	wantCustomer(rows[1]["id"], "bob@example.com", "=C-2")

	bad := newImport(t, c, "product_id,customer_reference\neditor,"+strings.Repeat("x", 65)+"\n")
	if _, err := bad.Run(t.Context()); err == nil || len(bad.problems) != 1 ||
		!strings.Contains(bad.problems[0], "line 2, column customer_reference: must have at most 64 characters") {
		t.Errorf("%v, %q", err, bad.problems)
	}
}

// wantSame demands that licenses are as they were, but for an edit.
func wantSame(t *testing.T, got, want map[string]client.License, edit func(string, *client.License)) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("there are %d licenses, want %d", len(got), len(want))
	}
	for key, l := range want {
		if edit != nil {
			edit(key, &l)
		}
		if g, w := fmt.Sprintf("%+v %s", got[key], got[key].Metadata), fmt.Sprintf("%+v %s", l, l.Metadata); g != w {
			t.Errorf("%s is\n%s, want\n%s", key, g, w)
		}
	}
}

func TestBadInputChangesNothing(t *testing.T) {
	c := shop(t)
	for _, c2 := range []struct {
		name, text string
		want       []string
	}{
		{"cells", "product_id,quantity,expires_at\neditor,1,\neditor,0,\n,1,\neditor,2,2001-01-01T00:00:00Z\n",
			[]string{
				`line 3, column quantity: is "0"`, "line 4, column product_id: must name",
				"line 5, column expires_at: must be in the future"}},
		{"twice", "license_key\nLIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1\nLIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1\n",
			[]string{"line 3, column license_key: is also in line 2"}},
		{"header", "product,quantity\neditor,1\n",
			[]string{`line 1: unknown column "product"`, "line 1: no column product_id"}},
		{"quote", "product_id\neditor\n\"editor\n", []string{"line 3: a quote is not closed"}},
		{"empty", "", []string{"the file is empty"}},
	} {
		for _, dry := range []bool{true, false} {
			im := newImport(t, c, c2.text)
			var err error
			if dry {
				_, err = im.Check()
			} else {
				_, err = im.Run(t.Context())
			}
			wantError(t, err, "in.csv has "+strconv.Itoa(len(c2.want))+" problem", "nothing of it was sent")
			if len(im.problems) != len(c2.want) {
				t.Errorf("%s: %q", c2.name, im.problems)
				continue
			}
			for i, want := range c2.want {
				if !strings.Contains(im.problems[i], want) {
					t.Errorf("%s: %q, want %q", c2.name, im.problems[i], want)
				}
			}
			wantFiles(t, filepath.Dir(im.Input), []string{"in.csv"})
		}
	}
	if all := listed(t, c); len(all) > 0 {
		t.Errorf("%d licenses were granted", len(all))
	}
}

// TestOneLicenseByIDAndByKey refuses two rows for one license, before anything is sent, if one has the id and the other
// the license key. The lookup of a key for this is the only one.
func TestOneLicenseByIDAndByKey(t *testing.T) {
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	made := grant(t, caller(t, key.Text), "editor", 3)
	unknown := grant(t, shop(t), "editor", 1)[0].LicenseKey
	var mu sync.Mutex
	sent := map[string]int{}
	_, option := newWire(t, func(r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		sent[r.Method]++
		sent[r.URL.Path]++
		return false
	})
	c := caller(t, key.Text, option)
	text := "id,license_key,max_devices\n" +
		"," + made[0].LicenseKey + ",5\n" +
		made[1].ID + ",,6\n" +
		made[2].ID + "," + made[2].LicenseKey + ",7\n" +
		"," + unknown + ",8\n"
	im := newImport(t, c, text+","+strings.ToLower(made[1].LicenseKey)+",9\n")
	_, err = im.Run(t.Context())
	wantError(t, err, "in.csv has 1 problem; nothing of it was sent")
	const want = "line 6, column license_key: names the license of line 3: only one row may change a license"
	if len(im.problems) != 1 || im.problems[0] != want || sent[http.MethodPatch] != 0 {
		t.Errorf("%q, want %q; %v", im.problems, want, sent)
	}
	wantFiles(t, filepath.Dir(im.Input), []string{"in.csv"})

	clear(sent)
	newImport(t, c, text).want(t, bulk.ImportSummary{Rows: 4, Changed: 3, Refused: 1})
	if sent["/v1/licenses/"+made[0].LicenseKey] != 1 || sent["/v1/licenses/"+made[2].LicenseKey] != 0 {
		t.Errorf("lookups: %v", sent)
	}
}

func TestImportThatCannotBegin(t *testing.T) {
	im := newImport(t, caller(t, "lk_test_wrong", client.RetryFor(0)), "product_id\neditor\n")
	_, err := im.Run(t.Context())
	wantError(t, err, "40100")
	wantFiles(t, filepath.Dir(im.Input), []string{"in.csv"})

	im = newImport(t, shop(t), "product_id\neditor\n")
	im.Resend = []int{2}
	_, err = im.Run(t.Context())
	wantError(t, err, "has not started")
	im.Resend = nil
	writeFile(t, im.Input+".results.csv", "mine")
	_, err = im.Run(t.Context())
	wantError(t, err, "in.csv.results.csv exists", "--results")
	wantFiles(t, filepath.Dir(im.Input), []string{"in.csv", "in.csv.results.csv"})
	im.Input = filepath.Dir(im.Input)
	_, err = im.Run(t.Context())
	wantError(t, err, "must be a regular file")
}

func TestHeaderWithoutRows(t *testing.T) {
	newImport(t, shop(t), "product_id\n").want(t, bulk.ImportSummary{})
}

func TestFailedRowsDoNotStopOthers(t *testing.T) {
	c := shop(t)
	other := grant(t, shop(t), "editor", 1)[0].LicenseKey
	mine := grant(t, c, "editor", 1)[0].LicenseKey
	im := newImport(t, c, "license_key,product_id,max_devices,metadata\n"+
		other+",,1,\n"+
		mine[:len(mine)-4]+"0000,,1,\n"+
		",viewer,,\n"+
		mine+",,5,\"{\"\"a\"\":1}\"\n")
	im.want(t, bulk.ImportSummary{Rows: 4, Granted: 1, Licenses: 1, Changed: 1, Refused: 2})
	if len(im.failures) != 2 || !strings.HasPrefix(im.failures[0], "line 2: ") ||
		!strings.Contains(im.failures[0], "40401") ||
		!strings.HasPrefix(im.failures[1], "line 3: ") || !strings.Contains(im.failures[1], "40001") {
		t.Errorf("%q", im.failures)
	}
	results := im.results(t)
	if len(results) != 4 || results[0]["result"] != "refused" || results[0]["license_key"] != other ||
		!strings.Contains(results[0]["error"], "40401") || results[3]["result"] != "changed" ||
		results[3]["max_devices"] != "5" {
		t.Errorf("%q", results)
	}
	// Again: only the failed ones are sent, and fail again.
	im.again(c).want(t, bulk.ImportSummary{Rows: 4, Before: 2, Granted: 1, Licenses: 1, Changed: 1, Refused: 2})
}

// TestImportByID changes licenses that are named by id. Proxies log URLs, so no URL has a license key, after an
// interruption either.
func TestImportByID(t *testing.T) {
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	made := grant(t, caller(t, key.Text), "editor", 5)
	other := grant(t, shop(t), "editor", 1)[0]
	im := newImport(t, nil, "id,license_key,max_devices,expires_at\n"+
		made[0].ID+",,5,\n"+
		made[1].ID+","+strings.ToLower(made[1].LicenseKey)+",6,2050-01-01T00:00:00Z\n"+
		made[2].ID+","+made[3].LicenseKey+",7,\n"+
		other.ID+",,8,\n")
	im.Parallel = 1
	var urls []string
	lost := 0
	_, option := newWire(t, func(r *http.Request) bool {
		urls = append(urls, r.URL.String())
		if !strings.HasSuffix(r.URL.Path, made[1].ID) {
			return false
		}
		lost++
		return lost == 1 // the lookup of the second row
	})
	c := caller(t, key.Text, option, client.RetryFor(0))
	im.Service = c
	_, err = im.Run(t.Context())
	wantError(t, err, "interrupted", "the answer was lost")
	im = im.again(c)
	im.want(t, bulk.ImportSummary{Rows: 4, Before: 1, Changed: 2, Refused: 2})
	if len(im.failures) != 2 || !strings.HasPrefix(im.failures[0], "line 4: id and license_key disagree") ||
		!strings.HasPrefix(im.failures[1], "line 5: ") || !strings.Contains(im.failures[1], "40401") {
		t.Errorf("%q", im.failures)
	}
	for i, row := range im.results(t) {
		want := []client.License{made[0], made[1], {ID: made[2].ID, LicenseKey: made[3].LicenseKey}, {ID: other.ID}}[i]
		if row["id"] != want.ID || row["license_key"] != want.LicenseKey {
			t.Errorf("row %d of the results is %q", i, row)
		}
	}
	for _, l := range made {
		for _, url := range urls {
			if strings.Contains(url, l.LicenseKey) {
				t.Errorf("the license key is in %s", url)
			}
		}
	}
	all := listed(t, c)
	for i, want := range []int{5, 6, 3, 3, 3} {
		if l := all[made[i].LicenseKey]; l.MaxDevices != want || (i == 1) != (l.ExpiresAt.Year() == 2050) {
			t.Errorf("license %d has %d devices and ends %v", i, l.MaxDevices, l.ExpiresAt)
		}
	}

	// Without an id, the lookup alone has the key.
	urls = nil
	im = newImport(t, c, "license_key,max_devices,expires_at\n"+made[4].LicenseKey+",9,2050-01-01T00:00:00Z\n")
	im.want(t, bulk.ImportSummary{Rows: 1, Changed: 1})
	if row := im.results(t)[0]; row["id"] != made[4].ID {
		t.Errorf("the results have %q", row)
	}
	for _, url := range urls {
		if strings.Contains(url, made[4].LicenseKey) && !strings.HasSuffix(url, "/v1/licenses/"+made[4].LicenseKey) {
			t.Errorf("the license key is in %s", url)
		}
	}
}

// TestMendedCauseSucceeds imports for a product that is made only later. Products
// of live mode are not made by granting.
func TestMendedCauseSucceeds(t *testing.T) {
	owner := servicetest.NewAccount()
	owner.Mode = "live"
	key, err := service.Key(owner)
	if err != nil {
		t.Fatal(err)
	}
	c := caller(t, key.Text)
	if _, err := c.Products.Put(t.Context(), "editor", client.ProductTerms{}); err != nil {
		t.Fatal(err)
	}
	im := newImport(t, c, "product_id,quantity\neditor,2\nviewer,3\n")
	im.want(t, bulk.ImportSummary{Rows: 2, Granted: 1, Licenses: 2, Refused: 1})
	if len(im.failures) != 1 || !strings.Contains(im.failures[0], "40404") {
		t.Errorf("%q", im.failures)
	}
	if _, err := c.Products.Put(t.Context(), "viewer", client.ProductTerms{}); err != nil {
		t.Fatal(err)
	}
	im.again(c).want(t, bulk.ImportSummary{Rows: 2, Before: 1, Granted: 2, Licenses: 5})
	wantGranted(t, im, c, map[int]int{2: 2, 3: 3})
}

// many is a file of so many rows, and how many licenses each asks for.
func many(rows int) (text string, quantities map[int]int) {
	quantities = map[int]int{}
	var b strings.Builder
	b.WriteString("product_id,quantity\n")
	for i := range rows {
		quantities[i+2] = i%3 + 1
		fmt.Fprintf(&b, "editor,%d\n", i%3+1)
	}
	return b.String(), quantities
}

func isGrant(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == "/v1/licenses"
}

// TestLostAnswers grants once what is sent again since the answer was lost:
// at once by the client, and by the next run.
func TestLostAnswers(t *testing.T) {
	owner := servicetest.NewAccount()
	key, err := service.Key(owner)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	text, quantities := many(60)
	im := newImport(t, nil, text)
	im.Parallel = 1
	wire, option := newWire(t, func(r *http.Request) bool {
		if !isGrant(r) {
			return false
		}
		n++
		return n%4 == 0
	})
	im.Service = caller(t, key.Text, option, client.RetryFor(0))
	runs := 0
	for {
		sum, err := im.Run(t.Context())
		runs++
		if err == nil {
			if sum.Done() != 60 {
				t.Fatalf("%+v", sum)
			}
			break
		}
		wantError(t, err, "interrupted", "the answer was lost", "repeat the command to continue")
		if results := im.results(t); results[len(results)-1]["result"] != "unanswered" {
			t.Fatalf("%q", results[len(results)-1])
		}
		im = im.again(im.Service)
	}
	c := caller(t, key.Text)
	wantGranted(t, im, c, quantities)
	if sent := wire.grants.Load(); sent < 70 || runs < 10 {
		t.Errorf("only %d requests were sent, in %d runs", sent, runs)
	}

	im = newImport(t, caller(t, key.Text, option), text)
	im.Parallel = 1
	before := len(listed(t, c))
	im.want(t, bulk.ImportSummary{Rows: 60, Granted: 60, Licenses: 120})
	if all := len(listed(t, c)); all != before+120 {
		t.Errorf("there are %d more licenses", all-before)
	}
}

func TestImportIsCanceled(t *testing.T) {
	c := shop(t)
	text, quantities := many(200)
	im := newImport(t, c, text)
	for rounds := 1; ; rounds++ {
		ctx, cancel := context.WithCancel(t.Context())
		began := int64(-1)
		im.Progress = func(done, total int64) {
			if began < 0 {
				began = done
			}
			if done >= began+50 {
				cancel()
			}
		}
		sum, err := im.Run(ctx)
		cancel()
		if err == nil {
			if sum.Done() != 200 || rounds < 3 {
				t.Fatalf("%+v after %d rounds", sum, rounds)
			}
			break
		}
		wantError(t, err, "context canceled", "repeat the command to continue")
		im = im.again(c)
	}
	wantGranted(t, im, c, quantities)
}

func TestImportGoesOnOnlyAsItWas(t *testing.T) {
	c := shop(t)
	text, quantities := many(40)
	im := newImport(t, c, text)
	ctx, cancel := context.WithCancel(t.Context())
	im.Progress = func(done, _ int64) {
		if done == 10 {
			cancel()
		}
		if done == 5 {
			_, err := im.again(c).Run(t.Context())
			wantError(t, err, "in.csv.journal", "another process")
		}
	}
	if _, err := im.Run(ctx); err == nil {
		t.Fatal("it did not break off")
	}

	next := im.again(c)
	next.Results = im.Input + ".other.csv"
	_, err := next.Run(t.Context())
	wantError(t, err, "the results of this import are in", "in.csv.results.csv")

	_, err = im.again(shop(t)).Run(t.Context())
	wantError(t, err, "another account, mode or service")

	next = im.again(c)
	next.Skip = []int{3}
	_, err = next.Run(t.Context())
	wantError(t, err, "--skip 3", "is not unknown")

	writeFile(t, im.Input, text+"editor,1\n")
	_, err = im.again(c).Run(t.Context())
	wantError(t, err, "has changed since its import began", "Put it back", "another name")
	writeFile(t, im.Input, text)

	sum, err := im.again(c).Run(t.Context())
	if err != nil || sum.Done() != 40 {
		t.Fatal(sum, err)
	}
	wantGranted(t, im, c, quantities)
}

// TestForgottenRows has the answers of two rows lost, and goes on a day later,
// when the service has forgotten them.
func TestForgottenRows(t *testing.T) {
	owner := servicetest.NewAccount()
	key, err := service.Key(owner)
	if err != nil {
		t.Fatal(err)
	}
	c := caller(t, key.Text)
	im := newImport(t, nil, "product_id,quantity\neditor,2\neditor,3\nviewer,4\n")
	im.Parallel = 1
	started := time.Now()
	im.Now = func() time.Time { return started }
	lose := true
	_, option := newWire(t, func(r *http.Request) bool { return isGrant(r) && lose })
	im.Service = caller(t, key.Text, option, client.RetryFor(0))
	if _, err := im.Run(t.Context()); err == nil {
		t.Fatal("it did not break off")
	}

	wire, option := newWire(t, nil)
	counted := caller(t, key.Text, option)
	late := im.again(counted)
	late.Now = func() time.Time { return started.Add(23 * time.Hour) }
	late.want(t, bulk.ImportSummary{Rows: 3, Granted: 2, Licenses: 7, Unanswered: 1})
	if len(late.failures) != 1 {
		t.Fatalf("%q", late.failures)
	}
	for _, part := range []string{"line 2: ", started.UTC().Format(time.RFC3339), "--product-id editor", "--skip 2",
		"--resend 2", "in.csv.results.csv"} {
		if !strings.Contains(late.failures[0], part) {
			t.Errorf("%q, want %q in it", late.failures[0], part)
		}
	}
	if n := wire.grants.Load(); n != 2 || len(listed(t, c)) != 9 {
		t.Errorf("%d grants were sent, there are %d licenses", n, len(listed(t, c)))
	}

	// A clock that was set back says nothing of how old the row is.
	early := im.again(counted)
	early.Now = func() time.Time { return started.Add(-time.Hour) }
	early.want(t, bulk.ImportSummary{Rows: 3, Before: 2, Granted: 2, Licenses: 7, Unanswered: 1})

	found := late.again(counted)
	found.Skip = []int{2}
	found.want(t, bulk.ImportSummary{Rows: 3, Before: 3, Granted: 2, Licenses: 7, Skipped: 1})
	if row := found.results(t)[0]; row["result"] != "skipped" {
		t.Errorf("%q", row)
	}
	if n := wire.grants.Load(); n != 2 {
		t.Errorf("%d grants were sent", n)
	}
}

// TestReasonOfUnfinishedRows: a row whose grant or device fails for now names the response of the service or the
// timeout as the reason, not a lost answer. The next run finishes the row.
func TestReasonOfUnfinishedRows(t *testing.T) {
	const limited = `{"code":42900,"message":"slow down","error":{"reason":"rate_limited","retryable":true}}`
	refuse := func() (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Body: io.NopCloser(strings.NewReader(limited)),
			Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}, nil
	}
	timeOut := func() (*http.Response, error) { return nil, os.ErrDeadlineExceeded }
	for _, c := range []struct {
		path string
		fail func() (*http.Response, error)
		want string
	}{
		{"/v1/licenses", refuse, "slow down (42900 rate_limited); the same command sends the row again"},
		{"/v1/licenses", timeOut, "i/o timeout; the same command sends the row again"},
		{"/v1/licenses/activate", refuse, `the license was granted, but device "a" was not bound: `},
		{"/v1/licenses/activate", timeOut, `the license was granted, but device "a" was not bound: `},
	} {
		key, err := service.Key(servicetest.NewAccount())
		if err != nil {
			t.Fatal(err)
		}
		im := newImport(t, nil, "product_id,devices\neditor,\"[\"\"a\"\"]\"\n")
		wire, option := newWire(t, nil)
		real := wire.RoundTripper
		wire.RoundTripper = roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && r.URL.Path == c.path {
				return c.fail()
			}
			return real.RoundTrip(r)
		})
		// The second try may follow a first try that the service has executed.
		im.Service = caller(t, key.Text, option, client.RetryFor(time.Minute), client.OnRetry(twice()))
		_, err = im.Run(t.Context())
		wantError(t, err, "interrupted with 0 of 1 row done")
		if len(im.failures) != 1 || !strings.HasPrefix(im.failures[0], "line 2: ") ||
			!strings.Contains(im.failures[0], c.want) || strings.Contains(im.failures[0], "response did not arrive") {
			t.Errorf("%q, want %q", im.failures, c.want)
		}
		healthy := caller(t, key.Text)
		next := im.again(healthy)
		next.want(t, bulk.ImportSummary{Rows: 1, Granted: 1, Licenses: 1})
		wantGranted(t, next, healthy, map[int]int{2: 1})
	}
}

// twice has a client try two times.
func twice() func(error, time.Duration) bool {
	tries := 1
	return func(error, time.Duration) bool { tries++; return tries == 2 }
}

// TestResend has the request of a row lost before the service got it.
func TestResend(t *testing.T) {
	c := shop(t)
	im := newImport(t, c, "product_id,quantity\neditor,2\n")
	down, option := newWire(t, nil)
	key, err := service.Key(servicetest.NewAccount())
	if err != nil {
		t.Fatal(err)
	}
	c = caller(t, key.Text)
	real := down.RoundTripper
	down.RoundTripper = roundTrip(func(r *http.Request) (*http.Response, error) {
		if isGrant(r) {
			return nil, errLost
		}
		return real.RoundTrip(r)
	})
	started := time.Now()
	im.Now = func() time.Time { return started }
	im.Service = caller(t, key.Text, option, client.RetryFor(0))
	if _, err := im.Run(t.Context()); err == nil {
		t.Fatal("it did not break off")
	}
	next := im.again(c)
	next.Now = func() time.Time { return started.Add(48 * time.Hour) }
	next.Resend = []int{2}
	next.want(t, bulk.ImportSummary{Rows: 1, Granted: 1, Licenses: 2})
	wantGranted(t, next, c, map[int]int{2: 2})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestUnknownColumnsAndSeparator(t *testing.T) {
	c := shop(t)
	im := newImport(t, c, "product_id;colour;\neditor;=red;x\n")
	im.Separator, im.IgnoreUnknown = ';', true
	im.want(t, bulk.ImportSummary{Rows: 1, Granted: 1, Licenses: 1})
	if row := im.results(t)[0]; row["colour"] != "'=red" || row["product_id"] != "editor" {
		t.Errorf("%q", row)
	}
}
