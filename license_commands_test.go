package licet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet"
)

// licenseTable is the table of the contract, each row with the facts that its
// state can rest on. A status says that the license changes and what it is
// then; "=" that nothing changes, without an error; a reason after "!" that
// the command is refused; "-" that the cell makes no sense.
const licenseTable = `
from                     | suspend   | reinstate     | revoke  | renew         | extend        | activate           | activate bound     | remove        | remove unbound | deactivate    | deactivate unbound | validate | validate bound
not_activated            | suspended | =             | revoked | not_activated | not_activated | activated          | -                  | -             | =              | -             | =                  | =        | -
activated                | suspended | =             | revoked | activated     | activated     | activated          | =                  | not_activated | =              | not_activated | =                  | =        | =
activated twice          | suspended | =             | revoked | activated     | activated     | activated          | =                  | activated     | =              | activated     | =                  | =        | =
suspended not_activated  | =         | not_activated | revoked | suspended     | suspended     | !license_suspended | -                  | -             | =              | -             | =                  | =        | -
suspended activated      | =         | activated     | revoked | suspended     | suspended     | !license_suspended | !license_suspended | suspended     | =              | suspended     | =                  | =        | =
suspended expired        | =         | expired       | revoked | suspended     | suspended     | !license_suspended | !license_suspended | suspended     | =              | suspended     | =                  | =        | =
expired not_activated    | suspended | =             | revoked | not_activated | not_activated | !license_expired   | -                  | -             | =              | -             | =                  | =        | -
expired activated        | suspended | =             | revoked | activated     | activated     | !license_expired   | !license_expired   | expired       | =              | expired       | =                  | =        | =
revoked not_activated    | !state    | !state        | =       | !state        | !state        | !license_revoked   | -                  | -             | =              | -             | =                  | =        | -
revoked activated        | !state    | !state        | =       | !state        | !state        | !license_revoked   | !license_revoked   | revoked       | =              | revoked       | =                  | =        | =
revoked everything       | !state    | !state        | =       | !state        | !state        | !license_revoked   | !license_revoked   | revoked       | =              | revoked       | =                  | =        | =
`

func TestLicenseTransitions(t *testing.T) {
	const ended, ends = -day, day
	state := func(end time.Duration, suspended, revoked bool, bound ...string) func() licet.Record {
		return func() licet.Record {
			return licensed(func(l *licet.License) {
				l.SelfService.Allowed = true
				l.ExpiresAt = noon.Add(end)
				if suspended {
					l.SuspendedAt = noon.Add(-time.Minute)
				}
				if revoked {
					l.RevokedAt = noon.Add(-time.Minute)
				}
			}, bound...)
		}
	}
	rows := map[string]func() licet.Record{
		"not_activated":           state(ends, false, false),
		"activated":               state(ends, false, false, "laptop"),
		"activated twice":         state(ends, false, false, "laptop", "tablet"),
		"suspended not_activated": state(ends, true, false),
		"suspended activated":     state(ends, true, false, "laptop"),
		"suspended expired":       state(ended, true, false, "laptop"),
		"expired not_activated":   state(ended, false, false),
		"expired activated":       state(ended, false, false, "laptop"),
		"revoked not_activated":   state(ends, false, true),
		"revoked activated":       state(ends, false, true, "laptop"),
		"revoked everything":      state(ended, true, true, "laptop"),
	}
	columns := map[string]licet.Command{
		"suspend":        licet.SuspendLicense{Target: ours},
		"reinstate":      licet.ReinstateLicense{Target: ours},
		"revoke":         licet.RevokeLicense{Target: ours},
		"renew":          licet.RenewLicense{Target: ours, ExpiresAt: noon.Add(30 * day)},
		"extend":         licet.RenewLicense{Target: ours, Extend: licet.Period{Months: 1}},
		"activate":       licet.Activate{Target: ours, Device: "phone", SeenStep: time.Minute},
		"activate bound": licet.Activate{Target: ours, Device: "laptop", SeenStep: time.Minute},
		"remove":         licet.RemoveDevice{Target: ours, Device: "laptop"},
		"remove unbound": licet.RemoveDevice{Target: ours, Device: "phone"},

		"deactivate":         licet.DeactivateDevice{Target: ours, Device: "laptop"},
		"deactivate unbound": licet.DeactivateDevice{Target: ours, Device: "phone"},
		"validate":           licet.ValidateLicense{Target: ours, Device: "phone", SeenStep: time.Minute},
		"validate bound":     licet.ValidateLicense{Target: ours, Device: "laptop", SeenStep: time.Minute},
	}
	eachCell(t, licenseTable, len(rows), len(columns), func(t *testing.T, row, column, want string) {
		r := rows[row]()
		before := r.License.Status(noon)
		if fact, _, _ := strings.Cut(row, " "); string(before) != fact {
			t.Fatalf("the case is wrong: it starts %s", before)
		}
		result, err := run(t, &r, columns[column], noon)
		checkCell(t, want, "invalid_license_state", string(before), string(r.License.Status(noon)), r.Changed, err)
		if err == nil {
			if diff := cmp.Diff(*r.License, result.License); diff != "" {
				t.Errorf("the answer is not the license (-stored +answered):\n%s", diff)
			}
		}
	})
}

