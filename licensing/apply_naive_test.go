package licensing_test

import (
	"encoding/json"
	"strings"
	"time"

	"licet/licensing"
)

// naive is a license written the long way: a set of devices and what is known of
// it, with the contract's rules written out once more.
type naive struct {
	max, allowedOver   int
	devices            map[string]licensing.Device
	days               int // of validity, waiting for the first activation
	activated, expires time.Time
	ended              bool      // a sweep has recorded the end: no clock brings the license back
	grace              int       // days after the end
	graceOver          time.Time // the end of a grace that a sweep has recorded
	noticesFor         time.Time // the end whose notices are planned
	noticeDay          int       // of the next one; 0: none
	notices            int       // that were given
	suspended, revoked bool
	why                string // it was suspended or revoked

	selfService bool
	perMonth    int    // removals by end users; 0: any number
	month       string // the latest in which one was counted
	removals    int    // in that month
	notes       map[string]string
	sold        bool
	customer    licensing.Customer

	inactiveAfter int // days; 0: never
	atLeast       int // equal components of a device that has changed; 0: none
	perMonthMoved int
	movedMonth    string // the latest in which a device has changed
	moved         int    // in that month
	leaseClock    time.Time
}

// answer is the result of a command, as Apply or the naive license returns it.
type answer struct {
	Reason             licensing.Reason
	Status             licensing.Status
	Current, Max, Over int
	ActivatedAt        time.Time
	ExpiresAt          time.Time
	Device             licensing.Device
	Removed            bool
	Invalid            licensing.Reason
	Why                string
	Removals           int
	Changes            int
}

func (n *naive) status(now time.Time) licensing.Status {
	if n.revoked {
		return licensing.Revoked
	}
	if n.suspended {
		return licensing.Suspended
	}
	if n.ended || !n.expires.IsZero() && now.Sub(n.expires) >= 0 {
		return licensing.Expired
	}
	if len(n.devices) == 0 {
		return licensing.NotActivated
	}
	return licensing.Activated
}

// goesOn reports whether a device may use an expired license.
func (n *naive) goesOn(bound bool, now time.Time) bool {
	over := n.expires.Add(time.Duration(n.grace) * day)
	return bound && n.grace > 0 && now.Before(over) && n.graceOver.Before(over)
}

// notice plans and gives notices before the end.
func (n *naive) notice(c licensing.GiveNotice) {
	left := n.expires.Sub(c.Now)
	if n.expires.IsZero() || n.revoked || n.ended || left <= 0 || left > 91*day {
		return
	}
	planned := n.noticesFor.Equal(n.expires)
	if planned && (n.noticeDay == 0 || left > time.Duration(n.noticeDay)*day) {
		return
	}
	last := n.noticeDay
	n.noticesFor, n.noticeDay = n.expires, 0
	given := false
	for _, d := range c.Days.Numbers() {
		if left > time.Duration(d)*day {
			n.noticeDay = max(n.noticeDay, d)
		} else if planned && d <= last {
			given = true
		}
	}
	if given {
		n.notices++
	}
}

