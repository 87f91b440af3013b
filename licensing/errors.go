package licensing

import (
	"errors"
	"time"
)

// Reason names one kind of refusal or failure. One table in package handlers maps reasons to HTTP
// statuses and numeric codes.
type Reason string

// The reasons of this package and of the layers below HTTP. They are part of the public contract and
// never change.
const (
	ReasonInvalidLicenseKey    Reason = "invalid_license_key"
	ReasonForbidden            Reason = "forbidden"
	ReasonLicenseRevoked       Reason = "license_revoked"
	ReasonLicenseSuspended     Reason = "license_suspended"
	ReasonLicenseExpired       Reason = "license_expired"
	ReasonProductMismatch      Reason = "product_mismatch"
	ReasonSelfServiceForbidden Reason = "self_service_not_allowed"
	ReasonLicenseKeyReplaced   Reason = "license_key_replaced"
	ReasonTrialUsed            Reason = "trial_used"
	ReasonTrialNotOffered      Reason = "trial_not_offered"
	ReasonLicenseNotFound      Reason = "license_not_found"
	ReasonDeviceNotFound       Reason = "device_not_found"
	ReasonOrderNotFound        Reason = "order_not_found"
	ReasonProductNotFound      Reason = "product_not_found"
	ReasonWebhookNotFound      Reason = "webhook_endpoint_not_found"
	ReasonEventNotFound        Reason = "event_not_found"
	ReasonAPIKeyNotFound       Reason = "api_key_not_found"
	ReasonRolloutNotFound      Reason = "rollout_not_found"
	ReasonAccountBudgetReached Reason = "account_budget_reached"
	ReasonDeviceLimitReached   Reason = "device_limit_reached"
	ReasonInvalidOrderState    Reason = "invalid_order_state"
	ReasonInvalidLicenseState  Reason = "invalid_license_state"
	ReasonPaymentNotConfigured Reason = "payment_not_configured"
	ReasonWebhookLimit         Reason = "webhook_limit"
	ReasonReplayLimit          Reason = "replay_limit"
	ReasonExternalKeyInUse     Reason = "external_key_in_use"
	ReasonReissueLimit         Reason = "reissue_limit"
	ReasonAPIKeyLimit          Reason = "api_key_limit"
	ReasonSettingFixed         Reason = "setting_fixed"
	ReasonRolloutInProgress    Reason = "rollout_in_progress"
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

// Error is a refusal or failure for callers, independent of HTTP.
type Error struct {
	Reason  Reason
	Message string         // one lower-case English sentence, without a period
	Fields  []FieldProblem // with ReasonInvalidField every invalid field, not only the first
	Details map[string]int // counts that help the caller, or nil
	Limit   *Limit         // only with ReasonRateLimited: the limit, if this layer or a layer below has it
}

// Limit is a rate limit that has refused a command.
type Limit struct {
	Policy string        // the name of the limit
	Count  int           // what the limit allows at once, and again in each Per
	Per    time.Duration // in whole seconds
	Next   time.Duration // until the limit accepts the command
}

// FieldProblem says what is wrong with one field of a request.
type FieldProblem struct {
	Field   string // the field's name, as the caller wrote it
	Problem string // what the field must be, such as "must be at least 0"
}

// Final reports whether the state of the record is the reason for the refusal. Then repeating the
// request with the same Idempotency-Key returns the same refusal.
func (e *Error) Final() bool {
	switch e.Reason {
	case ReasonLicenseRevoked, ReasonLicenseSuspended, ReasonLicenseExpired, ReasonProductMismatch,
		ReasonSelfServiceForbidden, ReasonLicenseKeyReplaced, ReasonDeviceLimitReached, ReasonReissueLimit,
		ReasonInvalidOrderState, ReasonInvalidLicenseState, ReasonPaymentNotConfigured,
		ReasonWebhookLimit, ReasonReplayLimit:
		return true
	}
	return false
}

// Error returns the message, for logs.
func (e *Error) Error() string { return e.Message }

// Is reports whether target is an Error of the same reason, so that
// errors.Is(err, ErrLicenseNotFound) holds whatever the message or details.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Reason == e.Reason
}

// ReasonOf returns the reason of an error for callers: the reason of the outermost Error in its chain,
// or ReasonInternal if the chain has none. It returns "" for nil.
//
// An error may wrap another Error as its cause. A swap whose outcome is unknown, for example, wraps
// the error with which the store gave up, and that may be ErrOverloaded. errors.Is also matches the
// cause, so errors.Is must not decide whether a command was executed.
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

// NotExecuted reports whether it is certain that the command was not executed and never will be,
// although the record would have allowed the command.
func NotExecuted(err error) bool {
	switch ReasonOf(err) {
	case ReasonUnavailable, ReasonOverloaded:
		return true
	}
	return false
}

