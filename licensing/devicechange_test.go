package licensing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// matching returns the record of a license for 3 devices, two of which have components. One equal component makes a
// device another.
func matching() licensing.Record {
	r := licensed(func(l *licensing.License) {
		l.Match = licensing.DeviceMatch{AtLeast: 1, ChangesPerMonth: 2}
	}, "laptop", "phone")
	r.Leases, r.Listening = licensing.KnownLeases{All: true, Every: true}, true
	r.Devices["laptop"].Device.Components, r.Devices["phone"].Device.Components = composed("1", "a"), composed("2", "b")
	r.Devices["laptop"].Device.Name, r.Devices["laptop"].Device.Named = "Desk", true
	return r
}

func TestDevicesThatChange(t *testing.T) {
	march := 12*2026 + 2
	for name, c := range map[string]struct {
		edit    func(*licensing.Record)
		sends   licensing.Components
		changed string // empty: a new device
	}{
		"a new board":       {sends: composed("1", "c"), changed: "laptop"},
		"nothing but an id": {sends: composed("2", "b"), changed: "phone"},
		"two devices":       {sends: composed("1", "b")},
		"another device":    {sends: composed("3", "c")},
		"no components":     {},
		"too few": {sends: composed("1", "c"),
			edit: func(r *licensing.Record) { r.License.Match.AtLeast = 2 }},
		"off": {sends: composed("1", "a"),
			edit: func(r *licensing.Record) { r.License.Match = licensing.DeviceMatch{} }},
		"one more this month": {sends: composed("1", "a"), changed: "laptop", edit: func(r *licensing.Record) {
			r.License.Changes = licensing.Removals{Month: march, Count: 1}
		}},
		"no more this month": {sends: composed("1", "a"), edit: func(r *licensing.Record) {
			r.License.Changes = licensing.Removals{Month: march, Count: 2}
		}},
		"a new month": {sends: composed("1", "a"), changed: "laptop", edit: func(r *licensing.Record) {
			r.License.Changes = licensing.Removals{Month: march - 1, Count: 2}
		}},
		"full": {sends: composed("1", "a"), changed: "laptop",
			edit: func(r *licensing.Record) { r.License.MaxDevices = 2 }},
		"over its limit": {sends: composed("1", "a"), changed: "laptop",
			edit: func(r *licensing.Record) { r.License.MaxDevices, r.License.AllowedOver = 1, 2 }},
		"many devices": {sends: composed("1", "a"),
			edit: func(r *licensing.Record) { r.License.MaxDevices = 17 }},
		"unlimited devices": {sends: composed("1", "a"),
			edit: func(r *licensing.Record) { r.License.MaxDevices = 0 }},
		"devices with keys of their own": {sends: composed("1", "a"),
			edit: func(r *licensing.Record) { r.Leases = licensing.KnownLeases{All: true} }},
	} {
		t.Run(name, func(t *testing.T) {
			r := matching()
			if c.edit != nil {
				c.edit(&r)
			}
			before := r.Clone()
			activate := licensing.Activate{Target: ours, Device: "tv", Components: c.sends}
			if !licensing.StoresDevice(&r, activate, licensing.GrowthOf(activate, &r, noon), noon) {
				t.Error("no limit counts it")
			}
			result := must(t, &r, activate, noon)
			if result.Bound != (c.changed == "") || !r.Devices["tv"].Bound {
				t.Fatalf("the result is %+v, and bound are %v", result, boundTo(&r))
			}
			if c.changed == "" {
				if r.License.CurrentDevices != 3 || r.License.Changes != before.License.Changes {
					t.Errorf("bound are %v, changes are %v", boundTo(&r), r.License.Changes)
				}
				return
			}
			want := before.Devices[c.changed].Device
			want.ID, want.LastSeenAt, want.Components = "tv", noon, c.sends
			if diff := cmp.Diff(want, r.Devices["tv"].Device); diff != "" || r.Devices[c.changed].Bound ||
				result.Device != want || r.License.CurrentDevices != 2 {
				t.Errorf("bound are %v (-want +got):\n%s", boundTo(&r), diff)
			}
			if len(r.Events) != 1 || r.Events[0].Type != licensing.EventDeviceChanged {
				t.Fatalf("the events are %v", r.Events)
			}
			if want.Components = ""; *r.Events[0].Device != want {
				t.Errorf("the event has %+v", *r.Events[0].Device)
			}
			if text := r.Events[0].Members; text[0].JSON != `"`+c.changed+`"` ||
				strings.Contains(text[1].JSON, "disk") ||
				strings.Contains(text[1].JSON, "board") != (name == "a new board") {
				t.Errorf("the event has %v", text)
			}
			// The same again, and the device as it was.
			must(t, &r, activate, noon.Add(time.Second))
			if r.Changed {
				t.Error("the same activation changed the license again")
			}
		})
	}
}