// do runs one command. The caller checks that the command is about this license.
func (n *naive) do(command licensing.Command, now time.Time) answer {
	var a answer
	switch c := command.(type) {
	case licensing.Activate:
		a.Reason, a.Device = n.activate(c, now)
	case licensing.RemoveDevice:
		a.Device, a.Removed = n.devices[c.Device]
		a.Device.ID = c.Device
		delete(n.devices, c.Device)
		if len(n.devices) <= n.max {
			n.allowedOver = 0
		}
	case licensing.DeactivateDevice:
		if a.Reason = n.selfServiceRemoval(c.Device, now); a.Reason == "" {
			return n.do(licensing.RemoveDevice{Target: c.Target, Device: c.Device}, now)
		}
	case licensing.ValidateLicense:
		a.Invalid, a.Device = n.validate(c, now)
	case licensing.UpdateLicense:
		if n.sold && c.BuyerEmail != nil && *c.BuyerEmail != "" {
			return answer{Reason: licensing.ReasonInvalidField}
		}
		if c.BuyerEmail != nil {
			n.customer.BuyerEmail = *c.BuyerEmail
		}
		if c.CustomerReference != nil {
			n.customer.Reference = *c.CustomerReference
		}
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
	case licensing.ApplyTerms:
		if c.ProductID != app || c.StartedAt.Before(noon) { // of another product, or before the license was issued
			break
		}
		most := c.Terms.MaxDevices
		if c.Applies&licensing.RolloutMaxDevices != 0 && most != n.max && (most == 0 || len(n.devices) <= most) {
			n.max, n.allowedOver = most, 0
		}
		if c.Applies&licensing.RolloutSelfService != 0 {
			n.selfService = c.Terms.SelfService.Allowed
		}
		if c.Applies&licensing.RolloutRemovals != 0 {
			n.perMonth = c.Terms.SelfService.RemovalsPerMonth
			n.removals = min(n.removals, n.perMonth)
		}
		if c.Applies&licensing.RolloutInactive != 0 {
			n.inactiveAfter = c.Terms.InactiveAfter.Days
		}
		if c.Applies&licensing.RolloutMatch != 0 {
			n.atLeast, n.perMonthMoved = c.Terms.Match.AtLeast, c.Terms.Match.ChangesPerMonth
			if n.atLeast == 0 {
				n.movedMonth, n.moved = "", 0
				n.dropComponents()
			}
		}
		if c.Applies&licensing.RolloutGrace != 0 {
			n.grace = c.Terms.Grace.Days
		}
	case licensing.RevokeLicense:
		if !n.revoked {
			n.revoked, n.why = true, c.Reason
		}
	case licensing.SuspendLicense:
		if a.Reason = n.unlessRevoked(); a.Reason == "" && (!n.suspended || n.why == licensing.DisputeReason) {
			n.suspended, n.why = true, c.Reason
		}
	case licensing.SuspendForDispute:
		switch {
		case n.revoked:
		case c.Begin && !n.suspended:
			n.suspended, n.why = true, licensing.DisputeReason
		case c.End && n.why == licensing.DisputeReason:
			n.suspended, n.why = false, ""
		}
	case licensing.ReinstateLicense:
		if a.Reason = n.unlessRevoked(); a.Reason == "" {
			n.suspended, n.why = false, ""
		}
	case licensing.RenewLicense:
		a.Reason = n.renew(c, now)
	case licensing.RedactLicense:
		if c.Of.BuyerEmail != "" && !strings.EqualFold(c.Of.BuyerEmail, n.customer.BuyerEmail) ||
			c.Of.Reference != "" && c.Of.Reference != n.customer.Reference {
			return answer{Reason: licensing.ReasonLicenseNotFound}
		}
		if n.customer = (licensing.Customer{}); n.why != licensing.DisputeReason {
			n.why = ""
		}
		clear(n.notes)
		n.dropComponents()
	case licensing.ExpireLicense:
		n.ended = n.ended || !n.revoked && !n.expires.IsZero() && c.Before.Sub(n.expires) >= 0
		over := n.expires.Add(time.Duration(n.grace) * day)
		if n.ended && !n.revoked && n.grace > 0 && over.After(n.graceOver) && c.Before.Sub(over) >= 0 {
			n.graceOver = over
		}
	case licensing.GiveNotice:
		n.notice(c)
	}
	if a.Reason != "" {
		return answer{Reason: a.Reason}
	}
	a.Status, a.Current, a.Max, a.Over = n.status(now), len(n.devices), n.max, n.allowedOver
	a.ActivatedAt, a.ExpiresAt = n.activated, n.expires
	a.Why, a.Removals, a.Changes = n.why, n.removals, n.moved
	return a
}

