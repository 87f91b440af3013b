package handlers

import (
	"errors"

	"licet"
)

// The reasons that only HTTP knows. Like the domain's they are part of the
// public contract and never change.
const (
	reasonMalformedRequest     licet.Reason = "malformed_request"
	reasonUnauthenticated      licet.Reason = "unauthenticated"
	reasonInvalidSignature     licet.Reason = "invalid_signature"
	reasonSignatureRequired    licet.Reason = "signature_required"
	reasonNotFound             licet.Reason = "not_found"
	reasonMethodNotAllowed     licet.Reason = "method_not_allowed"
	reasonBodyTooLarge         licet.Reason = "body_too_large"
	reasonURITooLong           licet.Reason = "uri_too_long"
	reasonUnsupportedMediaType licet.Reason = "unsupported_media_type"
	reasonHeadersTooLarge      licet.Reason = "headers_too_large"
)

var (
	errUnauthenticated   = &licet.Error{Reason: reasonUnauthenticated, Message: "a valid API key is needed: send Authorization: Bearer <API_KEY>"}
	errSignatureRequired = &licet.Error{Reason: reasonSignatureRequired, Message: "requests with this API key must be signed with its secret"}
	errNoSecret          = &licet.Error{Reason: licet.ReasonUnavailable, Message: "this node lacks the master key that the API secret is derived from; nothing was changed"}
	errNoWebhookSecret   = &licet.Error{Reason: licet.ReasonUnavailable, Message: "this node lacks the master key that the endpoint's secret is derived from; nothing was sent"}
	errNotFound          = &licet.Error{Reason: reasonNotFound, Message: "no such route"}
	errMethodNotAllowed  = &licet.Error{Reason: reasonMethodNotAllowed, Message: "the route does not have this method; header Allow lists those it has"}
	errBodyTooLarge      = &licet.Error{Reason: reasonBodyTooLarge, Message: "the body is too large"}
	errURITooLong        = &licet.Error{Reason: reasonURITooLong, Message: "the URI is too long"}
	errHeadersTooLarge   = &licet.Error{Reason: reasonHeadersTooLarge, Message: "the headers are too large"}
	errNotJSONMedia      = &licet.Error{Reason: reasonUnsupportedMediaType, Message: "the body must be sent as Content-Type: application/json, in UTF-8 and without a Content-Encoding"}
	errNotFormMedia      = &licet.Error{Reason: reasonUnsupportedMediaType, Message: "the form must be sent as application/x-www-form-urlencoded"}
	errForeignOrigin     = &licet.Error{Reason: licet.ReasonForbidden, Message: "the form was not sent from its own page"}
	errAddressLimited    = &licet.Error{Reason: licet.ReasonRateLimited, Message: "too many requests from this address that name no license"}
	errAPIKeyLimited     = &licet.Error{Reason: licet.ReasonRateLimited, Message: "too many requests with this API key"}
	errLicenseLimited    = &licet.Error{Reason: licet.ReasonRateLimited, Message: "too many requests for this license"}
)

func malformed(message string) *licet.Error {
	return &licet.Error{Reason: reasonMalformedRequest, Message: message}
}

func invalidSignature(message string) *licet.Error {
	return &licet.Error{Reason: reasonInvalidSignature, Message: message}
}

func forbidden(scope string) *licet.Error {
	return &licet.Error{Reason: licet.ReasonForbidden, Message: `the API key lacks the scope "` + scope + `"`}
}

// retry tells whether sending the very same request again is safe and may help.
type retry int

const (
	never retry = iota
	always
	ifIdempotent // only where doing it twice is the same as doing it once
)

// kind is how a reason looks over HTTP.
type kind struct {
	status int
	n      int // the code is status × 100 + n
	retry  retry
	after  int // seconds for Retry-After, where a retry may help
}

func (k kind) code() int { return k.status*100 + k.n }

// kinds is the one table of reasons. Reasons and codes are frozen.
func kinds() map[licet.Reason]kind {
	return map[licet.Reason]kind{
		reasonMalformedRequest:           {status: 400, n: 0},
		licet.ReasonInvalidLicenseKey:    {status: 400, n: 1},
		reasonUnauthenticated:            {status: 401, n: 0},
		reasonInvalidSignature:           {status: 401, n: 1},
		reasonSignatureRequired:          {status: 401, n: 2},
		licet.ReasonForbidden:            {status: 403, n: 0},
		licet.ReasonLicenseRevoked:       {status: 403, n: 1},
		licet.ReasonLicenseSuspended:     {status: 403, n: 2},
		licet.ReasonLicenseExpired:       {status: 403, n: 3},
		licet.ReasonProductMismatch:      {status: 403, n: 4},
		licet.ReasonSelfServiceForbidden: {status: 403, n: 5},
		reasonNotFound:                   {status: 404, n: 0},
		licet.ReasonLicenseNotFound:      {status: 404, n: 1},
		licet.ReasonDeviceNotFound:       {status: 404, n: 2},
		licet.ReasonOrderNotFound:        {status: 404, n: 3},
		licet.ReasonProductNotFound:      {status: 404, n: 4},
		licet.ReasonWebhookNotFound:      {status: 404, n: 5},
		licet.ReasonEventNotFound:        {status: 404, n: 6},
		licet.ReasonAPIKeyNotFound:       {status: 404, n: 7},
		reasonMethodNotAllowed:           {status: 405, n: 0},
		licet.ReasonRequestInProgress:    {status: 409, n: 0, retry: always, after: 1},
		licet.ReasonDeviceLimitReached:   {status: 409, n: 1},
		licet.ReasonInvalidOrderState:    {status: 409, n: 2},
		licet.ReasonInvalidLicenseState:  {status: 409, n: 3},
		licet.ReasonPaymentNotConfigured: {status: 409, n: 4},
		licet.ReasonWebhookLimit:         {status: 409, n: 5},
		licet.ReasonReplayLimit:          {status: 409, n: 6},
		licet.ReasonCursorExpired:        {status: 410, n: 0},
		reasonBodyTooLarge:               {status: 413, n: 0},
		reasonURITooLong:                 {status: 414, n: 0},
		reasonUnsupportedMediaType:       {status: 415, n: 0},
		licet.ReasonInvalidField:         {status: 422, n: 0},
		licet.ReasonIdempotencyKeyReused: {status: 422, n: 1},
		licet.ReasonRateLimited:          {status: 429, n: 0, retry: always},
		reasonHeadersTooLarge:            {status: 431, n: 0},
		licet.ReasonInternal:             {status: 500, n: 0},
		licet.ReasonProviderFailed:       {status: 502, n: 0},
		licet.ReasonUnavailable:          {status: 503, n: 0, retry: always, after: 1},
		licet.ReasonOverloaded:           {status: 503, n: 1, retry: always, after: 1},
		licet.ReasonOutcomeUnknown:       {status: 504, n: 0, retry: ifIdempotent, after: 1},
	}
}

// explain finds what a caller may know of an error, and how it looks over HTTP.
// An error that is none of ours, or of a reason that the table lacks, is a bug:
// the caller learns nothing of it.
func (s *Server) explain(err error) (*licet.Error, kind) {
	var known *licet.Error
	if errors.As(err, &known) {
		if k, ok := s.errors[known.Reason]; ok {
			return known, k
		}
	}
	return licet.ErrInternal, s.errors[licet.ReasonInternal]
}
