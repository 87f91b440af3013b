package client

import "context"

// TrialTerms say how a product may be tried: once for a device, or once for an e-mail address.
type TrialTerms struct {
	Validity   string `json:"validity"`              // an ISO 8601 duration, such as P14D
	MaxDevices int    `json:"max_devices,omitempty"` // 1 to 16; 0: 1
	// Entitlements of trials, a JSON object; nil: those of the product.
	Entitlements any    `json:"entitlements,omitempty"`
	Per          string `json:"per"` // device, or email
}

// NewTrial asks for a trial of a product by a device.
type NewTrial struct {
	ProductID  string `json:"product_id"`
	AccountID  string `json:"account_id,omitempty"` // of the shop; required without an API key
	Mode       string `json:"mode,omitempty"`       // test, or live (the default without an API key)
	DeviceID   string `json:"device_id"`
	DeviceName string `json:"device_name,omitempty"`
	BuyerEmail string `json:"buyer_email,omitempty"` // required for trials per e-mail address, which need an API key
	// LeaseSeconds is as in Activation.
	LeaseSeconds int `json:"lease_seconds,omitempty"`
	ReceiptRequest
	// DeviceComponents are those of an [Activation].
	DeviceComponents map[string]string `json:"device_components,omitempty"`
}

// StartTrial issues a license for a trial and binds the device. The same device gets the same license again, until an
// order with UpgradeOf is paid; after that the error has ReasonTrialUsed.
func (c *Client) StartTrial(ctx context.Context, trial NewTrial, options ...CallOption) (*Activated, error) {
	a := new(Activated)
	if err := c.do(ctx, "POST /v1/trials", nil, nil, trial, a, options); err != nil {
		return nil, err
	}
	return a, nil
}
