package handlers

import (
	"licet/licensing"
	"licet/node/store"
)

// device is one entry of a license's devices.
type device struct {
	DeviceID   string    `json:"device_id"`
	DeviceName *string   `json:"device_name"`
	BoundAt    timestamp `json:"bound_at"`
	LastSeenAt timestamp `json:"last_seen_at"`
}

func deviceAnswers(devices []licensing.Device) []device {
	answers := make([]device, len(devices))
	for i := range devices {
		d := &devices[i]
		answers[i] = device{
			DeviceID:   d.ID,
			BoundAt:    timestamp(d.BoundAt),
			LastSeenAt: timestamp(d.LastSeenAt),
		}
		if d.Named {
			answers[i].DeviceName = &d.Name
		}
	}
	return answers
}

const (
	defaultDevicesPage = 100
	maxDevicesPage     = 1000
)

// listDevices pages through the devices of a license.
func (s *Server) listDevices(r *request) (any, error) {
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	page, err := devicePage(r.query)
	if err != nil {
		return nil, err
	}
	view, err := s.cfg.Node.License(r.ctx, r.callerOwner(), key, page)
	if err != nil {
		return nil, err
	}
	return struct {
		Devices []device `json:"devices"`
		Next    *string  `json:"next_cursor"`
	}{deviceAnswers(view.Devices), cursorAnswer(view.Next)}, nil
}

func devicePage(query string) (store.DevicePage, error) {
	var bad problems
	page := store.DevicePage{Limit: bad.limit(query, defaultDevicesPage, maxDevicesPage)}
	if value, given, ok := queryValue(query, "cursor"); given {
		at, known := parseCursor(value)
		if !ok || !known {
			bad.add("cursor", problemCursor)
		}
		page.After = at
	}
	return page, bad.err()
}

// removal is the answer of a removed device.
type removal struct {
	LicenseKey     licensing.LicenseKey `json:"license_key"`
	DeviceID       string               `json:"device_id"`
	Removed        bool                 `json:"removed"`
	CurrentDevices int                  `json:"current_devices"`
}

// removeDevice frees a device's slot.
func (s *Server) removeDevice(r *request) (any, error) {
	key, err := s.cfg.Node.ParseLicenseKey(r.value("license_key"))
	if err != nil {
		return nil, err
	}
	id := text{value: r.value("device_id"), given: true}
	var bad problems
	bad.deviceID("device_id", id)
	if err := bad.err(); err != nil {
		return nil, err
	}
	result, err := s.cfg.Node.RemoveDevice(r.ctx, licensing.RemoveDevice{Target: r.target(key), Device: id.value})
	if err != nil {
		return nil, err
	}
	return removalAnswer(&result, id.value), nil
}

func removalAnswer(result *licensing.Result, deviceID string) removal {
	return removal{
		LicenseKey:     result.License.Key,
		DeviceID:       deviceID,
		Removed:        result.Removed,
		CurrentDevices: result.License.CurrentDevices,
	}
}
