package receipt

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"time"
)

// Request asks for a receipt for a device without network. A person carries the request to the service.
type Request struct {
	LicenseKey string            `json:"license_key"`
	DeviceID   string            `json:"device_id"`
	DeviceName string            `json:"device_name,omitempty"`
	Components map[string]string `json:"device_components,omitempty"` // as in an activation
	// Nonce is random. The device takes only a receipt that has it.
	Nonce string `json:"nonce"`
	// DeviceKey is the public half of the device's key, 32 bytes in base64url: it may give the device slot back.
	DeviceKey string `json:"device_key,omitempty"`
}

// Armor returns the request as an armored text.
func (r *Request) Armor() (string, error) { return armor(requestArmor, r) }

// ParseRequest reads an armored request. Its members are not checked: the service does that.
func ParseRequest(text string) (*Request, error) {
	r := &Request{}
	if err := disarm(requestArmor, text, r); err != nil {
		return nil, err
	}
	return r, nil
}

// File carries a receipt, and the set of keys that verifies it, to a device without network.
type File struct {
	Keys    string `json:"keys"`
	Receipt string `json:"receipt"`
}

// Armor returns the file as an armored text.
func (f *File) Armor() (string, error) { return armor(fileArmor, f) }

// ParseFile reads an armored receipt file. A [Verifier] verifies the documents in it.
func ParseFile(text string) (*File, error) {
	f := &File{}
	if err := disarm(fileArmor, text, f); err != nil {
		return nil, err
	}
	return f, nil
}

// VerifyFile verifies a receipt file. It is like Verify without lists of revocations, except that an empty AccountID,
// Mode, ProductID or DeviceID of the Verifier takes any. It knows nothing of what the device has seen before: it takes
// a receipt that is older than another one, and does not notice a clock that was set back.
func (v *Verifier) VerifyFile(f *File, now time.Time) (*Receipt, error) {
	var unverified Receipt
	Peek(f.Receipt, &unverified)
	w := *v
	w.AccountID, w.Mode = cmp.Or(v.AccountID, unverified.AccountID), cmp.Or(v.Mode, unverified.Mode)
	w.ProductID, w.DeviceID = cmp.Or(v.ProductID, unverified.ProductID), cmp.Or(v.DeviceID, unverified.DeviceID)
	verified, _, err := w.Verify(Documents{Keys: f.Keys, Receipt: f.Receipt}, Seen{}, now)
	if err != nil {
		return nil, err
	}
	return verified.Receipt, nil
}

// NamesKey reports whether a receipt, which is not verified, names a key that may give the device slot back.
func NamesKey(document string, key ed25519.PublicKey) bool {
	var unverified Receipt
	Peek(document, &unverified)
	return unverified.DeviceKey == KeyID(key)
}

// Release is a device's signed statement that it gives its slot back. A person carries the release to the service.
type Release struct {
	Receipt  string `json:"receipt"` // the device's, which names the key that may give the device slot back
	IssuedAt int64  `json:"iat"`     // Unix seconds, by the device's clock: for people
	Key      string `json:"key"`     // the public half of that key, in base64url
}

type armoredRelease struct {
	Release string `json:"release"`
}

// ErrLongRelease means that a release is too long for the service, because its receipt has many entitlements.
var ErrLongRelease = errors.New("receipt: the release would be too long for the service, since the receipt has many " +
	"entitlements: remove the device with an API key instead")

// Sign returns the release as an armored text, signed with the device's key. It fails with ErrLongRelease.
func (r *Release) Sign(key ed25519.PrivateKey) (string, error) {
	signed := *r
	signed.Key = encoding.EncodeToString(key.Public().(ed25519.PublicKey))
	document, err := NewSigner(key).seal(releaseType, &signed)
	if err != nil {
		return "", err
	}
	text, err := armor(releaseArmor, armoredRelease{document})
	if len(text) > maxRelease {
		return "", ErrLongRelease
	}
	return text, err
}

// ReleaseOwner returns the account and the mode that an armored release names, without verifying the release. The
// receipt keys of that account verify it, see [OpenRelease].
func ReleaseOwner(text string) (accountID, mode string, err error) {
	var in armoredRelease
	if err := disarm(releaseArmor, text, &in); err != nil {
		return "", "", err
	}
	var release Release
	var r Receipt
	Peek(in.Release, &release)
	Peek(release.Receipt, &r)
	return r.AccountID, r.Mode, nil
}

// OpenRelease verifies an armored release under the receipt keys of an account, and returns the receipt in it. The
// receipt may have ended: a device may give its slot back late.
func OpenRelease(text string, keys *KeySet) (*Receipt, error) {
	var in armoredRelease
	if err := disarm(releaseArmor, text, &in); err != nil {
		return nil, err
	}
	named := namedKey(in.Release)
	var r Release
	err := open(in.Release, releaseType, maxArmored, func(id string) ed25519.PublicKey {
		if named == nil || id != KeyID(named) {
			return nil
		}
		return named
	}, &r)
	if err != nil {
		return nil, err
	}
	receipt, err := openReceipt(r.Receipt, keys)
	switch {
	case err != nil:
		return nil, err
	case receipt.DeviceKey == "" || receipt.DeviceKey != KeyID(named):
		return nil, refuse(UnknownKey, "the receipt names no key, or another one, that may give the device slot back")
	}
	return receipt, nil
}

// namedKey returns the key that a release says has signed it; nil if it names none. The release's receipt proves that
// this key may give the device slot back.
func namedKey(document string) ed25519.PublicKey {
	var unverified Release
	Peek(document, &unverified)
	raw, err := unbase64(unverified.Key)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil
	}
	return raw
}
