package store

import (
	"context"
	"time"

	"licet/licensing"
)

// OwnerGrowth is by how much a change has made its owner store more.
type OwnerGrowth struct {
	Owner licensing.Owner
	licensing.SizeChange
}

// Usages tells how much more owners store. The usage itself is a record: see [licensing.UsageRef].
type Usages interface {
	// TakeGrowth returns the growth of the changes of this store that are known to have landed since the last call.
	// Each change is returned once. Changes of other stores are not among them.
	TakeGrowth() []OwnerGrowth

	// BeginRecount begins a recount of how much all owners store, unless one has begun in the last day, or in the last
	// two hours and has not ended. Then only this node counts. revision is the revision to count at.
	BeginRecount(ctx context.Context, now time.Time) (revision int64, begun bool, err error)

	// CountUsage counts how much each owner stores at a revision. Every owner with a usage record is in the result. It
	// reads the whole store, and may take minutes.
	CountUsage(ctx context.Context, revision int64) (map[licensing.Owner]licensing.Size, error)

	// EndRecount records that the results of a recount are stored.
	EndRecount(ctx context.Context, revision int64, now time.Time) error
}
