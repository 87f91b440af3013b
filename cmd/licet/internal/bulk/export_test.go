package bulk_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
	"licet/internal/servicetest"
)

type licenseExport = bulk.Export[client.License, client.LicenseFilter]

func newExport(c *client.Client) *licenseExport { return bulk.ExportLicenses(c) }

// wantExport compares an export with the listing.
func wantExport(t *testing.T, text string, want map[string]client.License) {
	t.Helper()
	rows := readCSV(t, text)
	seen := map[string]bool{}
	for _, row := range rows {
		key := row["license_key"]
		l, ok := want[key]
		if !ok || seen[key] {
			t.Fatalf("%s is in the export, listed: %v, already there: %v", key, ok, seen[key])
		}
		seen[key] = true
		stamp := func(at time.Time) string {
			if at.IsZero() {
				return ""
			}
			return at.UTC().Format("2006-01-02T15:04:05.000Z")
		}
		entitlements := "{}"
		if l.ProductID == "viewer" {
			entitlements = `{"a":"<b>","n":3}`
		}
		var losing [2]string
		if l.ProductID == "losing" {
			losing = [2]string{"P30D", `{"at_least":2,"changes_per_month":4}`}
		}
		for column, cell := range map[string]string{
			"status": l.Status, "product_id": strings.ReplaceAll(l.ProductID, "-odd", "'-odd"), "order_no": l.OrderNo,
			"max_devices": strconv.Itoa(l.MaxDevices), "current_devices": strconv.Itoa(l.CurrentDevices),
			"created_at": stamp(l.CreatedAt), "activated_at": stamp(l.ActivatedAt), "expires_at": stamp(l.ExpiresAt),
			"suspended_at": stamp(l.SuspendedAt), "revoked_at": stamp(l.RevokedAt),
			"state_reason": strings.Replace(l.StateReason, "=", "'=", 1), "metadata": string(l.Metadata),
			"entitlements": entitlements, "trial": strconv.FormatBool(l.ProductID == "tried"),
			"grace_ends_at": stamp(l.GraceEndsAt), "device_mode": l.DeviceMode,
			"grace": l.Grace, "inactive_after": losing[0], "device_match": losing[1],
		} {
			if got, there := row[column]; got != cell || !there {
				t.Errorf("%s of %s is %q, want %q", column, key, got, cell)
			}
		}
		if len(row) != len(bulk.Columns()) {
			t.Errorf("there are %d columns", len(row))
		}
	}
	if len(rows) != len(want) {
		t.Errorf("%d rows, and %d licenses are listed", len(rows), len(want))
	}
}

