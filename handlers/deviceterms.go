package handlers

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"licet/licensing"
)

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

func (c *checks) deviceMatch(field string, in object) licensing.DeviceMatch {
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
func (c *checks) components(field string, in object) licensing.Components {
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
