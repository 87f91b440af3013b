package webhook

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	secretPrefix  = "whsec_"
	secretSize    = 32 // bytes of a new secret
	minSecretSize = 24 // as Standard Webhooks 1.0 says
	maxSecretSize = 64
)

// Secret signs the messages to one endpoint. Make it with [NewSecret] or [ParseSecret].
type Secret struct {
	key string // a string, so that secrets are comparable and immutable
}

// NewSecret reads a new secret from entropy, such as crypto/rand.Reader.
func NewSecret(entropy io.Reader) (Secret, error) {
	key := make([]byte, secretSize)
	if _, err := io.ReadFull(entropy, key); err != nil {
		return Secret{}, fmt.Errorf("entropy for a webhook secret: %w", err)
	}
	return Secret{string(key)}, nil
}

// ParseSecret parses a secret in the form of [Secret.Text]. Its error does not quote the text.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	secret := Secret{string(key)}
	// Each secret has one text only, so an accepted text must be equal to Text.
	if err != nil || secret.Text() != text || len(key) < minSecretSize || len(key) > maxSecretSize {
		return Secret{}, fmt.Errorf("a webhook secret must be %s followed by the base64 of %d to %d bytes",
			secretPrefix, minSecretSize, maxSecretSize)
	}
	return secret, nil
}

// Text returns the secret in the form that receivers need: whsec_…
func (s Secret) Text() string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// String hides the secret, so that logs do too.
func (s Secret) String() string { return secretPrefix + "…" }

// GoString hides the secret for %#v.
func (s Secret) GoString() string { return s.String() }

// Secrets are the secrets of one endpoint: the current secret, and the previous secret while the current one is
// new.
type Secrets struct {
	Current       Secret
	Previous      Secret
	PreviousUntil time.Time // zero: there is no previous secret
}

// Rotate makes fresh the current secret. The current secret becomes the previous one and stays valid for overlap.
// At most two secrets are valid.
func (s Secrets) Rotate(fresh Secret, now time.Time, overlap time.Duration) Secrets {
	if overlap <= 0 {
		return Secrets{Current: fresh}
	}
	return Secrets{Current: fresh, Previous: s.Current, PreviousUntil: now.Add(overlap)}
}

// Live returns the secrets that are valid now, newest first.
func (s Secrets) Live(now time.Time) []Secret {
	if now.Before(s.PreviousUntil) {
		return []Secret{s.Current, s.Previous}
	}
	return []Secret{s.Current}
}

// signature returns the value of the header webhook-signature.
func signature(secrets []Secret, id string, at time.Time, body []byte) (string, error) {
	signatures := make([]string, len(secrets))
	for i, secret := range secrets {
		signer, err := standardwebhooks.NewWebhookRaw([]byte(secret.key))
		if err != nil {
			return "", err
		}
		if signatures[i], err = signer.Sign(id, at, body); err != nil {
			return "", err
		}
	}
	return strings.Join(signatures, " "), nil
}
