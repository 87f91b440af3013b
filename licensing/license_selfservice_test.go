package licensing_test

import (
	"testing"
	"time"

	"licet/licensing"
)

func TestValidate(t *testing.T) {
	revoked := func(l *licensing.License) { l.RevokedAt = noon }
	suspended := func(l *licensing.License) { l.SuspendedAt = noon }
	expired := func(l *licensing.License) { l.ExpiresAt = noon }
	all := func(l *licensing.License) { revoked(l); suspended(l); expired(l) }
	for _, c := range []struct {
		name   string
		facts  func(*licensing.License)
		app    string
		device string
		want   licensing.Reason
	}{
		{"valid", nil, "", "laptop", ""},
		{"valid for its product", nil, app, "laptop", ""},
		{"not bound", nil, "", "phone", licensing.NotBound},
		{"revoked", revoked, "", "laptop", licensing.ReasonLicenseRevoked},
		{"suspended", suspended, "", "laptop", licensing.ReasonLicenseSuspended},
		{"expired", expired, "", "laptop", licensing.ReasonLicenseExpired},
		{"another product", nil, "other", "laptop", licensing.ReasonProductMismatch},
		{"product before state", all, "other", "phone", licensing.ReasonProductMismatch},
		{"state before binding", expired, app, "phone", licensing.ReasonLicenseExpired},
		{"revoked before all other states", all, "", "laptop", licensing.ReasonLicenseRevoked},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := licensed(c.facts, "laptop")
			result := must(t, &r, licensing.ValidateLicense{Target: ours, ProductID: c.app, Device: c.device,
				SeenStep: time.Second}, noon)
			if result.Invalid != c.want || result.License.Key != shopKey || result.Device.ID != c.device {
				t.Errorf("answered %q, %+v", result.Invalid, result)
			}
			if r.Touched != (c.want == "") || r.Changed {
				t.Errorf("touched %v, changed %v", r.Touched, r.Changed)
			}
		})
	}
}

// TestValidateSeesTheDevice notes when a device asked, as activating it again does.
func TestValidateSeesTheDevice(t *testing.T) {
	f := func(after, step time.Duration, want time.Time) {
		t.Helper()
		r, twin := licensed(nil, "laptop"), licensed(nil, "laptop")
		now := noon.Add(after)
		must(t, &r, licensing.ValidateLicense{Target: ours, Device: "laptop", SeenStep: step}, now)
		must(t, &twin, licensing.Activate{Target: ours, Device: "laptop", SeenStep: step}, now)
		got := r.Devices["laptop"].Device
		if !got.LastSeenAt.Equal(want) || got != twin.Devices["laptop"].Device || r.Touched != twin.Touched {
			t.Errorf("after %v with step %v: seen at %v, want %v; activated: %v", after, step, got.LastSeenAt, want,
				twin.Devices["laptop"].Device.LastSeenAt)
		}
	}
	before := noon.Add(-10 * time.Second) // when it was last seen
	f(0, time.Minute, before)
	f(0, 10*time.Second, noon)
	f(50*time.Second, time.Minute, noon.Add(50*time.Second))
	f(-time.Hour, 0, before) // by a clock that is behind
}

func selfService(perMonth int) func(*licensing.License) {
	return func(l *licensing.License) {
		l.SelfService = licensing.SelfService{Allowed: true, RemovalsPerMonth: perMonth}
	}
}

func TestDeactivateNeedsThePermission(t *testing.T) {
	for _, device := range []string{"laptop", "phone"} {
		r := licensed(func(l *licensing.License) { l.SelfService.RemovalsPerMonth = 9 }, "laptop")
		e := refuses(t, &r, licensing.DeactivateDevice{Target: ours, Device: device}, noon,
			licensing.ReasonSelfServiceForbidden)
		if e.Details != nil {
			t.Errorf("details %v", e.Details)
		}
	}
}

func TestDeactivateWithoutCap(t *testing.T) {
	r := licensed(selfService(0), "laptop", "phone", "tablet")
	for i, device := range []string{"laptop", "phone", "tablet"} {
		result := must(t, &r, licensing.DeactivateDevice{Target: ours, Device: device}, noon)
		if !result.Removed || result.License.CurrentDevices != 2-i ||
			result.License.Removals != (licensing.Removals{}) {
			t.Errorf("%s: %+v", device, result)
		}
	}
}

// TestDeactivateCap: the cap counts devices that were removed in a calendar month of UTC. Removing a device that is not
// bound does not count, and succeeds even if the cap is reached.
func TestDeactivateCap(t *testing.T) {
	r := licensed(selfService(2), "laptop", "phone")
	deactivate := func(device string) licensing.Command {
		return licensing.DeactivateDevice{Target: ours,
			Device: device}
	}
	removed := func(device string, now time.Time, want bool) {
		t.Helper()
		if result := must(t, &r, deactivate(device), now); result.Removed != want {
			t.Errorf("%s at %v: removed %v", device, now, result.Removed)
		}
	}
	usedUp := func(device string, now time.Time) {
		t.Helper()
		e := refuses(t, &r, deactivate(device), now, licensing.ReasonSelfServiceForbidden)
		if e.Details["removals_per_month"] != 2 {
			t.Errorf("details %v", e.Details)
		}
	}
	bind := func(device string, now time.Time) { must(t, &r, licensing.Activate{Target: ours, Device: device}, now) }

	march := noon
	removed("tv", march, false)
	removed("laptop", march, true)
	removed("laptop", march, false)
	removed("phone", march, true)
	bind("phone", march)
	usedUp("phone", march)
	removed("laptop", march, false)

	// The shop itself may remove as many as it likes.
	must(t, &r, licensing.RemoveDevice{Target: ours, Device: "phone"}, march)
	bind("phone", march)
	usedUp("phone", march)

	// It is April in Tokyo, but still March in UTC, which counts.
	endOfMarch := time.Date(2026, time.March, 31, 23, 59, 59, 999e6, time.UTC)
	usedUp("phone", endOfMarch.In(time.FixedZone("JST", 9*3600)))
	april := endOfMarch.Add(time.Millisecond)
	removed("phone", april, true)
	bind("phone", april)
	// A clock that is behind neither returns to the count of March nor restarts the month.
	removed("phone", march, true)
	bind("phone", march)
	usedUp("phone", march)
	usedUp("phone", april)
	// December is followed by January.
	december := time.Date(2026, time.December, 31, 12, 0, 0, 0, time.UTC)
	removed("phone", december, true)
	bind("phone", december)
	removed("phone", december, true)
	bind("phone", december)
	usedUp("phone", december)
	removed("phone", december.Add(day), true)
}
