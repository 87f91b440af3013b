package main

import (
	"fmt"
	"testing"
)

// TestRushOnSlots activates 400 devices at once on a license with three slots.
func TestRushOnSlots(t *testing.T) {
	p := shared(t)
	key := p.grant(t, 3)
	replies := make([]reply, 400)
	errs := make([]error, len(replies))
	atOnce(len(replies), func(i int) {
		replies[i], errs[i] = p.activate(t.Context(), key, fmt.Sprintf("device-%d", i))
	})
	bound := map[string]bool{}
	for i, r := range replies {
		switch {
		case errs[i] != nil:
			t.Fatal(errs[i])
		case r.status == 200:
			bound[r.Data.text("device_id")] = true
		case r.Code != 40901:
			t.Fatalf("device %d was answered %s", i, r.body)
		}
	}
	if len(bound) != 3 {
		t.Errorf("%d devices got a slot, want 3", len(bound))
	}
	license := p.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
	if license.number("current_devices") != 3 || len(license.list("devices")) != 3 {
		t.Fatalf("the license is %v", license)
	}
	for _, device := range license.list("devices") {
		if !bound[device.text("device_id")] {
			t.Errorf("%s is bound, and its response says otherwise", device.text("device_id"))
		}
	}
}

// TestManyDevices takes an unlimited license past the 16 devices that its
// record contains, and on to 2,000.
func TestManyDevices(t *testing.T) {
	t.Parallel()
	p := shared(t)
	key := p.grant(t, 0)
	device := func(i int) string { return fmt.Sprintf("device %d", i) }
	for i := range 18 {
		r, err := p.activate(t.Context(), key, device(i))
		if err != nil || r.status != 200 || r.Data.number("current_devices") != i+1 ||
			r.Data.number("max_devices") != 0 {
			t.Fatalf("device %d: %v %s", i+1, err, r.body)
		}
		wantDevices(t, p.api, key, i+1)
	}
	// Over the border and back again, at its very edge.
	for _, want := range []bool{true, false} {
		removal := p.want(t, 200, "DELETE", "/v1/licenses/"+key+"/devices/device%2016", "").Data
		if removal["removed"] != want || removal.number("current_devices") != 17 {
			t.Fatalf("removing device 17 answers %v, want removed %v", removal, want)
		}
	}
	wantDevices(t, p.api, key, 17)

	const all = 2000
	errs := make([]error, 20)
	atOnce(len(errs), func(worker int) {
		for i := worker; i < all && errs[worker] == nil; i += len(errs) {
			r, err := p.activate(t.Context(), key, device(i))
			if err == nil && r.status != 200 {
				err = fmt.Errorf("device %d: %s", i, r.body)
			}
			errs[worker] = err
		}
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantDevices(t, p.api, key, all)
	removal := p.want(t, 200, "DELETE", "/v1/licenses/"+key+"/devices/device%201999", "").Data
	if removal["removed"] != true || removal.number("current_devices") != all-1 {
		t.Errorf("removing device 2,000 answers %v", removal)
	}
	wantDevices(t, p.api, key, all-1)
}

// wantDevices looks a license up and pages through its devices: each of the
// want devices must come exactly once.
func wantDevices(t *testing.T, a api, key string, want int) {
	t.Helper()
	license := a.want(t, 200, "GET", "/v1/licenses/"+key, "").Data
	first := license.list("devices")
	if license.number("current_devices") != want || len(first) != min(want, 1000) ||
		(license["devices_next_cursor"] != nil) != (want > 1000) {
		t.Fatalf("of %d devices the license shows %d, and counts %d; next cursor %v",
			want, len(first), license.number("current_devices"), license["devices_next_cursor"])
	}
	seen := map[string]bool{}
	for _, device := range first {
		seen[device.text("device_id")] = true
	}
	if cursor := license.text("devices_next_cursor"); cursor != "" {
		pageThrough(t, a, key, 300, cursor, seen)
	}
	if len(seen) != want {
		t.Fatalf("the lookup leads to %d devices, want %d", len(seen), want)
	}
	seen = map[string]bool{}
	if pageThrough(t, a, key, max(7, want/5), "", seen); len(seen) != want {
		t.Fatalf("the listing has %d devices, want %d", len(seen), want)
	}
}

// pageThrough reads a device listing from a cursor to its end, and notes in
// seen what it shows, which must not be there yet.
func pageThrough(t *testing.T, a api, key string, limit int, cursor string, seen map[string]bool) {
	t.Helper()
	for {
		path := fmt.Sprintf("/v1/licenses/%s/devices?limit=%d", key, limit)
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		page := a.want(t, 200, "GET", path, "").Data
		for _, device := range page.list("devices") {
			id := device.text("device_id")
			if seen[id] {
				t.Fatalf("the listing shows %s twice", id)
			}
			seen[id] = true
		}
		if cursor = page.text("next_cursor"); cursor == "" {
			return
		}
	}
}
