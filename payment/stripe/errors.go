package stripe

import (
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/payment"
)

// cause says what an error of a request means for the next step.
type cause int

const (
	causeNone      cause = iota
	causeUnknown         // no answer, or none of Stripe's: the request may have been executed
	causeLater           // Stripe has not executed the request, and a later request may succeed
	causeRefused         // Stripe has refused the request for good
	causeMissing         // there is no such object, in the path or in the parameters
	causeKey             // the secret key is wrong
	causeForbidden       // the secret key lacks a permission
	causeSpent           // an error 500, which Stripe repeats under the same idempotency key
	causeMismatch        // the idempotency key was used with other parameters
)

// causeOf returns the cause of an error that the SDK has returned.
func causeOf(err error) cause {
	var failure *sdk.Error
	switch {
	case err == nil:
		return causeNone
	case !errors.As(err, &failure):
		return causeUnknown
	case failure.Type == sdk.ErrorTypeIdempotency && failure.HTTPStatusCode == http.StatusBadRequest:
		return causeMismatch
	}
	switch status := failure.HTTPStatusCode; {
	case status == http.StatusUnauthorized:
		return causeKey
	case status == http.StatusForbidden:
		return causeForbidden
	case status == http.StatusNotFound || failure.Code == sdk.ErrorCodeResourceMissing:
		return causeMissing
	case status == http.StatusConflict || status == http.StatusTooManyRequests:
		// 409: a request with the same key is under way. 429: too many requests, or a lock of the object.
		return causeLater
	case status == http.StatusInternalServerError:
		return causeSpent
	case status >= http.StatusInternalServerError:
		return causeUnknown // of a proxy, which does not know what Stripe answers
	case status >= http.StatusBadRequest:
		return causeRefused // among them 402: Stripe has no money to send back, or the card is declined
	}
	return causeUnknown
}

// notFound reports whether Stripe does not know the object that the path of the request names.
func notFound(err error) bool {
	var failure *sdk.Error
	return errors.As(err, &failure) && failure.HTTPStatusCode == http.StatusNotFound
}

// replayed reports whether Stripe repeats what it answered earlier under the same idempotency key.
func replayed(response *sdk.APIResponse) bool {
	return response != nil && response.Header.Get("Idempotent-Replayed") == "true"
}

// replayedError reports whether Stripe repeats an error.
func replayedError(err error) bool {
	var failure *sdk.Error
	return errors.As(err, &failure) && replayed(failure.LastResponse)
}

// failed returns the error of an operation that Stripe has not completed; nil if err is nil. The error is
// payment.ErrForbidden if the key lacks a permission. The text is fit for a log: it has no text of the request, such
// as the buyer's address, which Stripe's own messages repeat.
func failed(operation string, err error) error {
	var failure *sdk.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failure):
		return fmt.Errorf("%s at Stripe: %w", operation, plainError(err))
	}
	text := fmt.Sprintf("%s at Stripe: status %d", operation, failure.HTTPStatusCode)
	for _, detail := range []struct{ name, value string }{
		{"type", string(failure.Type)}, {"code", string(failure.Code)}, {"parameter", failure.Param},
		{"request", failure.RequestID},
	} {
		if detail.value != "" {
			text += ", " + detail.name + " " + detail.value
		}
	}
	switch causeOf(err) { // whose texts name the missing permission, and only a part of the key
	case causeKey:
		text += ": " + failure.Msg
	case causeForbidden:
		return fmt.Errorf("%w: %s: %s", payment.ErrForbidden, text, failure.Msg)
	}
	return errors.New(text)
}

// plainError returns an error of the connection or of an amount as it is. The SDK's error for a response that is no
// JSON contains a part of the response: plainError leaves it out.
func plainError(err error) error {
	var network interface{ Timeout() bool } // also url.Error and the errors of contexts
	if errors.As(err, &network) || errors.Is(err, errTooLong) || errors.Is(err, errFraction) ||
		errors.Is(err, errCurrency) {
		return err
	}
	return errors.New("the response is not Stripe's")
}
