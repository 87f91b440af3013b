package licensing_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/licensing"
)

// What the tests of this package share: a shop that sells one app, at noon.
const (
	app = "app"
	day = 24 * time.Hour
)

var (
	shopKey  = licensing.LicenseID{1}.Key("LIC")
	otherKey = licensing.LicenseID{2}.Key("LIC")
	noon     = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	shop     = licensing.Owner{AccountID: "acc_shop", Mode: licensing.Live}
	ours     = licensing.Target{Key: shopKey}
)

// licensed returns the record of a perpetual license for 3 devices, changed by
// edit. The named devices were bound one hour and last seen 10 seconds before
// noon. The entries of laptop, phone, tablet and tv are loaded.
func licensed(edit func(*licensing.License), bound ...string) licensing.Record {
	r := licensing.Record{
		License: &licensing.License{
			Key: shopKey, Owner: shop, ProductID: app, OrderNo: "ord_1",
			MaxDevices: 3, CurrentDevices: len(bound),
			CreatedAt: noon.Add(-2 * day),
		},
		Devices: licensing.Devices{},
	}
	for _, id := range []string{"laptop", "phone", "tablet", "tv"} {
		r.Devices[id] = &licensing.DeviceEntry{Device: licensing.Device{ID: id}}
	}
	for _, id := range bound {
		entry := r.Devices[id]
		entry.Bound = true
		entry.Device.BoundAt = noon.Add(-time.Hour)
		entry.Device.LastSeenAt = noon.Add(-10 * time.Second)
		r.License.ActivatedAt = noon.Add(-time.Hour)
	}
	if edit != nil {
		edit(r.License)
	}
	return r
}

// run applies c and checks what Apply promises for every command: an error leaves the record as it was, Changed
// reports whether anything but a device's last_seen differs, Touched reports that difference, only the command's own
// device is touched unless the license's terms reach others, events follow the earlier events, and the same input
// returns the same result.
func run(t rapid.TB, r *licensing.Record, c licensing.Command, now time.Time) (licensing.Result, error) {
	t.Helper()
	r.Changed, r.Touched, r.Events = false, false, nil
	for _, entry := range r.Devices {
		entry.Changed = false
	}
	if r.Metadata != nil {
		r.Metadata.Changed = false
	}
	before, twin := r.Clone(), r.Clone()
	result, err := licensing.Apply(r, c, now)

	if diff := cmp.Diff(before, twin); diff != "" {
		t.Fatalf("%T changed a clone of the record (-before +after):\n%s", c, diff)
	}
	again, errAgain := licensing.Apply(&twin, c, now)
	if diff := cmp.Diff(*r, twin); diff != "" {
		t.Fatalf("%T made another record the second time (-first +second):\n%s", c, diff)
	}
	if diff := diffOf(result, again); diff != "" || reason(err) != reason(errAgain) {
		t.Fatalf("%T answered %v, then %v (-first +second):\n%s", c, err, errAgain, diff)
	}

	for id, entry := range r.Devices {
		differs := !cmp.Equal(*before.Devices[id], licensing.DeviceEntry{Device: entry.Device, Bound: entry.Bound})
		if entry.Changed != differs {
			t.Fatalf("%T: device %s has Changed %v, but differs: %v", c, id, entry.Changed, differs)
		}
		if differs && id != c.DeviceID() && !before.License.NeedsDevices() {
			t.Fatalf("%T of device %q touched device %q", c, c.DeviceID(), id)
		}
	}
	if m := r.Metadata; m != nil {
		unmarked, prior := *m, *before.Metadata
		if unmarked.Changed, prior.Changed = false, false; m.Changed != (unmarked != prior) {
			t.Fatalf("%T: the metadata has Changed %v, and is %+v after %+v", c, m.Changed, unmarked, prior)
		}
	}
	after := r.Clone()
	after.Changed, after.Touched = false, false
	seen := false
	for id, entry := range after.Devices {
		entry.Changed = false
		old := before.Devices[id]
		if old.Bound && entry.Bound && entry.Device.LeaseEnd.Equal(old.Device.LeaseEnd) &&
			!entry.Device.LastSeenAt.Equal(old.Device.LastSeenAt) {
			seen, entry.Device.LastSeenAt = true, old.Device.LastSeenAt
		}
	}
	if r.Touched != seen {
		t.Fatalf("%T: Touched is %v, want %v", c, r.Touched, seen)
	}
	diff := cmp.Diff(before, after)
	kept := seen && before.License.ActsByTime() // a time may be worth a transaction
	if r.Changed != (diff != "") && !(kept && r.Changed) {
		t.Fatalf("%T: Changed is %v, yet this differs (-before +after):\n%s", c, r.Changed, diff)
	}
	checkEvents(t, c, &before, r, now)
	if err != nil {
		if reason(err) == licensing.ReasonDeviceLimitReached && len(r.Events) == 1 {
			// The one refusal that may have an event; nothing else has changed.
			after.Events, after.License.Sequence = nil, before.License.Sequence
			after.License.LimitReportedAt = before.License.LimitReportedAt
			diff = cmp.Diff(before, after)
		}
		full := reason(err) == licensing.ReasonDeviceLimitReached || errors.Is(err, licensing.ErrMoreLapsed)
		if full && r.License.ActsByTime() {
			diff = "" // it may also have removed lapsed leases of other devices, or have looked for inactive devices
		}
		if diff != "" || seen {
			t.Fatalf("%T was refused with %v, yet changed the record (-before +after):\n%s", c, err, diff)
		}
		if diff := diffOf(licensing.Result{}, result); diff != "" {
			t.Fatalf("%T was refused with %v, yet answered (-nothing +got):\n%s", c, err, diff)
		}
	}
	return result, err
}

