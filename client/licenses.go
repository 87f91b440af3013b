package client

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// LicenseService issues and manages licenses.
type LicenseService struct{ client *Client }

// License is a license with its devices.
type License struct {
	ID          string `json:"id"` // names the license in URLs and logs; activates nothing
	LicenseKey  string `json:"license_key"`
	ExternalKey string `json:"external_key"` // the key at the service that sold the license before; empty: none
	Status      string `json:"status"`
	ProductID   string `json:"product_id"`
	OrderNo     string `json:"order_no"` // empty: granted without an order
	// BuyerEmail is empty for a license with an order: the order names the buyer.
	BuyerEmail        string `json:"buyer_email"`
	CustomerReference string `json:"customer_reference"`
	MaxDevices        int    `json:"max_devices"` // 0: unlimited
	CurrentDevices    int    `json:"current_devices"`
	// Entitlements are those of the product when the license was issued, with the license's own on top.
	Entitlements Entitlements `json:"entitlements"`
	// EntitlementEnds has the end of each entitlement that ends by itself. Events do not have it, nor the next three.
	EntitlementEnds map[string]time.Time `json:"entitlement_ends"`
	Grace           string               `json:"grace"`          // an ISO 8601 duration after ExpiresAt; empty: none
	InactiveAfter   string               `json:"inactive_after"` // see Product
	DeviceMatch     *DeviceMatch         `json:"device_match"`   // see Product
	// DeviceMode is leased for floating licenses, else bound. See Product.
	DeviceMode      string `json:"device_mode"`
	LeaseSeconds    int    `json:"lease_seconds"`     // 0: no leases
	MaxLeaseSeconds int    `json:"max_lease_seconds"` // 0: no leases
	// Devices has at most the first 1,000 devices. In a list, Devices is empty for a license that has ever
	// had more than 16 devices. DevicesNextCursor is not empty if there are more devices.
	Devices           []Device  `json:"devices"`
	DevicesNextCursor string    `json:"devices_next_cursor"`
	ActivatedAt       time.Time `json:"activated_at"` // zero: never
	ExpiresAt         time.Time `json:"expires_at"`   // zero: never
	// GraceEndsAt is until when bound devices may use the expired license; zero: there is no grace.
	GraceEndsAt   time.Time       `json:"grace_ends_at"`
	CreatedAt     time.Time       `json:"created_at"`
	AccountID     string          `json:"account_id"`
	Mode          string          `json:"mode"`
	Metadata      json.RawMessage `json:"metadata"`
	SuspendedAt   time.Time       `json:"suspended_at"`
	RevokedAt     time.Time       `json:"revoked_at"`
	StateReason   string          `json:"state_reason"`
	Reissues      int             `json:"reissues"`    // how many new keys the license has got
	ReissuedAt    time.Time       `json:"reissued_at"` // zero: never
	ReissueReason string          `json:"reissue_reason"`
	Trial         bool            `json:"trial"` // for a trial that no order has upgraded
}

// Device is a device that a license is bound to.
type Device struct {
	DeviceID   string    `json:"device_id"`
	DeviceName string    `json:"device_name"`
	BoundAt    time.Time `json:"bound_at"`
	LastSeenAt time.Time `json:"last_seen_at"`
	// LeaseExpiresAt is when the lease of the device ends; zero: bound until it is removed.
	LeaseExpiresAt time.Time `json:"lease_expires_at"`
	ComponentNames []string  `json:"component_names"` // of the components that activations have named; see [Activation]
}

// Grant describes licenses to issue without an order.
type Grant struct {
	ProductID  string    `json:"product_id"`
	Quantity   int       `json:"quantity"`
	MaxDevices *int      `json:"max_devices,omitempty"` // nil: the product's; 0: unlimited
	ExpiresAt  time.Time `json:"expires_at,omitzero"`   // zero: the product's
	Metadata   any       `json:"metadata,omitempty"`    // of each license
	// Entitlements of each license, besides those of the product: a JSON object, see the reference. Null takes away
	// what the product has.
	Entitlements any `json:"entitlements,omitempty"`
	// ExternalKey is the key of the license at the service that sold it. It requires a Quantity of 1.
	ExternalKey string `json:"external_key,omitempty"`
	// BuyerEmail and CustomerReference say who gets the licenses.
	BuyerEmail        string `json:"buyer_email,omitempty"`
	CustomerReference string `json:"customer_reference,omitempty"`
}

