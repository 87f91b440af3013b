package licensing_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/internal/depth"
	"licet/licensing"
)

// licenseTable is the table of the contract, with a row for each set of facts that leads to a state. A cell with a
// status: the license changes, and has that status then. "=": nothing changes, and there is no error. "!" and a reason:
// the command is refused for that reason. "-": the cell makes no sense.
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

// licenseStates are the rows of licenseTable.
func licenseStates() map[string]func() licensing.Record {
	const ended, ends = -day, day
	state := func(end time.Duration, suspended, revoked bool, bound ...string) func() licensing.Record {
		return func() licensing.Record {
			return licensed(func(l *licensing.License) {
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
	return map[string]func() licensing.Record{
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
}

// licenseColumns are the columns of licenseTable, for a target.
func licenseColumns(target licensing.Target) map[string]licensing.Command {
	return map[string]licensing.Command{
		"suspend":        licensing.SuspendLicense{Target: target},
		"reinstate":      licensing.ReinstateLicense{Target: target},
		"revoke":         licensing.RevokeLicense{Target: target},
		"renew":          licensing.RenewLicense{Target: target, ExpiresAt: noon.Add(30 * day)},
		"extend":         licensing.RenewLicense{Target: target, Extend: licensing.Period{Months: 1}},
		"activate":       licensing.Activate{Target: target, Device: "phone", SeenStep: time.Minute},
		"activate bound": licensing.Activate{Target: target, Device: "laptop", SeenStep: time.Minute},
		"remove":         licensing.RemoveDevice{Target: target, Device: "laptop"},
		"remove unbound": licensing.RemoveDevice{Target: target, Device: "phone"},

		"deactivate":         licensing.DeactivateDevice{Target: target, Device: "laptop"},
		"deactivate unbound": licensing.DeactivateDevice{Target: target, Device: "phone"},
		"validate":           licensing.ValidateLicense{Target: target, Device: "phone", SeenStep: time.Minute},
		"validate bound":     licensing.ValidateLicense{Target: target, Device: "laptop", SeenStep: time.Minute},
	}
}

func TestLicenseTransitions(t *testing.T) {
	depth.NotRaced(t)
	rows, columns := licenseStates(), licenseColumns(ours)
	eachCell(t, licenseTable, len(rows), len(columns), func(t *testing.T, row, column, want string) {
		r := rows[row]()
		before := r.License.Status(noon)
		if fact, _, _ := strings.Cut(row, " "); string(before) != fact {
			t.Fatalf("the row is wrong: its license is %s before the command", before)
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
	week := licensing.Period{Days: 7}
	for _, c := range []struct {
		name    string
		before  func(*licensing.License)
		command licensing.Command
		bound   []string
		change  func(*licensing.License)
	}{
		{
			name:    "suspend",
			command: licensing.SuspendLicense{Target: ours},
			change:  func(l *licensing.License) { l.SuspendedAt = noon },
		},
		{
			name:    "suspend again keeps the time",
			before:  func(l *licensing.License) { l.SuspendedAt = at(-day) },
			command: licensing.SuspendLicense{Target: ours},
		},
		{
			name:    "suspend for a reason",
			command: licensing.SuspendLicense{Target: ours, Reason: "chargeback"},
			change:  func(l *licensing.License) { l.SuspendedAt, l.StateReason = noon, "chargeback" },
		},
		{
			name:    "suspend again keeps the reason",
			before:  func(l *licensing.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licensing.SuspendLicense{Target: ours, Reason: "another"},
		},
		{
			name:    "reinstate",
			before:  func(l *licensing.License) { l.SuspendedAt = at(-day) },
			command: licensing.ReinstateLicense{Target: ours},
			change:  func(l *licensing.License) { l.SuspendedAt = time.Time{} },
		},
		{
			name:    "reinstate forgets the reason",
			before:  func(l *licensing.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licensing.ReinstateLicense{Target: ours},
			change:  func(l *licensing.License) { l.SuspendedAt, l.StateReason = time.Time{}, "" },
		},
		{
			name:    "revoke",
			command: licensing.RevokeLicense{Target: ours},
			bound:   []string{"laptop"},
			change:  func(l *licensing.License) { l.RevokedAt = noon },
		},
		{
			name:    "revoke keeps the suspension",
			before:  func(l *licensing.License) { l.SuspendedAt = at(-day) },
			command: licensing.RevokeLicense{Target: ours},
			change:  func(l *licensing.License) { l.RevokedAt = noon },
		},
		{
			name:    "revoke for a reason that takes the place of the suspension's",
			before:  func(l *licensing.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licensing.RevokeLicense{Target: ours, Reason: "fraud"},
			change:  func(l *licensing.License) { l.RevokedAt, l.StateReason = noon, "fraud" },
		},
		{
			name:    "revoke without a reason after one for the suspension",
			before:  func(l *licensing.License) { l.SuspendedAt, l.StateReason = at(-day), "chargeback" },
			command: licensing.RevokeLicense{Target: ours},
			change:  func(l *licensing.License) { l.RevokedAt, l.StateReason = noon, "" },
		},
		{
			name:    "revoke again keeps the reason",
			before:  func(l *licensing.License) { l.RevokedAt, l.StateReason = at(-day), "fraud" },
			command: licensing.RevokeLicense{Target: ours, Reason: "another"},
		},
		{
			name:    "revoke again keeps the time",
			before:  func(l *licensing.License) { l.RevokedAt = at(-day) },
			command: licensing.RevokeLicense{Target: ours},
		},
		{
			name:    "first activation",
			command: licensing.Activate{Target: ours, Device: "phone"},
			change:  func(l *licensing.License) { l.CurrentDevices, l.ActivatedAt = 1, noon },
		},
		{
			name:    "second device keeps activated_at",
			command: licensing.Activate{Target: ours, Device: "phone"},
			bound:   []string{"laptop"},
			change:  func(l *licensing.License) { l.CurrentDevices = 2 },
		},
		{
			name:    "activation again after all were removed keeps activated_at",
			before:  func(l *licensing.License) { l.ActivatedAt = at(-day) },
			command: licensing.Activate{Target: ours, Device: "phone"},
			change:  func(l *licensing.License) { l.CurrentDevices = 1 },
		},
		{
			name:    "removing the last device keeps activated_at",
			command: licensing.RemoveDevice{Target: ours, Device: "laptop"},
			bound:   []string{"laptop"},
			change:  func(l *licensing.License) { l.CurrentDevices = 0 },
		},
		{
			name:    "first activation starts the validity",
			before:  func(l *licensing.License) { l.Validity = week },
			command: licensing.Activate{Target: ours, Device: "phone"},
			change: func(l *licensing.License) {
				l.CurrentDevices, l.ActivatedAt = 1, noon
				l.Validity, l.ExpiresAt = licensing.Period{}, at(7*day)
			},
		},
		{
			name:    "renew to a date",
			before:  func(l *licensing.License) { l.ExpiresAt = at(day) },
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(9 * day)},
			change:  func(l *licensing.License) { l.ExpiresAt = at(9 * day) },
		},
		{
			name:    "renew to an earlier date",
			before:  func(l *licensing.License) { l.ExpiresAt = at(9 * day) },
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(day)},
			change:  func(l *licensing.License) { l.ExpiresAt = at(day) },
		},
		{
			name:    "renew to the same date",
			before:  func(l *licensing.License) { l.ExpiresAt = at(day) },
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(day)},
		},
		{
			name:    "renew to the same date in another zone",
			before:  func(l *licensing.License) { l.ExpiresAt = at(day) },
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(day).In(time.FixedZone("", 3600))},
		},
		{
			name:    "renew to the next millisecond",
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(time.Millisecond)},
			change:  func(l *licensing.License) { l.ExpiresAt = at(time.Millisecond) },
		},
		{
			name:    "renew gives a perpetual license an end",
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(day)},
			change:  func(l *licensing.License) { l.ExpiresAt = at(day) },
		},
		{
			name:    "renew to a date ends the waiting for the first activation",
			before:  func(l *licensing.License) { l.Validity = week },
			command: licensing.RenewLicense{Target: ours, ExpiresAt: at(day)},
			change:  func(l *licensing.License) { l.ExpiresAt, l.Validity = at(day), licensing.Period{} },
		},
		{
			name:    "extend a running license, from its end",
			before:  func(l *licensing.License) { l.ExpiresAt = at(day) },
			command: licensing.RenewLicense{Target: ours, Extend: week},
			change:  func(l *licensing.License) { l.ExpiresAt = at(8 * day) },
		},
		{
			name:    "extend an expired license, from now",
			before:  func(l *licensing.License) { l.ExpiresAt = at(-day) },
			command: licensing.RenewLicense{Target: ours, Extend: week},
			change:  func(l *licensing.License) { l.ExpiresAt = at(7 * day) },
		},
		{
			name:    "extend a license that ends now",
			before:  func(l *licensing.License) { l.ExpiresAt = noon },
			command: licensing.RenewLicense{Target: ours, Extend: licensing.Period{Clock: time.Millisecond}},
			change:  func(l *licensing.License) { l.ExpiresAt = at(time.Millisecond) },
		},
		{
			name: "extend by a month from a month's end",
			before: func(l *licensing.License) {
				l.ExpiresAt = time.Date(2027, time.January, 31, 9, 0, 0, 0,
					time.UTC)
			},
			command: licensing.RenewLicense{Target: ours, Extend: licensing.Period{Months: 1}},
			change: func(l *licensing.License) {
				l.ExpiresAt = time.Date(2027, time.February, 28, 9, 0, 0, 0,
					time.UTC)
			},
		},
		{
			name:    "extend a suspended license that has ended",
			before:  func(l *licensing.License) { l.ExpiresAt, l.SuspendedAt = at(-day), at(-day) },
			command: licensing.RenewLicense{Target: ours, Extend: week},
			change:  func(l *licensing.License) { l.ExpiresAt = at(7 * day) },
		},
		{
			name:    "raise max_devices",
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(5)},
			bound:   []string{"laptop"},
			change:  func(l *licensing.License) { l.MaxDevices = 5 },
		},
		{
			name:    "max_devices as it is",
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(3)},
			bound:   []string{"laptop"},
		},
		{
			name:    "max_devices as it is, above the count",
			before:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 1, 3 },
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(1)},
			bound:   []string{"laptop", "phone"},
		},
		{
			name:    "lower max_devices to the count",
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(2)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licensing.License) { l.MaxDevices = 2 },
		},
		{
			name:    "lower max_devices below the count",
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(1)},
			bound:   []string{"laptop", "phone", "tablet"},
			change:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 1, 3 },
		},
		{
			name:    "raise max_devices, still below the count, allows only what is bound now",
			before:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 1, 4 },
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(2)},
			bound:   []string{"laptop", "phone", "tablet"},
			change:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 2, 3 },
		},
		{
			name:    "raise max_devices to the count",
			before:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 1, 2 },
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(2)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 2, 0 },
		},
		{
			name:    "make max_devices unlimited",
			before:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 1, 2 },
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(0)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 0, 0 },
		},
		{
			name:    "limit an unlimited license below the count",
			before:  func(l *licensing.License) { l.MaxDevices = 0 },
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(1)},
			bound:   []string{"laptop", "phone"},
			change:  func(l *licensing.License) { l.MaxDevices, l.AllowedOver = 1, 2 },
		},
		{
			name:    "max_devices of a revoked license",
			before:  func(l *licensing.License) { l.RevokedAt = at(-day) },
			command: licensing.UpdateLicense{Target: ours, MaxDevices: new(5)},
			change:  func(l *licensing.License) { l.MaxDevices = 5 },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(c.before, c.bound...)
			want := *r.License
			if c.change != nil {
				c.change(&want)
			}
			result := must(t, &r, c.command, noon)
			if _, renews := c.command.(licensing.RenewLicense); renews && result.License.Sequence > 0 {
				want.SetEnd = want.ExpiresAt
			}
			want.Sequence = r.License.Sequence // see TestLicenseEvents
			if diff := cmp.Diff(want, *r.License); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, result.License); diff != "" {
				t.Errorf("answered (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLicenseLife is the validity of the two kinds of subscription, end to end.
func TestLicenseLife(t *testing.T) {
	month := licensing.Period{Months: 1}
	status := func(t *testing.T, r licensing.Record, now time.Time, want licensing.Status) {
		t.Helper()
		if got := r.License.Status(now); got != want {
			t.Errorf("at %v the license is %s, want %s", now, got, want)
		}
	}
	t.Run("from issue", func(t *testing.T) {
		r := licensed(nil)
		r.License = licensing.Terms{MaxDevices: 1, Validity: month}.Issue(shopKey, shop, app, "", noon)
		end := time.Date(2026, time.April, 1, 12, 0, 0, 0, time.UTC)
		activated := must(t, &r, licensing.Activate{Target: ours, Device: "phone"}, noon.Add(10*day))
		if !activated.License.ExpiresAt.Equal(end) {
			t.Errorf("ends at %v, want %v", activated.License.ExpiresAt, end)
		}
		status(t, r, end.Add(-time.Millisecond), licensing.Activated)
		status(t, r, end, licensing.Expired)
		refuses(t, &r, licensing.Activate{Target: ours, Device: "phone"}, end, licensing.ReasonLicenseExpired)
		must(t, &r, licensing.RemoveDevice{Target: ours, Device: "phone"}, end)
		status(t, r, end, licensing.Expired)
		must(t, &r, licensing.RenewLicense{Target: ours, Extend: month}, end)
		status(t, r, end, licensing.NotActivated)
	})
	t.Run("from first activation", func(t *testing.T) {
		r := licensed(nil)
		r.License = licensing.Terms{MaxDevices: 1, Validity: month, FromActivation: true}.Issue(shopKey, shop, app, "",
			noon)
		first := time.Date(2027, time.January, 31, 12, 0, 0, 0, time.UTC) // long after a month
		end := time.Date(2027, time.February, 28, 12, 0, 0, 0, time.UTC)
		status(t, r, first, licensing.NotActivated)
		must(t, &r, licensing.Activate{Target: ours, Device: "phone"}, first)
		must(t, &r, licensing.RemoveDevice{Target: ours, Device: "phone"}, first.Add(day))
		again := must(t, &r, licensing.Activate{Target: ours, Device: "tablet"}, first.Add(2*day))
		if l := again.License; !l.ExpiresAt.Equal(end) || !l.ActivatedAt.Equal(first) || !l.Validity.IsZero() {
			t.Errorf("second activation: activated_at %v, expires_at %v, validity %+v", l.ActivatedAt, l.ExpiresAt,
				l.Validity)
		}
		status(t, r, end, licensing.Expired)
	})
	t.Run("a refused activation starts nothing", func(t *testing.T) {
		r := licensed(func(l *licensing.License) { l.Validity, l.SuspendedAt = month, noon })
		refuses(t, &r, licensing.Activate{Target: ours, Device: "phone"}, noon, licensing.ReasonLicenseSuspended)
		if r.License.Validity != month || !r.License.ExpiresAt.IsZero() {
			t.Errorf("the validity runs: %+v", r.License)
		}
	})
}