// must is run for a command that must succeed.
func must(t rapid.TB, r *licensing.Record, c licensing.Command, now time.Time) licensing.Result {
	t.Helper()
	result, err := run(t, r, c, now)
	if err != nil {
		t.Fatalf("%T answered %v", c, err)
	}
	return result
}

// refuses runs a command that must fail with the reason.
func refuses(
	t rapid.TB, r *licensing.Record, c licensing.Command, now time.Time, want licensing.Reason,
) *licensing.Error {
	t.Helper()
	_, err := run(t, r, c, now)
	if got := reason(err); got != want {
		t.Fatalf("%T answered %q, want %q", c, got, want)
	}
	var e *licensing.Error
	errors.As(err, &e)
	return e
}

// reason returns the reason of a refusal; empty for no error.
func reason(err error) licensing.Reason {
	if err == nil {
		return ""
	}
	var e *licensing.Error
	if !errors.As(err, &e) {
		return licensing.Reason(fmt.Sprintf("not an Error: %v", err))
	}
	return e.Reason
}

func TestLicenseStatus(t *testing.T) {
	past, future := noon.Add(-time.Hour), noon.Add(time.Hour)
	for name, c := range map[string]struct {
		license licensing.License
		want    licensing.Status
	}{
		"new":                  {licensing.License{}, licensing.NotActivated},
		"all devices removed":  {licensing.License{ActivatedAt: past}, licensing.NotActivated},
		"one device":           {licensing.License{CurrentDevices: 1}, licensing.Activated},
		"time left":            {licensing.License{ExpiresAt: future}, licensing.NotActivated},
		"device and time left": {licensing.License{CurrentDevices: 1, ExpiresAt: future}, licensing.Activated},
		"validity not running yet": {licensing.License{Validity: licensing.Period{Days: 1}},
			licensing.NotActivated},
		"a millisecond before the end": {licensing.License{CurrentDevices: 1, ExpiresAt: noon.Add(time.Millisecond)},
			licensing.Activated},
		"at the end":    {licensing.License{CurrentDevices: 1, ExpiresAt: noon}, licensing.Expired},
		"after the end": {licensing.License{ExpiresAt: past}, licensing.Expired},
		"suspended":     {licensing.License{SuspendedAt: past}, licensing.Suspended},
		// by a clock ahead of ours
		"suspended in the future": {licensing.License{SuspendedAt: future}, licensing.Suspended},
		"suspended with device":   {licensing.License{SuspendedAt: past, CurrentDevices: 1}, licensing.Suspended},
		"suspended and expired": {licensing.License{SuspendedAt: past, ExpiresAt: past, CurrentDevices: 1},
			licensing.Suspended},
		"revoked":               {licensing.License{RevokedAt: past}, licensing.Revoked},
		"revoked in the future": {licensing.License{RevokedAt: future}, licensing.Revoked},
		"revoked and expired":   {licensing.License{RevokedAt: past, ExpiresAt: past}, licensing.Revoked},
		"revoked with device":   {licensing.License{RevokedAt: past, CurrentDevices: 1}, licensing.Revoked},
		"everything": {
			licensing.License{RevokedAt: past, SuspendedAt: past, ExpiresAt: past,
				CurrentDevices: 1}, licensing.Revoked,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.license.Status(noon); got != c.want {
				t.Errorf("status %s, want %s", got, c.want)
			}
		})
	}
}