// TestComponentsAreUpdated: a bound device that sends other components keeps its id and has the new ones, at most once
// in each SeenStep.
func TestComponentsAreUpdated(t *testing.T) {
	r := matching()
	activate := licensing.Activate{Target: ours, Device: "laptop", Components: composed("3", "c"),
		SeenStep: time.Minute}
	must(t, &r, activate, noon)
	if r.Changed {
		t.Error("the components are updated within a step")
	}
	must(t, &r, activate, noon.Add(time.Minute))
	if d := r.Devices["laptop"].Device; !r.Changed || d.Components != activate.Components {
		t.Errorf("the device is %+v", d)
	}
	activate.Components = ""
	must(t, &r, activate, noon.Add(2*time.Minute))
	if d := r.Devices["laptop"].Device; r.Changed || d.Components == "" {
		t.Errorf("without components, the device is %+v", d)
	}
}

// TestComponentsAreDropped with the device, by a redaction, and with the terms.
func TestComponentsAreDropped(t *testing.T) {
	for name, command := range map[string]licensing.Command{
		"removal":   licensing.RemoveDevice{Target: ours, Device: "laptop"},
		"redaction": licensing.RedactLicense{Target: ours},
		"rollout":   rolls(licensing.Terms{}, licensing.RolloutMatch),
	} {
		r := matching()
		r.Metadata = &licensing.Metadata{}
		must(t, &r, command, noon)
		var left []string
		for id, entry := range r.Devices {
			if entry.Device.Components != "" {
				left = append(left, id)
			}
		}
		if want := map[string]int{"removal": 1}[name]; len(left) != want {
			t.Errorf("%s: components have %v", name, left)
		}
	}
}

func TestComponents(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	c, ok := licensing.NewComponents(map[string]string{"disk": hash, "board": strings.ToUpper(hash)})
	if !ok || !c.Valid() || !slices.Equal(c.Names(), []string{"board", "disk"}) || len(c) != 1+5+8+1+4+8 {
		t.Errorf("the components are %q", c)
	}
	if none, ok := licensing.NewComponents(nil); !ok || none != "" || !none.Valid() {
		t.Errorf("no components are %q, %v", none, ok)
	}
	many := map[string]string{}
	for _, name := range strings.Fields("a b c d e f g h i") {
		many[name] = hash
	}
	for name, bad := range map[string]map[string]string{
		"too many": many, "a short hash": {"disk": hash[:62]}, "no hex": {"disk": "x" + hash[1:]},
		"no name":   {"": hash},
		"a capital": {"Disk": hash}, "a long name": {strings.Repeat("a", 33): hash},
	} {
		if _, ok := licensing.NewComponents(bad); ok {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, bad := range []licensing.Components{"\x04disk", "\x00abcdefgh", c + c, "\x05board", "x"} {
		if bad.Valid() {
			t.Errorf("%q is valid", bad)
		}
	}
}
