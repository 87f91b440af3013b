package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The reasons why a Receiver refuses a request. Compare with errors.Is.
var (
	// ErrHeaders means that webhook-id, webhook-timestamp or webhook-signature is missing or malformed.
	ErrHeaders = errors.New("webhook: the headers webhook-id, webhook-timestamp and webhook-signature " +
		"are missing or malformed")
	// ErrTimestamp means that the request was signed more than 5 minutes before or after now. Either the request
	// is a replay, or a clock is wrong.
	ErrTimestamp = errors.New("webhook: the request was signed more than 5 minutes from now")
	// ErrSignature means that no secret of the receiver has made one of the signatures.
	ErrSignature = errors.New("webhook: no signature matches a secret of this receiver")
	// ErrEvent means that the signature is valid, but the body is no event of a Licet service.
	ErrEvent = errors.New("webhook: the body is not an event")
)

// Tolerance bounds the difference between the time of a signature and now.
const Tolerance = 5 * time.Minute

const (
	secretPrefix  = "whsec_"
	minSecretSize = 24 // bytes, as Standard Webhooks 1.0 says
	maxSecretSize = 64
)

// Receiver verifies and reads the requests of a service to one endpoint. Make it with [New]. It is safe for
// concurrent use.
type Receiver struct {
	secrets []*standardwebhooks.Webhook
	now     func() time.Time
}

// New returns a receiver with the secrets of an endpoint, whsec_…. An endpoint has two secrets while one is being
// replaced.
func New(secrets ...string) (*Receiver, error) {
	if len(secrets) == 0 {
		return nil, errors.New("webhook: a receiver needs the secret of its endpoint")
	}
	r := &Receiver{now: time.Now}
	for _, text := range secrets {
		secret, err := parseSecret(text)
		if err != nil {
			return nil, err
		}
		r.secrets = append(r.secrets, secret)
	}
	return r, nil
}

// parseSecret parses a secret. Its error does not quote the secret.
func parseSecret(text string) (*standardwebhooks.Webhook, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(key) < minSecretSize || len(key) > maxSecretSize {
		return nil, fmt.Errorf("webhook: a secret must be %s and then the base64 of %d to %d bytes, "+
			"as the service has shown it",
			secretPrefix, minSecretSize, maxSecretSize)
	}
	secret, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return secret, nil
}

// Receive verifies a request by its header and its unchanged body, and returns the event. The error is [ErrHeaders],
// [ErrTimestamp], [ErrSignature] or [ErrEvent].
func (r *Receiver) Receive(header http.Header, body []byte) (*Event, error) {
	id, err := r.verify(header, body)
	if err != nil {
		return nil, err
	}
	return parseEvent(id, body)
}

func (r *Receiver) verify(header http.Header, body []byte) (id string, err error) {
	id = header.Get(standardwebhooks.HeaderWebhookID)
	signed, isTime := parseTimestamp(header.Get(standardwebhooks.HeaderWebhookTimestamp))
	// The signature covers id.timestamp.body. With a dot in the id, one signature would fit two requests.
	if id == "" || strings.Contains(id, ".") || !isTime || header.Get(standardwebhooks.HeaderWebhookSignature) == "" {
		return "", ErrHeaders
	}
	if away := r.now().Sub(signed); away > Tolerance || away < -Tolerance {
		return "", ErrTimestamp
	}
	for _, secret := range r.secrets {
		// The library's own check of the timestamp uses a clock that tests can't set.
		if secret.VerifyIgnoringTimestamp(body, header) == nil {
			return id, nil
		}
	}
	return "", ErrSignature
}

// parseTimestamp reads whole seconds of Unix time.
func parseTimestamp(text string) (time.Time, bool) {
	const longest = 12 // digits; a longer number may overflow
	noDigit := func(c rune) bool { return c < '0' || c > '9' }
	if text == "" || len(text) > longest || strings.ContainsFunc(text, noDigit) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// Sign returns the headers of a request with a body, as a service with the given secret sends them. It is for tests
// of receivers.
func Sign(secret, id string, at time.Time, body []byte) (http.Header, error) {
	key, err := parseSecret(secret)
	if err != nil {
		return nil, err
	}
	signature, err := key.Sign(id, at, body)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return header, nil
}
