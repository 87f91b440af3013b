package handlers

import (
	"errors"

	"licet/handlers/connection"
	"licet/licensing"
)

// The reasons that only HTTP knows. Like the reasons of package licensing they are part of the public contract and
// never change. Package connection also refuses requests for the first four.
const (
	reasonMalformedRequest                      = connection.ReasonMalformedRequest
	reasonBodyTooLarge                          = connection.ReasonBodyTooLarge
	reasonURITooLong                            = connection.ReasonURITooLong
	reasonHeadersTooLarge                       = connection.ReasonHeadersTooLarge
	reasonUnauthenticated      licensing.Reason = "unauthenticated"
	reasonInvalidSignature     licensing.Reason = "invalid_signature"
	reasonSignatureRequired    licensing.Reason = "signature_required"
	reasonNotFound             licensing.Reason = "not_found"
	reasonMethodNotAllowed     licensing.Reason = "method_not_allowed"
	reasonUnsupportedMediaType licensing.Reason = "unsupported_media_type"
)

var (
	errUnauthenticated = &licensing.Error{
		Reason:  reasonUnauthenticated,
		Message: "a valid API key is needed: send Authorization: Bearer <API_KEY>",
	}
	errTrialNeedsKey = &licensing.Error{
		Reason: reasonUnauthenticated,
		Message: "this product offers one trial for each e-mail address, and such a trial needs an API key: let your " +
			"server send the request with Authorization: Bearer <API_KEY>",
	}
	errBadAPIKey = &licensing.Error{
		Reason:  reasonUnauthenticated,
		Message: "the API key is unknown, expired or revoked: send another one, or create one",
	}
	errSignatureRequired = &licensing.Error{
		Reason:  reasonSignatureRequired,
		Message: "requests with this API key must be signed with its secret",
	}
	errNoSecret = &licensing.Error{
		Reason:  licensing.ReasonUnavailable,
		Message: "this node lacks the master key that the API secret is derived from; nothing was changed",
	}
	errNoWebhookSecret = &licensing.Error{
		Reason:  licensing.ReasonUnavailable,
		Message: "this node lacks the master key that the endpoint's secret is derived from; nothing was sent",
	}
	errNotJSONMedia = &licensing.Error{
		Reason:  reasonUnsupportedMediaType,
		Message: "the body must be sent as Content-Type: application/json, in UTF-8 and without a Content-Encoding",
	}
	errNotFormMedia = &licensing.Error{
		Reason:  reasonUnsupportedMediaType,
		Message: "the form must be sent as application/x-www-form-urlencoded",
	}
	errForeignOrigin = &licensing.Error{
		Reason:  licensing.ReasonForbidden,
		Message: "the form was not sent from the pay page",
	}
	errAddressLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "too many malformed requests and unknown license keys from this address",
	}
	errTrialsLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "too many requests for trials from this address",
	}
	errAuthenticationLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "too many bad API keys, signatures or payment links from this address",
	}
	errDocumentsLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "this address has fetched too many bytes of open documents",
	}
	errAccountLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "too many requests with the API keys of this account",
	}
	errLicenseLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "too many requests for this license",
	}
	errPayPageLimited = &licensing.Error{
		Reason:  licensing.ReasonRateLimited,
		Message: "too many requests to the pay page of this order",
	}
)

func malformed(message string) *licensing.Error {
	return &licensing.Error{Reason: reasonMalformedRequest, Message: message}
}

func invalidSignature(message string) *licensing.Error {
	return &licensing.Error{Reason: reasonInvalidSignature, Message: message}
}

func forbidden(scope string) *licensing.Error {
	return &licensing.Error{Reason: licensing.ReasonForbidden, Message: `the API key lacks the scope "` + scope + `"`}
}

// retry says whether sending the same request again is safe and may help.
type retry int

const (
	never retry = iota
	always
	ifIdempotent // only if the request is idempotent
)

// kind is the HTTP form of a reason.
type kind struct {
	status int
	n      int // the code is status × 100 + n
	retry  retry
	after  int // seconds for Retry-After, if a retry may help
}

func (k kind) code() int { return k.status*100 + k.n }

// errorTable contains the HTTP form of each reason.
type errorTable map[licensing.Reason]kind

