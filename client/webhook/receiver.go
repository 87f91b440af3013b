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

// Why a request was not taken. Compare with errors.Is.
var (
	// ErrHeaders: it lacks one of the headers webhook-id, webhook-timestamp and
	// webhook-signature, or one has not the form that it must have.
	ErrHeaders = errors.New("webhook: the headers webhook-id, webhook-timestamp and webhook-signature are missing or malformed")
	// ErrTimestamp: it was signed more than 5 minutes ago, or ahead, by the clock
	// here. Either somebody sends an old request again, or a clock is wrong.
	ErrTimestamp = errors.New("webhook: the request was signed more than 5 minutes from now")
	// ErrSignature: none of its signatures is by one of the secrets.
	ErrSignature = errors.New("webhook: no signature was made with a secret of this receiver")
	// ErrEvent: it is signed, but its body is no event of a Licet service.
	ErrEvent = errors.New("webhook: the body is no event")
)

// Tolerance is how far the time of a signature may be from now.
const Tolerance = 5 * time.Minute

const (
	secretPrefix  = "whsec_"
	minSecretSize = 24 // bytes, as Standard Webhooks 1.0 says
	maxSecretSize = 64
)

// Receiver checks and reads what a service sends to one endpoint. Make it with
// [New]. It may be used by many goroutines at once.
type Receiver struct {
	secrets []*standardwebhooks.Webhook
	now     func() time.Time
}

// New makes a receiver with the secret of an endpoint, whsec_…, and while that is
// replaced with both.
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

// parseSecret does not quote what it refuses.
func parseSecret(text string) (*standardwebhooks.Webhook, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(key) < minSecretSize || len(key) > maxSecretSize {
		return nil, fmt.Errorf("webhook: a secret must be %s and then the base64 of %d to %d bytes, as the service has shown it",
			secretPrefix, minSecretSize, maxSecretSize)
	}
	secret, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return secret, nil
}

// Receive checks a request by its header and its body, as they came, and gives
// the event in it. It fails with [ErrHeaders], [ErrTimestamp], [ErrSignature] or
// [ErrEvent].
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
	// What is signed is id.timestamp.body: a point in the id would let one request
	// be read as another.
	if id == "" || strings.Contains(id, ".") || !isTime || header.Get(standardwebhooks.HeaderWebhookSignature) == "" {
		return "", ErrHeaders
	}
	if away := r.now().Sub(signed); away > Tolerance || away < -Tolerance {
		return "", ErrTimestamp
	}
	for _, secret := range r.secrets {
		// The library's own look at the time goes by a clock that can't be set.
		if secret.VerifyIgnoringTimestamp(body, header) == nil {
			return id, nil
		}
	}
	return "", ErrSignature
}

// parseTimestamp reads whole seconds of Unix time.
func parseTimestamp(text string) (time.Time, bool) {
	const longest = 12 // digits: more is no time, and might overflow
	if text == "" || len(text) > longest || strings.ContainsFunc(text, func(c rune) bool { return c < '0' || c > '9' }) {
		return time.Time{}, false
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(seconds, 0), err == nil
}

// Sign makes the headers of a request with a body, as a service makes them with
// its secret, for tests of receivers.
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