// selfServiceRemoval counts that an end user removes a device.
func (n *naive) selfServiceRemoval(device string, now time.Time) licensing.Reason {
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

func (n *naive) validate(c licensing.ValidateLicense, now time.Time) (licensing.Reason, licensing.Device) {
	d, bound := n.devices[c.Device]
	d.ID = c.Device
	if c.ProductID != "" && c.ProductID != app {
		return "product_mismatch", d
	}
	switch n.status(now) {
	case licensing.Revoked:
		return "license_revoked", d
	case licensing.Suspended:
		return "license_suspended", d
	case licensing.Expired:
		if !n.goesOn(bound, now) {
			return "license_expired", d
		}
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

func (n *naive) unlessRevoked() licensing.Reason {
	if n.revoked {
		return "invalid_license_state"
	}
	return ""
}

func (n *naive) activate(c licensing.Activate, now time.Time) (licensing.Reason, licensing.Device) {
	if c.ProductID != "" && c.ProductID != app {
		return "product_mismatch", licensing.Device{}
	}
	d, bound := n.devices[c.Device]
	before := n.before(c)
	compares := n.atLeast > 0 && n.max >= 1 && n.max <= 16
	moves := !bound && compares && before != "" && n.mayMove(now)
	switch n.status(now) {
	case licensing.Revoked:
		return "license_revoked", licensing.Device{}
	case licensing.Suspended:
		return "license_suspended", licensing.Device{}
	case licensing.Expired:
		if !n.goesOn(bound || moves, now) {
			return "license_expired", licensing.Device{}
		}
	}
	if moves {
		d = n.devices[before]
		delete(n.devices, before)
		d.ID, d.Components = c.Device, c.Components
		if c.Named {
			d.Name, d.Named = c.Name, true
		}
		if now.After(d.LastSeenAt) {
			d.LastSeenAt = now
		}
		n.devices[c.Device] = d
		n.moved = n.movedIn(now) + 1
		n.movedMonth = max(n.movedMonth, monthOf(now))
		return "", d
	}
	switch {
	case !bound && n.max > 0 && len(n.devices) >= n.max && !n.makesRoom():
		return "device_limit_reached", licensing.Device{}
	case !bound:
		d = licensing.Device{ID: c.Device, BoundAt: now, LastSeenAt: now}
		if n.activated.IsZero() {
			n.activated = now
			if n.days > 0 {
				n.expires, n.days = now.Add(time.Duration(n.days)*day), 0
			}
		}
	}
	late := now.Sub(d.LastSeenAt)
	if c.Named && (!bound || late > 0 && late >= c.SeenStep) {
		d.Name, d.Named = c.Name, true
	}
	if compares && c.Components != "" && (!bound || late > 0 && late >= c.SeenStep) {
		d.Components = c.Components
	}
	if late > 0 && late >= c.SeenStep || late >= 59*time.Minute && n.inactiveAfter > 0 && n.max > 0 {
		d.LastSeenAt = now
	}
	n.devices[c.Device] = d
	return "", d
}

// before returns the one bound device with enough of the same components; empty if there is none, or more than one.
func (n *naive) before(c licensing.Activate) (id string) {
	for other, d := range n.devices {
		same := 0
		for name, hash := range parts[d.Components] {
			if parts[c.Components][name] == hash {
				same++
			}
		}
		switch {
		case same < n.atLeast:
		case id != "":
			return ""
		default:
			id = other
		}
	}
	return id
}

// mayMove reports whether one more device may change this month.
func (n *naive) mayMove(now time.Time) bool { return n.movedIn(now) < n.perMonthMoved }

// movedIn returns how many devices have changed in the month of a time, or in a later one.
func (n *naive) movedIn(now time.Time) int {
	if monthOf(now) > n.movedMonth {
		return 0
	}
	return n.moved
}

func monthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// makesRoom removes the device that was not seen for longest, if that is long enough, and enough for another device.
func (n *naive) makesRoom() bool {
	var longest licensing.Device
	for _, d := range n.devices {
		if longest.ID == "" || d.LastSeenAt.Before(longest.LastSeenAt) ||
			d.LastSeenAt.Equal(longest.LastSeenAt) && d.ID < longest.ID {
			longest = d
		}
	}
	unseen := n.leaseClock.Sub(longest.LastSeenAt)
	if n.inactiveAfter == 0 || len(n.devices) > n.max || unseen < time.Duration(n.inactiveAfter)*day+time.Hour {
		return false
	}
	delete(n.devices, longest.ID)
	return true
}

func (n *naive) dropComponents() {
	for id, d := range n.devices {
		d.Components = ""
		n.devices[id] = d
	}
}

// parts are the components that devices of these tests have.
var parts = map[licensing.Components]map[string]string{}

func composed(disk, board string) licensing.Components {
	of := map[string]string{"disk": strings.Repeat(disk, 64), "board": strings.Repeat(board, 64)}
	c, ok := licensing.NewComponents(of)
	if !ok {
		panic("malformed components")
	}
	parts[c] = of
	return c
}

var compositions = []licensing.Components{"", "", composed("1", "a"), composed("1", "a"), composed("1", "b"),
	composed("2", "b"), composed("2", "a")}

func (n *naive) renew(c licensing.RenewLicense, now time.Time) licensing.Reason {
	before := n.expires
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
	if !n.expires.Equal(before) || n.days > 0 || n.ended {
		n.noticesFor, n.noticeDay, n.graceOver = time.Time{}, 0, time.Time{}
	}
	n.days, n.ended = 0, false
	return ""
}
