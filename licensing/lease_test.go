package licensing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/internal/depth"
	"licet/licensing"
)

// floating returns the record of a license for 3 devices with leases of ten minutes. All its devices are known.
// The named devices have leases that end at the given times after noon.
func floating(ends map[string]time.Duration) licensing.Record {
	r := licensed(func(l *licensing.License) {
		l.Lease = licensing.LeaseTerms{Length: 10 * time.Minute, Longest: day}
	})
	r.Leases, r.ActsByTime, r.Listening = licensing.KnownLeases{All: true}, true, true
	l := r.License
	for id, after := range ends {
		end := noon.Add(after)
		r.Devices[id] = &licensing.DeviceEntry{Bound: true, Device: licensing.Device{ID: id,
			BoundAt: noon.Add(-time.Hour), LastSeenAt: noon.Add(-time.Hour), LeaseEnd: end}}
		l.CurrentDevices++
		l.ActivatedAt = noon.Add(-time.Hour)
		if l.LeasesUntil.IsZero() || end.Before(l.LeasesUntil) {
			l.LeasesUntil = end
		}
	}
	return r
}

// leases describes the leases of a record, by seconds after noon.
func leases(r *licensing.Record) string {
	var list []string
	for id, entry := range r.Devices {
		if entry.Bound {
			list = append(list, fmt.Sprintf("%s %d", id, int(entry.Device.LeaseEnd.Sub(noon).Seconds())))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func leaseOf(device string) licensing.Activate {
	return licensing.Activate{Target: ours, Device: device}
}

func TestLeases(t *testing.T) {
	sec := time.Second
	full := map[string]time.Duration{"laptop": 600 * sec, "phone": 300 * sec, "tablet": 60 * sec}
	lapsed := func(after time.Duration) map[string]time.Duration {
		return map[string]time.Duration{"laptop": 600 * sec, "phone": 300 * sec, "tablet": after}
	}
	lowered := func(r *licensing.Record) { r.License.MaxDevices, r.License.AllowedOver = 2, 3 }
	untrusted := func(r *licensing.Record) { r.ActsByTime = false }
	leaseClockAt := func(after time.Duration) func(*licensing.Record) {
		return func(r *licensing.Record) { r.License.LeaseClock = noon.Add(after) }
	}
	unknown := func(r *licensing.Record) { r.Leases = licensing.KnownLeases{} }
	for name, c := range map[string]struct {
		ends    map[string]time.Duration
		edit    func(*licensing.Record)
		command licensing.Command
		reason  licensing.Reason // or what a validation says
		want    string           // the leases afterward
		clock   time.Duration    // after noon; 0: none
		left    time.Duration
		current int // as answered
		events  string
	}{
		"the first": {command: leaseOf("laptop"), want: "laptop 600", left: 600 * sec, current: 1,
			events: "license.activated device.bound"},
		"another length": {command: licensing.Activate{Target: ours, Device: "laptop", Lease: time.Hour},
			want: "laptop 3600", left: time.Hour, current: 1, events: "license.activated device.bound"},
		"more than the longest": {command: licensing.Activate{Target: ours, Device: "laptop", Lease: day + sec},
			want: "laptop 86400", left: day, current: 1, events: "license.activated device.bound"},
		"renewed for more than the longest": {ends: full,
			command: licensing.ValidateLicense{Target: ours, Device: "tablet", Lease: 30 * day},
			want:    "laptop 600, phone 300, tablet 86400", left: day, current: 3},
		"one more": {ends: map[string]time.Duration{"laptop": 600 * sec}, command: leaseOf("phone"),
			want: "laptop 600, phone 600", left: 600 * sec, current: 2, events: "device.bound"},
		"full": {ends: full, command: leaseOf("tv"), reason: "device_limit_reached",
			want: "laptop 600, phone 300, tablet 60", events: "license.limit_reached"},
		"renewed": {ends: full, command: leaseOf("phone"), want: "laptop 600, phone 600, tablet 60", left: 600 * sec,
			current: 3},
		"renewed too early": {ends: map[string]time.Duration{"laptop": 526 * sec}, command: leaseOf("laptop"),
			want: "laptop 526", left: 526 * sec, current: 1},
		"renewed after an eighth": {ends: map[string]time.Duration{"laptop": 525 * sec}, command: leaseOf("laptop"),
			want: "laptop 600", left: 600 * sec, current: 1},
		"a short lease, renewed before its half": {ends: map[string]time.Duration{"laptop": 16 * sec},
			command: licensing.Activate{Target: ours, Device: "laptop", Lease: 30 * sec}, want: "laptop 16",
			left: 16 * sec, current: 1},
		"a short lease, renewed after its half": {ends: map[string]time.Duration{"laptop": 15 * sec},
			command: licensing.Activate{Target: ours, Device: "laptop", Lease: 30 * sec}, want: "laptop 30",
			left: 30 * sec, current: 1},
		"half the length, renewed before an eighth of the whole": {
			ends:    map[string]time.Duration{"laptop": 226 * sec},
			command: licensing.ValidateLicense{Target: ours, Device: "laptop", Lease: 300 * sec}, want: "laptop 226",
			left: 226 * sec, current: 1},
		"half the length, renewed after an eighth of the whole": {
			ends:    map[string]time.Duration{"laptop": 225 * sec},
			command: licensing.ValidateLicense{Target: ours, Device: "laptop", Lease: 300 * sec}, want: "laptop 300",
			left: 300 * sec, current: 1},
		"borrowed": {ends: full, command: licensing.ValidateLicense{Target: ours, Device: "laptop", Lease: time.Hour},
			want: "laptop 3600, phone 300, tablet 60", left: time.Hour, current: 3},
		"never back": {ends: map[string]time.Duration{"laptop": 3600 * sec}, command: leaseOf("laptop"),
			want: "laptop 3600", left: time.Hour, current: 1},
		"renewed by a validation": {ends: full, command: licensing.ValidateLicense{Target: ours, Device: "tablet"},
			want: "laptop 600, phone 300, tablet 600", left: 600 * sec, current: 3},
		"a validation never binds": {ends: map[string]time.Duration{"laptop": 600 * sec},
			command: licensing.ValidateLicense{Target: ours, Device: "tv"}, reason: "device_not_bound",
			want: "laptop 600", current: 1},
		"a validation after the lapse": {ends: lapsed(0),
			command: licensing.ValidateLicense{Target: ours, Device: "tablet"}, reason: "device_not_bound",
			want: "laptop 600, phone 300, tablet 0", current: 2},
		"within the guard": {ends: lapsed(-4999 * time.Millisecond), command: leaseOf("tv"),
			reason: "device_limit_reached", want: "laptop 600, phone 300, tablet -4", events: "license.limit_reached"},
		"a lapsed slot": {ends: lapsed(-5 * sec), command: leaseOf("tv"), want: "laptop 600, phone 300, tv 600",
			left: 600 * sec, current: 3, events: "device.lease_lapsed device.bound"},
		"a lapsed slot, leases unknown": {ends: lapsed(-5 * sec), edit: unknown, command: leaseOf("tv"),
			reason: "device_limit_reached", want: "laptop 600, phone 300, tablet -5", events: "license.limit_reached"},
		"the first, but the clock may be wrong": {edit: untrusted, command: leaseOf("laptop"), reason: "unavailable"},
		"a lapsed slot, but the clock may be wrong": {ends: lapsed(-5 * sec), edit: untrusted, command: leaseOf("tv"),
			reason: "unavailable", want: "laptop 600, phone 300, tablet -5"},
		"a renewal, but the clock may be wrong": {ends: full, edit: untrusted, command: leaseOf("tablet"),
			reason: "unavailable", want: "laptop 600, phone 300, tablet 60"},
		"an early renewal, but the clock may be wrong": {ends: full, edit: untrusted, command: leaseOf("laptop"),
			reason: "unavailable", want: "laptop 600, phone 300, tablet 60"},
		"a validation, but the clock may be wrong": {ends: lapsed(-day), edit: untrusted,
			command: licensing.ValidateLicense{Target: ours, Device: "tablet"}, reason: "unavailable",
			want: "laptop 600, phone 300, tablet -86400"},
		"a validation of an unknown device, and the clock may be wrong": {ends: full, edit: untrusted,
			command: licensing.ValidateLicense{Target: ours, Device: "tv"}, reason: "device_not_bound",
			want: "laptop 600, phone 300, tablet 60", current: 3},
		"suspended, and the clock may be wrong": {ends: full, edit: func(r *licensing.Record) {
			untrusted(r)
			r.License.SuspendedAt = noon
		}, command: leaseOf("tablet"), reason: "license_suspended", want: "laptop 600, phone 300, tablet 60"},
		"given back, and the clock may be wrong": {ends: lapsed(-day), edit: untrusted,
			command: licensing.DeactivateDevice{Target: ours, Device: "tablet"}, want: "laptop 600, phone 300",
			current: 2, events: "device.removed"},
		"swept by a wrong clock": {ends: lapsed(-day), edit: untrusted, command: licensing.LapseLeases{},
			want: "laptop 600, phone 300, tablet -86400", current: 3},
		"the lease clock is ahead": {ends: full, edit: leaseClockAt(55 * sec), command: leaseOf("tablet"),
			want: "laptop 600, phone 300, tablet 655", clock: 55 * sec, left: 600 * sec, current: 3},
		"lapsed by the lease clock": {ends: full, edit: leaseClockAt(60 * sec),
			command: licensing.ValidateLicense{Target: ours, Device: "tablet"}, reason: "device_not_bound",
			want: "laptop 600, phone 300, tablet 60", clock: 60 * sec, current: 2},
		"full, and more have lapsed": {ends: map[string]time.Duration{"laptop": 600 * sec, "tablet": -60 * sec},
			edit: func(r *licensing.Record) {
				r.License.CurrentDevices, r.License.MaxDevices, r.License.AllowedOver = 5, 4, 5
				r.Leases.Next = noon.Add(-5 * sec)
			}, command: leaseOf("tv"), reason: "unavailable", want: "laptop 600",
			events: "device.lease_lapsed"},
		"full, and no more have lapsed": {ends: map[string]time.Duration{"laptop": 600 * sec, "tablet": -60 * sec},
			edit: func(r *licensing.Record) {
				r.License.CurrentDevices, r.License.MaxDevices, r.License.AllowedOver = 5, 4, 5
				r.Leases.Next = noon.Add(-4 * sec)
			}, command: leaseOf("tv"), reason: "device_limit_reached", want: "laptop 600",
			events: "device.lease_lapsed license.limit_reached"},
		"again after the lapse": {ends: lapsed(-sec), command: leaseOf("tablet"),
			want: "laptop 600, phone 300, tablet 600", left: 600 * sec, current: 3,
			events: "device.lease_lapsed device.bound"},
		"again after the guard": {ends: lapsed(-time.Hour), command: leaseOf("tablet"),
			want: "laptop 600, phone 300, tablet 600", left: 600 * sec, current: 3,
			events: "device.lease_lapsed device.bound"},
		"again, but over the limit": {ends: lapsed(-sec), edit: lowered, command: leaseOf("tablet"),
			reason: "device_limit_reached", want: "laptop 600, phone 300, tablet -1", events: "license.limit_reached"},
		"renewed over the limit": {ends: full, edit: lowered, command: leaseOf("tablet"),
			want: "laptop 600, phone 300, tablet 600", left: 600 * sec, current: 3},
		"given back": {ends: full, command: licensing.DeactivateDevice{Target: ours, Device: "phone"},
			want: "laptop 600, tablet 60", current: 2, events: "device.removed"},
		"given back after the lapse": {ends: lapsed(-sec),
			command: licensing.DeactivateDevice{Target: ours, Device: "tablet"}, want: "laptop 600, phone 300",
			current: 2, events: "device.lease_lapsed"},
		"removed by the shop": {ends: full, command: licensing.RemoveDevice{Target: ours, Device: "phone"},
			want: "laptop 600, tablet 60", current: 2, events: "device.removed"},
		"more devices than allowed": {ends: full, command: licensing.UpdateLicense{Target: ours,
			MaxDevices: new(licensing.MaxLeasedDevices + 1)}, reason: "invalid_field",
			want: "laptop 600, phone 300, tablet 60"},
		"swept": {ends: map[string]time.Duration{"laptop": -6 * sec, "phone": -5 * sec, "tablet": -4 * sec},
			command: licensing.LapseLeases{}, want: "tablet -4", current: 1,
			events: "device.lease_lapsed device.lease_lapsed"},
		"swept early": {ends: full, command: licensing.LapseLeases{}, want: "laptop 600, phone 300, tablet 60",
			current: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r := floating(c.ends)
			if c.edit != nil {
				c.edit(&r)
			}
			result, err := run(t, &r, c.command, noon)
			if got := reason(err) + result.Invalid; got != c.reason {
				t.Errorf("answered %q (%v)", got, err)
			}
			if got := leases(&r); got != c.want {
				t.Errorf("the leases are %s, want %s", got, c.want)
			}
			if result.LeaseLeft != c.left || result.License.CurrentDevices != c.current {
				t.Errorf("answered %v, %d devices", result.LeaseLeft, result.License.CurrentDevices)
			}
			if c.clock > 0 && !r.License.LeaseClock.Equal(noon.Add(c.clock)) {
				t.Errorf("the lease clock is %v", r.License.LeaseClock)
			}
			var events []string
			for _, e := range r.Events {
				events = append(events, string(e.Type))
			}
			if got := strings.Join(events, " "); got != c.events {
				t.Errorf("the events are %q", got)
			}
		})
	}
}

// TestGivingBackCostsNothing: neither the product nor a monthly cap keeps an end user from giving a lease back.
func TestGivingBackCostsNothing(t *testing.T) {
	for _, terms := range []licensing.SelfService{{}, {Allowed: true, RemovalsPerMonth: 1}} {
		r := floating(nil)
		r.License.SelfService = terms
		for range 3 {
			must(t, &r, leaseOf("laptop"), noon)
			if !must(t, &r, licensing.DeactivateDevice{Target: ours, Device: "laptop"}, noon).Removed {
				t.Error("it was not given back")
			}
		}
		if r.License.Removals.Count != 0 || r.License.Status(noon) != licensing.NotActivated {
			t.Errorf("it has removals %+v and is %s", r.License.Removals, r.License.Status(noon))
		}
	}
}

// TestLeasesAreKept runs commands on one license at nodes whose clocks differ and may not be trusted, each with what a
// store knows of the leases, and demands of every change what the history of a store can show without a clock.
func TestLeasesAreKept(t *testing.T) {
	depth.NotRaced(t)
	ids := []string{"laptop", "phone", "tablet", "tv"}
	rapid.Check(t, func(t *rapid.T) {
		now := noon
		r := floating(nil)
		r.License.MaxDevices = rapid.IntRange(1, 3).Draw(t, "max")
		for range rapid.IntRange(1, 60).Draw(t, "commands") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 4 * time.Second,
				5 * time.Second, 30 * time.Second, 75 * time.Second, 10 * time.Minute, -time.Second,
				-10 * time.Minute}).Draw(t, "clock"))
			r.ActsByTime = rapid.IntRange(0, 3).Draw(t, "trusted") > 0
			id := rapid.SampledFrom(ids).Draw(t, "device")
			length := rapid.SampledFrom([]time.Duration{0, 0, licensing.MinLease, time.Hour}).Draw(t, "length")
			c := rapid.SampledFrom([]licensing.Command{
				licensing.Activate{Target: ours, Device: id, Lease: length},
				licensing.Activate{Target: ours, Device: id, Lease: length},
				licensing.ValidateLicense{Target: ours, Device: id, Lease: length},
				licensing.LapseLeases{}, licensing.RemoveDevice{Target: ours, Device: id},
				licensing.DeactivateDevice{Target: ours, Device: id},
				licensing.UpdateLicense{Target: ours, MaxDevices: new(rapid.IntRange(1, 4).Draw(t, "new max"))},
			}).Draw(t, "command")
			// Whatever the record knows: a store with all devices in the record, and one without.
			r.Leases.All = false
			r.Leases.All = rapid.Bool().Draw(t, "known") || r.SearchesDevices(c, 1, now)
			before := r.Clone()
			growth := licensing.GrowthOf(c, &r, now)
			grows, stores := growth != licensing.NoGrowth, licensing.StoresDevice(&r, c, growth, now)
			result, err := run(t, &r, c, now)
			_, activates := c.(licensing.Activate)
			if activates && r.ActsByTime && (result.Bound != grows || result.Bound != stores) {
				t.Fatalf("%s is bound: %v, but the growth is %v, and it stores a device: %v", id, result.Bound, growth,
					stores)
			}
			l, was := r.License, before.License
			if l.LeaseClock.Before(was.LeaseClock) {
				t.Fatalf("the lease clock went from %v to %v", was.LeaseClock, l.LeaseClock)
			}
			count, until := 0, time.Time{}
			for _, id := range ids {
				is, old := r.Devices[id], before.Devices[id]
				same := is.Bound && old.Bound && is.Device.BoundAt.Equal(old.Device.BoundAt)
				asked := id == c.DeviceID()
				if old.Bound && !same && !asked && l.LeaseClock.Before(old.Device.LeaseEnd.Add(5*time.Second)) {
					t.Fatalf("%T at %v took the lease of %s until %v at the lease clock %v", c, now, id,
						old.Device.LeaseEnd, l.LeaseClock)
				}
				if same && is.Device.LeaseEnd.Before(old.Device.LeaseEnd) {
					t.Fatalf("%T moved the end of %s back", c, id)
				}
				if is.Bound {
					count++
					if until.IsZero() || is.Device.LeaseEnd.Before(until) {
						until = is.Device.LeaseEnd
					}
				}
			}
			if l.CurrentDevices != count || count > max(l.MaxDevices, l.AllowedOver) {
				t.Fatalf("%d devices, %d counted of %d, %d allowed", count, l.CurrentDevices, l.MaxDevices,
					l.AllowedOver)
			}
			if l.LeasesUntil.After(until) || l.LeasesUntil.IsZero() != (count == 0) {
				t.Fatalf("no lease ends before %v, yet one does at %v", l.LeasesUntil, until)
			}
			if reason(err) == licensing.ReasonDeviceLimitReached && r.ActsByTime {
				for _, entry := range r.Devices {
					if entry.Bound && !now.Before(entry.Device.LeaseEnd.Add(licensing.LeaseGuard)) {
						t.Fatalf("a full license refused %s at %v, and the lease of %s lapsed at %v", c.DeviceID(), now,
							entry.Device.ID, entry.Device.LeaseEnd)
					}
				}
			}
			if !r.ActsByTime && (r.Changed || result.LeaseLeft != 0) {
				d, old := r.Devices[id], before.Devices[id]
				if d.Bound && !d.Device.LeaseEnd.Equal(old.Device.LeaseEnd) || result.LeaseLeft != 0 {
					t.Fatalf("a clock in doubt gave %s a lease until %v, %v", id, d.Device.LeaseEnd, result.LeaseLeft)
				}
			}
			if _, ok := c.(licensing.Activate); ok && err == nil {
				d := r.Devices[id].Device
				if diff := cmp.Diff(d, result.Device); diff != "" || result.LeaseLeft <= 0 ||
					now.Add(result.LeaseLeft).After(d.LeaseEnd) {
					t.Fatalf("answered %v until %v (-stored +answered):\n%s", result.LeaseLeft, d.LeaseEnd, diff)
				}
			}
		}
	})
}
