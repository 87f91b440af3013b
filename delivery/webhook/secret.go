package webhook

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	secretPrefix  = "whsec_"
	minSecretSize = 24 // as Standard Webhooks 1.0 says
	maxSecretSize = 64
)

// Secret signs the messages to one endpoint. Make it with [ParseSecret].
type Secret struct {
	key string // a string, so that secrets are comparable and immutable
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
