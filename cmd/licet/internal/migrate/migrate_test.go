package migrate

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/cmd/licet/internal/bulk"
	"licet/cmd/licet/internal/migrate/migratetest"
)

func serviceOf(t *testing.T, name string) *Service {
	t.Helper()
	i := slices.IndexFunc(Services(), func(s *Service) bool { return s.Name == name })
	return Services()[i]
}

// sold returns licenses of a service, with ids in its form.
func sold(service string, n int) []migratetest.License {
	all := make([]migratetest.License, n)
	for i := range all {
		l := &all[i]
		*l = migratetest.License{ID: fmt.Sprint(i + 1), Key: fmt.Sprintf("KEY-%05d", i), Product: "4711", MaxDevices: 3}
		switch service {
		case "keygen", "polar":
			l.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			l.Product = "70af414f-df05-4bb6-a4ef-3cd52ffc5e8b"
		case "gumroad":
			l.ID, l.Product, l.MaxDevices = fmt.Sprintf("sale-%d==", i), "A-m3CDDC5dlrSdKZp0RFhA==", 0
		}
		switch i % 5 {
		case 0:
			l.Devices = []string{fmt.Sprintf("device-%d-a", i), fmt.Sprintf("device-%d-b", i), fmt.Sprintf(
				"device-%d-c", i)}
		case 1:
			l.Blocked = true
		case 2:
			l.Expires = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
		case 3:
			l.Expires = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		case 4:
			l.MaxDevices = 0
		}
		if service == "gumroad" {
			l.Devices, l.Expires, l.Refunded = nil, time.Time{}, i%5 == 3
		}
	}
	return all
}

func start(t *testing.T, service string, n int) *migratetest.Fake {
	t.Helper()
	fake, stop := migratetest.New(service, sold(service, n))
	t.Cleanup(stop)
	return fake
}

func quickly(fake *migratetest.Fake) Fetch {
	return Fetch{From: fake.URL, Token: migratetest.Token, PerMinute: 1e6}
}

// converted returns the rows of a file, by external key, and what was left.
func converted(t *testing.T, s *Service, path string, set Settings) (map[string]map[string]string, [][]string, Report) {
	t.Helper()
	var rows, left bytes.Buffer
	report, err := s.Convert(path, set, &rows, &left)
	if err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(&rows).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]string{}
	for _, cells := range table[1:] {
		row := map[string]string{}
		for i, cell := range cells {
			if cell != "" {
				row[table[0][i]] = cell
			}
		}
		found[row["external_key"]] = row
	}
	if len(found) != len(table)-1 {
		t.Errorf("%d rows have %d keys", len(table)-1, len(found))
	}
	rest, err := csv.NewReader(&left).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return found, rest[1:], report
}

