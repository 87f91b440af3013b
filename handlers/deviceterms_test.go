package handlers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDeviceTerms: the terms that take slots from devices, and give devices new ids, name licenses of a limited size.
func TestDeviceTerms(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for members, want := range map[string]string{
		`"inactive_after":"P30D"`:                                                 `"inactive_after":"P30D","entitlements"`,
		`"inactive_after":"P1D","max_devices":10000`:                              `"inactive_after":"P1D"`,
		`"inactive_after":"PT23H"`:                                                `must be at least P1D`,
		`"inactive_after":"30"`:                                                   `"field":"inactive_after"`,
		`"inactive_after":"P30D","max_devices":0`:                                 `"field":"inactive_after"`,
		`"inactive_after":"P30D","max_devices":10001`:                             `"field":"inactive_after"`,
		`"device_match":{"at_least":3}`:                                           `{"at_least":3,"changes_per_month":4}`,
		`"device_match":{"at_least":1,"changes_per_month":1000}`:                  `{"at_least":1,"changes_per_month":1000}`,
		`"device_match":{"at_least":8},"max_devices":16`:                          `{"at_least":8,"changes_per_month":4}`,
		`"device_match":{"at_least":3},"max_devices":17`:                          `"field":"device_match"`,
		`"device_match":{"at_least":3},"max_devices":0`:                           `"field":"device_match"`,
		`"device_match":{}`:                                                       `"field":"device_match"`,
		`"device_match":{"at_least":9}`:                                           `"field":"device_match"`,
		`"device_match":{"at_least":"3"}`:                                         `"field":"device_match"`,
		`"device_match":{"at_least":3,"changes_per_month":0}`:                     `"field":"device_match"`,
		`"device_match":{"at_least":3,"more":1}`:                                  `"field":"device_match"`,
		`"device_match":3`:                                                        `"field":"device_match"`,
		`"device_mode":"leased","lease_seconds":60,"device_match":{"at_least":3}`: `"field":"device_match"`,
		`"device_mode":"leased","lease_seconds":60,"inactive_after":"P30D"`:       `"field":"inactive_after"`,
	} {
		if got := s.product("desk", members); !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", members, got.body)
		}
	}
}

// TestDevicesThatChange: a device with a new id and enough equal components keeps its slot. Answers name components,
// and never have their hashes.
func TestDevicesThatChange(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.product("desk", `"max_devices":2,"device_match":{"at_least":2},"inactive_after":"P30D"`).must(t, 0)
	key := s.send("POST", "/v1/licenses", keyAll, `{"product_id":"desk","quantity":1}`).must(t, 0).grantedKey()
	activate := func(device, components string) answer {
		return s.send("POST", "/v1/licenses/activate", "",
			fmt.Sprintf(`{"license_key":%q,"device_id":%q,"device_components":%s}`, key, device, components))
	}
	hash := func(of string) string { return strings.Repeat(of, 32) }
	parts := func(disk, board, net string) string {
		return fmt.Sprintf(`{"disk":%q,"board":%q,"net":%q}`, hash(disk), hash(board), hash(net))
	}
	for _, bad := range []string{`{"Disk":"` + hash("ab") + `"}`, `{"disk":"abc"}`, `{"disk":1}`, `{"":"` + hash("ab") + `"}`,
		`{"a":"x","b":"x","c":"x","d":"x","e":"x","f":"x","g":"x","h":"x","i":"x"}`} {
		if got := activate("a", bad).must(t, 42200); !strings.Contains(got.body, `"field":"device_components"`) {
			t.Error(got.body)
		}
	}
	activate("a", `["disk"]`).must(t, 40000)
	activate("a", parts("1a", "1b", "1c")).must(t, 0)
	activate("b", parts("2a", "2b", "2c")).must(t, 0)
	bound := s.clock.Now()
	s.clock.advance(time.Hour)
	if got := activate("c", parts("1a", "1b", "3c")).must(t, 0); got.data["current_devices"] != 2.0 ||
		got.text("device_id") != "c" || strings.Contains(got.body, "disk") {
		t.Error(got.body)
	}
	activate("d", parts("2a", "1b", "2e")).must(t, 40901)
	got := s.get(key).must(t, 0)
	if at := bound.UTC().Format("2006-01-02T15:04:05.000Z"); !strings.Contains(got.body,
		`"component_names":["board","disk","net"]`) || strings.Contains(got.body, `"device_id":"a"`) ||
		strings.Count(got.body, `"bound_at":"`+at) != 2 || strings.Contains(got.body, "1a1a") {
		t.Error(got.body)
	}
	s.clock.advance(31 * 24 * time.Hour)
	activate("c", `{}`).must(t, 0)
	activate("d", `{}`).must(t, 0) // instead of b
	if got := s.get(key).must(t, 0); strings.Contains(got.body, `"device_id":"b"`) ||
		got.data["current_devices"] != 2.0 {
		t.Error(got.body)
	}
}
