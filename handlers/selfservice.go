package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"licet/licensing"
)

// endUserRoutes are the functions of the routes of end users.
type endUserRoutes struct{ *Server }

// validation answers a validation: whether a device may use a license.
type validation struct {
	Valid          bool              `json:"valid"`
	Reason         *licensing.Reason `json:"reason"`
	LicenseKey     string            `json:"license_key"`
	Status         licensing.Status  `json:"status"`
	ProductID      string            `json:"product_id"`
	AccountID      string            `json:"account_id"`
	Mode           licensing.Mode    `json:"mode"`
	DeviceID       string            `json:"device_id"`
	MaxDevices     int               `json:"max_devices"`
	CurrentDevices int               `json:"current_devices"`
	ExpiresAt      timestamp         `json:"expires_at"`
	Grace          bool              `json:"grace"`
	GraceEndsAt    timestamp         `json:"grace_ends_at"`
	LeaseExpiresAt timestamp         `json:"lease_expires_at"`
	LeaseRemaining *int              `json:"lease_remaining_seconds"`
	Entitlements   json.RawMessage   `json:"entitlements"`
	Trial          bool              `json:"trial"`
	Receipt        string            `json:"receipt,omitempty"`
}

// leaseRequest asks for the length of a lease.
type leaseRequest struct {
	LeaseSeconds integer `json:"lease_seconds"`
}

func (in *leaseRequest) check(c *checks) {
	c.integer("lease_seconds", in.LeaseSeconds, false, leastLease, mostLease)
}

func (in *leaseRequest) lease() time.Duration {
	return time.Duration(in.LeaseSeconds.value) * time.Second
}

// The bounds of a lease, in seconds.
const (
	leastLease = int64(licensing.MinLease / time.Second)
	mostLease  = int64(licensing.MaxLease / time.Second)
)

// leaseAnswer returns when the lease of a device ends, and the seconds until then; null if it has none.
func leaseAnswer(result *licensing.Result) (end timestamp, left *int) {
	if result.LeaseLeft == 0 {
		return timestamp{}, nil
	}
	left = new(licensing.WholeSeconds(result.LeaseLeft))
	return timestamp(result.Device.LeaseEnd), left
}

// namedLicense names a license in the requests of end users: by a license key, or by an external key and the account
// that has brought the key from elsewhere.
type namedLicense struct {
	LicenseKey text `json:"license_key"`
	AccountID  text `json:"account_id"`
	Mode       text `json:"mode"`

	key      licensing.LicenseKey
	external string // instead of key
	sent     string // the key in canonical form
}

func (in *namedLicense) check(c *checks) {
	var err error
	in.key, in.sent, err = c.parsedKey("license_key", in.LicenseKey)
	if err != nil && in.AccountID.given {
		in.external = c.keyFromElsewhere(in.LicenseKey.value)
	}
	switch {
	case in.external != "":
		in.sent = in.external
	case err != nil:
		c.refuse(err)
	}
	c.pin("account_id", in.AccountID)
	c.pin("mode", in.Mode)
}

// pin is the owner that the request demands.
func (in *namedLicense) pin() licensing.Owner {
	return licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
}

// owner is the owner of the external key.
func (in *namedLicense) owner() licensing.Owner {
	owner := in.pin()
	if owner.Mode == "" {
		owner.Mode = licensing.Live
	}
	return owner
}

// resolve finds the license of an external key or of a reissued key, and counts the request against the limit of the
// license.
func (in *namedLicense) resolve(ctx context.Context, s *Server, c *call) (err error) {
	switch {
	case in.external != "":
		in.key, err = s.externalLicense(ctx, c, in.owner(), in.external)
	case in.key.IsAlias():
		in.key, err = s.cfg.Node.ResolveKey(ctx, in.key, c.owner(), s.rates.network(c))
	}
	if err != nil {
		return err
	}
	return s.rates.license(c, in.key)
}

// externalLicense returns the license with an external key of an owner. An external key has no check characters, so
// the node looks up what it does not remember only while the client's address may guess.
func (s *Server) externalLicense(
	ctx context.Context, c *call, owner licensing.Owner, external string,
) (key licensing.LicenseKey, err error) {
	if owner.Mode != licensing.Live && owner.Mode != licensing.Test {
		return key, licensing.ErrLicenseNotFound
	}
	if key, known := s.cfg.Node.RecallExternal(owner, external); known {
		return key, nil
	}
	if err := s.rates.mayGuess(c); err != nil {
		return key, err
	}
	return s.cfg.Node.ExternalLicense(ctx, owner, external, s.rates.network(c))
}

// validationRequest asks whether a device may use a license.
type validationRequest struct {
	namedLicense
	DeviceID  text `json:"device_id"`
	ProductID text `json:"product_id"`
	leaseRequest
	receiptRequest
}

