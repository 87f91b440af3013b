package receipt

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// The types of the documents, in the header.
const (
	receiptType     = "licet-receipt+jwt"
	keySetType      = "licet-keys+jwt"
	revocationsType = "licet-revocations+jwt"
	releaseType     = "licet-release+jwt"
)

// The largest documents, in characters. A receipt has at most 64 entitlements and a license's own 4 KiB.
const (
	maxReceipt     = 64 << 10
	maxKeySet      = 64 << 10
	maxRevocations = 16 << 20
)

// encoding is base64url without padding, RFC 7515 section 2. Strict: a text has one encoding only.
var encoding = base64.RawURLEncoding.Strict()

// unbase64 decodes base64url. It refuses line breaks, which encoding/base64 skips.
func unbase64(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("a line break in base64url")
	}
	return encoding.DecodeString(text)
}

// header is the header of a document.
type header struct {
	Algorithm string          `json:"alg"`
	KeyID     string          `json:"kid"`
	Type      string          `json:"typ"`
	Critical  json.RawMessage `json:"crit,omitempty"`
}

// Signer signs documents with the private half of a key.
type Signer struct {
	key         ed25519.PrivateKey // crypto/ed25519 keeps the expanded key of this slice while the slice is in use
	keyID       string
	receiptHead []byte // encoded, since most documents are receipts
}

// NewSigner returns the signer with a key.
func NewSigner(key ed25519.PrivateKey) *Signer {
	s := &Signer{key: key}
	s.keyID = KeyID(s.Public())
	s.receiptHead = s.head(receiptType)
	return s
}

// Public returns the public half of the key.
func (s *Signer) Public() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// KeyID returns the id of the key, see [KeyID].
func (s *Signer) KeyID() string { return s.keyID }

// head returns the encoded header of a document.
func (s *Signer) head(documentType string) []byte {
	return encoding.AppendEncode(nil, []byte(`{"alg":"EdDSA","kid":"`+s.keyID+`","typ":"`+documentType+`"}`))
}

// seal returns content as a signed document.
func (s *Signer) seal(documentType string, content any) (string, error) {
	encoded, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	return s.sealed(s.head(documentType), encoded), nil
}

// sealed returns content, which is a JSON object, as a signed document with an encoded header.
func (s *Signer) sealed(head, content []byte) string {
	length := len(head) + len(".") + encoding.EncodedLen(len(content)) + len(".") +
		encoding.EncodedLen(ed25519.SignatureSize)
	var space [2048]byte // enough for most receipts
	document := append(append(slices.Grow(space[:0], length), head...), '.')
	document = encoding.AppendEncode(document, content)
	signature := ed25519.Sign(s.key, document)
	return string(encoding.AppendEncode(append(document, '.'), signature))
}

// Peek decodes the content of a document without verifying anything, as far as that works: only to know which document
// it is.
func Peek(document string, content any) {
	if parts := strings.Split(document, "."); len(parts) == 3 {
		text, _ := unbase64(parts[1])
		_ = json.Unmarshal(text, content)
	}
}

// open verifies a document and decodes its content. keyOf returns the key of an id, nil if it is not known.
func open(document, documentType string, longest int, keyOf func(id string) ed25519.PublicKey, content any) error {
	if len(document) > longest {
		return refuse(Malformed, "longer than %d characters", longest)
	}
	parts := strings.Split(document, ".")
	if len(parts) != 3 {
		return refuse(Malformed, "%d parts, want 3", len(parts))
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = unbase64(part); err != nil {
			return refuse(Malformed, "part %d is not base64url", i+1)
		}
	}
	var head header
	if err := decode(decoded[0], &head); err != nil {
		return err
	}
	switch {
	case head.Critical != nil:
		return refuse(Malformed, "crit names extensions, and this format has none")
	case head.Algorithm != "EdDSA" && head.Algorithm != "Ed25519": // RFC 8037, RFC 9864
		return refuse(Algorithm, "alg is not EdDSA")
	case head.Type != documentType:
		return refuse(Type, "typ is not %s", documentType)
	}
	key := keyOf(head.KeyID)
	if key == nil {
		return refuse(UnknownKey, "kid is not a known key")
	}
	if !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), decoded[2]) {
		return refuse(Signature, "the signature is wrong")
	}
	return decode(decoded[1], content)
}
