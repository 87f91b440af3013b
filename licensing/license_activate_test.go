package licensing_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

func TestActivateDeviceLimit(t *testing.T) {
	const full, ok = licensing.ReasonDeviceLimitReached, licensing.Reason("")
	for _, c := range []struct {
		name   string
		max    int
		over   int
		bound  []string
		device string
		want   licensing.Reason
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
			r := licensed(func(l *licensing.License) { l.MaxDevices, l.AllowedOver = c.max, c.over }, c.bound...)
			activate := licensing.Activate{Target: ours, Device: c.device, SeenStep: time.Minute}
			binds := c.want == ok && !slices.Contains(c.bound, c.device)
			if got := licensing.StoresDevice(&r, activate, licensing.GrowthOf(activate, &r, noon), noon); got != binds {
				t.Errorf("StoresDevice returned %v, want %v", got, binds)
			}
			result, err := run(t, &r, activate, noon)
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
			want := &licensing.Error{
				Reason: full, Message: "device limit reached",
				Details: map[string]int{"max_devices": c.max, "current_devices": c.count},
			}
			if diff := cmp.Diff(want, err); diff != "" {
				t.Errorf("the error (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLoweredLimit lowers the limit below the number of devices, removes devices below the limit, and binds devices
// again.
func TestLoweredLimit(t *testing.T) {
	r := licensed(nil, "laptop", "phone", "tablet")
	want := func(step string, current, allowed int) {
		t.Helper()
		if l := r.License; l.CurrentDevices != current || l.AllowedOver != allowed {
			t.Errorf("%s: %d devices, %d allowed; want %d, %d", step, l.CurrentDevices, l.AllowedOver, current, allowed)
		}
	}
	remove := func(device string) { must(t, &r, licensing.RemoveDevice{Target: ours, Device: device}, noon) }
	tv := licensing.Activate{Target: ours, Device: "tv"}

	must(t, &r, licensing.UpdateLicense{Target: ours, MaxDevices: new(2)}, noon)
	want("lowered", 3, 3)
	refuses(t, &r, tv, noon, licensing.ReasonDeviceLimitReached)
	remove("laptop")
	want("down to the limit", 2, 0)
	refuses(t, &r, tv, noon, licensing.ReasonDeviceLimitReached)
	remove("phone")
	want("below the limit", 1, 0)
	must(t, &r, tv, noon)
	want("full again", 2, 0)
	refuses(t, &r, licensing.Activate{Target: ours, Device: "phone"}, noon, licensing.ReasonDeviceLimitReached)

	must(t, &r, licensing.UpdateLicense{Target: ours, MaxDevices: new(0)}, noon)
	must(t, &r, licensing.Activate{Target: ours, Device: "phone"}, noon)
	must(t, &r, licensing.Activate{Target: ours, Device: "laptop"}, noon)
	want("unlimited", 4, 0)
	must(t, &r, licensing.UpdateLicense{Target: ours, MaxDevices: new(1)}, noon)
	want("limited again", 4, 4)
	remove("tv")
	want("one less, which does not come back", 3, 4)
	refuses(t, &r, tv, noon, licensing.ReasonDeviceLimitReached)
}

func TestActivateStoresTheDevice(t *testing.T) {
	r := licensed(nil)
	result := must(t, &r, licensing.Activate{Target: ours, Device: "phone", Name: "My Phone", Named: true}, noon)
	want := licensing.Device{ID: "phone", Name: "My Phone", Named: true, BoundAt: noon, LastSeenAt: noon}
	if diff := cmp.Diff(want, result.Device); diff != "" {
		t.Errorf("answered (-want +got):\n%s", diff)
	}
	bound := &licensing.DeviceEntry{Device: want, Bound: true, Changed: true}
	if diff := cmp.Diff(bound, r.Devices["phone"]); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}

	removed := must(t, &r, licensing.RemoveDevice{Target: ours, Device: "phone"}, noon.Add(time.Second))
	if diff := cmp.Diff(want, removed.Device); diff != "" || !removed.Removed {
		t.Errorf("removal answered %v (-want +got):\n%s", removed.Removed, diff)
	}
	unbound := &licensing.DeviceEntry{Device: licensing.Device{ID: "phone"}, Changed: true}
	if diff := cmp.Diff(unbound, r.Devices["phone"]); diff != "" {
		t.Errorf("stored after the removal (-want +got):\n%s", diff)
	}

	again := must(t, &r, licensing.RemoveDevice{Target: ours, Device: "phone"}, noon.Add(time.Minute))
	if diff := cmp.Diff(licensing.Device{ID: "phone"}, again.Device); diff != "" || again.Removed {
		t.Errorf("second removal answered %v (-want +got):\n%s", again.Removed, diff)
	}

	// A device that is bound again keeps nothing of its earlier binding.
	later := noon.Add(time.Hour)
	anew := must(t, &r, licensing.Activate{Target: ours, Device: "phone"}, later)
	if diff := cmp.Diff(licensing.Device{ID: "phone", BoundAt: later, LastSeenAt: later}, anew.Device); diff != "" {
		t.Errorf("bound anew (-want +got):\n%s", diff)
	}
	if !anew.License.ActivatedAt.Equal(noon) {
		t.Errorf("activated_at moved to %v, want %v", anew.License.ActivatedAt, noon)
	}
}

func TestActivateBoundDevice(t *testing.T) {
	const step = time.Minute
	seen := noon.Add(-10 * time.Second) // as licensed says
	named := func(name string) licensing.Activate { return licensing.Activate{Name: name, Named: true} }
	for _, c := range []struct {
		name     string
		stored   string // with "-" for none
		command  licensing.Activate
		now      time.Time
		wantName string
		wantSeen time.Time
	}{
		{"too soon", "Box", licensing.Activate{}, noon, "Box", seen},
		{"a millisecond too soon", "Box", licensing.Activate{}, seen.Add(step - time.Millisecond), "Box", seen},
		{"after the step", "Box", licensing.Activate{}, seen.Add(step), "Box", seen.Add(step)},
		{"long after", "Box", licensing.Activate{}, noon.Add(day), "Box", noon.Add(day)},
		{"at the same moment", "Box", licensing.Activate{}, seen, "Box", seen},
		{"with a clock behind", "Box", licensing.Activate{}, seen.Add(-day), "Box", seen},
		{"same name", "Box", named("Box"), noon, "Box", seen},
		{"new name too soon", "Box", named("Tin"), seen.Add(step - time.Millisecond), "Box", seen},
		{"new name", "Box", named("Tin"), seen.Add(step), "Tin", seen.Add(step)},
		{"new name with a clock behind", "Box", named("Tin"), seen.Add(-day), "Box", seen},
		{"empty name", "Box", named(""), noon.Add(step), "", noon.Add(step)},
		{"omitted name", "Box", licensing.Activate{Name: "ignored"}, seen.Add(step), "Box", seen.Add(step)},
		{"first name too soon", "-", named("Box"), noon, "-", seen},
		{"first name", "-", named("Box"), noon.Add(step), "Box", noon.Add(step)},
		{"first name, empty", "-", named(""), noon.Add(step), "", noon.Add(step)},
		{"never named", "-", licensing.Activate{}, seen.Add(step), "-", seen.Add(step)},
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
			renames := c.wantName != c.stored
			growth := licensing.GrowthOf(c.command, &r, c.now)
			if got := licensing.StoresDevice(&r, c.command, growth, c.now); got != renames {
				t.Errorf("StoresDevice returned %v, want %v", got, renames)
			}
			result := must(t, &r, c.command, c.now)
			if r.Changed != renames {
				t.Errorf("Changed is %v, want %v", r.Changed, renames)
			}
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

// TestSeenStepZero: without a step, a use one millisecond later changes last_seen, and a use at the same millisecond
// changes nothing.
func TestSeenStepZero(t *testing.T) {
	r := licensed(nil, "laptop")
	c := licensing.Activate{Target: ours, Device: "laptop"}
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
