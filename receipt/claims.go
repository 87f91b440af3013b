package receipt

import (
	"encoding/json"
	"strconv"
)

// Receipt is the content of a receipt. Times whose names end in _at are as in the API's responses, RFC 3339 in UTC; the
// others are Unix seconds.
type Receipt struct {
	Issuer         string                     `json:"iss"` // the public URL of the service
	LicenseID      string                     `json:"sub"`
	ProductID      string                     `json:"aud"`
	IssuedAt       int64                      `json:"iat"` // the service's time
	NotBefore      int64                      `json:"nbf"`
	ExpiresAt      int64                      `json:"exp"`
	ID             string                     `json:"jti"`
	AccountID      string                     `json:"account_id"`
	Mode           string                     `json:"mode"` // test or live
	DeviceID       string                     `json:"device_id"`
	Status         string                     `json:"status"`       // of the license, as in the API
	MaxDevices     int                        `json:"max_devices"`  // 0: no limit
	Entitlements   map[string]json.RawMessage `json:"entitlements"` // code to true, an integer or a string
	LicenseEndsAt  *string                    `json:"license_expires_at"`
	LeaseEndsAt    *string                    `json:"lease_expires_at"`
	GraceEndsAt    *string                    `json:"grace_ends_at"`
	Trial          bool                       `json:"trial"`
	Revision       int64                      `json:"revision"`           // rises with each change that a receipt shows
	RevocationsAge int64                      `json:"revocation_max_age"` // in seconds; 0: no list is needed
	Nonce          string                     `json:"nonce,omitempty"`
	DeviceKey      string                     `json:"device_key,omitempty"` // id of the key that may give the slot back
}

// Sign returns the receipt as a document, signed with a receipt key.
func (r *Receipt) Sign(key *Signer) (string, error) {
	if r.Entitlements == nil {
		none := *r
		none.Entitlements = map[string]json.RawMessage{}
		r = &none
	}
	return key.seal(receiptType, r)
}

// openReceipt verifies a receipt under the keys of a verified set.
func openReceipt(document string, keys *KeySet) (*Receipt, error) {
	r := &Receipt{}
	if err := open(document, receiptType, maxReceipt, keys.key, r); err != nil {
		return nil, err
	}
	if r.LicenseID == "" || r.ProductID == "" || r.AccountID == "" || r.Mode == "" || r.DeviceID == "" ||
		r.IssuedAt <= 0 || r.NotBefore <= 0 || r.ExpiresAt < r.NotBefore || r.Revision <= 0 || r.RevocationsAge < 0 ||
		r.MaxDevices < 0 {
		return nil, refuse(Malformed, "a member of the receipt is out of range")
	}
	for _, value := range r.Entitlements {
		n, err := strconv.ParseInt(string(value), 10, 64)
		if string(value) != "true" && value[0] != '"' && (err != nil || !exact(n)) {
			return nil, refuse(Malformed, "an entitlement is neither true, an integer nor a text")
		}
	}
	return r, nil
}
