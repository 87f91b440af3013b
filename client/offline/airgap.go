package offline

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	"licet/receipt"
)

// airGap is the part of the state for requests, receipt files and releases.
type airGap struct {
	Key   []byte `json:"key,omitempty"`   // the seed of the key that may give the seat back
	Nonce string `json:"nonce,omitempty"` // of the request that has no receipt yet
	// Released is the receipt whose seat the device has given back: a release that got lost can be made again.
	Released string `json:"released,omitempty"`
}

// ErrNoRequest means that the device has asked for no receipt, or has taken the receipt already.
var ErrNoRequest = errors.New("offline: this device waits for no receipt")

// ErrNotFromRequest means that a release can't free the seat, because the receipt answers no Request of this device.
var ErrNotFromRequest = errors.New("offline: the receipt does not name this device's key: call Deactivate instead")

// Request returns an armored request for a receipt, which somebody carries to the service. components are as in
// [client.Activation]; nil: none. A new request replaces the one before.
func (l *License) Request(licenseKey, deviceName string, components map[string]string) (text string, err error) {
	err = l.inTurn(func(s *state) error {
		if len(s.AirGap.Key) != ed25519.SeedSize {
			_, key, err := ed25519.GenerateKey(nil)
			if err != nil {
				return err
			}
			s.AirGap.Key = key.Seed()
		}
		key := ed25519.NewKeyFromSeed(s.AirGap.Key)
		s.AirGap.Nonce = rand.Text()
		r := receipt.Request{LicenseKey: licenseKey, DeviceID: l.cfg.DeviceID, DeviceName: deviceName,
			Components: components, Nonce: s.AirGap.Nonce,
			DeviceKey: base64.RawURLEncoding.EncodeToString(key.Public().(ed25519.PublicKey))}
		text, err = r.Armor()
		return err
	})
	return text, err
}

// Import takes the armored receipt file that answers the request, and verifies it. From then on, Check asks the service
// for no receipt: the next one comes in a file, too, unless the program calls Activate.
func (l *License) Import(text string) (r *receipt.Receipt, err error) {
	err = l.inTurn(func(s *state) error {
		if s.AirGap.Nonce == "" {
			return ErrNoRequest
		}
		file, err := receipt.ParseFile(text)
		if err != nil {
			return err
		}
		verifier, d := l.verifier, receipt.Documents{Keys: file.Keys, Receipt: file.Receipt,
			Revocations: s.Documents.Revocations}
		verifier.Nonce = s.AirGap.Nonce
		held, seen, err := verifier.Verify(d, s.Seen, l.now())
		if err != nil {
			return err
		}
		s.Documents, s.Seen, s.AirGap.Nonce, s.AirGap.Released = d, seen, "", ""
		s.LicenseKey = "" // perhaps of another license
		r = held.Receipt
		return nil
	})
	return r, err
}

// Release gives this device's seat back: it forgets the receipt, and returns an armored release, which somebody carries
// to the service. Another call returns the same release again, as long as the device takes no other receipt. Release
// fails with ErrNotFromRequest or [receipt.ErrLongRelease] if the service would refuse the release: then the receipt
// stays.
func (l *License) Release() (text string, err error) {
	err = l.inTurn(func(s *state) error {
		document := s.Documents.Receipt
		if document == "" {
			document = s.AirGap.Released
		}
		if document == "" || len(s.AirGap.Key) != ed25519.SeedSize {
			return errNotActivated
		}
		key := ed25519.NewKeyFromSeed(s.AirGap.Key)
		if !receipt.NamesKey(document, key.Public().(ed25519.PublicKey)) {
			return ErrNotFromRequest
		}
		r := receipt.Release{Receipt: document, IssuedAt: l.now().Unix()}
		if text, err = r.Sign(key); err != nil {
			return fmt.Errorf("offline: sign the release: %w", err)
		}
		s.AirGap.Released, s.Documents.Receipt, s.LicenseKey = document, "", ""
		return nil
	})
	return text, err
}
