package verify

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// maxDrift is how far a usage record may be off without being reported: about as much as the write limits of a node let
// an account write at once. Nodes add changes every 10 s, and a node that is killed loses the changes since then.
const maxDrift, maxDriftKeys = 64 << 20, 100_000

// maxDrifts bounds the listed usage records.
const maxDrifts = 100

// UsageDrift is a usage record that differs from what its owner stores by more than nodes explain, or that is below
// zero. It is no contradiction of the store: the record is a sum that the next recount corrects.
type UsageDrift struct {
	Owner             licensing.Owner
	Recorded, Counted licensing.Size
}

// checkUsage checks a usage record. Its sizes may be off: a recount corrects them.
func (v *recordChecks) checkUsage(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("usage", "s/"+Opaque(e.rest), "key", "the key does not name an owner")
		return
	}
	bad := func(rule, format string, args ...any) {
		v.report("usage", "s/"+keyspace.OwnerPath(owner), rule, format, args...)
	}
	stored, err := layout.DecodeUsage(owner, e.value)
	if err != nil {
		v.events.links.unread = true
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.UsageWriter, bad)
	u := &stored.Usage
	v.usages[owner] = u.Size
	if u.CountedAt > v.revision || u.RecountAt > v.revision {
		bad("revision", "the usage knows a recount of a later revision than the store's, %d", v.revision)
	}
	if n := u.Sequence; n > 0 {
		v.events.wantEvents(runAt{owner, stored.LastEvent, keyspace.UsageInEvents(owner), n}, bad, nil)
	}
}

// compareUsage counts how much each owner stores, and lists the usage records that differ.
func (v *recordChecks) compareUsage(ctx context.Context) error {
	c := &sizes{
		reading: v.apart(),
		of:      make(map[licensing.Owner]licensing.Size),
	}
	for owner := range v.usages {
		c.add(owner, licensing.Size{})
	}
	if err := c.count(ctx); err != nil {
		return err
	}
	owners := slices.SortedFunc(maps.Keys(c.of), func(a, b licensing.Owner) int {
		return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Mode, b.Mode))
	})
	for _, owner := range owners {
		recorded, counted := v.usages[owner], c.of[owner]
		off := recorded.Minus(counted)
		if min(recorded.Bytes, recorded.Keys) >= 0 && max(off.Bytes, -off.Bytes) <= maxDrift &&
			max(off.Keys, -off.Keys) <= maxDriftKeys {
			continue
		}
		if v.summary.Drifted++; len(v.summary.Drifts) < maxDrifts {
			v.summary.Drifts = append(v.summary.Drifts, UsageDrift{owner, recorded, counted})
		}
	}
	return nil
}

// checkRecount checks the marks of the beginning and of the end of a recount of all usage.
func (v *recordChecks) checkRecount(e entry) {
	switch e.rest {
	case "", keyspace.RecountedKey[len(keyspace.RecountKey):]:
		if _, err := layout.DecodeRecount(e.value); err != nil {
			v.report("recount", "cell/recount"+e.rest, "value", "the value can't be read: %v", err)
		}
	default:
		v.report("recount", "cell/recount"+Opaque(e.rest), "key", "there is no mark with this name")
	}
}
