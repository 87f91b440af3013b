package licet_test

import (
	"encoding/json"
	"time"

	"licet"
)

// naive is a license told the long way: a set of devices and what is known of
// it, with the contract's rules written out once more.
type naive struct {
	max, allowedOver   int
	devices            map[string]licet.Device
	days               int // of validity, waiting for the first activation
	activated, expires time.Time
	suspended, revoked bool
	why                string // it was suspended or revoked

	selfService bool
	perMonth    int    // removals by end users; 0: any number
	month       string // the latest in which one was counted
	removals    int    // in that month
	notes       map[string]string
}

// answer is what the two sides of a comparison say after a command.
type answer struct {
	Reason             licet.Reason
	Status             licet.Status
	Current, Max, Over int
	ActivatedAt        time.Time
	ExpiresAt          time.Time
	Device             licet.Device
	Removed            bool
	Invalid            licet.Reason
	Why                string
	Removals           int
}

func (n *naive) status(now time.Time) licet.Status {
	if n.revoked {
		return licet.Revoked
	}
	if n.suspended {
		return licet.Suspended
	}
	if !n.expires.IsZero() && now.Sub(n.expires) >= 0 {
		return licet.Expired
	}
	if len(n.devices) == 0 {
		return licet.NotActivated
	}
	return licet.Activated
}

// do runs one command. Which license the command means is the caller's to check.
func (n *naive) do(command licet.Command, now time.Time) answer {
	var a answer
	switch c := command.(type) {
	case licet.Activate:
		a.Reason, a.Device = n.activate(c, now)
	case licet.RemoveDevice:
		a.Device, a.Removed = n.devices[c.Device]
		a.Device.ID = c.Device
		delete(n.devices, c.Device)
		if len(n.devices) <= n.max {
			n.allowedOver = 0
		}
	case licet.DeactivateDevice:
		if a.Reason = n.selfServiceRemoval(c.Device, now); a.Reason == "" {
			return n.do(licet.RemoveDevice(c), now)
		}
	case licet.ValidateLicense:
		a.Invalid, a.Device = n.validate(c, now)
	case licet.UpdateLicense:
		if c.MaxDevices != nil && *c.MaxDevices != n.max {
			n.max, n.allowedOver = *c.MaxDevices, 0
			if n.max > 0 && len(n.devices) > n.max {
				n.allowedOver = len(n.devices)
			}
		}
		var notes map[string]*string
		if c.Metadata != "" {
			_ = json.Unmarshal([]byte(c.Metadata), &notes)
		}
		for name, value := range notes {
			if value == nil {
				delete(n.notes, name)
			} else {
				n.notes[name] = *value
			}
		}
	case licet.RevokeLicense:
		if !n.revoked {
			n.revoked, n.why = true, c.Reason
		}
	case licet.SuspendLicense:
		if a.Reason = n.unlessRevoked(); a.Reason == "" && !n.suspended {
			n.suspended, n.why = true, c.Reason
		}
	case licet.ReinstateLicense:
		if a.Reason = n.unlessRevoked(); a.Reason == "" {
			n.suspended, n.why = false, ""
		}
	case licet.RenewLicense:
		a.Reason = n.renew(c, now)
	case licet.RedactLicense:
		n.why = ""
		clear(n.notes)
	case licet.ExpireLicense: // changes nothing that is answered
	}
	if a.Reason != "" {
		return answer{Reason: a.Reason}
	}
	a.Status, a.Current, a.Max, a.Over = n.status(now), len(n.devices), n.max, n.allowedOver
	a.ActivatedAt, a.ExpiresAt = n.activated, n.expires
	a.Why, a.Removals = n.why, n.removals
	return a
}

// selfServiceRemoval counts that an end user removes a device.
func (n *naive) selfServiceRemoval(device string, now time.Time) licet.Reason {
	_, bound := n.devices[device]
	switch {
	case !n.selfService:
		return "self_service_not_allowed"
	case !bound || n.perMonth == 0:
		return ""
	}
	month, removals := n.month, n.removals
	if this := now.UTC().Format("2006-01"); this > month {
		month, removals = this, 0
	}
	if removals == n.perMonth {
		return "self_service_not_allowed"
	}
	n.month, n.removals = month, removals+1
	return ""
}

func (n *naive) validate(c licet.ValidateLicense, now time.Time) (licet.Reason, licet.Device) {
	d, bound := n.devices[c.Device]
	d.ID = c.Device
	if c.ProductID != "" && c.ProductID != app {
		return "product_mismatch", d
	}
	switch n.status(now) {
	case licet.Revoked:
		return "license_revoked", d
	case licet.Suspended:
		return "license_suspended", d
	case licet.Expired:
		return "license_expired", d
	}
	if !bound {
		return "device_not_bound", d
	}
	if late := now.Sub(d.LastSeenAt); late > 0 && late >= c.SeenStep {
		d.LastSeenAt = now
		n.devices[c.Device] = d
	}
	return "", d
}

func (n *naive) unlessRevoked() licet.Reason {
	if n.revoked {
		return "invalid_license_state"
	}
	return ""
}

func (n *naive) activate(c licet.Activate, now time.Time) (licet.Reason, licet.Device) {
	if c.ProductID != "" && c.ProductID != app {
		return "product_mismatch", licet.Device{}
	}
	switch n.status(now) {
	case licet.Revoked:
		return "license_revoked", licet.Device{}
	case licet.Suspended:
		return "license_suspended", licet.Device{}
	case licet.Expired:
		return "license_expired", licet.Device{}
	}
	d, bound := n.devices[c.Device]
	switch {
	case !bound && n.max > 0 && len(n.devices) >= n.max:
		return "device_limit_reached", licet.Device{}
	case !bound:
		d = licet.Device{ID: c.Device, BoundAt: now, LastSeenAt: now}
		if n.activated.IsZero() {
			n.activated = now
			if n.days > 0 {
				n.expires, n.days = now.Add(time.Duration(n.days)*day), 0
			}
		}
	}
	renamed := c.Named && (!d.Named || d.Name != c.Name)
	if renamed {
		d.Name, d.Named = c.Name, true
	}
	late := now.Sub(d.LastSeenAt)
	if late > 0 && (renamed || late >= c.SeenStep) {
		d.LastSeenAt = now
	}
	n.devices[c.Device] = d
	return "", d
}

func (n *naive) renew(c licet.RenewLicense, now time.Time) licet.Reason {
	switch {
	case n.revoked:
		return "invalid_license_state"
	case !c.ExpiresAt.IsZero():
		n.expires = c.ExpiresAt
	case n.expires.IsZero():
		return "invalid_field"
	default:
		from := n.expires
		if now.After(from) {
			from = now
		}
		n.expires = from.Add(time.Duration(c.Extend.Days) * day)
	}
	n.days = 0
	return ""
}
