package licensing

import "errors"

// Reason names one kind of refusal or failure in the domain's own words. The
// mapping to HTTP statuses and numeric codes is one table in package handlers.
type Reason string

// The reasons that the domain itself and the layers below HTTP give. They are
// part of the public contract and never change.
const (
	ReasonInvalidLicenseKey    Reason = "invalid_license_key"
	ReasonForbidden            Reason = "forbidden"
	ReasonLicenseRevoked       Reason = "license_revoked"
	ReasonLicenseSuspended     Reason = "license_suspended"
	ReasonLicenseExpired       Reason = "license_expired"
	ReasonProductMismatch      Reason = "product_mismatch"
	ReasonSelfServiceForbidden Reason = "self_service_not_allowed"
	ReasonLicenseNotFound      Reason = "license_not_found"
	ReasonDeviceNotFound       Reason = "device_not_found"
	ReasonOrderNotFound        Reason = "order_not_found"
	ReasonProductNotFound      Reason = "product_not_found"
	ReasonWebhookNotFound      Reason = "webhook_endpoint_not_found"
	ReasonEventNotFound        Reason = "event_not_found"
	ReasonAPIKeyNotFound       Reason = "api_key_not_found"
	ReasonDeviceLimitReached   Reason = "device_limit_reached"
	ReasonInvalidOrderState    Reason = "invalid_order_state"
	ReasonInvalidLicenseState  Reason = "invalid_license_state"
	ReasonPaymentNotConfigured Reason = "payment_not_configured"
	ReasonWebhookLimit         Reason = "webhook_limit"
	ReasonReplayLimit          Reason = "replay_limit"
	ReasonRequestInProgress    Reason = "request_in_progress"
	ReasonIdempotencyKeyReused Reason = "idempotency_key_reused"
	ReasonCursorExpired        Reason = "cursor_expired"
	ReasonInvalidField         Reason = "invalid_field"
	ReasonRateLimited          Reason = "rate_limited"
	ReasonInternal             Reason = "internal"
	ReasonProviderFailed       Reason = "provider_failed"
	ReasonUnavailable          Reason = "unavailable"
	ReasonOverloaded           Reason = "overloaded"
	ReasonOutcomeUnknown       Reason = "outcome_unknown"
)

// Error is every refusal and failure that a caller is meant to see. It knows
// nothing of HTTP.
type Error struct {
	Reason  Reason
	Message string         // one lower-case English sentence, without a period
	Fields  []FieldProblem // only with ReasonInvalidField: every bad member, not only the first
	Details map[string]int // counts that help the caller, or nil
}

// FieldProblem says what is wrong with one member of a request.
type FieldProblem struct {
	Field   string // the member's name, as the caller wrote it
	Problem string // what it must be, such as "must be at least 0"
}

// Final tells whether an error refuses a request for what the record is, so that
// the same request under the same Idempotency-Key is to get it again.
func (e *Error) Final() bool {
	switch e.Reason {
	case ReasonLicenseRevoked, ReasonLicenseSuspended, ReasonLicenseExpired, ReasonProductMismatch,
		ReasonSelfServiceForbidden, ReasonDeviceLimitReached,
		ReasonInvalidOrderState, ReasonInvalidLicenseState, ReasonPaymentNotConfigured,
		ReasonWebhookLimit, ReasonReplayLimit:
		return true
	}
	return false
}

// Error gives the message, for logs.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is an Error of the same reason, so that
// errors.Is(err, ErrLicenseNotFound) holds whatever the message or details.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// ReasonOf returns the reason that a caller is told for an error: the reason of the outermost
// Error in its chain, or ReasonInternal if the chain has none. It returns "" for nil.
//
// An error may wrap another Error as its cause. A swap whose outcome is unknown, for
// example, wraps why the store gave up, and that may be ErrOverloaded. errors.Is finds the
// cause too, and so must not decide whether a command was executed.
func ReasonOf(err error) Reason {
	var known *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &known):
		return known.Reason
	}
	return ReasonInternal
}

// NotExecuted reports whether an error says for certain that the command was not executed
// and never will be, although the record would have allowed it.
func NotExecuted(err error) bool {
	switch ReasonOf(err) {
	case ReasonUnavailable, ReasonOverloaded:
		return true
	}
	return false
}