// eachCell runs f for every cell of a table in text form.
func eachCell(t *testing.T, table string, rows, columns int, f func(t *testing.T, row, column, want string)) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	split := func(line string) []string {
		cells := strings.Split(line, "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		return cells
	}
	head := split(lines[0])
	if len(lines)-1 != rows || len(head)-1 != columns {
		t.Fatalf("the table is %d × %d, want %d × %d", len(lines)-1, len(head)-1, rows, columns)
	}
	for _, line := range lines[1:] {
		cells := split(line)
		if len(cells) != len(head) {
			t.Fatalf("%q has %d cells, want %d", cells[0], len(cells), len(head))
		}
		for i, want := range cells[1:] {
			if want == "-" {
				continue
			}
			t.Run(cells[0]+"/"+head[i+1], func(t *testing.T) { f(t, cells[0], head[i+1], want) })
		}
	}
}

// checkCell compares what happened with what a cell says.
func checkCell(t *testing.T, want, stateReason, before, after string, changed bool, err error) {
	t.Helper()
	if why, refused := strings.CutPrefix(want, "!"); refused {
		if why == "state" {
			why = stateReason
		}
		if got := reason(err); string(got) != why {
			t.Errorf("answered %q, want %q", got, why)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused with %v, want %q", err, want)
	}
	wantChanged := want != "="
	if !wantChanged {
		want = before
	}
	if after != want || changed != wantChanged {
		t.Errorf("became %s, changed %v; want %s, %v", after, changed, want, wantChanged)
	}
}

// TestLicenseFacts checks every fact of the license after a command.
func TestLicenseFacts(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	week := licet.Period{Days: 7}
	for _, c := range []struct {
		name    string
		before  func(*licet.License)
		command licet.Command
		bound   []string
		change  func(*licet.License)
	}{
		{
			name:    "suspend",
			command: licet.SuspendLicense{Target: ours},
			change:  func(l *licet.License) { l.SuspendedAt = noon },
		},
		{
			name:    "suspend again keeps the time",
			before:  func(l *licet.License) { l.SuspendedAt = at(-day) },
			command: licet.SuspendLicense{Target: ours},
		},
		{
			name:    "suspend for a reason",
			command: licet.SuspendLicense{Target: ours, Reason: "chargeback"},
			change:  func(l *licet.License) { l.SuspendedAt, l.StateReason = noon, "chargeback" },
		},
		{
			name:    "suspend again keeps the reason",
			before:  func(l *licet.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licet.SuspendLicense{Target: ours, Reason: "another"},
		},
		{
			name:    "reinstate",
			before:  func(l *licet.License) { l.SuspendedAt = at(-day) },
			command: licet.ReinstateLicense{Target: ours},
			change:  func(l *licet.License) { l.SuspendedAt = time.Time{} },
		},
		{
			name:    "reinstate forgets the reason",
			before:  func(l *licet.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licet.ReinstateLicense{Target: ours},
			change:  func(l *licet.License) { l.SuspendedAt, l.StateReason = time.Time{}, "" },
		},
		{
			name:    "revoke",
			command: licet.RevokeLicense{Target: ours},
			bound:   []string{"laptop"},
			change:  func(l *licet.License) { l.RevokedAt = noon },
		},
		{
			name:    "revoke keeps the suspension",
			before:  func(l *licet.License) { l.SuspendedAt = at(-day) },
			command: licet.RevokeLicense{Target: ours},
			change:  func(l *licet.License) { l.RevokedAt = noon },
		},
		{
			name:    "revoke for a reason that takes the place of the suspension's",
			before:  func(l *licet.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licet.RevokeLicense{Target: ours, Reason: "fraud"},
			change:  func(l *licet.License) { l.RevokedAt, l.StateReason = noon, "fraud" },
		},
		{
			name:    "revoke without a reason after one for the suspension",
			before:  func(l *licet.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licet.RevokeLicense{Target: ours},
			change:  func(l *licet.License) { l.RevokedAt, l.StateReason = noon, "" },
		},
		{
			name:    "revoke again keeps the reason",
			before:  func(l *licet.License) { l.RevokedAt, l.StateReason = at(-day), "fraud" },
			command: licet.RevokeLicense{Target: ours, Reason: "another"},
		},
		{
			name:    "revoke again keeps the time",
			before:  func(l *licet.License) { l.RevokedAt = at(-day) },
			command: licet.RevokeLicense{Target: ours},
		},
		{
			name:    "first activation",
			command: licet.Activate{Target: ours, Device: "phone"},
			change:  func(l *licet.License) { l.CurrentDevices, l.ActivatedAt = 1, noon },
		},
		{
			name:    "second device keeps activated_at",
			command: licet.Activate{Target: ours, Device: "phone"},
			bound:   []string{"laptop"},
			change:  func(l *licet.License) { l.CurrentDevices = 2 },
		},
		{
			name:    "activation again after all were removed keeps activated_at",
			before:  func(l *licet.License) { l.ActivatedAt = at(-day) },
			command: licet.Activate{Target: ours, Device: "phone"},
			change:  func(l *licet.License) { l.CurrentDevices = 1 },
		},
		{
			name:    "removing the last device keeps activated_at",
			command: licet.RemoveDevice{Target: ours, Device: "laptop"},
			bound:   []string{"laptop"},
			change:  func(l *licet.License) { l.CurrentDevices = 0 },
		},
		{
			name:    "first activation starts the validity",
			before:  func(l *licet.License) { l.Validity = week },
			command: licet.Activate{Target: ours, Device: "phone"},
			change: func(l *licet.License) {
				l.CurrentDevices, l.ActivatedAt = 1, noon
				l.Validity, l.ExpiresAt = licet.Period{}, at(7*day)
			},
		},
		{
			name:    "renew to a date",
			before:  func(l *licet.License) { l.ExpiresAt = at(day) },
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(9 * day)},
			change:  func(l *licet.License) { l.ExpiresAt = at(9 * day) },
		},
		{
			name:    "renew to an earlier date",
			before:  func(l *licet.License) { l.ExpiresAt = at(9 * day) },
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(day)},
			change:  func(l *licet.License) { l.ExpiresAt = at(day) },
		},
		{
			name:    "renew to the same date",
			before:  func(l *licet.License) { l.ExpiresAt = at(day) },
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(day)},
		},
		{
			name:    "renew to the same date in another zone",
			before:  func(l *licet.License) { l.ExpiresAt = at(day) },
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(day).In(time.FixedZone("", 3600))},
		},
		{
			name:    "renew to the next millisecond",
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(time.Millisecond)},
			change:  func(l *licet.License) { l.ExpiresAt = at(time.Millisecond) },
		},
		{
			name:    "renew gives a perpetual license an end",
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(day)},
			change:  func(l *licet.License) { l.ExpiresAt = at(day) },
		},
		{
			name:    "renew to a date ends the waiting for the first activation",
			before:  func(l *licet.License) { l.Validity = week },
			command: licet.RenewLicense{Target: ours, ExpiresAt: at(day)},
			change:  func(l *licet.License) { l.ExpiresAt, l.Validity = at(day), licet.Period{} },
		},
		{
			name:    "extend one that runs, from its end",
			before:  func(l *licet.License) { l.ExpiresAt = at(day) },
			command: licet.RenewLicense{Target: ours, Extend: week},
			change:  func(l *licet.License) { l.ExpiresAt = at(8 * day) },
		},
		{
			name:    "extend one that has ended, from now",
			before:  func(l *licet.License) { l.ExpiresAt = at(-day) },
			command: licet.RenewLicense{Target: ours, Extend: week},
			change:  func(l *licet.License) { l.ExpiresAt = at(7 * day) },
		},
		{
			name:    "extend one that ends now",
			before:  func(l *licet.License) { l.ExpiresAt = noon },
			command: licet.RenewLicense{Target: ours, Extend: licet.Period{Clock: time.Millisecond}},
			change:  func(l *licet.License) { l.ExpiresAt = at(time.Millisecond) },
		},
		{
			name:    "extend by a month from a month's end",
			before:  func(l *licet.License) { l.ExpiresAt = time.Date(2027, time.January, 31, 9, 0, 0, 0, time.UTC) },
			command: licet.RenewLicense{Target: ours, Extend: licet.Period{Months: 1}},
			change:  func(l *licet.License) { l.ExpiresAt = time.Date(2027, time.February, 28, 9, 0, 0, 0, time.UTC) },
		},
		{
			name:    "extend a suspended one that has ended",
			before:  func(l *licet.License) { l.ExpiresAt, l.SuspendedAt = at(-day), at(-day) },
			command: licet.RenewLicense{Target: ours, Extend: week},
			change:  func(l *licet.License) { l.ExpiresAt = at(7 * day) },
		},
		{
			name:    "raise max_devices",
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(5)},
			bound:   []string{"laptop"},
			change:  func(l *licet.License) { l.MaxDevices = 5 },
		},
		{
			name:    "max_devices as it is",
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(3)},
			bound:   []string{"laptop"},
		},
		{
			name:    "max_devices as it is, above the count",
			before:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 1, 3 },
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(1)},
			bound:   []string{"laptop", "phone"},
		},
		{
			name:    "lower max_devices to the count",
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(2)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licet.License) { l.MaxDevices = 2 },
		},
		{
			name:    "lower max_devices below the count",
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(1)},
			bound:   []string{"laptop", "phone", "tablet"},
			change:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 1, 3 },
		},
		{
			name:    "raise max_devices, still below the count, allows only what is bound now",
			before:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 1, 4 },
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(2)},
			bound:   []string{"laptop", "phone", "tablet"},
			change:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 2, 3 },
		},
		{
			name:    "raise max_devices to the count",
			before:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 1, 2 },
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(2)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 2, 0 },
		},
		{
			name:    "make max_devices unlimited",
			before:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 1, 2 },
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(0)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 0, 0 },
		},
		{
			name:    "limit an unlimited license below the count",
			before:  func(l *licet.License) { l.MaxDevices = 0 },
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(1)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licet.License) { l.MaxDevices, l.AllowedOver = 1, 2 },
		},
		{
			name:    "max_devices of a revoked license",
			before:  func(l *licet.License) { l.RevokedAt = at(-day) },
			command: licet.UpdateLicense{Target: ours, MaxDevices: new(5)},
			change:  func(l *licet.License) { l.MaxDevices = 5 },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(c.before, c.bound...)
			want := *r.License
			if c.change != nil {
				c.change(&want)
			}
			result := must(t, &r, c.command, noon)
			if diff := cmp.Diff(want, *r.License); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, result.License); diff != "" {
				t.Errorf("answered (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenewRefusals(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	month := licet.Period{Months: 1}
	revoked := func(l *licet.License) { l.RevokedAt = at(-day) }
	for _, c := range []struct {
		name   string
		before func(*licet.License)
		renew  licet.RenewLicense
		want   licet.Reason
		field  string
	}{
		{"to the past", nil, licet.RenewLicense{Target: ours, ExpiresAt: at(-time.Millisecond)}, licet.ReasonInvalidField, "expires_at"},
		{"to now", nil, licet.RenewLicense{Target: ours, ExpiresAt: noon}, licet.ReasonInvalidField, "expires_at"},
		{
			"to the past again", func(l *licet.License) { l.ExpiresAt = at(-day) },
			licet.RenewLicense{Target: ours, ExpiresAt: at(-day)}, licet.ReasonInvalidField, "expires_at",
		},
		{"extend a perpetual one", nil, licet.RenewLicense{Target: ours, Extend: month}, licet.ReasonInvalidField, "extend"},
		{
			"extend one that has not started to run", func(l *licet.License) { l.Validity = month },
			licet.RenewLicense{Target: ours, Extend: month}, licet.ReasonInvalidField, "extend",
		},
		{"revoked, to a date", revoked, licet.RenewLicense{Target: ours, ExpiresAt: at(day)}, licet.ReasonInvalidLicenseState, ""},
		// Which error wins: fields, then existence, then license state.
		{"revoked, to the past", revoked, licet.RenewLicense{Target: ours, ExpiresAt: at(-day)}, licet.ReasonInvalidField, "expires_at"},
		{
			"not found, to the past", nil,
			licet.RenewLicense{Target: licet.Target{Key: otherKey}, ExpiresAt: at(-day)}, licet.ReasonInvalidField, "expires_at",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(c.before)
			e := refuses(t, &r, c.renew, noon, c.want)
			if c.field == "" {
				return
			}
			if len(e.Fields) != 1 || e.Fields[0].Field != c.field || e.Fields[0].Problem == "" {
				t.Errorf("complains about %+v, want %s", e.Fields, c.field)
			}
		})
	}
}

