package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// OnRetry makes the client call f before each retry, with the error of the last try and the pause before the next
// one. If f returns false, the client does not retry.
func OnRetry(f func(err error, wait time.Duration) bool) Option {
	return func(c *Client) { c.onRetry = f }
}

// sendWithRetries tries a call until it succeeds, fails with an error that is not retryable, or its time is over.
func (c *Client) sendWithRetries(ctx context.Context, sent *call, try func() error) error {
	started := time.Now()
	for tries := 1; ; tries++ {
		err := try()
		sent.record.Tries = tries
		if err == nil || ctx.Err() != nil || !retryable(err) {
			return err
		}
		wait := backoff(err, tries)
		if time.Since(started)+wait > c.retryFor || c.onRetry != nil && !c.onRetry(err, wait) {
			return err
		}
		if sleep(ctx, wait) != nil {
			return fmt.Errorf("%w, before the next retry; the last error: %w", context.Cause(ctx), err)
		}
	}
}

// attempt sends a call once, and decodes the data of the response into out.
func (c *Client) attempt(ctx context.Context, sent *call, out any) error {
	a, err := c.send(ctx, sent)
	if err != nil {
		*sent.record = Response{}
		return sent.failed(err)
	}
	*sent.record = a.response
	if a.failure != nil {
		return a.failure
	}
	if err := json.Unmarshal(a.response.Data, out); err != nil {
		return sent.failed(errors.Join(errUnreadable, err))
	}
	return nil
}

var errUnreadable = errors.New("this version of the client does not understand the response")

// retryable reports whether sending a request again is safe and may help. It is always safe if no response came:
// a request that is not idempotent has an Idempotency-Key.
func retryable(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Retryable
	}
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name *net.DNSError
	switch {
	case errors.Is(err, errUnreadable), errors.Is(err, errResponseTooLong),
		errors.As(err, &untrusted), errors.As(err, &unknown), errors.Is(err, http.ErrSchemeMismatch):
		return false
	case errors.As(err, &name):
		return !name.IsNotFound
	}
	return true
}

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// backoff returns the pause after a number of tries: the time that the service demands, plus a random time whose
// bound doubles with each try, so that clients that failed together don't retry together.
func backoff(err error, tries int) time.Duration {
	bound := maxBackoff
	if tries < 6 {
		bound = minBackoff << (tries - 1)
	}
	wait := rand.N(bound)
	var refused *Error
	if errors.As(err, &refused) {
		wait += refused.RetryAfter
	}
	return wait
}
