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
	secretSize    = 32 // bytes of those that are made here
	minSecretSize = 24 // as Standard Webhooks 1.0 says
	maxSecretSize = 64
)

// Secret signs what is sent to one endpoint. Make it with [NewSecret] or
// [ParseSecret].
type Secret struct {
	key string // a string, so that secrets can be compared and not changed
}

// NewSecret makes a secret of entropy, such as crypto/rand.Reader gives.
func NewSecret(entropy io.Reader) (Secret, error) {
	key := make([]byte, secretSize)
	if _, err := io.ReadFull(entropy, key); err != nil {
		return Secret{}, fmt.Errorf("entropy for a webhook secret: %w", err)
	}
	return Secret{string(key)}, nil
}

// ParseSecret reads a secret as [Secret.Text] gives it. It does not quote what it
// refuses.
func ParseSecret(text string) (Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	secret := Secret{string(key)}
	// Written again it must be the same: there is one way to write a secret.
	if err != nil || secret.Text() != text || len(key) < minSecretSize || len(key) > maxSecretSize {
		return Secret{}, fmt.Errorf("a webhook secret must be %s and then the base64 of %d to %d bytes", secretPrefix, minSecretSize, maxSecretSize)
	}
	return secret, nil
}

// Text is the secret as its receiver needs it: whsec_…
func (s Secret) Text() string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// String does not tell the secret, so that no log does.
func (s Secret) String() string { return secretPrefix + "…" }

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// Secrets are those of one endpoint: the one that it has, and while that is new
// the one before.
type Secrets struct {
	Current       Secret
	Previous      Secret
	PreviousUntil time.Time // zero: there is none
}

// Rotate puts a new secret in the place of the current one, which stays good for
// an overlap. One before that is dropped, so that there are never more than two.
func (s Secrets) Rotate(fresh Secret, now time.Time, overlap time.Duration) Secrets {
	if overlap <= 0 {
		return Secrets{Current: fresh}
	}
	return Secrets{Current: fresh, Previous: s.Current, PreviousUntil: now.Add(overlap)}
}

// Live are the secrets that sign now, the newest first.
func (s Secrets) Live(now time.Time) []Secret {
	if now.Before(s.PreviousUntil) {
		return []Secret{s.Current, s.Previous}
	}
	return []Secret{s.Current}
}

// signature is the value of the header webhook-signature.
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