// TestServices reads all licenses of each service, and finds them as rows of an import.
func TestServices(t *testing.T) {
	const n = 257
	want := map[string][]map[string]string{ // the first rows
		"keygen": {
			{"max_devices": "3", "devices": `["device-0-a","device-0-b","device-0-c"]`},
			{"max_devices": "3", "status": "suspended", "state_reason": "suspended at Keygen"},
			{"max_devices": "3", "expires_at": "2031-01-02T03:04:05.000Z"},
			{"max_devices": "3", "expires_at": "2020-01-02T03:04:05.000Z"},
			{"max_devices": "0"},
		},
		"lemonsqueezy": {
			{"max_devices": "3", "devices": `["device-0-a","device-0-b","device-0-c"]`},
			{"max_devices": "3", "status": "suspended", "state_reason": "disabled at Lemon Squeezy"},
			{"max_devices": "3", "expires_at": "2031-01-02T03:04:05.000Z"},
			{"max_devices": "3", "expires_at": "2020-01-02T03:04:05.000Z"},
			{"max_devices": "0"},
		},
		"polar": {
			{"max_devices": "3", "devices": `["device-0-a","device-0-b","device-0-c"]`},
			{"max_devices": "3", "status": "suspended", "state_reason": "disabled at Polar"},
			{"max_devices": "3", "expires_at": "2031-01-02T03:04:05.000Z"},
			{"max_devices": "3", "expires_at": "2020-01-02T03:04:05.000Z"},
			{"max_devices": "0"},
		},
		"gumroad": {
			{"max_devices": "0"},
			{"max_devices": "0", "status": "suspended", "state_reason": "disabled at Gumroad"},
			{"max_devices": "0"},
			{"max_devices": "0", "status": "revoked", "state_reason": "refunded at Gumroad"},
			{"max_devices": "0"},
		},
	}
	metadata := map[string]string{
		"keygen": `{"keygen_id":"00000000-0000-4000-8000-000000000000","keygen_name":"License of ` +
			`00000000-0000-4000-8000-000000000000","seat":"3B"}`,
		"lemonsqueezy": `{"customer_id":7,"lemonsqueezy_id":"1","order_id":8}`,
		"polar": `{"customer_id":"992fae2a-2a17-4b7a-8d9e-e287cf90131b",` +
			`"polar_id":"00000000-0000-4000-8000-000000000000"}`,
		"gumroad": `{"gumroad_sale_id":"sale-0==","order_id":524459995}`,
	}
	for _, s := range Services() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			fake := start(t, s.Name, n)
			path := filepath.Join(t.TempDir(), "pages.json")
			if err := s.Fetch(t.Context(), path, quickly(fake)); err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("the file: %v, %v", info.Mode(), err)
			}
			products := map[string]string{fake.Licenses[0].Product: "editor"}
			rows, left, report := converted(t, s, path, Settings{Products: products})
			if len(rows) != n || len(left) != 0 || report.Licenses != n || report.Written != n ||
				report.Total != 0 && report.Total != n {
				t.Errorf("%d rows, left %v, %+v", len(rows), left, report)
			}
			for i, wanted := range want[s.Name] {
				row := rows[fmt.Sprintf("KEY-%05d", i)]
				wanted["external_key"], wanted["product_id"] = fmt.Sprintf("KEY-%05d", i), "editor"
				if i == 0 && row["metadata"] != metadata[s.Name] {
					t.Errorf("metadata %s, want %s", row["metadata"], metadata[s.Name])
				}
				delete(row, "metadata")
				if !maps.Equal(row, wanted) {
					t.Errorf("row %d is %v, want %v", i, row, wanted)
				}
			}
			var first, second bytes.Buffer
			for _, rows := range []*bytes.Buffer{&first, &second} {
				if _, err := s.Convert(path, Settings{}, rows, &bytes.Buffer{}); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Error("the same file gives other rows")
			}
		})
	}
}

// TestContinue interrupts the reading of each API after each number of responses. The next run continues, and asks for
// nothing twice except for the request that was interrupted.
func TestContinue(t *testing.T) {
	for _, s := range Services() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			fake := start(t, s.Name, 120)
			whole := filepath.Join(t.TempDir(), "whole.json")
			if err := s.Fetch(t.Context(), whole, quickly(fake)); err != nil {
				t.Fatal(err)
			}
			all := fake.Requests()
			path := filepath.Join(t.TempDir(), "pages.json")
			refused := 0
			// Every third request is refused for good, which ends a run.
			fake.Answer = func(w http.ResponseWriter, _ *http.Request, number int) bool {
				if number%3 != 0 {
					return false
				}
				refused++
				w.WriteHeader(http.StatusForbidden)
				return true
			}
			for run := 0; ; run++ {
				err := s.Fetch(t.Context(), path, quickly(fake))
				if err == nil {
					break
				}
				if !strings.Contains(err.Error(), "403") || run > len(all) {
					t.Fatal(err)
				}
				var broke *bulk.BrokenOffError
				if errors.As(err, &broke) { // a crash leaves half a line
					file, err := os.OpenFile(path+".partial", os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = file.WriteString(`{"data":[`)
					_ = file.Close()
				}
			}
			if again := len(fake.Requests()) - len(all); again != len(all)+refused || refused == 0 {
				t.Errorf("%d requests, want %d, and %d that were refused", again, len(all), refused)
			}
			first, err := os.ReadFile(whole)
			if err != nil {
				t.Fatal(err)
			}
			if second, err := os.ReadFile(path); err != nil || !bytes.Equal(first, second) {
				t.Errorf("the files differ, %v", err)
			}
		})
	}
}

