package handlers

import (
	"context"
	"net/netip"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// licensePath names a license, by its id or its key.
type licensePath struct {
	LicenseKey text `path:"license_key" json:"-"`

	key licensing.LicenseKey
}

func (in *licensePath) check(c *checks) { in.key = c.license("license_key", in.LicenseKey) }

// resolve finds the license of a reissued key. The owner of a license may name it by any of its keys.
func (in *licensePath) resolve(ctx context.Context, s *Server, c *call) (err error) {
	in.key, err = s.cfg.Node.ResolveKey(ctx, in.key, c.owner(), netip.Addr{})
	return err
}

// stateChange says why a license or an order changes its state.
type stateChange struct {
	Reason         text `json:"reason"`
	optionalBody   `json:"-"`
	idempotencyKey `json:"-"`
}

func (in *stateChange) check(c *checks) { c.description("reason", in.Reason) }

// licenseChange asks to change the state of a license.
type licenseChange struct {
	licensePath
	stateChange
}

func (in *licenseChange) check(c *checks) {
	in.licensePath.check(c)
	in.stateChange.check(c)
}

func (in *licenseChange) to(command licensing.Command) service.LicenseChange {
	return service.LicenseChange{Key: in.key, Command: command, Once: in.once}
}

// suspendLicense freezes a license.
func (s licenseRoutes) suspendLicense(ctx context.Context, c *call, in licenseChange) (license, error) {
	return s.changeLicense(ctx, c, in.to(licensing.SuspendLicense{Target: c.target(in.key), Reason: in.Reason.value}))
}

// reinstateLicense ends a suspension. The reason is not kept: an active license needs none.
func (s licenseRoutes) reinstateLicense(ctx context.Context, c *call, in licenseChange) (license, error) {
	return s.changeLicense(ctx, c, in.to(licensing.ReinstateLicense{Target: c.target(in.key)}))
}

// revokeLicense disables a license for good.
func (s licenseRoutes) revokeLicense(ctx context.Context, c *call, in licenseChange) (license, error) {
	return s.changeLicense(ctx, c, in.to(licensing.RevokeLicense{Target: c.target(in.key), Reason: in.Reason.value}))
}

// renewal asks to move the end of a license: to a time, or by a period.
type renewal struct {
	licensePath
	ExpiresAt      text `json:"expires_at"`
	Extend         text `json:"extend"`
	idempotencyKey `json:"-"`

	expires time.Time
	extend  licensing.Period
}

func (in *renewal) check(c *checks) {
	in.licensePath.check(c)
	in.expires = c.future("expires_at", in.ExpiresAt)
	in.extend = c.period("extend", in.Extend)
	switch {
	case !in.ExpiresAt.given && !in.Extend.given:
		c.add("expires_at", "is required unless extend is set")
	case in.ExpiresAt.given && in.Extend.given:
		c.add("extend", "can't be combined with expires_at")
	}
}

// renewLicense moves the end of a license.
func (s licenseRoutes) renewLicense(ctx context.Context, c *call, in renewal) (license, error) {
	c.repeatable = !in.Extend.given // setting a date twice has the effect of setting it once
	return s.changeLicense(ctx, c, service.LicenseChange{
		Key:     in.key,
		Command: licensing.RenewLicense{Target: c.target(in.key), ExpiresAt: in.expires, Extend: in.extend},
		Once:    in.once,
		Stale:   in.stale,
	})
}

// reissue asks for a new key of a license.
type reissue struct {
	licensePath
	Overlap text `json:"overlap"`
	stateChange

	overlap time.Duration
}

func (in *reissue) check(c *checks) {
	in.licensePath.check(c)
	in.stateChange.check(c)
	in.overlap = c.overlap("overlap", in.Overlap, 0)
}

// reissueLicense gives a license a new key.
func (s licenseRoutes) reissueLicense(ctx context.Context, c *call, in reissue) (license, error) {
	view, replayed, err := s.cfg.Node.ReissueLicense(ctx, c.owner(), service.Reissue{
		Target: c.target(in.key), Overlap: in.overlap, Reason: in.Reason.value, Once: in.once,
	})
	c.replayed = replayed
	if err != nil {
		return license{}, err
	}
	return s.licenseAnswer(view, s.cfg.Node.Now(), s.cfg.Node.LeaseTime()), nil
}

// licenseUpdate asks to change what a shop may set of a license.
type licenseUpdate struct {
	licensePath
	MaxDevices   integer   `json:"max_devices"`
	Metadata     object    `json:"metadata"` // a merge patch
	Entitlements object    `json:"entitlements"`
	BuyerEmail   removable `json:"buyer_email"`
	Reference    removable `json:"customer_reference"`

	entitlements licensing.Entitlements
}

func (in *licenseUpdate) check(c *checks) {
	in.licensePath.check(c)
	c.integer("max_devices", in.MaxDevices, false, 0, maxMaxDevices)
	c.metadataPatch("metadata", in.Metadata)
	in.entitlements = c.ownEntitlements("entitlements", in.Entitlements)
	c.email("buyer_email", in.BuyerEmail.text, false)
	c.customerReference("customer_reference", in.Reference.text)
}

// updateLicense changes what a shop may set of a license.
func (s licenseRoutes) updateLicense(ctx context.Context, c *call, in licenseUpdate) (license, error) {
	return s.changeLicense(ctx, c, service.LicenseChange{Key: in.key, Command: licensing.UpdateLicense{
		Target:            c.target(in.key),
		MaxDevices:        maxDevices(in.MaxDevices),
		Metadata:          string(in.Metadata.value),
		Entitlements:      in.entitlements,
		BuyerEmail:        in.BuyerEmail.change(),
		CustomerReference: in.Reference.change(),
	}})
}

// maxDevices returns a limit of devices, or nil if none is given.
func maxDevices(in integer) *int {
	if !in.given {
		return nil
	}
	most := int(in.value)
	return &most
}

// changeLicense makes a change and answers the license.
func (s licenseRoutes) changeLicense(ctx context.Context, c *call, change service.LicenseChange) (license, error) {
	view, replayed, err := s.cfg.Node.ChangeLicense(ctx, c.owner(), change)
	c.replayed = replayed
	if err != nil {
		return license{}, err
	}
	return s.licenseAnswer(view, s.cfg.Node.Now(), s.cfg.Node.LeaseTime()), nil
}
