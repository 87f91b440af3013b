package client

import (
	"context"
	"encoding/json"
	"time"
)

// License is a license with its devices.
type License struct {
	LicenseKey     string `json:"license_key"`
	Status         string `json:"status"`
	ProductID      string `json:"product_id"`
	OrderNo        string `json:"order_no"`    // empty: granted without an order
	MaxDevices     int    `json:"max_devices"` // 0: unlimited
	CurrentDevices int    `json:"current_devices"`
	// Devices are at most the first 1,000; in a list none of a license that has
	// ever had more than 16. DevicesNextCursor is not empty where there are more.
	Devices           []Device        `json:"devices"`
	DevicesNextCursor string          `json:"devices_next_cursor"`
	ActivatedAt       time.Time       `json:"activated_at"` // zero: never
	ExpiresAt         time.Time       `json:"expires_at"`   // zero: never
	CreatedAt         time.Time       `json:"created_at"`
	AccountID         string          `json:"account_id"`
	Mode              string          `json:"mode"`
	Metadata          json.RawMessage `json:"metadata"`
	SuspendedAt       time.Time       `json:"suspended_at"`
	RevokedAt         time.Time       `json:"revoked_at"`
	StateReason       string          `json:"state_reason"`
}

// Device is a device that a license is bound to.
type Device struct {
	DeviceID   string    `json:"device_id"`
	DeviceName string    `json:"device_name"`
	BoundAt    time.Time `json:"bound_at"`
	LastSeenAt time.Time `json:"last_seen_at"`
}

// Grant says what licenses to make without an order.
type Grant struct {
	ProductID  string    `json:"product_id"`
	Quantity   int       `json:"quantity"`
	MaxDevices *int      `json:"max_devices,omitempty"` // nil: the product's; 0: unlimited
	ExpiresAt  time.Time `json:"expires_at,omitzero"`   // zero: as the product says
	Metadata   any       `json:"metadata,omitempty"`    // of each
}

// GrantLicenses makes licenses without an order.
func (c *Client) GrantLicenses(ctx context.Context, grant Grant, options ...CallOption) ([]License, error) {
	var made struct {
		Licenses []License `json:"licenses"`
	}
	err := c.do(ctx, "POST /v1/licenses", nil, nil, grant, &made, options)
	return made.Licenses, err
}

// LicenseFilter says which licenses to list: those to which all that is given
// applies.
type LicenseFilter struct {
	ProductID  string
	Status     string
	OrderNo    string
	BuyerEmail string
}

// ListLicenses reads one page of licenses, the newest first.
func (c *Client) ListLicenses(ctx context.Context, filter LicenseFilter, page Page, options ...CallOption) (*List[License], error) {
	var listed struct {
		Licenses []License `json:"licenses"`
		Next     string    `json:"next_cursor"`
	}
	query := page.query("product_id", filter.ProductID, "status", filter.Status, "order_no", filter.OrderNo, "buyer_email", filter.BuyerEmail)
	if err := c.do(ctx, "GET /v1/licenses", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[License]{listed.Licenses, listed.Next}, nil
}

// License looks a license up.
func (c *Client) License(ctx context.Context, licenseKey string, options ...CallOption) (*License, error) {
	return c.license(ctx, "GET /v1/licenses/{license_key}", licenseKey, nil, options)
}

// LicenseUpdate says what to change about a license. What is nil stays.
type LicenseUpdate struct {
	MaxDevices *int `json:"max_devices,omitempty"` // 0: unlimited
	Metadata   any  `json:"metadata,omitempty"`    // merged; a member that is null is removed
}

// UpdateLicense changes a license's limit and metadata.
func (c *Client) UpdateLicense(ctx context.Context, licenseKey string, update LicenseUpdate, options ...CallOption) (*License, error) {
	return c.license(ctx, "PATCH /v1/licenses/{license_key}", licenseKey, update, options)
}

// SuspendLicense freezes a license. The reason may be empty.
func (c *Client) SuspendLicense(ctx context.Context, licenseKey, reason string, options ...CallOption) (*License, error) {
	return c.license(ctx, "POST /v1/licenses/{license_key}/suspend", licenseKey, because{reason}, options)
}

// ReinstateLicense ends a suspension. The reason may be empty, and is not kept.
func (c *Client) ReinstateLicense(ctx context.Context, licenseKey, reason string, options ...CallOption) (*License, error) {
	return c.license(ctx, "POST /v1/licenses/{license_key}/reinstate", licenseKey, because{reason}, options)
}

// RevokeLicense disables a license for good. The reason may be empty.
func (c *Client) RevokeLicense(ctx context.Context, licenseKey, reason string, options ...CallOption) (*License, error) {
	return c.license(ctx, "POST /v1/licenses/{license_key}/revoke", licenseKey, because{reason}, options)
}

// Renewal says until when a license is good: one of both.
type Renewal struct {
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Extend    string    `json:"extend,omitempty"` // by how much longer, such as P1M or P30D
}

// RenewLicense moves a license's end.
func (c *Client) RenewLicense(ctx context.Context, licenseKey string, renewal Renewal, options ...CallOption) (*License, error) {
	return c.license(ctx, "POST /v1/licenses/{license_key}/renew", licenseKey, renewal, options)
}

// because is the body of a change that may have a reason.
type because struct {
	Reason string `json:"reason,omitempty"`
}

func (c *Client) license(ctx context.Context, route, licenseKey string, in any, options []CallOption) (*License, error) {
	l := new(License)
	if err := c.do(ctx, route, []string{licenseKey}, nil, in, l, options); err != nil {
		return nil, err
	}
	return l, nil
}

// ListDevices reads one page of a license's devices.
func (c *Client) ListDevices(ctx context.Context, licenseKey string, page Page, options ...CallOption) (*List[Device], error) {
	var listed struct {
		Devices []Device `json:"devices"`
		Next    string   `json:"next_cursor"`
	}
	if err := c.do(ctx, "GET /v1/licenses/{license_key}/devices", []string{licenseKey}, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Device]{listed.Devices, listed.Next}, nil
}

// Removal tells what became of the removal of a device.
type Removal struct {
	LicenseKey     string `json:"license_key"`
	DeviceID       string `json:"device_id"`
	Removed        bool   `json:"removed"` // false: it was not bound
	CurrentDevices int    `json:"current_devices"`
}

// RemoveDevice takes a device off a license, for the shop.
func (c *Client) RemoveDevice(ctx context.Context, licenseKey, deviceID string, options ...CallOption) (*Removal, error) {
	r := new(Removal)
	if err := c.do(ctx, "DELETE /v1/licenses/{license_key}/devices/{device_id}", []string{licenseKey, deviceID}, nil, nil, r, options); err != nil {
		return nil, err
	}
	return r, nil
}
