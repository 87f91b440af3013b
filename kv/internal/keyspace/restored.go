package keyspace

// RevisionBump is added to a restored store's revision. It must be more
// than what the lost store wrote after the backup, so that no revision
// comes twice with different content: nodes that are still up remember
// some, and their swaps would land on records they never saw.
const RevisionBump = 1_000_000_000

// restoredGap is more than any store writes between two looks of a node, and less than a restore adds.
const restoredGap = RevisionBump / 2

// Restored reports whether the store was restored from a backup between two readings of the revision of one key: then
// the later revision is lower, or higher by more than a store writes by itself.
func Restored(before, now int64) bool { return now < before || now >= before+restoredGap }

// RestoredSince reports whether the store was restored from a backup between two epochs. See Restored.
func (e Epoch) RestoredSince(before Epoch) bool { return Restored(int64(before), int64(e)) }

// Timeline returns a number that the first write after a restore changes. Revisions of different timelines may be of
// one store too, but hardly ever: a timeline has 500 million revisions.
func Timeline(revision int64) int64 { return revision / restoredGap }

// FirstEpoch returns the lowest position of lists in a store that has a revision. It is above each revision of a store
// that was lost, once the backup is restored.
func FirstEpoch(revision int64) int64 { return Timeline(revision) * restoredGap }