// The errors without details. Compare with errors.Is.
var (
	ErrInvalidLicenseKey = &Error{
		Reason:  ReasonInvalidLicenseKey,
		Message: "this is not a license key: it has a typo or a wrong form",
	}
	ErrLicenseRevoked   = &Error{Reason: ReasonLicenseRevoked, Message: "the license was revoked"}
	ErrLicenseSuspended = &Error{Reason: ReasonLicenseSuspended, Message: "the license is suspended"}
	ErrLicenseExpired   = &Error{Reason: ReasonLicenseExpired, Message: "the license has expired"}
	ErrProductMismatch  = &Error{Reason: ReasonProductMismatch, Message: "the license belongs to another product"}
	ErrSelfService      = &Error{
		Reason:  ReasonSelfServiceForbidden,
		Message: "the product does not let end users remove devices by themselves",
	}
	ErrLicenseKeyReplaced = &Error{
		Reason:  ReasonLicenseKeyReplaced,
		Message: "the license has a new key, and this key no longer works",
	}
	ErrTrialUsed = &Error{
		Reason:  ReasonTrialUsed,
		Message: "the trial of this product was used already",
	}
	ErrTrialNotOffered = &Error{Reason: ReasonTrialNotOffered,
		Message: "the product offers no trial: put the product with trial to offer one"}
	// ErrTrialGone: the license is not of a trial that can be upgraded; see UpgradeTrial. No caller gets it.
	ErrTrialGone    = &Error{Reason: ReasonTrialUsed, Message: "the license is not a trial that can be upgraded"}
	ErrReissueLimit = &Error{
		Reason:  ReasonReissueLimit,
		Message: "the license has had 8 new keys, the maximum: revoke the license and grant another",
	}
	ErrLicenseNotFound = &Error{Reason: ReasonLicenseNotFound, Message: "no such license"}
	ErrOrderNotFound   = &Error{Reason: ReasonOrderNotFound, Message: "no such order"}
	ErrProductNotFound = &Error{Reason: ReasonProductNotFound, Message: "no such product"}
	ErrWebhookNotFound = &Error{Reason: ReasonWebhookNotFound, Message: "no such webhook endpoint"}
	ErrEventNotFound   = &Error{Reason: ReasonEventNotFound, Message: "no such event"}
	ErrAPIKeyNotFound  = &Error{Reason: ReasonAPIKeyNotFound, Message: "no such API key"}
	ErrRolloutNotFound = &Error{Reason: ReasonRolloutNotFound, Message: "the product has had no rollout"}

	// ErrCursorExpired: the events after the cursor are no longer kept.
	ErrCursorExpired = &Error{
		Reason:  ReasonCursorExpired,
		Message: "the events after this cursor were deleted: start again without a cursor",
	}

	// ErrAccountBudgetReached: the account stores as much as its budget allows. See Budget.Refuse.
	ErrAccountBudgetReached = &Error{
		Reason:  ReasonAccountBudgetReached,
		Message: "the account has reached its budget of stored data",
	}

	// ErrTrialBudgetReached: the account has as many trials as its budget has room for. See Budget.RefuseTrial.
	ErrTrialBudgetReached = &Error{
		Reason:  ReasonAccountBudgetReached,
		Message: "the account has as many trials as its budget has room for: try again later",
	}

	// ErrExternalKeyInUse: another license of the account and mode has the external key.
	ErrExternalKeyInUse = &Error{
		Reason:  ReasonExternalKeyInUse,
		Message: "another license of this account has this external_key",
	}
	// ErrExternalKeyEmpty: see KeyMatching.Of.
	ErrExternalKeyEmpty = InvalidField("external_key",
		"must not consist of blanks and dashes only: this account ignores them")
	// ErrSettingFixed: see Settings.KeysFixed.
	ErrSettingFixed = &Error{
		Reason:  ReasonSettingFixed,
		Message: "external_keys can't change any more: the account has external keys",
	}

	ErrPaymentNotConfigured = &Error{Reason: ReasonPaymentNotConfigured,
		Message: "no payment provider is set up for live orders"}

	// ErrNoLivePayments: see Orders.Create of node/service.
	ErrNoLivePayments = &Error{Reason: ReasonPaymentNotConfigured,
		Message: "no payment provider is set up for live orders: let the operator of the service connect Stripe, or " +
			"create the order with payment_provider outside and record its payment yourself"}

	// ErrPaidOutside: the shop records the payment of the order, see PayOutside.
	ErrPaidOutside = &Error{Reason: ReasonPaymentNotConfigured,
		Message: "the order is paid outside: record its payment with POST /v1/orders/{order_no}/payments"}

	// ErrSubscriptionOutside: only a payment provider sends the invoices of a subscription.
	ErrSubscriptionOutside = &Error{Reason: ReasonInvalidOrderState,
		Message: "the order starts a subscription, which the payment provider must charge: send the buyer to " +
			"pay_url, or create an order for a product without billing"}

	ErrNotInSandbox = &Error{Reason: ReasonPaymentNotConfigured,
		Message: "the sandbox pays only orders of test mode without another payment provider: pay at the pay_url of " +
			"the order, or create and pay an order with an API key of a test mode that has the sandbox"}

	// ErrNothingPending: see PlayCheckout.
	ErrNothingPending = &Error{Reason: ReasonInvalidOrderState,
		Message: "nothing is pending in the sandbox: play pay_later, callback_late or refund_fails first"}

	// ErrPaymentPending: the sandbox has a checkout of the order under way.
	ErrPaymentPending = &Error{Reason: ReasonInvalidOrderState,
		Message: "a payment of the order is pending in the sandbox: play complete or fail first"}

	// ErrRefundUnderWay: a refund is under way, so the sandbox can no longer make it fail.
	ErrRefundUnderWay = &Error{Reason: ReasonInvalidOrderState,
		Message: "a refund of the order is under way: play refund_fails before the refund"}

	// ErrNoSubscription: see PlaySubscription.
	ErrNoSubscription = &Error{Reason: ReasonInvalidOrderState,
		Message: "the order has no subscription that renews in the sandbox"}

	// ErrNotSubscribed: see ChangeSubscription.
	ErrNotSubscribed = &Error{Reason: ReasonInvalidOrderState,
		Message: "the order has no subscription: only a paid order for a product with billing has one"}

	// ErrSubscriptionOver: see ChangeSubscription.
	ErrSubscriptionOver = &Error{Reason: ReasonInvalidOrderState,
		Message: "the subscription has ended, or is being ended: create another order to sell another subscription"}

	// ErrPlanChanging: see ChangeSubscription.
	ErrPlanChanging = &Error{Reason: ReasonInvalidOrderState,
		Message: "another change of the subscription is under way: repeat that request, or try again in a minute"}

	// ErrPlanned: see ChangeSubscription.
	ErrPlanned = &Error{Reason: ReasonInvalidOrderState,
		Message: "the subscription changes to another amount at the end of its period: first take that change back, " +
			"with a change at period_end to the present product_id and amount"}

	// ErrNoPortal: only Stripe has a page for cards.
	ErrNoPortal = &Error{Reason: ReasonPaymentNotConfigured,
		Message: "the payment provider has no page for the card of this subscription: at Stripe, activate the " +
			"customer portal in its dashboard; the sandbox has no cards"}

	ErrRolloutInProgress = &Error{Reason: ReasonRolloutInProgress,
		Message: "another rollout of this product is under way: wait for its end, or cancel it"}

	ErrRequestInProgress = &Error{Reason: ReasonRequestInProgress,
		Message: "another request with this Idempotency-Key is still running"}
	ErrIdempotencyKeyReused = &Error{Reason: ReasonIdempotencyKeyReused,
		Message: "this Idempotency-Key was used for another request"}

	// ErrUnavailable: the command was not executed and never will be.
	ErrUnavailable = &Error{Reason: ReasonUnavailable, Message: "the service is unavailable; nothing was changed"}
	// ErrClockInDoubt: the command was not executed and never will be, since it depends on the time, and the node must
	// not act by its clock.
	ErrClockInDoubt = &Error{
		Reason: ReasonUnavailable,
		Message: "this node has not confirmed that its clock agrees with the clocks of most nodes, as in the first " +
			"seconds after a start; nothing was changed: send the request again",
	}
	// ErrOverloaded: the command was not executed and never will be, because a queue is full.
	ErrOverloaded = &Error{Reason: ReasonOverloaded, Message: "the service is overloaded; nothing was changed"}
	// ErrOutcomeUnknown: the command may have been executed, or may still be.
	ErrOutcomeUnknown = &Error{
		Reason:  ReasonOutcomeUnknown,
		Message: "the outcome is unknown: the change may or may not have happened",
	}
	// ErrInternal: a bug; the log has the details.
	ErrInternal = &Error{Reason: ReasonInternal, Message: "internal error"}
)

// InvalidField returns the error of a request whose only invalid member is a field.
func InvalidField(field, problem string) *Error {
	return InvalidFields("the request", []FieldProblem{{Field: field, Problem: problem}})
}

// InvalidFields returns the error of invalid members, at least one, of a request or of another subject. The message
// names the first, and Fields all.
func InvalidFields(subject string, fields []FieldProblem) *Error {
	return &Error{
		Reason:  ReasonInvalidField,
		Message: subject + " has invalid members: " + fields[0].Field + " " + fields[0].Problem,
		Fields:  fields,
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
	return &Error{Reason: ReasonInvalidLicenseState,
		Message: "a license that is " + string(status) + " can't be " + verb}
}

func invalidOrderState(status OrderStatus, verb string) *Error {
	return &Error{Reason: ReasonInvalidOrderState, Message: "an order that is " + string(status) + " can't be " + verb}
}

func tooManyEndpoints() *Error {
	return &Error{
		Reason:  ReasonWebhookLimit,
		Message: "too many webhook endpoints: delete an endpoint first",
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