// The refusals that carry nothing beyond their reason. Compare with errors.Is.
var (
	ErrInvalidLicenseKey = &Error{Reason: ReasonInvalidLicenseKey, Message: "this is not a license key: it has a typo or a wrong form"}
	ErrLicenseRevoked    = &Error{Reason: ReasonLicenseRevoked, Message: "the license was revoked"}
	ErrLicenseSuspended  = &Error{Reason: ReasonLicenseSuspended, Message: "the license is suspended"}
	ErrLicenseExpired    = &Error{Reason: ReasonLicenseExpired, Message: "the license has expired"}
	ErrProductMismatch   = &Error{Reason: ReasonProductMismatch, Message: "the license belongs to another product"}
	ErrSelfService       = &Error{Reason: ReasonSelfServiceForbidden, Message: "the product does not let end users remove devices by themselves"}
	ErrLicenseNotFound   = &Error{Reason: ReasonLicenseNotFound, Message: "no such license"}
	ErrOrderNotFound     = &Error{Reason: ReasonOrderNotFound, Message: "no such order"}
	ErrProductNotFound   = &Error{Reason: ReasonProductNotFound, Message: "no such product"}
	ErrWebhookNotFound   = &Error{Reason: ReasonWebhookNotFound, Message: "no such webhook endpoint"}
	ErrEventNotFound     = &Error{Reason: ReasonEventNotFound, Message: "no such event"}
	ErrAPIKeyNotFound    = &Error{Reason: ReasonAPIKeyNotFound, Message: "no such API key"}

	// ErrCursorExpired: what follows the cursor is no longer kept.
	ErrCursorExpired = &Error{Reason: ReasonCursorExpired, Message: "what comes after this cursor is no longer kept; begin anew without one"}

	ErrPaymentNotConfigured = &Error{Reason: ReasonPaymentNotConfigured, Message: "no payment provider is set up for live orders"}

	ErrRequestInProgress    = &Error{Reason: ReasonRequestInProgress, Message: "a request with this Idempotency-Key is being worked on"}
	ErrIdempotencyKeyReused = &Error{Reason: ReasonIdempotencyKeyReused, Message: "this Idempotency-Key was used for another request"}

	// ErrUnavailable: the command was not executed and never will be.
	ErrUnavailable = &Error{Reason: ReasonUnavailable, Message: "the service is unavailable; nothing was changed"}
	// ErrOverloaded: the command was not executed and never will be, because a queue is full.
	ErrOverloaded = &Error{Reason: ReasonOverloaded, Message: "the service is overloaded; nothing was changed"}
	// ErrOutcomeUnknown: the command may have happened, or may yet.
	ErrOutcomeUnknown = &Error{Reason: ReasonOutcomeUnknown, Message: "the outcome is unknown: the change may or may not have happened"}
	// ErrInternal: a bug; the log has the rest.
	ErrInternal = &Error{Reason: ReasonInternal, Message: "internal error"}
)

func invalidField(field, problem string) *Error {
	return &Error{
		Reason:  ReasonInvalidField,
		Message: "the request has invalid members",
		Fields:  []FieldProblem{{Field: field, Problem: problem}},
	}
}

func removalsUsedUp(l *License) *Error {
	return &Error{
		Reason:  ReasonSelfServiceForbidden,
		Message: "all removals by end users are used up for this calendar month",
		Details: map[string]int{"removals_per_month": l.SelfService.RemovalsPerMonth},
	}
}

func invalidLicenseState(status Status, verb string) *Error {
	return &Error{Reason: ReasonInvalidLicenseState, Message: "a license that is " + string(status) + " can't be " + verb}
}

func invalidOrderState(status OrderStatus, verb string) *Error {
	return &Error{Reason: ReasonInvalidOrderState, Message: "an order that is " + string(status) + " can't be " + verb}
}

func tooManyEndpoints() *Error {
	return &Error{
		Reason:  ReasonWebhookLimit,
		Message: "there are as many webhook endpoints as there may be: delete one first",
		Details: map[string]int{"max_endpoints": MaxEndpoints},
	}
}

func deviceLimitReached(l *License) *Error {
	return &Error{
		Reason:  ReasonDeviceLimitReached,
		Message: "device limit reached",
		Details: map[string]int{"max_devices": l.MaxDevices, "current_devices": l.CurrentDevices},
	}
}
