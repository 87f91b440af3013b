package main

import (
	"context"
	"fmt"
	"time"

	"licet/client"
)

// device returns the id of a license's i-th device.
func device(i int) string { return fmt.Sprintf("machine/%d of “mine”", i) }

func nameOf(device string) string { return "Name of " + device }

// activate binds a device that fits, with several requests at once if times is more than
// 1.
func (s *support) activate(ctx context.Context, l *licenseEntry, device string, times int) {
	from := time.Now()
	answers, errs := make([]*client.Activated, times), make([]error, times)
	atOnce(ctx, times, func(ctx context.Context, i int) {
		answers[i], errs[i] = s.tryActivate(ctx, l, device)
	})
	for _, err := range errs {
		if !s.done("activations", l.key, err) {
			return
		}
	}
	s.noteBound(l, device, answers[0], from)
	for _, a := range answers {
		s.checkActivated(l, device, a)
	}
}

func (s *support) tryActivate(ctx context.Context, l *licenseEntry, device string) (*client.Activated, error) {
	return s.program.Activate(ctx, client.Activation{LicenseKey: l.key, DeviceID: device, DeviceName: nameOf(device),
		ProductID: l.product, Mode: "test"})
}

func (s *support) noteBound(l *licenseEntry, device string, a *client.Activated, from time.Time) {
	if l.activated.IsZero() {
		s.check(within(a.ActivatedAt, from, time.Now()), "license %s was activated at %v", l.key, a.ActivatedAt)
	}
	l.bound(device, nameOf(device), a.ActivatedAt)
}

// checkActivated compares an answer with the ledger. Nothing else changes the license
// meanwhile.
func (s *support) checkActivated(l *licenseEntry, device string, a *client.Activated) {
	s.check(a.LicenseKey == l.key && a.Status == stateActivated && a.ProductID == l.product && a.DeviceID == device &&
		a.DeviceName == nameOf(device) && a.MaxDevices == l.maxDevices && a.CurrentDevices == len(l.devices) &&
		a.ActivatedAt.Equal(l.activated) && a.ExpiresAt.Equal(l.ends),
		"license %s: activating %q was answered %+v; known are %d devices of %d, activated at %v, to end at %v",
		l.key, device, *a, len(l.devices), l.maxDevices, l.activated, l.ends)
}

// validate validates a license as an installed program does, and compares the answer with
// the ledger.
func (s *support) validate(ctx context.Context, l *licenseEntry, device string) {
	v, err := s.program.Validate(ctx, client.Validation{LicenseKey: l.key, DeviceID: device, ProductID: l.product})
	if !s.done("validations", l.key, err) {
		return
	}
	reason := ""
	switch status := l.status(time.Now()); {
	case status == stateRevoked || status == stateSuspended || status == stateExpired:
		reason = "license_" + status
	case l.devices[device] == "":
		reason = "device_not_bound"
	}
	s.check(v.Valid == (reason == "") && v.Reason == reason && v.CurrentDevices == len(l.devices) &&
		v.ExpiresAt.Equal(l.ends),
		"license %s: validating %q was answered %+v, and must be %q", l.key, device, *v, reason)
}

// activateMany activates many devices at once, through both nodes. As many as fit must be
// bound, and the others refused.
func (s *support) activateMany(ctx context.Context, l *licenseEntry, devices []string) {
	free := len(devices)
	if l.maxDevices > 0 {
		free = min(free, max(0, l.maxDevices-len(l.devices)))
	}
	from := time.Now()
	answers, errs := make([]*client.Activated, len(devices)), make([]error, len(devices))
	atOnce(ctx, len(devices), func(ctx context.Context, i int) {
		answers[i], errs[i] = s.tryActivate(ctx, l, devices[i])
	})
	bound := 0
	for i, err := range errs {
		if codeOf(err) == 40901 {
			s.ledger.Did("refused: a device too many")
		} else if s.done("activations", l.key, err) {
			bound++
			s.noteBound(l, devices[i], answers[i], from)
		}
	}
	s.check(bound == free, "license %s: %d devices came at once, %d were bound, and %d had room", l.key, len(devices),
		bound, free)
}

// remove removes a device by the shop.
func (s *support) remove(ctx context.Context, l *licenseEntry, device string) {
	var response client.Response
	r, err := s.desk.RemoveDevice(ctx, l.key, device, client.Record(&response))
	if !s.done("devices removed by the shop", l.key, err) {
		return
	}
	delete(l.devices, device)
	// Of a request that was repeated, the first may have removed it.
	s.check((r.Removed || response.Tries > 1) && r.CurrentDevices == len(l.devices),
		"license %s: removing %q was answered %+v", l.key, device, *r)
}

// moveOut removes a device by the end user, as far as that is allowed. It reports whether
// the device was removed.
func (s *support) moveOut(ctx context.Context, l *licenseEntry, device string) bool {
	before := monthOf(time.Now())
	_, err := s.program.Deactivate(ctx, client.Deactivation{LicenseKey: l.key, DeviceID: device})
	month := monthOf(time.Now())
	allowed := l.terms.selfService && (l.terms.removals == 0 || l.removals[month] < l.terms.removals)
	switch code := codeOf(err); {
	case code == 0 && (allowed || month != before):
		s.ledger.Did("devices moved by end users")
		delete(l.devices, device)
		l.removals[month]++
		s.validate(ctx, l, device)
		return true
	case code == 40305 && (!allowed || month != before):
		s.ledger.Did("refused: moving beyond what is allowed")
	default:
		s.ledger.Problem("license %s: %d devices were moved this month, %d are allowed, and moving %q was answered "+
			"%d (%v)",
			l.key, l.removals[month], l.terms.removals, device, code, err)
	}
	return false
}

// monthOf returns the calendar month by which removals are counted.
func monthOf(t time.Time) string { return t.UTC().Format("2006-01") }
