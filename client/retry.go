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

// OnRetry has a function called each time before a request is sent again, with
// what happened and how long it will wait. Where it answers false the request is
// not sent again.
func OnRetry(f func(err error, wait time.Duration) bool) Option {
	return func(c *Client) { c.onRetry = f }
}

// persist sends a call until it is answered for good, or its time is over.
func (c *Client) persist(ctx context.Context, asked *call, out any) error {
	started := time.Now()
	for tries := 1; ; tries++ {
		err := c.attempt(ctx, asked, out)
		asked.record.Tries = tries
		if err == nil || ctx.Err() != nil || !mayHelp(err) {
			return err
		}
		wait := pause(err, tries)
		if time.Since(started)+wait > c.retryFor || c.onRetry != nil && !c.onRetry(err, wait) {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w, before it was sent again after: %w", context.Cause(ctx), err)
		}
	}
}

// attempt sends a call once, and reads what it answers into out.
func (c *Client) attempt(ctx context.Context, asked *call, out any) error {
	a, err := c.send(ctx, asked)
	if err != nil {
		*asked.record = Response{}
		return asked.failed(err)
	}
	*asked.record = a.response
	if a.failure != nil {
		return a.failure
	}
	if err := json.Unmarshal(a.response.Data, out); err != nil {
		return asked.failed(errors.Join(errUnreadable, err))
	}
	return nil
}

var errUnreadable = errors.New("the answer is not what this version of the client understands")

// mayHelp tells whether sending a request again is safe and may help. Safe it is
// wherever no answer came: what is not the same however often it is sent has an
// Idempotency-Key.
func mayHelp(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Retryable
	}
	var untrusted *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var name *net.DNSError
	switch {
	case errors.Is(err, errUnreadable), errors.Is(err, errAnswerTooLong),
		errors.As(err, &untrusted), errors.As(err, &unknown), errors.Is(err, http.ErrSchemeMismatch):
		return false
	case errors.As(err, &name):
		return !name.IsNotFound
	}
	return true
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// pause is how long to wait after so many tries: what the service has asked for,
// and up to twice as long as the last time at random on top, so that those who
// failed together don't come back together.
func pause(err error, tries int) time.Duration {
	most := maxPause
	if tries < 6 {
		most = firstPause << (tries - 1)
	}
	wait := rand.N(most)
	var refused *Error
	if errors.As(err, &refused) {
		wait += refused.RetryAfter
	}
	return wait
}
