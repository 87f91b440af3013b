package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"licet/client"
	"licet/loadtest/stage"
)

// tend does what was planned for a license.
func (s *support) tend(ctx context.Context, o *orderEntry) {
	l := s.ledger.find(o)
	if l == nil {
		return // the reason is recorded
	}
	switch o.plan.care {
	case leave:
	case suspend:
		s.suspend(ctx, l)
		s.refused("activating a suspended license", l.key, 40302, errorOf(s.tryActivate(ctx, l, "new")))
		s.validate(ctx, l, device(0))
	case reinstate:
		s.suspend(ctx, l)
		s.reinstate(ctx, l)
		s.fill(ctx, l)
	case revoke:
		s.revoke(ctx, l)
	case renew:
		s.renew(ctx, l, time.Now().AddDate(0, 0, 100+o.plan.n).Truncate(time.Millisecond))
		s.fill(ctx, l)
	case extend:
		s.extend(ctx, l, o.plan.n)
	case end:
		s.end(ctx, l, o.plan.n%2 == 0)
	case limits:
		s.limit(ctx, l)
	case annotate:
		s.annotate(ctx, l, o.plan.n)
	case overfill:
		s.overfill(ctx, l)
	case widen:
		s.widen(ctx, l)
	case move:
		s.move(ctx, l)
	}
}

func (s *support) suspend(ctx context.Context, l *licenseEntry) {
	l.suspended, l.reason = true, "Chargeback of "+l.order
	for _, reason := range []string{l.reason, "another reason"} { // the second changes nothing
		s.changed("suspensions", l)(s.desk.SuspendLicense(ctx, l.key, reason))
	}
}

func (s *support) reinstate(ctx context.Context, l *licenseEntry) {
	l.suspended, l.reason = false, ""
	s.changed("reinstatements", l)(s.desk.ReinstateLicense(ctx, l.key, "paid after all"))
}

func (s *support) revoke(ctx context.Context, l *licenseEntry) {
	l.revoked, l.reason = true, "Sold on: "+l.order
	s.changed("revocations", l)(s.desk.RevokeLicense(ctx, l.key, l.reason))
	s.validate(ctx, l, device(0))
	s.refused("activating a revoked license", l.key, 40301, errorOf(s.tryActivate(ctx, l, device(0))))
	s.refused("reinstating a revoked license", l.key, 40903, errorOf(s.desk.ReinstateLicense(ctx, l.key, "")))
	s.refused("renewing a revoked license", l.key, 40903,
		errorOf(s.desk.RenewLicense(ctx, l.key, client.Renewal{Extend: "P1Y"})))
}

// renew sets the end of a license.
func (s *support) renew(ctx context.Context, l *licenseEntry, ends time.Time) {
	l.renewed(ends)
	s.changed("renewals to a date", l)(s.desk.RenewLicense(ctx, l.key, client.Renewal{ExpiresAt: ends}))
}

// extend extends a license once, however often the request is sent. A license without an
// end can't be extended.
func (s *support) extend(ctx context.Context, l *licenseEntry, n int) {
	if l.ends.IsZero() {
		s.refused("extending a license without an end", l.key, 42200,
			errorOf(s.desk.RenewLicense(ctx, l.key, client.Renewal{Extend: "P1M"})))
		return
	}
	l.renewed(addMonths(l.ends, 1))
	for range 3 {
		s.changed("renewals by a month", l)(s.desk.RenewLicense(ctx, l.key, client.Renewal{Extend: "P1M"},
			client.IdempotencyKey(fmt.Sprintf("invoice-%d", n))))
	}
}

// end lets a license expire, and renews some licenses afterwards.
func (s *support) end(ctx context.Context, l *licenseEntry, andRenew bool) {
	for soon := time.Second; ; soon *= 2 {
		ends := time.Now().Add(soon).Truncate(time.Millisecond)
		now, err := s.desk.RenewLicense(ctx, l.key, client.Renewal{ExpiresAt: ends})
		if codeOf(err) == 42200 && time.Now().After(ends) && soon < stage.Patience {
			continue // the service was too busy
		}
		if !s.done("renewals to a date", l.key, err) {
			return
		}
		l.renewed(ends)
		s.check(now.ExpiresAt.Equal(ends), "license %s is to end at %v, and does at %v", l.key, ends, now.ExpiresAt)
		break
	}
	for node := range nodeCount {
		s.check(await(stage.AtNode(ctx, node), func(ctx context.Context) bool {
			now, err := s.desk.License(ctx, l.key)
			return err == nil && now.Status == stateExpired
		}), "license %s does not run out", l.key)
	}
	s.ledger.Did("licenses that ran out")
	s.refused("activating a license that has run out", l.key, 40303, errorOf(s.tryActivate(ctx, l, device(0))))
	s.validate(ctx, l, device(0))
	if andRenew {
		s.renew(ctx, l, time.Now().AddDate(1, 0, 0).Truncate(time.Millisecond))
		s.fill(ctx, l)
	}
}

