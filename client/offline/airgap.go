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
	Key   []byte `json:"key,omitempty"`   // the seed of the key that may give the device slot back
	Nonce string `json:"nonce,omitempty"` // of the request that has no receipt yet
	// Released is the receipt whose slot the device has given back: a release that got lost can be made again.
	Released string `json:"released,omitempty"`
}

// ErrNoRequest means that the program has asked for no receipt, or has taken the receipt already. [License.Import]
// refuses files for requests of licet offline request; use [receipt.Verifier.VerifyFile].
var ErrNoRequest = errors.New("offline: this device waits for no receipt")

// ErrNotFromRequest means that a release can't free the device slot, because the receipt answers no Request of this
// device.
var ErrNotFromRequest = errors.New("offline: the receipt does not name this device's key: call Deactivate instead")

// Request returns an armored request for a receipt, which a person carries to the service. components are as in
// [client.Activation]; nil: none. A new request replaces the one before.
func (l *License) Request(licenseKey, deviceName string, components map[string]string) (text string, err error) {
	err = l.locked(func(s *state) error {
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

// Import takes the armored receipt file that answers the last Request, and verifies it. From then on, Check asks the
// service for no receipt: the next one comes in a file, too, unless the program calls Activate.
func (l *License) Import(text string) (r *receipt.Receipt, err error) {
	err = l.locked(func(s *state) error {
		if s.AirGap.Nonce == "" {
			return ErrNoRequest
		}
		file, err := receipt.ParseFile(text)
		if err != nil {
			return err
		}
		next := *s
		next.Documents.Keys, next.Documents.Receipt = file.Keys, file.Receipt
		verified, err := l.verifyFile(s, &next)
		if err != nil {
			return err
		}
		*s = next
		s.AirGap.Nonce, s.AirGap.Released = "", ""
		s.LicenseKey = "" // perhaps of another license
		r = verified.Receipt
		return nil
	})
	return r, err
}

// verifyFile verifies the documents of next, whose set of keys and receipt come from a file, and advances next.Seen. If
// the device has seen a newer set, for example from the service, verifyFile uses the newer set. If a rotation has
// dropped the key of the stored lists, a receipt that is not older than the lists replaces them: the lists void only
// older receipts, and without this rule no file would count any more.
func (l *License) verifyFile(s, next *state) (*receipt.Verified, error) {
	verifier := l.verifier
	verifier.Nonce = s.AirGap.Nonce
	verify := func() (*receipt.Verified, error) {
		verified, seen, err := verifier.Verify(next.Documents, next.Seen, l.now())
		if err == nil {
			next.Seen = seen
		}
		return verified, err
	}
	verified, err := verify()
	if isRefused(err, receipt.KeySetDocument, receipt.Older) {
		next.Documents.Keys = s.Documents.Keys
		verified, err = verify()
	}
	var r receipt.Receipt
	receipt.Peek(next.Documents.Receipt, &r)
	if isRefused(err, receipt.RevocationsDocument, receipt.UnknownKey) && r.IssuedAt >= s.Seen.AsOf {
		next.Documents.Revocations, next.Lists = nil, listState{}
		next.Seen.Epoch, next.Seen.AsOf = 0, 0
		verified, err = verify()
	}
	return verified, err
}

// isRefused reports whether an error is the refusal of a document for a reason.
func isRefused(err error, document receipt.Kind, reason receipt.Reason) bool {
	var refused *receipt.Error
	return errors.As(err, &refused) && refused.Document == document && refused.Reason == reason
}

// Release gives this device's slot back: Release forgets the receipt, and returns an armored release, to be carried to
// the service. Another call returns the same release again, as long as the device takes no other receipt. Release
// fails with ErrNotFromRequest or [receipt.ErrLongRelease] if the service would refuse the release: then the receipt
// stays.
func (l *License) Release() (text string, err error) {
	err = l.locked(func(s *state) error {
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