// TestRenewStaysWithinRFC3339: an end after the year 9999 could be stored, but
// no answer could ever show it.
func TestRenewStaysWithinRFC3339(t *testing.T) {
	lastDay := time.Date(9999, time.December, 31, 23, 30, 0, 0, time.UTC)
	west := time.FixedZone("", -3600)
	for _, c := range []struct {
		name  string
		renew licet.RenewLicense
		field string // that is refused, or none
	}{
		{"to the last minute", licet.RenewLicense{ExpiresAt: lastDay.Add(29 * time.Minute)}, ""},
		{"to a date that is in the year 10000 only in UTC", licet.RenewLicense{ExpiresAt: lastDay.Add(time.Hour).In(west)}, "expires_at"},
		{"within the last hour", licet.RenewLicense{Extend: licet.Period{Clock: 29 * time.Minute}}, ""},
		{"beyond the last hour", licet.RenewLicense{Extend: licet.Period{Clock: 30 * time.Minute}}, "extend"},
		{"by a month", licet.RenewLicense{Extend: licet.Period{Months: 1}}, "extend"},
		{"by more years than a time can hold", licet.RenewLicense{Extend: licet.Period{Years: 300_000_000_000}}, "extend"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licet.License) { l.ExpiresAt = lastDay })
			c.renew.Target = ours
			_, err := run(t, &r, c.renew, noon)
			got := r.License.ExpiresAt
			if c.field == "" {
				if err != nil || got.Before(lastDay) || got.UTC().Year() != 9999 {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			var e *licet.Error
			if !errors.As(err, &e) || e.Reason != licet.ReasonInvalidField || len(e.Fields) != 1 || e.Fields[0].Field != c.field {
				t.Errorf("got %v, %+v, want a complaint about %s", got, err, c.field)
			}
		})
	}
}

