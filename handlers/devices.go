package handlers

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/go-json-experiment/json"

	"licet/licensing"
	"licet/node/store"
)

// device is one entry of a license's devices.
type device struct {
	DeviceID   string    `json:"device_id"`
	DeviceName *string   `json:"device_name"`
	BoundAt    timestamp `json:"bound_at"`
	LastSeenAt timestamp `json:"last_seen_at"`
	LeaseEnd   timestamp `json:"lease_expires_at"`
	Components []string  `json:"component_names,omitempty"`
}

func deviceAnswer(d *licensing.Device) device {
	answer := device{
		DeviceID:   d.ID,
		BoundAt:    timestamp(d.BoundAt),
		LastSeenAt: timestamp(d.LastSeenAt),
		LeaseEnd:   timestamp(d.LeaseEnd),
		Components: d.Components.Names(),
	}
	if d.Named {
		answer.DeviceName = &d.Name
	}
	return answer
}

const (
	defaultDevicesPage = 100
	maxDevicesPage     = 1000
)

// deviceQuery asks for a page of a license's devices.
type deviceQuery struct {
	licensePath
	Limit  param `query:"limit"`
	Cursor param `query:"cursor"`

	page store.DevicePage
}

func (q *deviceQuery) check(c *checks) {
	q.licensePath.check(c)
	q.page.Limit = c.limit(q.Limit, defaultDevicesPage, maxDevicesPage)
	if !c.describe("cursor", Limits{}) && q.Cursor.given {
		at, known := parseCursor(q.Cursor.value)
		if !known {
			c.add("cursor", problemCursor)
		}
		q.page.After = at
	}
}

type deviceList struct {
	Devices []device `json:"devices"`
	Next    *string  `json:"next_cursor"`
}

// listDevices pages through the devices of a license.
func (s licenseRoutes) listDevices(ctx context.Context, c *call, q deviceQuery) (deviceList, error) {
	view, err := s.cfg.Node.License(ctx, c.owner(), q.key, q.page)
	if err != nil {
		return deviceList{}, err
	}
	view.HideLapsed(s.cfg.Node.LeaseTime())
	return deviceList{answers(view.Devices, deviceAnswer), cursorAnswer(view.Next)}, nil
}

// removal is the answer of a removed device.
type removal struct {
	LicenseKey     string `json:"license_key"`
	DeviceID       string `json:"device_id"`
	Removed        bool   `json:"removed"`
	CurrentDevices int    `json:"current_devices"`
}

// devicePath names a device of a license.
type devicePath struct {
	licensePath
	DeviceID text `path:"device_id" json:"-"`
}

func (in *devicePath) check(c *checks) {
	in.licensePath.check(c)
	c.deviceID("device_id", in.DeviceID)
}

// removeDevice unbinds a device from a license.
func (s licenseRoutes) removeDevice(ctx context.Context, c *call, in devicePath) (removal, error) {
	command := licensing.RemoveDevice{Target: c.target(in.key), Device: in.DeviceID.value}
	result, err := s.cfg.Node.RemoveDevice(ctx, command)
	if err != nil {
		return removal{}, err
	}
	return removalAnswer(&result, s.keys.Text(result.License.CurrentKey()), in.DeviceID.value), nil
}

func removalAnswer(result *licensing.Result, key, deviceID string) removal {
	return removal{
		LicenseKey:     key,
		DeviceID:       deviceID,
		Removed:        result.Removed,
		CurrentDevices: result.License.CurrentDevices,
	}
}

// A cursor is opaque to callers: a version byte and the position, in base64
// for URLs. The version distinguishes formats.
const (
	cursorVersion = 1
	cursorBytes   = 1 + len(store.DeviceCursor{})
)

func formatCursor(at store.DeviceCursor) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte{cursorVersion}, at[:]...))
}

