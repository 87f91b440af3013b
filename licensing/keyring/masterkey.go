package keyring

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
)

const (
	// MasterKeySize is the length of a master key in bytes.
	MasterKeySize = 32
	maxMasterID   = 64
	apiSecretSize = 32
	// Standard Webhooks 1.0 requires 24 to 64 bytes.
	webhookSecretSize = 32
	payTokenSize      = 16
)

// MasterKey is a secret from which other secrets are derived. It prints as its id.
type MasterKey struct {
	ID  string
	key [MasterKeySize]byte
}

// NewMasterKey returns a master key with an id and 32 random bytes.
func NewMasterKey(id string, key [MasterKeySize]byte) (MasterKey, error) {
	if !validMasterID(id) {
		return MasterKey{}, errors.New("the id of a master key must be 1 to 64 of the characters A-Z a-z 0-9 . _ -")
	}
	return MasterKey{ID: id, key: key}, nil
}

// Line returns the key as a line of the ring file, without the line break: the id, a colon and the key
// in base64. The line is as secret as the key.
func (k MasterKey) Line() string {
	return k.ID + ":" + base64.StdEncoding.EncodeToString(k.key[:])
}

// String returns only the id, so that a log or a print by mistake does not reveal the key.
func (k MasterKey) String() string { return "master key " + k.ID }

// GoString is String for %#v.
func (k MasterKey) GoString() string { return k.String() }

// FingerprintSize is the length of a master key's fingerprint.
const FingerprintSize = 32

// Fingerprint returns the value by which a store recognizes the key under its id. The fingerprint
// reveals nothing about the key.
func (k MasterKey) Fingerprint() ([FingerprintSize]byte, error) {
	// No other derivation from the key has this info, so the fingerprint reveals no secret.
	print, err := hkdf.Key(sha256.New, k.key[:], nil, "licet master key fingerprint\x00"+k.ID, FingerprintSize)
	if err != nil {
		return [FingerprintSize]byte{}, fmt.Errorf("derive a fingerprint: %w", err)
	}
	return [FingerprintSize]byte(print), nil
}

// MasterRing contains the master keys in use. New secrets are derived from the first. The other keys are
// kept for the secrets that were derived from them before.
type MasterRing struct{ keys []MasterKey }

// ParseMasterRing parses a ring file: one id:base64-of-32-bytes a line, the current key first. It
// skips empty lines. An error names the line and never quotes it.
func ParseMasterRing(text string) (MasterRing, error) {
	var ring MasterRing
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		key, err := parseMasterKey(line)
		if err != nil {
			return MasterRing{}, fmt.Errorf("line %d of the master key ring: %w", number, err)
		}
		if _, twice := ring.Lookup(key.ID); twice {
			return MasterRing{}, fmt.Errorf("line %d of the master key ring: an earlier line has the same id", number)
		}
		ring.keys = append(ring.keys, key)
	}
	if len(ring.keys) == 0 {
		return MasterRing{}, errors.New("the master key ring is empty")
	}
	return ring, nil
}

func parseMasterKey(line string) (MasterKey, error) {
	id, encoded, found := strings.Cut(line, ":")
	if !found {
		return MasterKey{}, errors.New("a master key must be an id, a colon and 32 bytes in base64")
	}
	// The decoder's own error quotes its input, which is the secret.
	bytes, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(bytes) != MasterKeySize {
		return MasterKey{}, errors.New("the colon must be followed by 32 bytes in base64")
	}
	return NewMasterKey(id, [MasterKeySize]byte(bytes))
}