// TestRateLimit waits as long as a service says.
func TestRateLimit(t *testing.T) {
	fake := start(t, "lemonsqueezy", 250)
	var refused, next time.Time
	fake.Answer = func(w http.ResponseWriter, _ *http.Request, number int) bool {
		switch number {
		case 2:
			refused = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		case 3:
			next = time.Now()
		case 4:
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	}
	s := serviceOf(t, "lemonsqueezy")
	path := filepath.Join(t.TempDir(), "pages.json")
	if err := s.Fetch(t.Context(), path, quickly(fake)); err != nil {
		t.Fatal(err)
	}
	if waited := next.Sub(refused); waited < time.Second {
		t.Errorf("it waited %v, and was asked to wait a second", waited)
	}
	if rows, _, _ := converted(t, s, path, Settings{}); len(rows) != 250 {
		t.Errorf("%d rows", len(rows))
	}
}

// TestBadAnswers refuses what does not come from the API of the service, and never sends the token elsewhere.
func TestBadAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"another form":   {`{"items":[]}`, 200, "not in the form that the service publishes"},
		"no JSON":        {`<html>`, 200, "does not answer in JSON"},
		"unknown type":   {`{"data":[{"type":"users"}]}`, 200, `type "users"`},
		"another host":   {`{"data":[],"links":{"next":"https://elsewhere.example/v1"}}`, 200, "another host"},
		"without end":    {`{"data":[],"links":{"next":"?page[size]=100&page[number]=1"}}`, 200, "links to itself"},
		"redirect":       {``, 302, "302"},
		"not found":      {`{}`, 404, "the URL is like https://api.keygen.sh/v1/accounts/ACCOUNT"},
		"bad token":      {`{}`, 401, "it takes an admin token"},
		"very long wait": {`{}`, 429, "asks for a pause of 3h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := start(t, "keygen", 1)
			fake.Answer = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				w.Header().Set("Location", "https://elsewhere.example/")
				w.Header().Set("Retry-After", "10800")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
				return true
			}
			path := filepath.Join(t.TempDir(), "pages.json")
			err := serviceOf(t, "keygen").Fetch(t.Context(), path, quickly(fake))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the file is complete")
			}
		})
	}
	for _, bad := range []string{"", "api.keygen.sh", "http://api.keygen.sh/v1", "ftp://127.0.0.1"} {
		err := serviceOf(t, "keygen").Fetch(t.Context(), filepath.Join(t.TempDir(), "x"), Fetch{From: bad})
		if err == nil || !strings.Contains(err.Error(), "--from-api is") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestOtherFile refuses a file of another service, or of another account of the same one.
func TestOtherFile(t *testing.T) {
	fake := start(t, "keygen", 150)
	s := serviceOf(t, "keygen")
	path := filepath.Join(t.TempDir(), "pages.json")
	fake.Answer = func(w http.ResponseWriter, _ *http.Request, number int) bool {
		if number == 2 {
			w.WriteHeader(http.StatusForbidden)
		}
		return number == 2
	}
	if err := s.Fetch(t.Context(), path, quickly(fake)); err == nil {
		t.Fatal("it was not interrupted")
	}
	other := quickly(fake)
	other.From = strings.Replace(other.From, "acme", "other", 1)
	if err := s.Fetch(t.Context(), path, other); err == nil || !strings.Contains(err.Error(), "was read from http") {
		t.Error(err)
	}
	if err := serviceOf(t, "polar").Fetch(t.Context(), path, quickly(fake)); err == nil ||
		!strings.Contains(err.Error(), "use licet import keygen") {
		t.Error(err)
	}
	if err := s.Fetch(t.Context(), path, quickly(fake)); err != nil {
		t.Fatal(err)
	}
	_, err := serviceOf(t, "polar").Convert(path, Settings{}, &bytes.Buffer{}, &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "use licet import keygen") {
		t.Error(err)
	}
}

// TestGumroadCSV reads the sales that Gumroad's dashboard exports.
func TestGumroadCSV(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sales.csv")
	text := "\uFEFF" + `Purchase ID,Item Name,Purchase Email,Fully Refunded?,Disputed?,Dispute Won?,Access Revoked?,Product ID,Order Number,Quantity,Recurrence,Subscription End Date,License Key,License Key Activation Count,License Key Enabled?,Item Name
a==,Editor,ada@example.com,0,0,0,0,edt,1,1,,,AAAAAAAA-11111111,2,1,note
b==,Editor,ada@example.com,1,0,0,0,edt,2,1,,,BBBBBBBB-11111111,0,1,
c==,Editor,ada@example.com,0,1,0,0,edt,3,1,,,CCCCCCCC-11111111,0,1,
d==,Editor,ada@example.com,0,1,1,0,edt,4,5,,,DDDDDDDD-11111111,0,0,
e==,Editor,ada@example.com,0,0,0,1,edt,5,1,,,EEEEEEEE-11111111,0,1,
f==,Club,ada@example.com,0,0,0,0,clb,6,1,monthly,,FFFFFFFF-11111111,0,1,
g==,Club,ada@example.com,0,0,0,0,clb,7,1,monthly,2023-04-05 06:07:08 UTC,GGGGGGGG-11111111,0,1,
h==,Club,ada@example.com,0,0,0,0,clb,8,1,monthly,,FFFFFFFF-11111111,0,1,
i==,Book,ada@example.com,0,0,0,0,book,9,1,,,,,,
Totals,,,,,,,,,,,,,,,
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, left, report := converted(t, serviceOf(t, "gumroad"), path,
		Settings{Products: map[string]string{"clb": "club"}, MaxDevices: 2})
	for key, want := range map[string]string{
		"A": "edt 2 ", "B": "edt 2 revoked refunded at Gumroad", "C": "edt 2 revoked charged back at Gumroad",
		"D": "edt 2 suspended disabled at Gumroad", "E": "edt 2 suspended access revoked at Gumroad", "F": "club 2 ",
		"G": "club 2 2023-04-05T06:07:08.000Z",
	} {
		row := rows[strings.Repeat(key, 8)+"-11111111"]
		got := strings.Join([]string{row["product_id"], row["max_devices"], strings.TrimSpace(row["expires_at"] +
			row["status"] + " " + row["state_reason"])}, " ")
		if got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	if len(rows) != 7 || len(left) != 0 || report.Keyless != 1 || report.Repeated != 1 ||
		!maps.Equal(report.Without, map[string]int{seats: 1, "Recurrence: the subscription goes on at Gumroad": 1}) ||
		!maps.Equal(report.Products, map[string]int{"edt": 5, "clb": 2}) {
		t.Errorf("%d rows, left %v, %+v", len(rows), left, report)
	}

	for text, want := range map[string]string{
		"":             "is empty",
		"a,b\n1,2\n":   `no column "Purchase ID"`,
		`{"sales":1}`:  "not in the form",
		`{"sales":[]}`: "",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := serviceOf(t, "gumroad").Convert(path, Settings{}, &bytes.Buffer{}, &bytes.Buffer{})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestGumroadApostrophes removes the apostrophes that Gumroad puts before texts that a spreadsheet would run, and no
// others. An import reads the same keys from the rows.
func TestGumroadApostrophes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sales.csv")
	text := "Purchase ID,Product ID,License Key\n'-a==,edt,'-KEY\nb==,edt,'KEY\nc==,edt,''=KEY\nd==,edt,'%KEY\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, left, _ := converted(t, serviceOf(t, "gumroad"), path, Settings{})
	// The rows have the apostrophes of licet, which an import removes: '-KEY is -KEY.
	for key, id := range map[string]string{"'-KEY": "-a==", "'KEY": "b==", "'''=KEY": "c==", "%KEY": "d=="} {
		if want := `{"gumroad_sale_id":"` + id + `","order_id":""}`; rows[key]["metadata"] != want {
			t.Errorf("the row of %s has %q", key, rows[key])
		}
	}
	if len(rows) != 4 || len(left) != 0 {
		t.Errorf("%q, left %q", rows, left)
	}
}

// TestLemonSqueezyDisabled suspends license keys that are disabled by status or by attribute, in each form of the API.
func TestLemonSqueezyDisabled(t *testing.T) {
	for text, want := range map[string]string{
		`"status":"disabled"`:                  "suspended",
		`"status":"active","disabled":1`:       "suspended",
		`"status":"active","disabled":true`:    "suspended",
		`"status":"inactive","disabled":true`:  "suspended",
		`"status":"active","disabled":0`:       "",
		`"status":"inactive","disabled":false`: "",
		`"status":"expired","disabled":null`:   "",
		`"status":"disabled","disabled":false`: "suspended",
	} {
		path := filepath.Join(t.TempDir(), "keys.json")
		text := `{"data":[{"id":"1","type":"license-keys","attributes":{"key":"K-1","product_id":7,` + text + `}}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		rows, _, _ := converted(t, serviceOf(t, "lemonsqueezy"), path, Settings{})
		if got := rows["K-1"]["status"]; got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestLeft names licenses that can't be imported, and writes the others.
func TestLeft(t *testing.T) {
	fake := start(t, "keygen", 4)
	fake.Licenses[1].Product = "with blanks"
	fake.Licenses[2].Key = strings.Repeat("x", 1025)
	fake.Licenses[0].Key = "=1+1"
	fake.Licenses[3].Key = ""
	s := serviceOf(t, "keygen")
	path := filepath.Join(t.TempDir(), "pages.json")
	if err := s.Fetch(t.Context(), path, quickly(fake)); err != nil {
		t.Fatal(err)
	}
	rows, left, report := converted(t, s, path, Settings{})
	if len(rows) != 1 || rows["'=1+1"] == nil || report.Left != 2 || report.Keyless != 1 || len(left) != 2 ||
		left[0][0] != fake.Licenses[1].ID || !strings.Contains(left[0][1], `product_id is "with blanks"`) ||
		!strings.Contains(left[1][1], "external_key must have 1 to 1024 characters") {
		t.Errorf("%v, left %v, %+v", rows, left, report)
	}
	if !maps.Equal(report.Without, map[string]int{"maxUses": 1}) {
		t.Error(report.Without)
	}
}

// TestSameKeys leaves licenses whose keys the account takes for the key of an earlier license.
func TestSameKeys(t *testing.T) {
	fake := start(t, "keygen", 5)
	for i, key := range []string{"Caf\u00e9-1", "Cafe\u0301-1", "cafe\u0301 1", "Caf\u00e9-1", " "} {
		fake.Licenses[i].Key = key
	}
	s := serviceOf(t, "keygen")
	path := filepath.Join(t.TempDir(), "pages.json")
	if err := s.Fetch(t.Context(), path, quickly(fake)); err != nil {
		t.Fatal(err)
	}
	for matching, wanted := range map[string]int{"exact": 1, "compact": 2} {
		rows, left, report := converted(t, s, path, Settings{ExternalKeys: matching})
		if len(rows) != 3-wanted || len(left) != wanted || report.Left != wanted || report.Repeated != 1 ||
			report.Keyless != 1 || left[0][0] != fake.Licenses[1].ID ||
			!strings.Contains(left[0][1], "external_key is also in line 2") {
			t.Errorf("%s: %v, left %v, %+v", matching, rows, left, report)
		}
	}
}