// limit raises and lowers how many devices a license allows.
func (s *support) limit(ctx context.Context, l *licenseEntry) {
	s.setLimit(ctx, l, len(l.devices)+2)
	s.fill(ctx, l)
	s.setLimit(ctx, l, 1)
	s.refused("a device too many", l.key, 40901, errorOf(s.tryActivate(ctx, l, "new")))
	for device := range l.devices { // bound devices stay bound
		s.activate(ctx, l, device, 1)
	}
}

func (s *support) setLimit(ctx context.Context, l *licenseEntry, limit int) {
	l.maxDevices = limit
	s.changed("changes of limits", l)(s.desk.UpdateLicense(ctx, l.key, client.LicenseUpdate{MaxDevices: &limit}))
}

// annotate merges metadata into a license's, and removes some again.
func (s *support) annotate(ctx context.Context, l *licenseEntry, n int) {
	for _, change := range []map[string]any{
		{"seat": fmt.Sprint(n), "trial": true, "tags": []any{"a", "b"}},
		{"seat": fmt.Sprint(n, "B"), "trial": nil},
	} {
		for name, value := range change {
			if l.metadata[name] = value; value == nil {
				delete(l.metadata, name)
			}
		}
		s.changed("changes of metadata", l)(s.desk.UpdateLicense(ctx, l.key, client.LicenseUpdate{Metadata: change}))
	}
}

// fill activates devices one by one up to the limit, and one more.
func (s *support) fill(ctx context.Context, l *licenseEntry) {
	for i := 0; !l.full() && i < 20; i++ {
		if id := device(i); l.devices[id] == "" {
			s.activate(ctx, l, id, 1)
		}
	}
	s.refused("a device too many", l.key, 40901, errorOf(s.tryActivate(ctx, l, "one too many")))
}

// overfill activates more devices at once than fit.
func (s *support) overfill(ctx context.Context, l *licenseEntry) {
	var devices []string
	for i := range l.maxDevices + 3 {
		devices = append(devices, fmt.Sprintf("crowd %d", i))
	}
	s.activateMany(ctx, l, devices)
	s.check(l.full(), "license %s is not full", l.key)
}

// widen removes the limit, and binds more devices than fit into one record.
func (s *support) widen(ctx context.Context, l *licenseEntry) {
	s.setLimit(ctx, l, 0)
	var devices []string
	for i := range 30 {
		devices = append(devices, fmt.Sprintf("rack %02d", i))
	}
	s.activateMany(ctx, l, devices)
	for _, id := range devices[:3] {
		s.remove(ctx, l, id)
	}
}

// move moves a license from device to device until its user may move it no more; then the shop moves it.
func (s *support) move(ctx context.Context, l *licenseEntry) {
	at := "first home"
	if l.full() {
		at = slices.Sorted(maps.Keys(l.devices))[0]
	} else {
		s.activate(ctx, l, at, 1)
	}
	for i := 0; s.moveOut(ctx, l, at); i++ {
		at = fmt.Sprintf("home %d", i)
		s.activate(ctx, l, at, 1)
		s.check(i < 100, "license %s: its user may move on and on", l.key)
		if i >= 100 {
			return
		}
	}
	s.remove(ctx, l, at)
	s.activate(ctx, l, "last home", 1)
}

// changed returns a function that takes the answer to a change of a license, which must
// have worked, counts the change, and compares the license with the ledger.
func (s *support) changed(what string, l *licenseEntry) func(*client.License, error) {
	return func(now *client.License, err error) {
		if s.done(what, l.key, err) {
			s.checkLicense(l, now)
		}
	}
}

// checkLicense compares an answer of the API with the ledger. Nothing else changes the
// license meanwhile.
func (s *support) checkLicense(l *licenseEntry, now *client.License) {
	for _, difference := range l.differences(now, time.Now()) {
		s.ledger.Problem("license %s: %s", l.key, difference)
	}
}

// sameJSON reports whether a text is JSON of a value.
func sameJSON(text json.RawMessage, want map[string]any) bool {
	var got map[string]any
	if json.Unmarshal(text, &got) != nil {
		return false
	}
	a, errA := json.Marshal(got) // which sorts the members
	b, errB := json.Marshal(want)
	return errA == nil && errB == nil && string(a) == string(b)
}
