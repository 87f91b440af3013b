package receipt

import (
	"crypto/ed25519"
	"crypto/sha256"
	"strings"
)

// rootPrefix begins the text of a root key's public half.
const rootPrefix = "licet_root_"

// FormatRoot returns the text of a root key's public half, as programs embed it: licet_root_ and 43 characters of
// base64url.
func FormatRoot(root ed25519.PublicKey) string { return rootPrefix + encoding.EncodeToString(root) }

// ParseRoot returns the public half of a root key.
func ParseRoot(text string) (ed25519.PublicKey, error) {
	raw, err := unbase64(strings.TrimPrefix(text, rootPrefix))
	if err != nil || len(raw) != ed25519.PublicKeySize || !strings.HasPrefix(text, rootPrefix) {
		return nil, refuse(Malformed, "a root key is %s and 43 characters", rootPrefix)
	}
	return raw, nil
}

// JSONWebKey is the public half of a receipt key, RFC 8037.
type JSONWebKey struct {
	Type      string `json:"kty"` // OKP
	Curve     string `json:"crv"` // Ed25519
	Public    string `json:"x"`   // 32 bytes in base64url
	ID        string `json:"kid"`
	Use       string `json:"use"` // sig
	Algorithm string `json:"alg"` // EdDSA
}

// NewJSONWebKey returns a public key as a JSON Web Key.
func NewJSONWebKey(key ed25519.PublicKey) JSONWebKey {
	return JSONWebKey{Type: "OKP", Curve: "Ed25519", Public: encoding.EncodeToString(key), ID: KeyID(key), Use: "sig",
		Algorithm: "EdDSA"}
}

// UnmarshalJSON reads the members that a document must have, and ignores the others.
func (k *JSONWebKey) UnmarshalJSON(text []byte) error {
	var read struct {
		Type   string `json:"kty"`
		Curve  string `json:"crv"`
		Public string `json:"x"`
		ID     string `json:"kid"`
	}
	if err := fill(text, &read); err != nil {
		return err
	}
	*k = JSONWebKey{Type: read.Type, Curve: read.Curve, Public: read.Public, ID: read.ID}
	return nil
}

// key returns the public key, nil if it is not one of Ed25519 under its own id.
func (k *JSONWebKey) key() ed25519.PublicKey {
	raw, err := unbase64(k.Public)
	if err != nil || len(raw) != ed25519.PublicKeySize || k.Type != "OKP" || k.Curve != "Ed25519" ||
		k.ID != KeyID(raw) {
		return nil
	}
	return raw
}

// KeyID returns the id of a key: its thumbprint, RFC 7638 with the members of RFC 8037 appendix A.3, in base64url.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + encoding.EncodeToString(key) + `"}`))
	return encoding.EncodeToString(sum[:])
}

// KeyIDOf returns the id of a public key in base64url; empty if the text is not a key.
func KeyIDOf(public string) string {
	raw, err := unbase64(public)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return ""
	}
	return KeyID(raw)
}