func TestExportIsTheListing(t *testing.T) {
	c := shop(t)
	plain := grant(t, c, "editor", 3)
	grant(t, c, "-odd", 1)
	if _, err := c.Products.Put(t.Context(), "losing", client.ProductTerms{InactiveAfter: "P30D", MaxDevices: new(2),
		DeviceMatch: &client.DeviceMatch{AtLeast: 2}}); err != nil {
		t.Fatal(err)
	}
	grant(t, c, "losing", 1)
	if _, err := c.Products.Put(t.Context(), "floating", client.ProductTerms{DeviceMode: "leased", LeaseSeconds: 600,
		MaxLeaseSeconds: 3600, MaxDevices: new(2)}); err != nil {
		t.Fatal(err)
	}
	grant(t, c, "floating", 1)
	try := client.ProductTerms{Trial: &client.TrialTerms{Validity: "P7D", Per: "device"}}
	if _, err := c.Products.Put(t.Context(), "tried", try); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartTrial(t.Context(), client.NewTrial{ProductID: "tried", DeviceID: "d"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Products.Put(t.Context(), "viewer", client.ProductTerms{Grace: "P7D"}); err != nil {
		t.Fatal(err)
	}
	zero := 0
	if _, err := c.Licenses.Grant(t.Context(), client.Grant{
		ProductID: "viewer", Quantity: 1, MaxDevices: &zero, ExpiresAt: time.Date(2040, 1, 2, 3, 4, 5, 6e6, time.UTC),
		Metadata:     json.RawMessage(`{"note":"a, \"b\"\n<c>","n":1.50,"list":[null,{}]}`),
		Entitlements: json.RawMessage(`{"n":3,"a":"<b>","gone":{"value":1,"expires_at":"2001-01-01T00:00:00Z"}}`),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Licenses.Suspend(t.Context(), plain[0].LicenseKey,
		`=HYPERLINK("https://example.com","look")`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Licenses.Revoke(t.Context(), plain[1].LicenseKey, "charge\nback"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Activate(t.Context(),
		client.Activation{LicenseKey: plain[2].LicenseKey, DeviceID: "d"}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	rows, err := newExport(c).To(t.Context(), &out)
	if err != nil || rows != 8 {
		t.Fatal(rows, err)
	}
	wantExport(t, out.String(), listed(t, c))
	if !strings.Contains(out.String(), ",false,2040-01-09T03:04:05.006Z,bound,,,P7D,,\n") {
		t.Errorf("no row has the end of a grace: %s", out.String())
	}
	if !strings.Contains(out.String(), ",leased,600,3600,,,\n") {
		t.Errorf("no row has the lengths of leases: %s", out.String())
	}

	filtered := newExport(c)
	filtered.Filter.Status = "suspended"
	out.Reset()
	if _, err := filtered.To(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	all := listed(t, c)
	wantExport(t, out.String(), map[string]client.License{plain[0].LicenseKey: all[plain[0].LicenseKey]})
}

func TestExportOfNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.csv")
	sum, err := newExport(shop(t)).ToFile(t.Context(), path, false)
	if err != nil || sum.Rows != 0 {
		t.Fatal(sum, err)
	}
	if got, want := readFile(t, path), strings.Join(bulk.Columns(), ",")+"\n"; got != want {
		t.Errorf("%q", got)
	}
	wantFiles(t, filepath.Dir(path), nil, "out.csv")
}

// breakAfter ends an export once it has so many rows.
func breakAfter(t *testing.T, e *licenseExport, rows int64) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	e.Progress = func(n int64) {
		if n >= rows {
			cancel()
		}
	}
	return ctx
}

func TestExportGoesOn(t *testing.T) {
	c := shop(t)
	grant(t, c, "editor", 450)
	want := listed(t, c)
	path := filepath.Join(t.TempDir(), "out.csv")
	writeFile(t, path, "the one before")

	e := newExport(c)
	sum, err := e.ToFile(breakAfter(t, e, 200), path, false)
	if !errors.Is(err, context.Canceled) || sum.Rows != 200 {
		t.Fatal(sum, err)
	}
	wantError(t, err, "after 200 rows, written to "+path+".partial", "repeat the command to continue")
	wantFiles(t, filepath.Dir(path), []string{"out.csv"}, "out.csv.partial", "out.csv.partial.json")
	if readFile(t, path) != "the one before" {
		t.Error("the file was replaced before the new one was whole")
	}

	// Rows that were written after the last place was put down are cut off, as a
	// process that is killed leaves them.
	partial, err := os.OpenFile(path+".partial", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := partial.WriteString(strings.Repeat("LIC-AAAAA,half a row\nand a quot\"", 5000)); err != nil {
		t.Fatal(err)
	}
	if err := partial.Close(); err != nil {
		t.Fatal(err)
	}
	grant(t, c, "editor", 150) // what is made meanwhile is newer than where it goes on

	other := newExport(c)
	other.Filter.ProductID = "editor"
	_, err = other.ToFile(t.Context(), path, false)
	wantError(t, err, "other filters", "--restart")
	_, err = newExport(shop(t)).ToFile(t.Context(), path, false)
	wantError(t, err, "another account or mode", "--restart", "cursor")

	sum, err = newExport(c).ToFile(t.Context(), path, false)
	if err != nil || sum.Rows != 450 || sum.Before != 200 {
		t.Fatal(sum, err)
	}
	wantExport(t, readFile(t, path), want)
	wantFiles(t, filepath.Dir(path), nil, "out.csv")
}

func TestExportAnew(t *testing.T) {
	c := shop(t)
	grant(t, c, "editor", 250)
	path := filepath.Join(t.TempDir(), "out.csv")
	e := newExport(c)
	if _, err := e.ToFile(breakAfter(t, e, 100), path, false); err == nil {
		t.Fatal("it did not break off")
	}
	grant(t, c, "editor", 10)
	sum, err := newExport(c).ToFile(t.Context(), path, true)
	if err != nil || sum.Rows != 260 || sum.Before != 0 {
		t.Fatal(sum, err)
	}
	wantExport(t, readFile(t, path), listed(t, c))

	// The position of an export that was killed right after its file was complete.
	writeFile(t, path+".partial.json", `{"version":1,"cursor":"x","bytes":100,"rows":1}`)
	if sum, err := newExport(c).ToFile(t.Context(), path, false); err != nil || sum.Rows != 260 {
		t.Fatal(sum, err)
	}
	wantFiles(t, filepath.Dir(path), nil, "out.csv")

	writeFile(t, path+".partial", "too short")
	writeFile(t, path+".partial.json", `{"version":1,"cursor":"x","bytes":100,"rows":1}`)
	_, err = newExport(c).ToFile(t.Context(), path, false)
	wantError(t, err, "do not match", "--restart")
	_, err = newExport(c).ToFile(t.Context(), filepath.Dir(path), false)
	wantError(t, err, "is not a regular file")
}

// TestExportWhileOthersGrant breaks an export off again and again while licenses
// are granted: all that were there at its beginning are in it once.
func TestExportWhileOthersGrant(t *testing.T) {
	c := shop(t)
	grant(t, c, "editor", 1000)
	before := listed(t, c)
	path := filepath.Join(t.TempDir(), "out.csv")
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Licenses.Grant(ctx, client.Grant{ProductID: "editor", Quantity: 5}); err != nil &&
					ctx.Err() == nil {
					t.Error(err)
					return
				}
			}
		})
	}
	breaks := 0
	for rows := int64(100); ; rows += 200 {
		e := newExport(c)
		_, err := e.ToFile(breakAfter(t, e, rows), path, false)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		breaks++
	}
	cancel()
	others.Wait()
	if breaks < 4 {
		t.Errorf("it broke off %d times only", breaks)
	}
	after := listed(t, c)
	for _, row := range readCSV(t, readFile(t, path)) {
		key := row["license_key"]
		if _, there := after[key]; !there {
			t.Fatalf("%s is in the export twice, or nowhere else", key)
		}
		delete(after, key)
		delete(before, key)
	}
	if len(before) > 0 {
		t.Errorf("%d licenses that were there are not in the export", len(before))
	}
}

func TestOneExportAtATime(t *testing.T) {
	c := shop(t)
	grant(t, c, "editor", 1)
	path := filepath.Join(t.TempDir(), "out.csv")
	e := newExport(c)
	asked := false
	e.Progress = func(int64) {
		asked = true
		_, err := newExport(c).ToFile(t.Context(), path, false)
		wantError(t, err, "out.csv.partial", "another process")
	}
	if sum, err := e.ToFile(t.Context(), path, false); err != nil || sum.Rows != 1 || !asked {
		t.Fatal(sum, err, asked)
	}
}

func TestExportWithoutTheScope(t *testing.T) {
	key, err := service.Key(servicetest.NewAccount(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "out.csv")
	_, err = newExport(caller(t, key.Text)).ToFile(t.Context(), path, false)
	wantError(t, err, "40300")
	wantFiles(t, filepath.Dir(path), nil)
}