// parseCursor parses a cursor of formatCursor, and nothing else: each position
// has one cursor.
func parseCursor(cursor string) (store.DeviceCursor, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) != cursorBytes || raw[0] != cursorVersion {
		return store.DeviceCursor{}, false
	}
	at := store.DeviceCursor(raw[1:])
	// The decoder skips line breaks.
	return at, formatCursor(at) == cursor
}

func cursorAnswer(at *store.DeviceCursor) *string {
	if at == nil {
		return nil
	}
	cursor := formatCursor(*at)
	return &cursor
}

// deviceMatch says which unknown devices are bound devices that have changed.
type deviceMatch struct {
	AtLeast         int `json:"at_least"`
	ChangesPerMonth int `json:"changes_per_month"`
}

func deviceMatchAnswer(m licensing.DeviceMatch) *deviceMatch {
	if m.AtLeast == 0 {
		return nil
	}
	return &deviceMatch{m.AtLeast, m.ChangesPerMonth}
}

// checkDeviceTerms checks which devices lose their slots, and which get a new id.
func (in *productDescription) checkDeviceTerms(c *checks) {
	in.inactiveAfter = c.period("inactive_after", in.InactiveAfter)
	in.match = c.deviceMatch("device_match", in.DeviceMatch)
	terms := in.terms()
	const unlessBound = "must be left out if device_mode is leased"
	if !terms.InactiveAfter.IsZero() {
		now := c.server.cfg.Node.Now()
		switch {
		case terms.Lease.Leased():
			c.add("inactive_after", unlessBound)
		case now.Sub(terms.InactiveAfter.Before(now)) < licensing.MinInactive:
			c.add("inactive_after", "must be at least P1D")
		case terms.MaxDevices < 1 || terms.MaxDevices > licensing.MaxInactiveDevices:
			c.add("inactive_after", fmt.Sprintf("needs max_devices of 1 to %d", licensing.MaxInactiveDevices))
		}
	}
	switch {
	case terms.Match.AtLeast == 0:
	case terms.Lease.Leased():
		c.add("device_match", unlessBound)
	case terms.MaxDevices < 1 || terms.MaxDevices > licensing.MaxMatchedDevices:
		c.add("device_match", fmt.Sprintf("needs max_devices of 1 to %d", licensing.MaxMatchedDevices))
	}
}

// maxDeviceChanges bounds the changes of devices in a month that a product may allow.
const maxDeviceChanges = 1000

func (c *rules) deviceMatch(field string, in object) licensing.DeviceMatch {
	if c.describe(field, Limits{}) || !in.given {
		return licensing.DeviceMatch{}
	}
	match := deviceMatch{ChangesPerMonth: licensing.DefaultDeviceChanges}
	err := json.Unmarshal([]byte(in.value), &match, json.RejectUnknownMembers(true))
	if err != nil || match.AtLeast < 1 || match.AtLeast > licensing.MaxComponents || match.ChangesPerMonth < 1 ||
		match.ChangesPerMonth > maxDeviceChanges {
		c.add(field, fmt.Sprintf("must have at_least, of 1 to %d, and may have changes_per_month, of 1 to %d",
			licensing.MaxComponents, maxDeviceChanges))
		return licensing.DeviceMatch{}
	}
	return licensing.DeviceMatch{AtLeast: match.AtLeast, ChangesPerMonth: match.ChangesPerMonth}
}

// components checks the components of a device.
func (c *rules) components(field string, in object) licensing.Components {
	if c.describe(field, Limits{MaxProperties: licensing.MaxComponents, MaxNameLength: licensing.MaxComponentName}) ||
		!in.given {
		return ""
	}
	var hashes map[string]string
	err := json.Unmarshal([]byte(in.value), &hashes)
	components, ok := licensing.NewComponents(hashes)
	if err != nil || !ok {
		c.add(field, fmt.Sprintf("must have up to %d members: names of 1 to %d of the characters a-z 0-9 . _ -, each "+
			"with a SHA-256 of 64 hex digits", licensing.MaxComponents, licensing.MaxComponentName))
	}
	return components
}