// kinds returns the table of reasons. Reasons and codes never change.
func kinds() errorTable {
	return errorTable{
		reasonMalformedRequest:               {status: 400, n: 0},
		licensing.ReasonInvalidLicenseKey:    {status: 400, n: 1},
		reasonUnauthenticated:                {status: 401, n: 0},
		reasonInvalidSignature:               {status: 401, n: 1},
		reasonSignatureRequired:              {status: 401, n: 2},
		licensing.ReasonForbidden:            {status: 403, n: 0},
		licensing.ReasonLicenseRevoked:       {status: 403, n: 1},
		licensing.ReasonLicenseSuspended:     {status: 403, n: 2},
		licensing.ReasonLicenseExpired:       {status: 403, n: 3},
		licensing.ReasonProductMismatch:      {status: 403, n: 4},
		licensing.ReasonSelfServiceForbidden: {status: 403, n: 5},
		licensing.ReasonLicenseKeyReplaced:   {status: 403, n: 6},
		licensing.ReasonTrialUsed:            {status: 403, n: 7},
		licensing.ReasonTrialNotOffered:      {status: 403, n: 8},
		licensing.ReasonAccountBudgetReached: {status: 403, n: 9},
		reasonNotFound:                       {status: 404, n: 0},
		licensing.ReasonLicenseNotFound:      {status: 404, n: 1},
		licensing.ReasonDeviceNotFound:       {status: 404, n: 2},
		licensing.ReasonOrderNotFound:        {status: 404, n: 3},
		licensing.ReasonProductNotFound:      {status: 404, n: 4},
		licensing.ReasonWebhookNotFound:      {status: 404, n: 5},
		licensing.ReasonEventNotFound:        {status: 404, n: 6},
		licensing.ReasonAPIKeyNotFound:       {status: 404, n: 7},
		licensing.ReasonRolloutNotFound:      {status: 404, n: 8},
		reasonMethodNotAllowed:               {status: 405, n: 0},
		licensing.ReasonRequestInProgress:    {status: 409, n: 0, retry: always, after: 1},
		licensing.ReasonDeviceLimitReached:   {status: 409, n: 1},
		licensing.ReasonInvalidOrderState:    {status: 409, n: 2},
		licensing.ReasonInvalidLicenseState:  {status: 409, n: 3},
		licensing.ReasonPaymentNotConfigured: {status: 409, n: 4},
		licensing.ReasonWebhookLimit:         {status: 409, n: 5},
		licensing.ReasonReplayLimit:          {status: 409, n: 6},
		licensing.ReasonExternalKeyInUse:     {status: 409, n: 7},
		licensing.ReasonReissueLimit:         {status: 409, n: 8},
		licensing.ReasonAPIKeyLimit:          {status: 409, n: 9},
		licensing.ReasonSettingFixed:         {status: 409, n: 10},
		licensing.ReasonRolloutInProgress:    {status: 409, n: 11},
		licensing.ReasonCursorExpired:        {status: 410, n: 0},
		reasonBodyTooLarge:                   {status: 413, n: 0},
		reasonURITooLong:                     {status: 414, n: 0},
		reasonUnsupportedMediaType:           {status: 415, n: 0},
		licensing.ReasonInvalidField:         {status: 422, n: 0},
		licensing.ReasonIdempotencyKeyReused: {status: 422, n: 1},
		licensing.ReasonRateLimited:          {status: 429, n: 0, retry: always},
		reasonHeadersTooLarge:                {status: 431, n: 0},
		licensing.ReasonInternal:             {status: 500, n: 0},
		licensing.ReasonProviderFailed:       {status: 502, n: 0},
		licensing.ReasonUnavailable:          {status: 503, n: 0, retry: always, after: 1},
		licensing.ReasonOverloaded:           {status: 503, n: 1, retry: always, after: 1},
		licensing.ReasonOutcomeUnknown:       {status: 504, n: 0, retry: ifIdempotent, after: 1},
	}
}

// explain returns the error that a caller may see, and its HTTP form. An error that is no licensing.Error, or has a
// reason that the table lacks, is a bug: the caller sees ErrInternal.
func (t errorTable) explain(err error) (*licensing.Error, kind) {
	var known *licensing.Error
	if errors.As(err, &known) {
		if k, ok := t[known.Reason]; ok {
			return known, k
		}
	}
	return licensing.ErrInternal, t[licensing.ReasonInternal]
}