func (in *validationRequest) check(c *checks) {
	in.namedLicense.check(c)
	c.deviceID("device_id", in.DeviceID)
	c.pin("product_id", in.ProductID)
	in.leaseRequest.check(c)
	in.receiptRequest.check(c)
}

// target is a license, with who asks for it and from where.
func (s endUserRoutes) target(c *call, key licensing.LicenseKey, pin licensing.Owner) licensing.Target {
	t := c.target(key)
	t.Pin = pin
	if c.key == nil {
		t.Network = s.rates.network(c)
	}
	return t
}

// validateLicense reports whether a device may use a license.
func (s endUserRoutes) validateLicense(ctx context.Context, c *call, in validationRequest) (validation, error) {
	cmd := licensing.ValidateLicense{Target: s.target(c, in.key, in.pin()), ProductID: in.ProductID.value,
		Device: in.DeviceID.value, Lease: in.lease(), Receipt: in.ask()}
	result, err := s.cfg.Node.ValidateLicense(ctx, cmd)
	if err != nil {
		return validation{}, err
	}
	l, now := &result.License, s.cfg.Node.Now()
	entitled, err := s.cfg.Node.Entitled(ctx, l)
	if err != nil {
		return validation{}, err
	}
	signed, err := s.sign(ctx, &result, entitled, &in.receiptRequest)
	if err != nil {
		return validation{}, err
	}
	leaseEnd, leaseLeft := leaseAnswer(&result)
	return validation{
		Valid:          result.Invalid == "",
		Reason:         orNull(result.Invalid),
		LicenseKey:     in.sent,
		Status:         l.Status(now),
		ProductID:      l.ProductID,
		AccountID:      l.Owner.AccountID,
		Mode:           l.Owner.Mode,
		DeviceID:       cmd.Device,
		MaxDevices:     l.MaxDevices,
		CurrentDevices: l.CurrentDevices,
		ExpiresAt:      timestamp(l.ExpiresAt),
		Grace:          result.Invalid == "" && l.InGrace(now),
		GraceEndsAt:    timestamp(l.GraceEndsAt()),
		LeaseExpiresAt: leaseEnd,
		LeaseRemaining: leaseLeft,
		Entitlements:   metadata(entitled.At(l.TermsSince(), now)),
		Trial:          l.IsTrial(),
		Receipt:        signed,
	}, nil
}

// deactivationRequest asks to unbind a device.
type deactivationRequest struct {
	namedLicense
	DeviceID text `json:"device_id"`
}

func (in *deactivationRequest) check(c *checks) {
	in.namedLicense.check(c)
	c.deviceID("device_id", in.DeviceID)
}

// deactivate unbinds a device at its user's request.
func (s endUserRoutes) deactivate(ctx context.Context, c *call, in deactivationRequest) (removal, error) {
	command := licensing.DeactivateDevice{Target: s.target(c, in.key, in.pin()), Device: in.DeviceID.value}
	result, err := s.cfg.Node.DeactivateDevice(ctx, command)
	if err != nil {
		return removal{}, err
	}
	return removalAnswer(&result, in.sent, in.DeviceID.value), nil
}

// activation answers an activation: the license, seen from one device.
type activation struct {
	LicenseKey     string           `json:"license_key"`
	Status         licensing.Status `json:"status"`
	ProductID      string           `json:"product_id"`
	DeviceID       string           `json:"device_id"`
	DeviceName     *string          `json:"device_name"`
	MaxDevices     int              `json:"max_devices"`
	CurrentDevices int              `json:"current_devices"`
	ActivatedAt    timestamp        `json:"activated_at"`
	ExpiresAt      timestamp        `json:"expires_at"`
	Grace          bool             `json:"grace"`
	GraceEndsAt    timestamp        `json:"grace_ends_at"`
	LeaseExpiresAt timestamp        `json:"lease_expires_at"`
	LeaseRemaining *int             `json:"lease_remaining_seconds"`
	Mode           licensing.Mode   `json:"mode"`
	AccountID      string           `json:"account_id"`
	Trial          bool             `json:"trial"`
	Entitlements   json.RawMessage  `json:"entitlements"` // empty: none
	Receipt        string           `json:"receipt,omitempty"`

	name string // DeviceName points to name, or is nil
}

