package layout

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// Field numbers of a stored API key. Its hash is in its key.
const (
	apiKeyID            protowire.Number = 1
	apiKeyOwner         protowire.Number = 2
	apiKeyName          protowire.Number = 4
	apiKeyScope         protowire.Number = 5 // repeated
	apiKeySecretVersion protowire.Number = 6
	apiKeyMasterID      protowire.Number = 7
	apiKeyCreatedAt     protowire.Number = 8
	apiKeyExpiresAt     protowire.Number = 9
	apiKeyRevokedAt     protowire.Number = 10
	apiKeyPrevious      protowire.Number = 11
	apiKeyMustSign      protowire.Number = 12
	APIKeyWriter        protowire.Number = 13 // repeated
)

// Field numbers of the secret that a rotation has replaced.
const (
	previousVersion  protowire.Number = 1
	previousMasterID protowire.Number = 2
	previousUntil    protowire.Number = 3
)

// APIKey is the value of an API key.
type APIKey struct {
	Key     licensing.APIKey // without LastUsedAt, which has a key of its own
	Writers []Writer
	Unknown []byte // fields of a newer format, to be kept
}

// Encode returns the API key's value.
func (s *APIKey) Encode() []byte {
	k := &s.Key
	b := appendString([]byte{formatVersion}, apiKeyID, k.ID)
	b = appendOwner(b, apiKeyOwner, k.Owner)
	b = appendString(b, apiKeyName, k.Name)
	for _, scope := range k.Scopes {
		b = appendBytes(b, apiKeyScope, []byte(scope))
	}
	b = appendUint(b, apiKeySecretVersion, uint64(k.SecretVersion))
	b = appendString(b, apiKeyMasterID, k.MasterID)
	b = appendTime(b, apiKeyCreatedAt, k.CreatedAt)
	b = appendTime(b, apiKeyExpiresAt, k.ExpiresAt)
	b = appendTime(b, apiKeyRevokedAt, k.RevokedAt)
	if k.Previous != (licensing.PreviousSecret{}) {
		b = appendBytes(b, apiKeyPrevious, encodePrevious(k.Previous))
	}
	b = appendBool(b, apiKeyMustSign, k.RequireSignature)
	b = appendWriters(b, APIKeyWriter, s.Writers)
	return append(b, s.Unknown...)
}

func encodePrevious(p licensing.PreviousSecret) []byte {
	b := appendUint(nil, previousVersion, uint64(p.Version))
	b = appendString(b, previousMasterID, p.MasterID)
	return appendTime(b, previousUntil, p.Until)
}

func decodePrevious(message []byte) (licensing.PreviousSecret, error) {
	var p licensing.PreviousSecret
	err := decodeMessage(message, func(f Field) error {
		switch f.Num {
		case previousVersion:
			p.Version = f.int()
		case previousMasterID:
			p.MasterID = f.string()
		case previousUntil:
			p.Until = f.time()
		}
		return nil
	})
	return p, err
}

// DecodeAPIKey decodes the value of the API key with this hash.
func DecodeAPIKey(hash [32]byte, value []byte) (*APIKey, error) {
	s := &APIKey{Key: licensing.APIKey{Hash: hash}}
	k := &s.Key
	err := DecodeValue(value, func(f Field) (err error) {
		switch f.Num {
		case apiKeyID:
			k.ID = f.string()
		case apiKeyOwner:
			k.Owner, err = f.owner()
		case apiKeyName:
			k.Name = f.string()
		case apiKeyScope:
			k.Scopes = append(k.Scopes, f.string())
		case apiKeySecretVersion:
			k.SecretVersion = f.int()
		case apiKeyMasterID:
			k.MasterID = f.string()
		case apiKeyCreatedAt:
			k.CreatedAt = f.time()
		case apiKeyExpiresAt:
			k.ExpiresAt = f.time()
		case apiKeyRevokedAt:
			k.RevokedAt = f.time()
		case apiKeyPrevious:
			k.Previous, err = decodePrevious(f.Bytes)
		case apiKeyMustSign:
			k.RequireSignature = f.bool()
		case APIKeyWriter:
			s.Writers, err = decodeWriter(s.Writers, f.Bytes)
		default:
			s.Unknown = append(s.Unknown, f.raw...)
		}
		return err
	})
	return s, owned(k.Owner, err)
}

// keyUseAt is the one field of a stored use of an API key: when it was used.
const keyUseAt protowire.Number = 1

// EncodeKeyUse returns the value that says when an API key was used last.
func EncodeKeyUse(at time.Time) []byte { return appendTime([]byte{formatVersion}, keyUseAt, at) }

// DecodeKeyUse returns when an API key was used last.
func DecodeKeyUse(value []byte) (at time.Time, err error) {
	err = DecodeValue(value, func(f Field) error {
		if f.Num == keyUseAt {
			at = f.time()
		}
		return nil
	})
	return at, err
}
