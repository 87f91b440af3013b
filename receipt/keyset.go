package receipt

import "crypto/ed25519"

// KeySet is the set of receipt keys of an account in a mode.
type KeySet struct {
	Issuer    string       `json:"iss"` // the public URL of the service
	AccountID string       `json:"account_id"`
	Mode      string       `json:"mode"`
	IssuedAt  int64        `json:"iat"` // in Unix seconds, as all times of a document
	ExpiresAt int64        `json:"exp"`
	Keys      []JSONWebKey `json:"keys"` // 1 to 16
}

const maxKeys = 16

// Sign returns the set as a document, signed with the root key.
func (s *KeySet) Sign(root *Signer) (string, error) { return root.seal(keySetType, s) }

// openKeySet verifies a signed set of receipt keys under the root key.
func openKeySet(document string, root ed25519.PublicKey) (*KeySet, error) {
	s := &KeySet{}
	rootID := KeyID(root)
	err := open(document, keySetType, maxKeySet, func(id string) ed25519.PublicKey {
		if id != rootID {
			return nil
		}
		return root
	}, s)
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	for i := range s.Keys {
		ids[s.Keys[i].ID] = true
	}
	if s.AccountID == "" || s.Mode == "" || s.IssuedAt <= 0 || s.ExpiresAt <= s.IssuedAt ||
		len(s.Keys) < 1 || len(s.Keys) > maxKeys || len(ids) != len(s.Keys) {
		return nil, refuse(Malformed, "a member of the set of keys is out of range")
	}
	return s, nil
}

// key returns the receipt key of an id, nil if the set does not have it.
func (s *KeySet) key(id string) ed25519.PublicKey {
	for i := range s.Keys {
		if s.Keys[i].ID == id {
			return s.Keys[i].key()
		}
	}
	return nil
}
