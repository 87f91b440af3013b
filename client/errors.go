package client

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Error is the error of a request that the service has refused.
type Error struct {
	Status  int    // of HTTP
	Code    int    // of the service; 0 if the response is not from a Licet service
	Reason  string // the code as a word, such as device_limit_reached
	Message string // for people

	// Retryable reports whether sending the same request again is safe and may help.
	Retryable bool
	// RetryAfter is the time to wait before a retry; 0 if the service demands none.
	RetryAfter time.Duration
	// RequestID is the id of the request in the service's log.
	RequestID string
	Fields    []FieldError   // the invalid fields of the request, for 42200
	Details   map[string]int // counts about the error; may be empty
	// DocsURL is the address of the code's section in the docs of the service, relative to the service's URL; empty
	// if the service serves no docs.
	DocsURL string
}

// FieldError is an invalid member of a request or an invalid parameter of its query.
type FieldError struct {
	Field   string `json:"field"`
	Problem string `json:"problem"`
}

// Error returns the message of the service, with the invalid fields, the code and the id of the request.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString(e.Message)
	fields := e.Fields
	if e.Reason != ReasonInvalidField {
		fields = nil // the message names the field
	}
	for _, f := range fields {
		if problem := f.Field + " " + f.Problem; !strings.HasSuffix(e.Message, ": "+problem) {
			text.WriteString("; " + problem) // the message names the first problem
		}
	}
	if e.Code != 0 {
		fmt.Fprintf(&text, " (%d %s", e.Code, e.Reason)
		if e.RequestID != "" {
			text.WriteString(", request " + e.RequestID)
		}
		text.WriteString(")")
	}
	return text.String()
}

// HasReason reports whether err is an [*Error] with one of the reasons.
func HasReason(err error, reasons ...string) bool {
	var e *Error
	return errors.As(err, &e) && slices.Contains(reasons, e.Reason)
}

// ErrSecretLost means that the service has made an API key or a secret, and that the response with it is lost.
var ErrSecretLost = errors.New("the secret is shown once, and that response was lost")

// The reasons of errors, as docs/reference/api.md lists them with their codes.
const (
	ReasonMalformedRequest      = "malformed_request"
	ReasonInvalidLicenseKey     = "invalid_license_key"
	ReasonUnauthenticated       = "unauthenticated"
	ReasonInvalidSignature      = "invalid_signature"
	ReasonSignatureRequired     = "signature_required"
	ReasonForbidden             = "forbidden"
	ReasonLicenseRevoked        = "license_revoked"
	ReasonLicenseSuspended      = "license_suspended"
	ReasonLicenseExpired        = "license_expired"
	ReasonProductMismatch       = "product_mismatch"
	ReasonSelfServiceNotAllowed = "self_service_not_allowed"
	ReasonLicenseKeyReplaced    = "license_key_replaced"
	ReasonTrialUsed             = "trial_used"
	ReasonTrialNotOffered       = "trial_not_offered"
	ReasonAccountBudgetReached  = "account_budget_reached"
	ReasonNotFound              = "not_found"
	ReasonLicenseNotFound       = "license_not_found"
	ReasonDeviceNotFound        = "device_not_found"
	ReasonOrderNotFound         = "order_not_found"
	ReasonProductNotFound       = "product_not_found"
	ReasonWebhookNotFound       = "webhook_endpoint_not_found"
	ReasonEventNotFound         = "event_not_found"
	ReasonAPIKeyNotFound        = "api_key_not_found"
	ReasonRolloutNotFound       = "rollout_not_found"
	ReasonMethodNotAllowed      = "method_not_allowed"
	ReasonRequestInProgress     = "request_in_progress"
	ReasonDeviceLimitReached    = "device_limit_reached"
	ReasonInvalidOrderState     = "invalid_order_state"
	ReasonInvalidLicenseState   = "invalid_license_state"
	ReasonPaymentNotConfigured  = "payment_not_configured"
	ReasonWebhookLimit          = "webhook_limit"
	ReasonReplayLimit           = "replay_limit"
	ReasonExternalKeyInUse      = "external_key_in_use"
	ReasonReissueLimit          = "reissue_limit"
	ReasonAPIKeyLimit           = "api_key_limit"
	ReasonSettingFixed          = "setting_fixed"
	ReasonRolloutInProgress     = "rollout_in_progress"
	ReasonCursorExpired         = "cursor_expired"
	ReasonBodyTooLarge          = "body_too_large"
	ReasonURITooLong            = "uri_too_long"
	ReasonUnsupportedMediaType  = "unsupported_media_type"
	ReasonInvalidField          = "invalid_field"
	ReasonIdempotencyKeyReused  = "idempotency_key_reused"
	ReasonRateLimited           = "rate_limited"
	ReasonHeadersTooLarge       = "headers_too_large"
	ReasonInternal              = "internal"
	ReasonProviderFailed        = "provider_failed"
	ReasonUnavailable           = "unavailable"
	ReasonOverloaded            = "overloaded"
	ReasonOutcomeUnknown        = "outcome_unknown"
)