// Grant issues licenses without an order.
func (s *LicenseService) Grant(ctx context.Context, grant Grant, options ...CallOption) ([]License, error) {
	var made struct {
		Licenses []License `json:"licenses"`
	}
	err := s.client.do(ctx, "POST /v1/licenses", nil, nil, grant, &made, options)
	return made.Licenses, err
}

// LicenseFilter selects licenses that match all fields that are set.
type LicenseFilter struct {
	ProductID  string
	Status     string
	OrderNo    string
	BuyerEmail string // of the license or of its order
	// CustomerReference is compared exactly.
	CustomerReference string
	// ExternalKey selects one license at most.
	ExternalKey string
}

// List reads a page of licenses, the newest first. With a BuyerEmail, those of orders come before granted ones.
func (s *LicenseService) List(
	ctx context.Context, filter LicenseFilter, page Page, options ...CallOption,
) (*List[License], error) {
	var listed struct {
		Licenses []License `json:"licenses"`
		Next     string    `json:"next_cursor"`
	}
	query := page.query("product_id", filter.ProductID, "status", filter.Status, "order_no", filter.OrderNo,
		"buyer_email", filter.BuyerEmail, "customer_reference", filter.CustomerReference,
		"external_key", filter.ExternalKey)
	if err := s.client.do(ctx, "GET /v1/licenses", nil, query, nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[License]{listed.Licenses, listed.Next}, nil
}

// All yields all licenses that match a filter, the newest first.
func (s *LicenseService) All(ctx context.Context, filter LicenseFilter) iter.Seq2[License, error] {
	return allPages(listPage, func(page Page) (*List[License], error) { return s.List(ctx, filter, page) })
}

// Get returns a license by its id or its key. Use the id, here and in the methods below: the text is in the URL,
// which proxies log.
func (s *LicenseService) Get(ctx context.Context, licenseKey string, options ...CallOption) (*License, error) {
	return s.license(ctx, "GET /v1/licenses/{license_key}", licenseKey, nil, options)
}

// LicenseUpdate contains the changes of a license. A nil field changes nothing.
type LicenseUpdate struct {
	MaxDevices *int `json:"max_devices,omitempty"` // 0: unlimited
	Metadata   any  `json:"metadata,omitempty"`    // merged into the metadata; null removes a member
	// Entitlements are added to the license's own, or replace them. Null takes an entitlement away.
	Entitlements any `json:"entitlements,omitempty"`
	// BuyerEmail and CustomerReference replace those of the license; empty: the license gets none. A license with an
	// order takes no BuyerEmail.
	BuyerEmail        *string `json:"buyer_email,omitempty"`
	CustomerReference *string `json:"customer_reference,omitempty"`
}

// MarshalJSON implements [json.Marshaler]: null removes a buyer or a reference.
func (u LicenseUpdate) MarshalJSON() ([]byte, error) {
	type fields LicenseUpdate // without this method
	return json.Marshal(struct {
		fields
		BuyerEmail        any `json:"buyer_email,omitempty"`
		CustomerReference any `json:"customer_reference,omitempty"`
	}{fields(u), orNull(u.BuyerEmail), orNull(u.CustomerReference)})
}

// orNull returns a text, null for an empty text, or nil for no text.
func orNull(text *string) any {
	switch {
	case text == nil:
		return nil
	case *text == "":
		return json.RawMessage("null")
	}
	return *text
}

// Update changes the device limit, the metadata, the entitlements and the customer of a license.
func (s *LicenseService) Update(
	ctx context.Context, licenseKey string, update LicenseUpdate, options ...CallOption,
) (*License, error) {
	return s.license(ctx, "PATCH /v1/licenses/{license_key}", licenseKey, update, options)
}

// Suspend suspends a license until it is reinstated. The reason may be empty.
func (s *LicenseService) Suspend(
	ctx context.Context, licenseKey, reason string, options ...CallOption,
) (*License, error) {
	return s.license(ctx, "POST /v1/licenses/{license_key}/suspend", licenseKey, changeReason{reason}, options)
}

// Reinstate ends a suspension. The reason may be empty, and is not stored.
func (s *LicenseService) Reinstate(
	ctx context.Context, licenseKey, reason string, options ...CallOption,
) (*License, error) {
	return s.license(ctx, "POST /v1/licenses/{license_key}/reinstate", licenseKey, changeReason{reason}, options)
}

// Revoke revokes a license, which can't be undone. The reason may be empty.
func (s *LicenseService) Revoke(
	ctx context.Context, licenseKey, reason string, options ...CallOption,
) (*License, error) {
	return s.license(ctx, "POST /v1/licenses/{license_key}/revoke", licenseKey, changeReason{reason}, options)
}

// Renewal is the new end of a license. Set exactly one field.
type Renewal struct {
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Extend    string    `json:"extend,omitempty"` // an ISO 8601 duration such as P1M or P30D
}

// Renew changes the end of a license.
func (s *LicenseService) Renew(
	ctx context.Context, licenseKey string, renewal Renewal, options ...CallOption,
) (*License, error) {
	return s.license(ctx, "POST /v1/licenses/{license_key}/renew", licenseKey, renewal, options)
}

// Reissue says how a license gets a new key.
type Reissue struct {
	Reason string `json:"reason,omitempty"`
	// Overlap is how long bound devices may still use the earlier keys: an ISO 8601 duration of up to P30D. Empty: not
	// at all.
	Overlap string `json:"overlap,omitempty"`
}

// Reissue gives a license a new key, and returns the license with this key.
func (s *LicenseService) Reissue(
	ctx context.Context, licenseKey string, reissue Reissue, options ...CallOption,
) (*License, error) {
	return s.license(ctx, "POST /v1/licenses/{license_key}/reissue", licenseKey, reissue, options)
}

// changeReason is the body of a change with an optional reason.
type changeReason struct {
	Reason string `json:"reason,omitempty"`
}

func (s *LicenseService) license(
	ctx context.Context, route, licenseKey string, in any, options []CallOption,
) (*License, error) {
	l := new(License)
	if err := s.client.do(ctx, route, []string{licenseKey}, nil, in, l, options); err != nil {
		return nil, err
	}
	return l, nil
}

// ListDevices reads a page of the devices of a license.
func (s *LicenseService) ListDevices(
	ctx context.Context, licenseKey string, page Page, options ...CallOption,
) (*List[Device], error) {
	var listed struct {
		Devices []Device `json:"devices"`
		Next    string   `json:"next_cursor"`
	}
	const route = "GET /v1/licenses/{license_key}/devices"
	if err := s.client.do(ctx, route, []string{licenseKey}, page.query(), nil, &listed, options); err != nil {
		return nil, err
	}
	return &List[Device]{listed.Devices, listed.Next}, nil
}

// AllDevices yields all devices of a license.
func (s *LicenseService) AllDevices(ctx context.Context, licenseKey string) iter.Seq2[Device, error] {
	return allPages(devicePage, func(page Page) (*List[Device], error) { return s.ListDevices(ctx, licenseKey, page) })
}

// Removal is the result of the removal of a device.
type Removal struct {
	LicenseKey     string `json:"license_key"`
	DeviceID       string `json:"device_id"`
	Removed        bool   `json:"removed"` // false: the device was not bound
	CurrentDevices int    `json:"current_devices"`
}

// RemoveDevice removes a device from a license. It needs an API key; see [Client.Deactivate] for end users.
func (s *LicenseService) RemoveDevice(
	ctx context.Context, licenseKey, deviceID string, options ...CallOption,
) (*Removal, error) {
	r := new(Removal)
	const route = "DELETE /v1/licenses/{license_key}/devices/{device_id}"
	if err := s.client.do(ctx, route, []string{licenseKey, deviceID}, nil, nil, r, options); err != nil {
		return nil, err
	}
	return r, nil
}