func TestPeriodAddTo(t *testing.T) {
	f := func(from string, p licensing.Period, want string) {
		t.Helper()
		at, err := time.Parse(time.RFC3339, from)
		if err != nil {
			t.Fatal(err)
		}
		got := p.AddTo(at)
		if text := got.Format(time.RFC3339Nano); text != want {
			t.Errorf("%s + %+v = %s, want %s", from, p, text, want)
		}
		if got.Location() != time.UTC {
			t.Errorf("%s + %+v is not in UTC", from, p)
		}
	}
	months := func(n int) licensing.Period { return licensing.Period{Months: n} }
	years := func(n int) licensing.Period { return licensing.Period{Years: n} }

	// The day of the month stays.
	f("2026-03-01T12:00:00Z", licensing.Period{}, "2026-03-01T12:00:00Z")
	f("2026-03-15T12:34:56.789Z", months(1), "2026-04-15T12:34:56.789Z")
	f("2026-03-15T12:34:56.789Z", years(1), "2027-03-15T12:34:56.789Z")
	f("2026-12-15T00:00:00Z", months(1), "2027-01-15T00:00:00Z")
	f("2026-03-15T00:00:00Z", months(25), "2028-04-15T00:00:00Z")
	f("2026-03-15T00:00:00Z", licensing.Period{Years: 1, Months: 10}, "2028-01-15T00:00:00Z")

	// A shorter month takes its last day.
	f("2026-01-31T08:00:00Z", months(1), "2026-02-28T08:00:00Z")
	f("2026-01-29T08:00:00Z", months(1), "2026-02-28T08:00:00Z")
	f("2026-01-28T08:00:00Z", months(1), "2026-02-28T08:00:00Z")
	f("2028-01-31T08:00:00Z", months(1), "2028-02-29T08:00:00Z")
	f("2026-03-31T08:00:00Z", months(1), "2026-04-30T08:00:00Z")
	f("2026-03-31T08:00:00Z", months(2), "2026-05-31T08:00:00Z")
	f("2026-08-31T08:00:00Z", months(6), "2027-02-28T08:00:00Z")
	f("2026-12-31T23:59:59.999Z", months(2), "2027-02-28T23:59:59.999Z")
	f("2026-02-28T08:00:00Z", months(1), "2026-03-28T08:00:00Z")

	// Leap years.
	f("2028-02-29T08:00:00Z", years(1), "2029-02-28T08:00:00Z")
	f("2028-02-29T08:00:00Z", years(4), "2032-02-29T08:00:00Z")
	f("2028-02-29T08:00:00Z", months(12), "2029-02-28T08:00:00Z")
	f("2096-02-29T08:00:00Z", years(4), "2100-02-28T08:00:00Z")
	f("1996-02-29T08:00:00Z", years(4), "2000-02-29T08:00:00Z")
	f("2027-02-28T08:00:00Z", years(1), "2028-02-28T08:00:00Z")

	// Days and the clock come after years and months.
	f("2026-02-28T08:00:00Z", licensing.Period{Days: 1}, "2026-03-01T08:00:00Z")
	f("2028-02-28T08:00:00Z", licensing.Period{Days: 1}, "2028-02-29T08:00:00Z")
	f("2026-01-31T08:00:00Z", licensing.Period{Months: 1, Days: 1}, "2026-03-01T08:00:00Z")
	f("2026-12-31T08:00:00Z", licensing.Period{Days: 366}, "2028-01-01T08:00:00Z")
	f("2026-03-01T12:00:00Z", licensing.Period{Clock: 36 * time.Hour}, "2026-03-03T00:00:00Z")
	f("2026-01-31T23:30:00Z", licensing.Period{Months: 1, Clock: time.Hour}, "2026-03-01T00:30:00Z")
	f("2026-01-01T00:00:00Z", licensing.Period{Clock: time.Millisecond}, "2026-01-01T00:00:00.001Z")

	// It is UTC's calendar that counts.
	f("2026-02-01T00:30:00+01:00", months(1), "2026-02-28T23:30:00Z")
	f("2026-01-31T23:30:00-01:00", months(1), "2026-03-01T00:30:00Z")
}

func TestPeriodIsZero(t *testing.T) {
	for _, p := range []licensing.Period{{Years: 1}, {Months: 1}, {Days: 1}, {Clock: 1}} {
		if p.IsZero() {
			t.Errorf("%+v counts as none", p)
		}
	}
	if !(licensing.Period{}).IsZero() {
		t.Error("no period counts as one")
	}
}