func TestActivateDeviceLimit(t *testing.T) {
	const full, ok = licet.ReasonDeviceLimitReached, licet.Reason("")
	for _, c := range []struct {
		name   string
		max    int
		over   int
		bound  []string
		device string
		want   licet.Reason
		count  int
	}{
		{"first of one", 1, 0, nil, "phone", ok, 1},
		{"second of one", 1, 0, []string{"laptop"}, "phone", full, 1},
		{"bound one of a full license", 1, 0, []string{"laptop"}, "laptop", ok, 1},
		{"last slot", 2, 0, []string{"laptop"}, "phone", ok, 2},
		{"unlimited", 0, 0, []string{"laptop", "tablet", "tv"}, "phone", ok, 4},
		{"above the limit", 1, 3, []string{"laptop", "tablet", "tv"}, "phone", full, 3},
		{"below the count allowed then", 1, 3, []string{"laptop", "tablet"}, "phone", full, 2},
		{"bound one above the limit", 1, 3, []string{"laptop", "tablet", "tv"}, "tv", ok, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licet.License) { l.MaxDevices, l.AllowedOver = c.max, c.over }, c.bound...)
			result, err := run(t, &r, licet.Activate{Target: ours, Device: c.device, SeenStep: time.Minute}, noon)
			if got := reason(err); got != c.want {
				t.Fatalf("answered %q, want %q", got, c.want)
			}
			if got := r.License.CurrentDevices; got != c.count {
				t.Errorf("%d devices, want %d", got, c.count)
			}
			if err == nil {
				if result.License.CurrentDevices != c.count || result.Device.ID != c.device {
					t.Errorf("answered %d devices and device %q", result.License.CurrentDevices, result.Device.ID)
				}
				return
			}
			want := &licet.Error{
				Reason: full, Message: "device limit reached",
				Details: map[string]int{"max_devices": c.max, "current_devices": c.count},
			}
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("the error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoweredLimit goes the whole way: below the count, down to it, and up again.
func TestLoweredLimit(t *testing.T) {
	r := licensed(nil, "laptop", "phone", "tablet")
	want := func(step string, current, allowed int) {
		t.Helper()
		if l := r.License; l.CurrentDevices != current || l.AllowedOver != allowed {
			t.Errorf("%s: %d devices, %d allowed; want %d, %d", step, l.CurrentDevices, l.AllowedOver, current, allowed)
		}
	}
	remove := func(device string) { must(t, &r, licet.RemoveDevice{Target: ours, Device: device}, noon) }
	tv := licet.Activate{Target: ours, Device: "tv"}

	must(t, &r, licet.UpdateLicense{Target: ours, MaxDevices: new(2)}, noon)
	want("lowered", 3, 3)
	refuses(t, &r, tv, noon, licet.ReasonDeviceLimitReached)
	remove("laptop")
	want("down to the limit", 2, 0)
	refuses(t, &r, tv, noon, licet.ReasonDeviceLimitReached)
	remove("phone")
	want("below the limit", 1, 0)
	must(t, &r, tv, noon)
	want("full again", 2, 0)
	refuses(t, &r, licet.Activate{Target: ours, Device: "phone"}, noon, licet.ReasonDeviceLimitReached)

	must(t, &r, licet.UpdateLicense{Target: ours, MaxDevices: new(0)}, noon)
	must(t, &r, licet.Activate{Target: ours, Device: "phone"}, noon)
	must(t, &r, licet.Activate{Target: ours, Device: "laptop"}, noon)
	want("unlimited", 4, 0)
	must(t, &r, licet.UpdateLicense{Target: ours, MaxDevices: new(1)}, noon)
	want("limited again", 4, 4)
	remove("tv")
	want("one less, which does not come back", 3, 4)
	refuses(t, &r, tv, noon, licet.ReasonDeviceLimitReached)
}

func TestActivateStoresTheDevice(t *testing.T) {
	r := licensed(nil)
	result := must(t, &r, licet.Activate{Target: ours, Device: "phone", Name: "My Phone", Named: true}, noon)
	want := licet.Device{ID: "phone", Name: "My Phone", Named: true, BoundAt: noon, LastSeenAt: noon}
	if diff := cmp.Diff(want, result.Device); diff != "" {
		t.Errorf("answered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&licet.DeviceEntry{Device: want, Bound: true, Changed: true}, r.Devices["phone"]); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}

	removed := must(t, &r, licet.RemoveDevice{Target: ours, Device: "phone"}, noon.Add(time.Second))
	if diff := cmp.Diff(want, removed.Device); diff != "" || !removed.Removed {
		t.Errorf("removal answered %v (-want +got):\n%s", removed.Removed, diff)
	}
	unbound := &licet.DeviceEntry{Device: licet.Device{ID: "phone"}, Changed: true}
	if diff := cmp.Diff(unbound, r.Devices["phone"]); diff != "" {
		t.Errorf("stored after the removal (-want +got):\n%s", diff)
	}

	again := must(t, &r, licet.RemoveDevice{Target: ours, Device: "phone"}, noon.Add(time.Minute))
	if diff := cmp.Diff(licet.Device{ID: "phone"}, again.Device); diff != "" || again.Removed {
		t.Errorf("second removal answered %v (-want +got):\n%s", again.Removed, diff)
	}

	// Bound anew, it has nothing left of its former life.
	later := noon.Add(time.Hour)
	anew := must(t, &r, licet.Activate{Target: ours, Device: "phone"}, later)
	if diff := cmp.Diff(licet.Device{ID: "phone", BoundAt: later, LastSeenAt: later}, anew.Device); diff != "" {
		t.Errorf("bound anew (-want +got):\n%s", diff)
	}
	if !anew.License.ActivatedAt.Equal(noon) {
		t.Errorf("activated_at moved to %v, want %v", anew.License.ActivatedAt, noon)
	}
}

func TestActivateBoundDevice(t *testing.T) {
	const step = time.Minute
	seen := noon.Add(-10 * time.Second) // as licensed says
	named := func(name string) licet.Activate { return licet.Activate{Name: name, Named: true} }
	for _, c := range []struct {
		name     string
		stored   string // with "-" for none
		command  licet.Activate
		now      time.Time
		wantName string
		wantSeen time.Time
	}{
		{"too soon", "Box", licet.Activate{}, noon, "Box", seen},
		{"a millisecond too soon", "Box", licet.Activate{}, seen.Add(step - time.Millisecond), "Box", seen},
		{"after the step", "Box", licet.Activate{}, seen.Add(step), "Box", seen.Add(step)},
		{"long after", "Box", licet.Activate{}, noon.Add(day), "Box", noon.Add(day)},
		{"at the same moment", "Box", licet.Activate{}, seen, "Box", seen},
		{"with a clock behind", "Box", licet.Activate{}, seen.Add(-day), "Box", seen},
		{"same name", "Box", named("Box"), noon, "Box", seen},
		{"new name", "Box", named("Tin"), noon, "Tin", noon},
		{"new name with a clock behind", "Box", named("Tin"), seen.Add(-day), "Tin", seen},
		{"empty name", "Box", named(""), noon, "", noon},
		{"omitted name", "Box", licet.Activate{Name: "ignored"}, seen.Add(step), "Box", seen.Add(step)},
		{"first name", "-", named("Box"), noon, "Box", noon},
		{"first name, empty", "-", named(""), noon, "", noon},
		{"never named", "-", licet.Activate{}, seen.Add(step), "-", seen.Add(step)},
		{"empty name again", "", named(""), noon, "", seen},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(nil, "laptop")
			device := &r.Devices["laptop"].Device
			if c.stored != "-" {
				device.Name, device.Named = c.stored, true
			}
			want := *device
			want.LastSeenAt = c.wantSeen
			if want.Name, want.Named = c.wantName, true; c.wantName == "-" {
				want.Name, want.Named = "", false
			}
			license := *r.License

			c.command.Target, c.command.Device, c.command.SeenStep = ours, "laptop", step
			result := must(t, &r, c.command, c.now)
			if diff := cmp.Diff(want, result.Device); diff != "" {
				t.Errorf("answered (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, r.Devices["laptop"].Device); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(license, *r.License); diff != "" {
				t.Errorf("the license changed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSeenStepZero: without a step every later millisecond counts, and the
// very same one still changes nothing.
func TestSeenStepZero(t *testing.T) {
	r := licensed(nil, "laptop")
	c := licet.Activate{Target: ours, Device: "laptop"}
	must(t, &r, c, noon)
	if !r.Touched {
		t.Error("10 seconds later nothing changed")
	}
	must(t, &r, c, noon)
	if r.Touched {
		t.Error("at the same moment something changed")
	}
	must(t, &r, c, noon.Add(time.Millisecond))
	if !r.Touched {
		t.Error("a millisecond later nothing changed")
	}
}

// TestWhichErrorWins: existence, product, license state, device limit.
func TestWhichErrorWins(t *testing.T) {
	revoked := func(l *licet.License) { l.RevokedAt = noon }
	suspended := func(l *licet.License) { l.SuspendedAt = noon }
	expired := func(l *licet.License) { l.ExpiresAt = noon }
	full := func(l *licet.License) { l.MaxDevices = 1 }
	elsewhere := licet.Owner{AccountID: "acc_other"}
	for _, c := range []struct {
		name   string
		facts  []func(*licet.License)
		target licet.Target
		app    string
		want   licet.Reason
	}{
		{"limit", []func(*licet.License){full}, ours, app, licet.ReasonDeviceLimitReached},
		{"expired before limit", []func(*licet.License){full, expired}, ours, app, licet.ReasonLicenseExpired},
		{"suspended before expired", []func(*licet.License){full, expired, suspended}, ours, app, licet.ReasonLicenseSuspended},
		{"revoked before suspended", []func(*licet.License){full, expired, suspended, revoked}, ours, app, licet.ReasonLicenseRevoked},
		{"product before limit", []func(*licet.License){full}, ours, "other", licet.ReasonProductMismatch},
		{"product before state", []func(*licet.License){revoked}, ours, "other", licet.ReasonProductMismatch},
		{"no product demanded", []func(*licet.License){revoked}, ours, "", licet.ReasonLicenseRevoked},
		{"owner before product", []func(*licet.License){full, revoked}, licet.Target{Key: shopKey, Pin: elsewhere}, "other", licet.ReasonLicenseNotFound},
		{"caller before product", []func(*licet.License){full, revoked}, licet.Target{Key: shopKey, Caller: elsewhere}, "other", licet.ReasonLicenseNotFound},
		{"key before product", []func(*licet.License){full, revoked}, licet.Target{Key: otherKey}, "other", licet.ReasonLicenseNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(func(l *licet.License) {
				for _, fact := range c.facts {
					fact(l)
				}
			}, "laptop")
			refuses(t, &r, licet.Activate{Target: c.target, ProductID: c.app, Device: "phone"}, noon, c.want)
		})
	}
	t.Run("a bound device is refused for another product too", func(t *testing.T) {
		r := licensed(nil, "laptop")
		refuses(t, &r, licet.Activate{Target: ours, ProductID: "other", Device: "laptop"}, noon, licet.ReasonProductMismatch)
	})
	t.Run("products compare exactly", func(t *testing.T) {
		r := licensed(nil)
		refuses(t, &r, licet.Activate{Target: ours, ProductID: "App", Device: "laptop"}, noon, licet.ReasonProductMismatch)
	})
}

// licenseCommands has every command that means a license.
func licenseCommands(target licet.Target) []licet.Command {
	return []licet.Command{
		licet.Activate{Target: target, Device: "phone"},
		licet.RemoveDevice{Target: target, Device: "laptop"},
		licet.SuspendLicense{Target: target},
		licet.ReinstateLicense{Target: target},
		licet.RevokeLicense{Target: target},
		licet.RenewLicense{Target: target, ExpiresAt: noon.Add(day)},
		licet.UpdateLicense{Target: target, MaxDevices: new(7)},
		licet.ValidateLicense{Target: target, Device: "tablet"},
		licet.DeactivateDevice{Target: target, Device: "tv"},
	}
}

// TestTarget: to whoever may not see a license it does not exist, whatever the
// command, and with the very same error.
func TestTarget(t *testing.T) {
	account, live := licet.Owner{AccountID: "acc_shop"}, licet.Owner{Mode: licet.Live}
	otherAccount := licet.Owner{AccountID: "acc_other", Mode: licet.Live}
	otherMode := licet.Owner{AccountID: "acc_shop", Mode: licet.Test}
	for _, c := range []struct {
		name   string
		target licet.Target
		found  bool
	}{
		{"end user", licet.Target{Key: shopKey}, true},
		{"caller", licet.Target{Key: shopKey, Caller: shop}, true},
		{"pin", licet.Target{Key: shopKey, Pin: shop}, true},
		{"pin of the account only", licet.Target{Key: shopKey, Pin: account}, true},
		{"pin of the mode only", licet.Target{Key: shopKey, Pin: live}, true},
		{"caller and pin", licet.Target{Key: shopKey, Caller: shop, Pin: shop}, true},
		{"caller of another account", licet.Target{Key: shopKey, Caller: otherAccount}, false},
		{"caller of the other mode", licet.Target{Key: shopKey, Caller: otherMode}, false},
		{"pin of another account", licet.Target{Key: shopKey, Pin: otherAccount}, false},
		{"pin of the other mode", licet.Target{Key: shopKey, Pin: otherMode}, false},
		{"caller right, pin wrong", licet.Target{Key: shopKey, Caller: shop, Pin: otherMode}, false},
		{"caller wrong, pin right", licet.Target{Key: shopKey, Caller: otherMode, Pin: shop}, false},
		{"other key", licet.Target{Key: otherKey}, false},
		{"same 25 characters, other prefix", licet.Target{Key: "APP" + shopKey[3:]}, false},
		{"no key", licet.Target{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, command := range licenseCommands(c.target) {
				r := licensed(func(l *licet.License) { l.SelfService.Allowed = true }, "laptop")
				if _, err := run(t, &r, command, noon); c.found {
					if err != nil {
						t.Errorf("%T answered %v", command, err)
					}
				} else if err != licet.ErrLicenseNotFound {
					t.Errorf("%T answered %#v, want ErrLicenseNotFound itself", command, err)
				}
			}
		})
	}
	t.Run("nothing stored", func(t *testing.T) {
		for _, command := range licenseCommands(ours) {
			r := licensed(nil)
			r.License = nil
			if _, err := run(t, &r, command, noon); err != licet.ErrLicenseNotFound {
				t.Errorf("%T answered %v", command, err)
			}
		}
	})
	t.Run("an order where a license was asked for", func(t *testing.T) {
		for _, command := range licenseCommands(ours) {
			r := licet.Record{Order: &licet.Order{OrderNo: "ord_1"}}
			refuses(t, &r, command, noon, licet.ReasonLicenseNotFound)
		}
	})
}

func TestCommandDeviceID(t *testing.T) {
	for _, c := range licenseCommands(ours) {
		want := ""
		switch c.(type) {
		case licet.Activate:
			want = "phone"
		case licet.RemoveDevice:
			want = "laptop"
		case licet.ValidateLicense:
			want = "tablet"
		case licet.DeactivateDevice:
			want = "tv"
		}
		if got := c.DeviceID(); got != want {
			t.Errorf("%T touches device %q, want %q", c, got, want)
		}
	}
	for _, c := range []licet.Command{licet.PayOrder{}, licet.CancelOrder{}, licet.ExpireOrder{}, licet.RefundOrder{}, licet.PutProduct{}, licet.DeleteProduct{}} {
		if got := c.DeviceID(); got != "" {
			t.Errorf("%T touches device %q", c, got)
		}
	}
}

// TestLicenseLife is the validity of the two kinds of subscription, end to end.
func TestLicenseLife(t *testing.T) {
	month := licet.Period{Months: 1}
	status := func(t *testing.T, r licet.Record, now time.Time, want licet.Status) {
		t.Helper()
		if got := r.License.Status(now); got != want {
			t.Errorf("at %v it is %s, want %s", now, got, want)
		}
	}
	t.Run("from issue", func(t *testing.T) {
		r := licensed(nil)
		r.License = licet.Terms{MaxDevices: 1, Validity: month}.Issue(shopKey, shop, app, "", noon)
		end := time.Date(2026, time.April, 1, 12, 0, 0, 0, time.UTC)
		activated := must(t, &r, licet.Activate{Target: ours, Device: "phone"}, noon.Add(10*day))
		if !activated.License.ExpiresAt.Equal(end) {
			t.Errorf("ends at %v, want %v", activated.License.ExpiresAt, end)
		}
		status(t, r, end.Add(-time.Millisecond), licet.Activated)
		status(t, r, end, licet.Expired)
		refuses(t, &r, licet.Activate{Target: ours, Device: "phone"}, end, licet.ReasonLicenseExpired)
		must(t, &r, licet.RemoveDevice{Target: ours, Device: "phone"}, end)
		status(t, r, end, licet.Expired)
		must(t, &r, licet.RenewLicense{Target: ours, Extend: month}, end)
		status(t, r, end, licet.NotActivated)
	})
	t.Run("from first activation", func(t *testing.T) {
		r := licensed(nil)
		r.License = licet.Terms{MaxDevices: 1, Validity: month, FromActivation: true}.Issue(shopKey, shop, app, "", noon)
		first := time.Date(2027, time.January, 31, 12, 0, 0, 0, time.UTC) // long after a month
		end := time.Date(2027, time.February, 28, 12, 0, 0, 0, time.UTC)
		status(t, r, first, licet.NotActivated)
		must(t, &r, licet.Activate{Target: ours, Device: "phone"}, first)
		must(t, &r, licet.RemoveDevice{Target: ours, Device: "phone"}, first.Add(day))
		again := must(t, &r, licet.Activate{Target: ours, Device: "tablet"}, first.Add(2*day))
		if l := again.License; !l.ExpiresAt.Equal(end) || !l.ActivatedAt.Equal(first) || !l.Validity.IsZero() {
			t.Errorf("second activation: activated_at %v, expires_at %v, validity %+v", l.ActivatedAt, l.ExpiresAt, l.Validity)
		}
		status(t, r, end, licet.Expired)
	})
	t.Run("a refused activation starts nothing", func(t *testing.T) {
		r := licensed(func(l *licet.License) { l.Validity, l.SuspendedAt = month, noon })
		refuses(t, &r, licet.Activate{Target: ours, Device: "phone"}, noon, licet.ReasonLicenseSuspended)
		if r.License.Validity != month || !r.License.ExpiresAt.IsZero() {
			t.Errorf("the validity runs: %+v", r.License)
		}
	})
}
