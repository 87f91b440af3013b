package store

import "licet/licensing"

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
}
