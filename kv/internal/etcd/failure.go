package etcd

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Class is what the failure of an etcd request says about the request's effect.
type Class int

// The classes of failures.
const (
	Succeeded Class = iota
	Refused         // not executed, and never will be
	Rejected        // not executed, because the request itself is invalid: a bug of this service
	Unknown         // may have been executed, or may yet
)

// String is the class as metrics label it.
func (c Class) String() string {
	switch c {
	case Succeeded:
		return "ok"
	case Refused, Rejected:
		return "refused"
	default:
		return "unknown"
	}
}

// Classify sorts a failure. A failure counts as Unknown unless etcd is known to have failed before it wrote its log:
// every Unavailable (timed out, leader changed, server stopped), every deadline, and also NoSpace, which etcd reports
// after it has applied the request (server/etcdserver/apply, quotaApplierV3). A request that fails with ErrFull was not
// sent.
func Classify(err error) Class {
	switch {
	case err == nil:
		return Succeeded
	case isNotSent(err), isAny(err, ErrBarred, ErrFull, rpctypes.ErrTooManyRequests,
		rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrAuthOldRevision, rpctypes.ErrUserEmpty, rpctypes.ErrCompacted):
		return Refused
	case isAny(err, rpctypes.ErrRequestTooLarge, rpctypes.ErrTooManyOps,
		rpctypes.ErrDuplicateKey, rpctypes.ErrEmptyKey, rpctypes.ErrLeaseNotFound):
		return Rejected
	default:
		return Unknown
	}
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// NotSent is the error of a request that its caller did not send.
type NotSent string

// Error is part of error.
func (e NotSent) Error() string { return string(e) }

func isNotSent(err error) bool {
	var e NotSent
	return errors.As(err, &e)
}
