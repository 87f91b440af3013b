package licensing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// fading returns the record of a full license that loses devices after 30 days. Its devices were last seen at the given
// times before noon.
func fading(unseen map[string]time.Duration) licensing.Record {
	r := licensed(func(l *licensing.License) {
		l.CreatedAt = noon.Add(-400 * day)
		l.InactiveAfter, l.MaxDevices = licensing.Period{Days: 30}, len(unseen)
	})
	r.Leases, r.ActsByTime, r.Listening = licensing.KnownLeases{All: true, Every: true}, true, true
	for id, ago := range unseen {
		r.Devices[id] = &licensing.DeviceEntry{Bound: true, Device: licensing.Device{ID: id,
			BoundAt: noon.Add(-200 * day), LastSeenAt: noon.Add(-ago)}}
		r.License.CurrentDevices++
		r.License.ActivatedAt = noon.Add(-200 * day)
	}
	return r
}

func boundTo(r *licensing.Record) (ids []string) {
	for id, entry := range r.Devices {
		if entry.Bound {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func TestInactiveDevices(t *testing.T) {
	const after = 30*day + licensing.SeenMargin
	old := map[string]time.Duration{"laptop": 31 * day, "phone": 40 * day, "tablet": time.Hour}
	for name, c := range map[string]struct {
		unseen  map[string]time.Duration
		edit    func(*licensing.Record)
		removed string // empty: the activation is refused
		seen    time.Duration
	}{
		"the device unseen for longest": {unseen: old, removed: "phone", seen: 31 * day},
		"just long enough":              {unseen: map[string]time.Duration{"phone": after}, removed: "phone"},
		"not long enough": {unseen: map[string]time.Duration{"phone": after - time.Millisecond},
			seen: after - time.Millisecond},
		"off": {unseen: old, seen: -1,
			edit: func(r *licensing.Record) { r.License.InactiveAfter = licensing.Period{} }},
		"more devices than a search reads": {unseen: old, seen: -1,
			edit: func(r *licensing.Record) { r.License.MaxDevices, r.License.CurrentDevices = 10_001, 10_001 }},
		"a slot that is not enough": {unseen: old, seen: -1,
			edit: func(r *licensing.Record) { r.License.MaxDevices, r.License.AllowedOver = 2, 3 }},
		"a node that must not act by its clock": {unseen: old, seen: -1,
			edit: func(r *licensing.Record) { r.ActsByTime = false }},
		"a lease clock that is later than the clock": {unseen: old, removed: "phone", seen: 31 * day,
			edit: func(r *licensing.Record) { r.ActsByTime, r.License.LeaseClock = false, noon }},
		"no device was seen before": {unseen: old, seen: -1,
			edit: func(r *licensing.Record) { r.License.SeenFrom = noon.Add(-time.Hour) }},
		"devices that the record does not know": {unseen: old, seen: -1,
			edit: func(r *licensing.Record) { r.Leases = licensing.KnownLeases{} }},
		"further devices that were seen later": {unseen: old, removed: "phone", seen: 35 * day,
			edit: func(r *licensing.Record) {
				r.Leases = licensing.KnownLeases{All: true, Next: noon.Add(-35 * day)}
			}},
		"nothing but devices that were seen later": {unseen: old, seen: 20 * day,
			edit: func(r *licensing.Record) {
				r.Leases = licensing.KnownLeases{All: true, Next: noon.Add(-20 * day)}
				for id := range old {
					delete(r.Devices, id)
				}
			}},
		"months": {unseen: map[string]time.Duration{"phone": 28*day + licensing.SeenMargin}, removed: "phone",
			edit: func(r *licensing.Record) { r.License.InactiveAfter = licensing.Period{Months: 1} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := fading(c.unseen)
			if c.edit != nil {
				c.edit(&r)
			}
			was := *r.License
			activate := licensing.Activate{Target: ours, Device: "tv"}
			growth := licensing.GrowthOf(activate, &r, noon)
			if c.removed == "" {
				refuses(t, &r, activate, noon, licensing.ReasonDeviceLimitReached)
				if growth != licensing.NoGrowth || r.License.CurrentDevices != was.CurrentDevices {
					t.Errorf("growth %v, %d devices", growth, r.License.CurrentDevices)
				}
			} else {
				gone := r.Devices[c.removed].Device
				if got := must(t, &r, activate, noon); !got.Bound || growth != licensing.BoundedGrowth {
					t.Errorf("the result is %+v, growth %v", got, growth)
				}
				if r.Devices[c.removed].Bound || r.License.CurrentDevices != was.CurrentDevices {
					t.Errorf("bound are %v", boundTo(&r))
				}
				removal := r.Events[0]
				if diff := cmp.Diff([]licensing.EventMember{{Name: "reason", JSON: `"inactive"`}},
					removal.Members); diff != "" || removal.Type != licensing.EventDeviceRemoved ||
					removal.Actor != licensing.System || *removal.Device != gone {
					t.Errorf("the event is %+v (-want +got):\n%s", removal, diff)
				}
				want := []licensing.EventType{licensing.EventDeviceRemoved, licensing.EventDeviceBound}
				if !slices.Equal(typesOf(r.Events), want) {
					t.Errorf("the events are %v", typesOf(r.Events))
				}
			}
			switch want := noon.Add(-c.seen); {
			case c.seen < 0:
				if r.License.SeenFrom != was.SeenFrom || r.License.LeaseClock != was.LeaseClock {
					t.Errorf("seen from %v, lease clock %v", r.License.SeenFrom, r.License.LeaseClock)
				}
			case !r.License.SeenFrom.Equal(want) || !r.License.LeaseClock.Equal(noon):
				t.Errorf("seen from %v, want %v; lease clock %v", r.License.SeenFrom, want, r.License.LeaseClock)
			}
		})
	}
}

// TestSearchForInactiveDevices: devices are searched for only if the license may be full, and one may be inactive.
func TestSearchForInactiveDevices(t *testing.T) {
	activate := licensing.Activate{Target: ours, Device: "tv"}
	for name, c := range map[string]struct {
		edit     func(*licensing.Record)
		command  licensing.Command
		commands int
		want     bool
	}{
		"full":            {want: true},
		"not full":        {edit: func(r *licensing.Record) { r.License.MaxDevices = 4 }},
		"full for others": {edit: func(r *licensing.Record) { r.License.MaxDevices = 4 }, commands: 2, want: true},
		"too young":       {edit: func(r *licensing.Record) { r.License.CreatedAt = noon.Add(-30 * day) }},
		"searched before": {edit: func(r *licensing.Record) { r.License.SeenFrom = noon.Add(-30 * day) }},
		"known":           {edit: func(r *licensing.Record) { r.Leases.All = true }},
		"suspended":       {edit: func(r *licensing.Record) { r.License.SuspendedAt = noon }},
		"wrong clock":     {edit: func(r *licensing.Record) { r.ActsByTime = false }},
		"over its limit":  {edit: func(r *licensing.Record) { r.License.MaxDevices = 2 }},
		"a bound device":  {command: licensing.Activate{Target: ours, Device: "phone"}},
		"a removal":       {command: licensing.RemoveDevice{Target: ours, Device: "phone"}},
	} {
		r := fading(map[string]time.Duration{"laptop": 0, "phone": 0, "tablet": 0})
		r.Leases = licensing.KnownLeases{}
		if c.edit != nil {
			c.edit(&r)
		}
		command := c.command
		if command == nil {
			command = activate
		}
		if got := r.SearchesDevices(command, max(c.commands, 1), noon); got != c.want {
			t.Errorf("%s: searches %v", name, got)
		}
		if by := r.LapsedBy(noon); c.want && !by.Equal(noon.Add(-30*day-licensing.SeenMargin)) {
			t.Errorf("%s: by %v", name, by)
		}
	}
}

// TestSeenIsKept: an activation or validation of a device that was not seen for about an hour is worth a transaction
// of its own, so that no device is removed that was seen within the terms. That holds also while the store stores no
// other times.
func TestSeenIsKept(t *testing.T) {
	for _, command := range []licensing.Command{
		licensing.Activate{Target: ours, Device: "phone", SeenStep: time.Minute},
		licensing.ValidateLicense{Target: ours, Device: "phone", SeenStep: time.Minute},
		licensing.WithoutRefresh(licensing.Activate{Target: ours, Device: "phone"}),
	} {
		for _, c := range []struct {
			ago  time.Duration
			off  bool
			kept bool
		}{{time.Hour, false, true}, {59 * time.Minute, false, true}, {58 * time.Minute, false, false},
			{24 * time.Hour, true, false}, {-time.Hour, false, false}} {
			r := fading(map[string]time.Duration{"phone": c.ago})
			if c.off {
				r.License.InactiveAfter = licensing.Period{}
			}
			must(t, &r, command, noon)
			if r.Changed != c.kept || c.kept && !r.Devices["phone"].Device.LastSeenAt.Equal(noon) {
				t.Errorf("%T after %v: changed %v, seen at %v", command, c.ago, r.Changed,
					r.Devices["phone"].Device.LastSeenAt)
			}
		}
	}
}

// TestSeenInDoubt: a node that must not act by its clock stores when a device was seen by the latest of the nodes'
// clocks. If it knows no other clock, it binds no device, and bound devices go on.
func TestSeenInDoubt(t *testing.T) {
	for _, c := range []struct {
		name           string
		behind, unseen time.Duration
		acts           bool
		bound, seen    time.Duration // after noon: when a new device and a bound device were seen
		refused        bool
	}{
		{"a clock that is behind", 40 * day, 31 * day, false, 40 * day, 40 * day, false},
		{"the latest clock", 0, 31 * day, false, 0, 0, false},
		{"by time", 40 * day, 31 * day, true, 0, 0, false},
		{"no other clock", -1, 31 * day, false, 0, 0, true},
		{"no other clock, and an earlier time than before", -1, -day, false, 0, day, true},
	} {
		r := fading(map[string]time.Duration{"laptop": 50 * day, "phone": c.unseen})
		r.License.MaxDevices = 3
		r.ActsByTime, r.Behind = c.acts, c.behind
		must(t, &r, licensing.Activate{Target: ours, Device: "phone"}, noon)
		if got := r.Devices["phone"].Device.LastSeenAt; !got.Equal(noon.Add(c.seen)) {
			t.Errorf("%s: the phone was seen at %v", c.name, got)
		}
		tv := licensing.Activate{Target: ours, Device: "tv"}
		if c.refused {
			refuses(t, &r, tv, noon, licensing.ReasonUnavailable)
			continue
		}
		must(t, &r, tv, noon)
		if d := r.Devices["tv"].Device; !d.LastSeenAt.Equal(noon.Add(c.bound)) || !d.BoundAt.Equal(noon) {
			t.Errorf("%s: the new device is %+v", c.name, d)
		}
	}
}

// TestChangesInDoubt: a device that comes back with another id keeps its slot on a node that knows no other clock.
func TestChangesInDoubt(t *testing.T) {
	r := matching()
	r.License.InactiveAfter, r.ActsByTime, r.Behind = licensing.Period{Days: 30}, false, -1
	activate := licensing.Activate{Target: ours, Device: "tv", Components: r.Devices["laptop"].Device.Components}
	if got := must(t, &r, activate, noon); got.Bound || !r.Devices["tv"].Bound || r.Devices["laptop"].Bound {
		t.Errorf("the result is %+v, bound are %v", got, boundTo(&r))
	}
}

func TestPeriodBefore(t *testing.T) {
	for period, want := range map[licensing.Period]time.Time{
		{Days: 30}:                        noon.Add(-30 * day),
		{Months: 1}:                       time.Date(2026, time.February, 1, 12, 0, 0, 0, time.UTC),
		{Years: 1, Clock: 12 * time.Hour}: time.Date(2025, time.March, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got := period.Before(noon); !got.Equal(want) {
			t.Errorf("%v before noon is %v", period, got)
		}
	}
	end := time.Date(2026, time.March, 31, 0, 0, 0, 0, time.UTC)
	if got := (licensing.Period{Months: 1}).Before(end); !got.Equal(end.AddDate(0, 0, -31)) {
		t.Errorf("a month before the end of March is %v", got)
	}
}