func validMasterID(id string) bool {
	if id == "" || len(id) > maxMasterID {
		return false
	}
	for _, c := range []byte(id) {
		letter := 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
		if !letter && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

// IDs returns the ids of the keys, the current key first.
func (r MasterRing) IDs() []string {
	ids := make([]string, len(r.keys))
	for i, k := range r.keys {
		ids[i] = k.ID
	}
	return ids
}

// String returns only the ids, the current key first.
func (r MasterRing) String() string { return "master key ring [" + strings.Join(r.IDs(), " ") + "]" }

// GoString is String for %#v.
func (r MasterRing) GoString() string { return r.String() }

// Current returns the key that new secrets are derived from. The ring must come from
// [ParseMasterRing].
func (r MasterRing) Current() MasterKey { return r.keys[0] }

// Lookup returns a key by its id.
func (r MasterRing) Lookup(id string) (MasterKey, bool) {
	for _, k := range r.keys {
		if k.ID == id {
			return k, true
		}
	}
	return MasterKey{}, false
}

// APISecret derives the current secret of an API key. It fails only if the ring lacks the key's master
// key.
//
// The derivation is HKDF-SHA256 and must never change: a change would break the signatures of all
// requests with existing secrets.
func (r MasterRing) APISecret(key *licensing.APIKey) (string, error) {
	return r.apiSecret(key, key.SecretVersion, key.MasterID)
}

// APISecrets derives every secret of an API key that is valid at now: the current one, and the
// previous one while a rotation's overlap lasts.
func (r MasterRing) APISecrets(key *licensing.APIKey, now time.Time) ([]string, error) {
	present, err := r.APISecret(key)
	if err != nil {
		return nil, err
	}
	if !now.Before(key.Previous.Until) {
		return []string{present}, nil
	}
	previous, err := r.apiSecret(key, key.Previous.Version, key.Previous.MasterID)
	if err != nil {
		return nil, err
	}
	return []string{present, previous}, nil
}

func (r MasterRing) apiSecret(key *licensing.APIKey, version int, masterID string) (string, error) {
	master, found := r.Lookup(masterID)
	if !found {
		return "", fmt.Errorf(
			"the master key ring lacks the key %q, which the secret of API key %s is derived from", masterID, key.ID)
	}
	// None of the parts can contain a zero byte, so no two keys share an info.
	info := strings.Join([]string{
		"licet api secret", string(key.Owner.Mode), key.ID, strconv.Itoa(version),
	}, "\x00")
	secret, err := hkdf.Key(sha256.New, master.key[:], nil, info, apiSecretSize)
	if err != nil {
		return "", fmt.Errorf("derive an API secret: %w", err)
	}
	return "lks_" + string(key.Owner.Mode) + "_" + crockfordText(secret), nil
}

// WebhookSecret derives the current secret that signs messages to an endpoint, as Standard Webhooks
// writes it. It fails only if the ring lacks the endpoint's master key.
//
// The derivation must never change, like that of [MasterRing.APISecret].
func (r MasterRing) WebhookSecret(e *licensing.Endpoint) (string, error) {
	return r.webhookSecret(e, e.SecretVersion, e.MasterID)
}

// WebhookSecrets derives every secret that signs messages to an endpoint at now, the current one
// first, as [MasterRing.APISecrets] does.
func (r MasterRing) WebhookSecrets(e *licensing.Endpoint, now time.Time) ([]string, error) {
	present, err := r.WebhookSecret(e)
	if err != nil {
		return nil, err
	}
	if !now.Before(e.Previous.Until) {
		return []string{present}, nil
	}
	previous, err := r.webhookSecret(e, e.Previous.Version, e.Previous.MasterID)
	if err != nil {
		return nil, err
	}
	return []string{present, previous}, nil
}

func (r MasterRing) webhookSecret(e *licensing.Endpoint, version int, masterID string) (string, error) {
	master, found := r.Lookup(masterID)
	if !found {
		return "", fmt.Errorf(
			"the master key ring lacks the key %q, which the secret of webhook endpoint %s is derived from", masterID,
			e.ID)
	}
	// As with API secrets, none of the parts can contain a zero byte. An endpoint id has one owner.
	info := strings.Join([]string{"licet webhook secret", e.ID, strconv.Itoa(version)}, "\x00")
	secret, err := hkdf.Key(sha256.New, master.key[:], nil, info, webhookSecretSize)
	if err != nil {
		return "", fmt.Errorf("derive a webhook secret: %w", err)
	}
	return "whsec_" + base64.StdEncoding.EncodeToString(secret), nil
}

// PayToken derives the pay token of an order from its PaySeed: 128 bits in hex. It returns an error if the ring lacks
// the master key, or has another master key under the id, so that the token is not the order's.
//
// The derivation must never change, like that of [MasterRing.APISecret].
func (r MasterRing) PayToken(o *licensing.Order) (string, error) {
	master, found := r.Lookup(o.PaySeed.MasterID)
	if !found {
		return "", fmt.Errorf("the pay token of order %s needs the master key %q, which the master key ring lacks",
			o.OrderNo, o.PaySeed.MasterID)
	}
	token, err := master.payToken(o.OrderNo, o.PaySeed.Salt)
	if err == nil && HashPayToken(token) != o.PayHash {
		err = fmt.Errorf("the pay token of order %s needs another master key %q than the ring has",
			o.OrderNo, master.ID)
	}
	return token, err
}

// NewPayToken sets the PaySeed and the PayHash of a new order to those of a token that is derived from the ring's
// current master key.
func (r MasterRing) NewPayToken(o *licensing.Order, salt [16]byte) error {
	o.PaySeed = licensing.PaySeed{MasterID: r.Current().ID, Salt: salt}
	token, err := r.Current().payToken(o.OrderNo, salt)
	o.PayHash = HashPayToken(token)
	return err
}

func (k MasterKey) payToken(orderNo string, salt [16]byte) (string, error) {
	token, err := hkdf.Key(sha256.New, k.key[:], salt[:], "licet pay token\x00"+orderNo, payTokenSize)
	if err != nil {
		return "", fmt.Errorf("derive a pay token: %w", err)
	}
	return hex.EncodeToString(token), nil
}

// HashPayToken returns the hash by which an order recognizes its pay token. As with API keys, a plain hash suffices.
func HashPayToken(token string) [sha256.Size]byte { return sha256.Sum256([]byte(token)) }

// HopKeys derives the keys that authenticate commands between nodes: one of each master key, by its
// id.
func (r MasterRing) HopKeys() (map[string][32]byte, error) {
	keys := make(map[string][32]byte, len(r.keys))
	for _, k := range r.keys {
		key, err := hkdf.Key(sha256.New, k.key[:], nil, "licet hop\x00"+k.ID, 32)
		if err != nil {
			return nil, fmt.Errorf("derive a key: %w", err)
		}
		keys[k.ID] = [32]byte(key)
	}
	return keys, nil
}