// appendJSON writes an activation as encoding/json does, in a fraction of the
// time: activations are most of the requests.
func (a *activation) appendJSON(to []byte) []byte {
	to = appendText(append(to, `{"license_key":`...), a.LicenseKey)
	to = appendText(append(to, `,"status":`...), string(a.Status))
	to = appendText(append(to, `,"product_id":`...), a.ProductID)
	to = appendText(append(to, `,"device_id":`...), a.DeviceID)
	to = appendOptional(append(to, `,"device_name":`...), a.DeviceName)
	to = strconv.AppendInt(append(to, `,"max_devices":`...), int64(a.MaxDevices), 10)
	to = strconv.AppendInt(append(to, `,"current_devices":`...), int64(a.CurrentDevices), 10)
	to = a.ActivatedAt.appendTo(append(to, `,"activated_at":`...))
	to = a.ExpiresAt.appendTo(append(to, `,"expires_at":`...))
	to = strconv.AppendBool(append(to, `,"grace":`...), a.Grace)
	to = a.GraceEndsAt.appendTo(append(to, `,"grace_ends_at":`...))
	to = a.LeaseExpiresAt.appendTo(append(to, `,"lease_expires_at":`...))
	to = append(to, `,"lease_remaining_seconds":`...)
	if a.LeaseRemaining == nil {
		to = append(to, "null"...)
	} else {
		to = strconv.AppendInt(to, int64(*a.LeaseRemaining), 10)
	}
	to = appendText(append(to, `,"mode":`...), string(a.Mode))
	to = appendText(append(to, `,"account_id":`...), a.AccountID)
	to = strconv.AppendBool(append(to, `,"trial":`...), a.Trial)
	to = append(to, `,"entitlements":`...)
	if len(a.Entitlements) == 0 {
		to = append(to, "{}"...)
	}
	to = append(to, a.Entitlements...)
	if a.Receipt != "" {
		to = append(append(append(to, `,"receipt":"`...), a.Receipt...), '"') // base64url and dots: nothing to escape
	}
	return append(to, '}')
}

// activationRequest asks to bind a device to a license. Members that are unknown are skipped:
// applications of any age call here, newer ones than this service too.
type activationRequest struct {
	namedLicense
	DeviceID   text `json:"device_id"`
	DeviceName text `json:"device_name"`
	ProductID  text `json:"product_id"`
	leaseRequest
	receiptRequest
	DeviceComponents object `json:"device_components"`

	components licensing.Components
}

func (in *activationRequest) check(c *checks) {
	in.namedLicense.check(c)
	c.deviceID("device_id", in.DeviceID)
	c.line("device_name", in.DeviceName, maxDeviceName)
	c.pin("product_id", in.ProductID)
	in.leaseRequest.check(c)
	in.receiptRequest.check(c)
	in.components = c.components("device_components", in.DeviceComponents)
}

// activate binds a device to a license.
func (s endUserRoutes) activate(ctx context.Context, c *call, in activationRequest) (*activation, error) {
	cmd := licensing.Activate{
		Target:    s.target(c, in.key, in.pin()),
		ProductID: in.ProductID.value,
		Device:    in.DeviceID.value,
		Name:      in.DeviceName.value,
		Named:     in.DeviceName.given,
		Lease:     in.lease(),
		Receipt:   in.ask(),

		Components: in.components,
	}
	result, err := s.cfg.Node.Activate(ctx, cmd)
	if err != nil {
		return nil, err
	}
	c.bound = result.Bound
	return s.activated(ctx, &result, in.sent, &in.receiptRequest)
}

// activated answers an activation with the key of the request, and with the receipt that the request asks for.
func (s endUserRoutes) activated(
	ctx context.Context, result *licensing.Result, key string, in *receiptRequest,
) (*activation, error) {
	l, d, now := &result.License, &result.Device, s.cfg.Node.Now()
	entitled, err := s.cfg.Node.Entitled(ctx, l)
	if err != nil {
		// %v and not %w: the cause may say that nothing was changed.
		return nil, fmt.Errorf("%w: read the entitlements of the license: %v", licensing.ErrOutcomeUnknown, err)
	}
	answer := &activation{
		LicenseKey:     key,
		Status:         l.Status(now),
		ProductID:      l.ProductID,
		DeviceID:       d.ID,
		MaxDevices:     l.MaxDevices,
		CurrentDevices: l.CurrentDevices,
		ActivatedAt:    timestamp(l.ActivatedAt),
		ExpiresAt:      timestamp(l.ExpiresAt),
		Grace:          l.InGrace(now),
		GraceEndsAt:    timestamp(l.GraceEndsAt()),
		Mode:           l.Owner.Mode,
		AccountID:      l.Owner.AccountID,
		Trial:          l.IsTrial(),
	}
	if has := entitled.At(l.TermsSince(), now); has != "" {
		answer.Entitlements = json.RawMessage(has)
	}
	answer.LeaseExpiresAt, answer.LeaseRemaining = leaseAnswer(result)
	if answer.Receipt, err = s.sign(ctx, result, entitled, in); err != nil {
		return nil, err
	}
	if d.Named {
		answer.name = d.Name
		answer.DeviceName = &answer.name
	}
	return answer, nil
}
