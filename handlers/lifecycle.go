package handlers

import (
	"licet/licensing"
	"licet/node"
	"licet/node/service"
)

// suspendLicense freezes a license.
func (s *Server) suspendLicense(r *request) (any, error) {
	return s.changeState(r, func(t licensing.Target, reason string) licensing.Command {
		return licensing.SuspendLicense{Target: t, Reason: reason}
	})
}

// reinstateLicense ends a suspension. What reason is given for that is not kept:
// a license that may be used needs none.
func (s *Server) reinstateLicense(r *request) (any, error) {
	return s.changeState(r, func(t licensing.Target, _ string) licensing.Command {
		return licensing.ReinstateLicense{Target: t}
	})
}

// revokeLicense disables a license for good.
func (s *Server) revokeLicense(r *request) (any, error) {
	return s.changeState(r, func(t licensing.Target, reason string) licensing.Command {
		return licensing.RevokeLicense{Target: t, Reason: reason}
	})
}

// changeState reads a request that may give a reason, and runs its command.
func (s *Server) changeState(r *request, command func(t licensing.Target, reason string) licensing.Command) (any, error) {
	in, err := readStateChange(r)
	if err != nil {
		return nil, err
	}
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	if in.invalid != nil {
		return nil, in.invalid
	}
	return s.changeLicense(r, service.LicenseChange{Key: key, Command: command(r.target(key), in.reason), Once: in.once})
}

// stateChange is what a shop says of a change of a license's or an order's state.
type stateChange struct {
	reason  string
	once    *node.Once
	invalid error // what is wrong with it: the license key may be wrong, too, and that wins
}

// readStateChange reads the body, which may be missing.
func readStateChange(r *request) (stateChange, error) {
	var reason text
	if err := decodeOptional(r.body(), textMember("reason", &reason)); err != nil {
		return stateChange{}, err
	}
	var bad problems
	bad.description("reason", reason)
	once := bad.once(r)
	return stateChange{reason: reason.value, once: once, invalid: bad.err()}, nil
}

// renewLicense moves a license's end.
func (s *Server) renewLicense(r *request) (any, error) {
	var expires, extend text
	err := decodeObject(r.body(), true,
		textMember("expires_at", &expires),
		textMember("extend", &extend),
	)
	if err != nil {
		return nil, err
	}
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	r.idempotent = !extend.given // a date is the same however often it is set
	var bad, late problems
	cmd := licensing.RenewLicense{
		Target:    r.target(key),
		ExpiresAt: bad.moment("expires_at", expires),
		Extend:    bad.period("extend", extend),
	}
	switch {
	case !expires.given && !extend.given:
		bad.add("expires_at", "is required, unless extend is given")
	case expires.given && extend.given:
		bad.add("extend", "must not be given along with expires_at")
	}
	late.future("expires_at", cmd.ExpiresAt, s.cfg.Node.Now())
	change := service.LicenseChange{Key: key, Command: cmd}
	change.Once, change.Stale = bad.onceInTime(r, late)
	if err := bad.err(); err != nil {
		return nil, err
	}
	return s.changeLicense(r, change)
}

// updateLicense changes what a shop may set of a license.
func (s *Server) updateLicense(r *request) (any, error) {
	var devices integer
	var extra object
	err := decodeObject(r.body(), true,
		integerMember("max_devices", &devices),
		objectMember("metadata", &extra),
	)
	if err != nil {
		return nil, err
	}
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	var bad problems
	bad.integer("max_devices", devices, false, 0, maxMaxDevices)
	bad.metadataPatch("metadata", extra)
	if err := bad.err(); err != nil {
		return nil, err
	}
	cmd := licensing.UpdateLicense{Target: r.target(key), Metadata: extra.value}
	if devices.given {
		most := int(devices.value)
		cmd.MaxDevices = &most
	}
	return s.changeLicense(r, service.LicenseChange{Key: key, Command: cmd})
}

// target is a license as the caller may mean it.
func (r *request) target(key licensing.LicenseKey) licensing.Target {
	return licensing.Target{Key: key, Caller: r.callerOwner(), By: r.actor()}
}

// changeLicense runs a change and answers the license.
func (s *Server) changeLicense(r *request, change service.LicenseChange) (any, error) {
	view, replayed, err := s.cfg.Node.ChangeLicense(r.ctx, r.caller.Owner, change)
	r.replayed = replayed
	if err != nil {
		return nil, err
	}
	return licenseAnswer(view, s.cfg.Node.Now()), nil
}
