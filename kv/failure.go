package kv

import (
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// class is what the failure of an etcd request says of its effect.
type class int

const (
	succeeded class = iota
	refused         // not executed, and never will be
	rejected        // likewise, because the request itself is wrong: a bug of ours
	unknown         // may have been executed, or may yet
)

// String is the class as metrics label it.
func (c class) String() string {
	switch c {
	case succeeded:
		return "ok"
	case refused, rejected:
		return "refused"
	default:
		return "unknown"
	}
}

// classify sorts a failure. Whatever is not known to come before etcd's log is
// unknown: every Unavailable (timed out, leader changed, server stopped), every
// deadline, and also NoSpace, which etcd reports after it has applied the
// request (server/etcdserver/apply, quotaApplierV3). A request that fails with errFull was
// not sent.
func classify(err error) class {
	switch {
	case err == nil:
		return succeeded
	case isNotSent(err), isAny(err, errBarred, errFull, rpctypes.ErrTooManyRequests,
		rpctypes.ErrAuthFailed, rpctypes.ErrPermissionDenied, rpctypes.ErrInvalidAuthToken,
		rpctypes.ErrAuthOldRevision, rpctypes.ErrUserEmpty, rpctypes.ErrCompacted):
		return refused
	case isAny(err, rpctypes.ErrRequestTooLarge, rpctypes.ErrTooManyOps,
		rpctypes.ErrDuplicateKey, rpctypes.ErrEmptyKey, rpctypes.ErrLeaseNotFound):
		return rejected
	default:
		return unknown
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

// notSent is the error of a request that its caller did not send.
type notSent string

// Error is part of error.
func (e notSent) Error() string { return string(e) }

func isNotSent(err error) bool {
	var e notSent
	return errors.As(err, &e)
}
