package store

import "licet/licensing"

// Space says which changes a store has room for.
type Space int32

// The values of Space.
const (
	// SpaceFree: the store accepts all changes.
	SpaceFree Space = iota
	// SpaceReserve: the store is almost full. It keeps the rest of its space for changes of small growth, such as
	// removals, revocations and payments: the node refuses other changes with ErrReserve.
	SpaceReserve
	// SpaceFull: the store refuses each change that puts a key with ErrFull.
	SpaceFull
)

// String returns the name of a space, for metrics and readiness.
func (s Space) String() string {
	switch s {
	case SpaceReserve:
		return "reserve"
	case SpaceFull:
		return "full"
	default:
		return "free"
	}
}

// ErrReserve refuses a change that needs more room than a store in SpaceReserve gives.
var ErrReserve = &licensing.Error{
	Reason: licensing.ReasonUnavailable,
	Message: "the store is almost full: only changes that need little space are possible until its operator makes " +
		"room; nothing was changed",
}

// ErrFull refuses a change while the store is in SpaceFull.
var ErrFull = &licensing.Error{
	Reason:  licensing.ReasonUnavailable,
	Message: "the store is full and takes no changes until its operator makes room; nothing was changed",
}
