package handlers

import (
	"context"

	"licet/licensing"
)

// endUserRoutes are the functions of the routes of end users.
type endUserRoutes struct{ *Server }

// validation answers a validation: whether a device may use a license.
type validation struct {
	Valid          bool                 `json:"valid"`
	Reason         *licensing.Reason    `json:"reason"`
	LicenseKey     licensing.LicenseKey `json:"license_key"`
	Status         licensing.Status     `json:"status"`
	ProductID      string               `json:"product_id"`
	AccountID      string               `json:"account_id"`
	Mode           licensing.Mode       `json:"mode"`
	DeviceID       string               `json:"device_id"`
	MaxDevices     int                  `json:"max_devices"`
	CurrentDevices int                  `json:"current_devices"`
	ExpiresAt      timestamp            `json:"expires_at"`
}

// validationRequest asks whether a device may use a license.
type validationRequest struct {
	LicenseKey text `json:"license_key"`
	DeviceID   text `json:"device_id"`
	ProductID  text `json:"product_id"`
	AccountID  text `json:"account_id"`
	Mode       text `json:"mode"`

	key licensing.LicenseKey
}

func (in *validationRequest) check(c *checks) {
	in.key = c.licenseKey("license_key", in.LicenseKey)
	c.deviceID("device_id", in.DeviceID)
	c.pin("product_id", in.ProductID)
	c.pin("account_id", in.AccountID)
	c.pin("mode", in.Mode)
}

// validateLicense reports whether a device may use a license.
func (s endUserRoutes) validateLicense(ctx context.Context, c *call, in validationRequest) (validation, error) {
	if err := s.limitLicense(c, in.key); err != nil {
		return validation{}, err
	}
	cmd := licensing.ValidateLicense{Target: c.target(in.key), ProductID: in.ProductID.value, Device: in.DeviceID.value}
	cmd.Pin = licensing.Owner{AccountID: in.AccountID.value, Mode: licensing.Mode(in.Mode.value)}
	result, err := s.cfg.Node.ValidateLicense(ctx, cmd)
	if err != nil {
		return validation{}, err
	}
	l := &result.License
	return validation{
		Valid:          result.Invalid == "",
		Reason:         orNull(result.Invalid),
		LicenseKey:     l.Key,
		Status:         l.Status(s.cfg.Node.Now()),
		ProductID:      l.ProductID,
		AccountID:      l.Owner.AccountID,
		Mode:           l.Owner.Mode,
		DeviceID:       cmd.Device,
		MaxDevices:     l.MaxDevices,
		CurrentDevices: l.CurrentDevices,
		ExpiresAt:      timestamp(l.ExpiresAt),
	}, nil
}

// deactivationRequest asks to unbind a device.
type deactivationRequest struct {
	LicenseKey text `json:"license_key"`
	DeviceID   text `json:"device_id"`

	key licensing.LicenseKey
}

func (in *deactivationRequest) check(c *checks) {
	in.key = c.licenseKey("license_key", in.LicenseKey)
	c.deviceID("device_id", in.DeviceID)
}

// deactivate unbinds a device at its user's request.
func (s endUserRoutes) deactivate(ctx context.Context, c *call, in deactivationRequest) (removal, error) {
	command := licensing.DeactivateDevice{Target: c.target(in.key), Device: in.DeviceID.value}
	result, err := s.cfg.Node.DeactivateDevice(ctx, command)
	if err != nil {
		return removal{}, err
	}
	return removalAnswer(&result, in.DeviceID.value), nil
}
