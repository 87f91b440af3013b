package handlers

import (
	"strconv"

	"licet/licensing"
)

// activation is the answer of an activation: the license, seen from one device.
type activation struct {
	LicenseKey     licensing.LicenseKey `json:"license_key"`
	Status         licensing.Status     `json:"status"`
	ProductID      string               `json:"product_id"`
	DeviceID       string               `json:"device_id"`
	DeviceName     *string              `json:"device_name"`
	MaxDevices     int                  `json:"max_devices"`
	CurrentDevices int                  `json:"current_devices"`
	ActivatedAt    timestamp            `json:"activated_at"`
	ExpiresAt      timestamp            `json:"expires_at"`
	Mode           licensing.Mode       `json:"mode"`
	AccountID      string               `json:"account_id"`

	name string // what DeviceName points to, where there is one
}

// appendJSON writes an activation as encoding/json does, for a fraction of the
// time: it is what most requests are answered with.
func (a *activation) appendJSON(to []byte) []byte {
	to = appendText(append(to, `{"license_key":`...), string(a.LicenseKey))
	to = appendText(append(to, `,"status":`...), string(a.Status))
	to = appendText(append(to, `,"product_id":`...), a.ProductID)
	to = appendText(append(to, `,"device_id":`...), a.DeviceID)
	to = appendOptional(append(to, `,"device_name":`...), a.DeviceName)
	to = strconv.AppendInt(append(to, `,"max_devices":`...), int64(a.MaxDevices), 10)
	to = strconv.AppendInt(append(to, `,"current_devices":`...), int64(a.CurrentDevices), 10)
	to = a.ActivatedAt.appendTo(append(to, `,"activated_at":`...))
	to = a.ExpiresAt.appendTo(append(to, `,"expires_at":`...))
	to = appendText(append(to, `,"mode":`...), string(a.Mode))
	to = appendText(append(to, `,"account_id":`...), a.AccountID)
	return append(to, '}')
}

// activate binds a device to a license.
func (s *Server) activate(r *request) (any, error) {
	cmd, err := s.readActivation(r.body())
	if err != nil {
		return nil, err
	}
	if err := s.limitLicense(r, cmd.Key); err != nil {
		return nil, err
	}
	cmd.Caller, cmd.By = r.callerOwner(), r.actor()
	result, err := s.cfg.Node.Activate(r.ctx, cmd)
	if err != nil {
		return nil, err
	}
	r.bound = result.Bound
	l, d := result.License, result.Device
	answer := &activation{
		LicenseKey:     l.Key,
		Status:         l.Status(s.cfg.Node.Now()),
		ProductID:      l.ProductID,
		DeviceID:       d.ID,
		MaxDevices:     l.MaxDevices,
		CurrentDevices: l.CurrentDevices,
		ActivatedAt:    timestamp(l.ActivatedAt),
		ExpiresAt:      timestamp(l.ExpiresAt),
		Mode:           l.Owner.Mode,
		AccountID:      l.Owner.AccountID,
	}
	if d.Named {
		answer.name = d.Name
		answer.DeviceName = &answer.name
	}
	return answer, nil
}

// readActivation reads the body of an activation. Members that it does not
// know are skipped: copies of any age call here, newer ones than this too.
func (s *Server) readActivation(body []byte) (licensing.Activate, error) {
	var key, device, name, product, account, mode text
	err := decodeObject(body, false,
		textMember("license_key", &key),
		textMember("device_id", &device),
		textMember("device_name", &name),
		textMember("product_id", &product),
		textMember("account_id", &account),
		textMember("mode", &mode),
	)
	if err != nil {
		return licensing.Activate{}, err
	}
	cmd := licensing.Activate{
		ProductID: product.value,
		Device:    device.value,
		Name:      name.value,
		Named:     name.given,
	}
	cmd.Pin = licensing.Owner{AccountID: account.value, Mode: licensing.Mode(mode.value)}
	var bad problems
	if cmd.Key, err = s.licenseKey(key, &bad); err != nil {
		return licensing.Activate{}, err
	}
	bad.deviceID("device_id", device)
	bad.line("device_name", name, maxDeviceName)
	bad.pin("product_id", product)
	bad.pin("account_id", account)
	bad.pin("mode", mode)
	return cmd, bad.err()
}
