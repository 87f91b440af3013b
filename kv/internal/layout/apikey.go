package layout

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
)

// APIKeyWriter is the number of the repeated field with the writers of an API key.
const APIKeyWriter protowire.Number = 13

// APIKey is the value of an API key. The API key's hash is in the key.
type APIKey struct {
	Key     licensing.APIKey // without LastUsedAt, which has a key of its own
	Writers []Writer
	Unknown []byte // fields of a newer format, to be kept
}

func (s *APIKey) table() fieldTable {
	k := &s.Key
	return fieldTable{
		textField(1, &k.ID),
		ownerField(2, &k.Owner),
		textField(4, &k.Name),
		textsField(5, &k.Scopes),
		numberField(6, &k.SecretVersion),
		textField(7, &k.MasterID),
		timeField(8, &k.CreatedAt),
		timeField(9, &k.ExpiresAt),
		timeField(10, &k.RevokedAt),
		messageField(11, &k.Previous, previousTable),
		boolField(12, &k.RequireSignature),
		writersField(APIKeyWriter, &s.Writers),
		unknownFields(&s.Unknown),
	}
}

// previousTable lists the fields of the secret that a rotation has replaced.
func previousTable(p *licensing.PreviousSecret) fieldTable {
	return fieldTable{numberField(1, &p.Version), textField(2, &p.MasterID), timeField(3, &p.Until)}
}

// Encode returns the API key's value.
func (s *APIKey) Encode() []byte { return s.table().value() }

// DecodeAPIKey decodes the value of the API key with this hash.
func DecodeAPIKey(hash [32]byte, value []byte) (*APIKey, error) {
	s := &APIKey{Key: licensing.APIKey{Hash: hash}}
	err := DecodeValue(value, s.table().read)
	return s, owned(s.Key.Owner, err)
}

// keyUseTable lists the one field of a use of an API key.
func keyUseTable(at *time.Time) fieldTable { return fieldTable{timeField(1, at)} }

// EncodeKeyUse returns the value that says when an API key was used last.
func EncodeKeyUse(at time.Time) []byte { return keyUseTable(&at).value() }

// DecodeKeyUse returns when an API key was used last.
func DecodeKeyUse(value []byte) (at time.Time, err error) {
	if err = DecodeValue(value, keyUseTable(&at).read); err != nil {
		return time.Time{}, err
	}
	return at, nil
}
