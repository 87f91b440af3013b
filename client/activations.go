package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Activation names the license to activate and the device. A program that a shop sells should also set ProductID,
// AccountID and Mode, which the shop builds into the program. With AccountID, LicenseKey may be an external key.
type Activation struct {
	LicenseKey string `json:"license_key"`
	DeviceID   string `json:"device_id"`
	DeviceName string `json:"device_name,omitempty"`
	ProductID  string `json:"product_id,omitempty"`
	AccountID  string `json:"account_id,omitempty"`
	Mode       string `json:"mode,omitempty"`
	// LeaseSeconds is the length of the lease to ask for; 0: that of the product. Only for floating licenses.
	LeaseSeconds int `json:"lease_seconds,omitempty"`
	// DeviceComponents has up to eight parts of the device by name, such as disk or board, each as [ComponentHash]
	// returns it. If enough of them are those of a bound device, the device keeps its slot under the new DeviceID.
	DeviceComponents map[string]string `json:"device_components,omitempty"`
	ReceiptRequest
}

// ReceiptRequest asks for a receipt: a signed document with which a program checks its license without a network.
type ReceiptRequest struct {
	Receipt bool `json:"receipt,omitempty"` // also false leads to a receipt if the product says so
	// ReceiptSeconds is how long the receipt is to be valid at most; 0: as long as the product says.
	ReceiptSeconds int    `json:"receipt_seconds,omitempty"`
	Nonce          string `json:"nonce,omitempty"` // of up to 255 characters, which the receipt repeats
	// DeviceKey is an Ed25519 public key of the device, 32 bytes in base64url: it may give the device slot back, see
	// [ReceiptService.ReleaseSeat]. It needs a Nonce.
	DeviceKey string `json:"device_key,omitempty"`
}

// ComponentHash returns the hash of a part of a device, such as the serial number of a disk, for DeviceComponents.
func ComponentHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Activated is a license after its activation.
type Activated struct {
	LicenseKey     string    `json:"license_key"`
	Status         string    `json:"status"`
	ProductID      string    `json:"product_id"`
	DeviceID       string    `json:"device_id"`
	DeviceName     string    `json:"device_name"`
	MaxDevices     int       `json:"max_devices"` // 0: unlimited
	CurrentDevices int       `json:"current_devices"`
	ActivatedAt    time.Time `json:"activated_at"` // the first activation on any device
	ExpiresAt      time.Time `json:"expires_at"`   // zero: never
	// Grace: the license has expired, and this device may use it until GraceEndsAt. Ask the user to renew.
	Grace        bool         `json:"grace"`
	GraceEndsAt  time.Time    `json:"grace_ends_at"` // zero: after ExpiresAt, there is no grace
	Mode         string       `json:"mode"`
	AccountID    string       `json:"account_id"`
	Entitlements Entitlements `json:"entitlements"`
	Trial        bool         `json:"trial"` // the license is for a trial, and no order has upgraded it
	// LeaseExpiresAt is when the device loses its slot unless it renews its lease; zero: never. Count
	// LeaseRemainingSeconds from when you sent the request: then the clock of the device need not be right.
	LeaseExpiresAt        time.Time `json:"lease_expires_at"`
	LeaseRemainingSeconds int       `json:"lease_remaining_seconds"`
	Receipt               string    `json:"receipt"` // empty: none
}

// Activate binds a device to a license. A device that is already bound takes no further slot.
func (c *Client) Activate(ctx context.Context, activation Activation, options ...CallOption) (*Activated, error) {
	a := new(Activated)
	if err := c.do(ctx, "POST /v1/licenses/activate", nil, nil, activation, a, options); err != nil {
		return nil, err
	}
	return a, nil
}

// Validation names the license and the device to check.
type Validation struct {
	LicenseKey string `json:"license_key"`
	DeviceID   string `json:"device_id"`
	ProductID  string `json:"product_id,omitempty"`
	AccountID  string `json:"account_id,omitempty"`
	Mode       string `json:"mode,omitempty"`
	// LeaseSeconds is as in Activation. A validation renews a lease that the device holds, and takes none.
	LeaseSeconds int `json:"lease_seconds,omitempty"`
	ReceiptRequest
}

// Validity is the result of a check.
type Validity struct {
	Valid          bool      `json:"valid"`
	Reason         string    `json:"reason"` // empty if Valid
	LicenseKey     string    `json:"license_key"`
	Status         string    `json:"status"`
	ProductID      string    `json:"product_id"`
	AccountID      string    `json:"account_id"`
	Mode           string    `json:"mode"`
	DeviceID       string    `json:"device_id"`
	MaxDevices     int       `json:"max_devices"` // 0: unlimited
	CurrentDevices int       `json:"current_devices"`
	ExpiresAt      time.Time `json:"expires_at"` // zero: never
	// Grace and GraceEndsAt are as in Activated.
	Grace        bool         `json:"grace"`
	GraceEndsAt  time.Time    `json:"grace_ends_at"`
	Entitlements Entitlements `json:"entitlements"`
	Trial        bool         `json:"trial"`
	// LeaseExpiresAt and LeaseRemainingSeconds are as in Activated.
	LeaseExpiresAt        time.Time `json:"lease_expires_at"`
	LeaseRemainingSeconds int       `json:"lease_remaining_seconds"`
	Receipt               string    `json:"receipt"` // empty: none, as for any device that may not use the license
}

// Validate checks whether a device may use a license. It binds nothing.
func (c *Client) Validate(ctx context.Context, validation Validation, options ...CallOption) (*Validity, error) {
	v := new(Validity)
	if err := c.do(ctx, "POST /v1/licenses/validate", nil, nil, validation, v, options); err != nil {
		return nil, err
	}
	return v, nil
}

// Deactivation names the license and the device to remove.
type Deactivation struct {
	LicenseKey string `json:"license_key"`
	DeviceID   string `json:"device_id"`
	AccountID  string `json:"account_id,omitempty"`
	Mode       string `json:"mode,omitempty"`
}

// Deactivate removes a device from a license at the end user's request. The product of the license must allow
// that.
func (c *Client) Deactivate(ctx context.Context, deactivation Deactivation, options ...CallOption) (*Removal, error) {
	r := new(Removal)
	if err := c.do(ctx, "POST /v1/licenses/deactivate", nil, nil, deactivation, r, options); err != nil {
		return nil, err
	}
	return r, nil
}