func TestTermsIssue(t *testing.T) {
	year := licensing.Period{Years: 1}
	f := func(terms licensing.Terms, maxDevices int, validity licensing.Period, expiresAt time.Time) {
		t.Helper()
		want := &licensing.License{
			Key: shopKey, Owner: shop, ProductID: app, OrderNo: "ord_1", CreatedAt: noon,
			MaxDevices: maxDevices, Validity: validity, ExpiresAt: expiresAt,
		}
		want.SelfService = terms.SelfService
		got := terms.Issue(shopKey, shop, app, "ord_1", noon)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%+v issue (-want +got):\n%s", terms, diff)
		}
		if status := got.Status(noon); status != licensing.NotActivated {
			t.Errorf("%+v issue a license that is %s", terms, status)
		}
	}
	none, never := licensing.Period{}, time.Time{}
	f(licensing.DefaultTerms(), 3, none, never)
	f(licensing.Terms{MaxDevices: 0}, 0, none, never)
	f(licensing.Terms{MaxDevices: 7, FromActivation: true}, 7, none, never)
	f(licensing.Terms{MaxDevices: 1, Validity: year}, 1, none, noon.AddDate(1, 0, 0))
	f(licensing.Terms{MaxDevices: 1, Validity: year, FromActivation: true}, 1, year, never)
	f(licensing.Terms{SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 2}}, 0, none, never)

	if diff := cmp.Diff(licensing.Terms{KeyPrefix: "LIC", MaxDevices: 3}, licensing.DefaultTerms()); diff != "" {
		t.Errorf("default terms (-want +got):\n%s", diff)
	}
}

// TestCloneSharesNothing changes all that Apply could change of a clone.
func TestCloneSharesNothing(t *testing.T) {
	build := func() licensing.Record {
		r := licensed(nil, "laptop")
		r.Order = &licensing.Order{OrderNo: "ord_1", ExpiresAt: noon.Add(time.Hour), BuyerEmail: "ann@example.com"}
		r.Product = &licensing.Product{ID: app}
		r.Metadata = &licensing.Metadata{Object: `{"a":1}`}
		return r
	}
	original := build()
	clone := original.Clone()
	if diff := cmp.Diff(original, clone); diff != "" {
		t.Fatalf("the clone differs (-original +clone):\n%s", diff)
	}
	for _, c := range []licensing.Command{
		licensing.Activate{Target: ours, Device: "phone"},
		licensing.Activate{Target: ours, Device: "laptop", Name: "new", Named: true},
		licensing.RemoveDevice{Target: ours, Device: "laptop"},
		licensing.UpdateLicense{Target: ours, MaxDevices: new(9), Metadata: `{"a":2}`},
		licensing.RenewLicense{Target: ours, ExpiresAt: noon.Add(day)},
		licensing.SuspendLicense{Target: ours},
		licensing.RevokeLicense{Target: ours},
		licensing.PayOrder{Key: shopKey},
		licensing.RefundOrder{},
		licensing.RedactLicense{Target: ours},
		licensing.RedactOrder{BuyerEmail: clone.Order.BuyerEmail, LicenseKey: shopKey,
			Sequence: clone.Order.Sequence, LicensesIssued: clone.Order.LicensesIssued},
	} {
		if _, err := licensing.Apply(&clone, c, noon); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	clone.Product.ID = "other"
	for _, c := range []licensing.Command{licensing.PutProduct{ID: app}, licensing.DeleteProduct{}} {
		if _, err := licensing.Apply(&clone, c, noon); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	clone.Devices["new"] = &licensing.DeviceEntry{}
	if diff := cmp.Diff(build(), original); diff != "" {
		t.Errorf("changing the clone changed the original (-want +got):\n%s", diff)
	}

	empty := licensing.Record{}
	if diff := cmp.Diff(licensing.Record{}, empty.Clone()); diff != "" {
		t.Errorf("the clone of nothing (-want +got):\n%s", diff)
	}
}

func TestRefs(t *testing.T) {
	for _, c := range []struct{ got, want licensing.Ref }{
		{licensing.LicenseRef(shopKey),
			licensing.Ref{Kind: licensing.KindLicense, ID: "\x01" + strings.Repeat("\x00", 17)}},
		{licensing.LicenseRef(shopKey.ID().Key("ACME")), licensing.LicenseRef(shopKey)},
		{shopKey.ID().Ref(), licensing.LicenseRef(shopKey)},
		{licensing.OrderRef(shop, "x"), licensing.Ref{Kind: licensing.KindOrder, Owner: shop, ID: "x"}},
		{licensing.ProductRef(shop, "x"), licensing.Ref{Kind: licensing.KindProduct, Owner: shop, ID: "x"}},
	} {
		if c.got != c.want {
			t.Errorf("got %+v, want %+v", c.got, c.want)
		}
	}
	if id := licensing.LicenseRef(shopKey).LicenseID(); id != shopKey.ID() {
		t.Errorf("the ref of %s names the license %x", shopKey, id)
	}
	if licensing.OrderRef(shop, "x") == licensing.ProductRef(shop, "x") {
		t.Error("an order and a product of the same name share a ref")
	}
}
