package handlers

import "licet/licensing"

// validation is the answer of a validation: may a device use a license.
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

// validateLicense tells whether a device may use a license.
func (s *Server) validateLicense(r *request) (any, error) {
	var key, device, product, account, mode text
	err := decodeObject(r.body(), false,
		textMember("license_key", &key),
		textMember("device_id", &device),
		textMember("product_id", &product),
		textMember("account_id", &account),
		textMember("mode", &mode),
	)
	if err != nil {
		return nil, err
	}
	cmd := licensing.ValidateLicense{ProductID: product.value, Device: device.value}
	cmd.Caller, cmd.By = r.callerOwner(), r.actor()
	cmd.Pin = licensing.Owner{AccountID: account.value, Mode: licensing.Mode(mode.value)}
	var bad problems
	if cmd.Key, err = s.licenseKey(key, &bad); err != nil {
		return nil, err
	}
	bad.deviceID("device_id", device)
	bad.pin("product_id", product)
	bad.pin("account_id", account)
	bad.pin("mode", mode)
	if err := bad.err(); err != nil {
		return nil, err
	}
	if err := s.limitLicense(r, cmd.Key); err != nil {
		return nil, err
	}
	result, err := s.cfg.Node.ValidateLicense(r.ctx, cmd)
	if err != nil {
		return nil, err
	}
	l := &result.License
	return validation{
		Valid:          result.Invalid == "",
		Reason:         optional(result.Invalid),
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

// deactivate frees a device's slot on its user's wish.
func (s *Server) deactivate(r *request) (any, error) {
	var key, device text
	err := decodeObject(r.body(), false,
		textMember("license_key", &key),
		textMember("device_id", &device),
	)
	if err != nil {
		return nil, err
	}
	cmd := licensing.DeactivateDevice{Device: device.value}
	cmd.Caller, cmd.By = r.callerOwner(), r.actor()
	var bad problems
	if cmd.Key, err = s.licenseKey(key, &bad); err != nil {
		return nil, err
	}
	bad.deviceID("device_id", device)
	if err := bad.err(); err != nil {
		return nil, err
	}
	result, err := s.cfg.Node.DeactivateDevice(r.ctx, cmd)
	if err != nil {
		return nil, err
	}
	return removalAnswer(&result, cmd.Device), nil
}

// licenseKey reads the license key that an installed copy sends. A mistyped one
// comes before all else that may be wrong: the person at the keyboard can do
// something about it.
func (s *Server) licenseKey(in text, bad *problems) (licensing.LicenseKey, error) {
	if !in.given {
		bad.add("license_key", problemRequired)
		return "", nil
	}
	return s.cfg.Node.ParseLicenseKey(in.value)
}
