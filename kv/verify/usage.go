package verify

import (
	"licet/kv/internal/layout"
)

// checkUsage checks how much an owner stores, as far as the record says it. A recount corrects the sizes.
func (v *recordChecks) checkUsage(e entry) {
	owner, rest, ok := layout.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("usage", "s/usage/"+v.names.Opaque(e.rest), "key", "the key is not in the form of an owner's")
		return
	}
	bad := func(rule, format string, args ...any) {
		v.report("usage", "s/usage/"+layout.OwnerPath(owner), rule, format, args...)
	}
	stored, err := layout.DecodeUsage(owner, e.value)
	if err != nil {
		v.events.links.unread = true
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.UsageWriter, bad)
	u := &stored.Usage
	if u.CountedAt > v.revision || u.RecountAt > v.revision {
		bad("revision", "the usage knows a recount of a later revision than the store's, %d", v.revision)
	}
	if n := u.Sequence; n > 0 {
		v.events.wantEvents(runAt{owner, stored.LastEvent, layout.UsageInEvents(owner), n}, bad, nil)
	}
}

// checkRecount checks the marks of the beginning and of the end of a recount of all usage.
func (v *recordChecks) checkRecount(e entry) {
	switch e.rest {
	case "", layout.RecountedKey[len(layout.RecountKey):]:
		if _, err := layout.DecodeRecount(e.value); err != nil {
			v.report("recount", "s/recount"+e.rest, "value", "the value can't be read: %v", err)
		}
	default:
		v.report("recount", "s/recount"+v.names.Opaque(e.rest), "key", "there is no mark with this name")
	}
}
