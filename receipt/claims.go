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
	var space [1024]byte // enough for most receipts
	content, err := r.appendTo(space[:0])
	if err != nil {
		return "", err
	}
	return key.sealed(key.receiptHead, content), nil
}

// appendTo appends the receipt as json.Marshal encodes it, in a fraction of the time: a service signs many receipts.
func (r *Receipt) appendTo(to []byte) ([]byte, error) {
	to = appendText(append(to, `{"iss":`...), r.Issuer)
	to = appendText(append(to, `,"sub":`...), r.LicenseID)
	to = appendText(append(to, `,"aud":`...), r.ProductID)
	to = strconv.AppendInt(append(to, `,"iat":`...), r.IssuedAt, 10)
	to = strconv.AppendInt(append(to, `,"nbf":`...), r.NotBefore, 10)
	to = strconv.AppendInt(append(to, `,"exp":`...), r.ExpiresAt, 10)
	to = appendText(append(to, `,"jti":`...), r.ID)
	to = appendText(append(to, `,"account_id":`...), r.AccountID)
	to = appendText(append(to, `,"mode":`...), r.Mode)
	to = appendText(append(to, `,"device_id":`...), r.DeviceID)
	to = appendText(append(to, `,"status":`...), r.Status)
	to = strconv.AppendInt(append(to, `,"max_devices":`...), int64(r.MaxDevices), 10)
	to = append(to, `,"entitlements":`...)
	if len(r.Entitlements) == 0 {
		to = append(to, "{}"...)
	} else {
		has, err := json.Marshal(r.Entitlements)
		if err != nil {
			return nil, err
		}
		to = append(to, has...)
	}
	to = appendOptional(append(to, `,"license_expires_at":`...), r.LicenseEndsAt)
	to = appendOptional(append(to, `,"lease_expires_at":`...), r.LeaseEndsAt)
	to = appendOptional(append(to, `,"grace_ends_at":`...), r.GraceEndsAt)
	to = strconv.AppendBool(append(to, `,"trial":`...), r.Trial)
	to = strconv.AppendInt(append(to, `,"revision":`...), r.Revision, 10)
	to = strconv.AppendInt(append(to, `,"revocation_max_age":`...), r.RevocationsAge, 10)
	if r.Nonce != "" {
		to = appendText(append(to, `,"nonce":`...), r.Nonce)
	}
	if r.DeviceKey != "" {
		to = appendText(append(to, `,"device_key":`...), r.DeviceKey)
	}
	return append(to, '}'), nil
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
