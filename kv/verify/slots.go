package verify

import (
	"context"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
)

// readSlots reads which slots are in use. Keys in other slots are of no family; see findUnknown.
func (v *reading) readSlots(ctx context.Context) error {
	return v.retry(ctx, func(ctx context.Context) error {
		found, err := v.kv.Get(ctx, keyspace.SlotsPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly(),
			clientv3.WithRev(v.revision))
		if err == nil {
			v.slots = etcd.SlotsIn(found.Kvs)
		}
		return err
	})
}

// checkSlot checks one key of a slot in use.
func (v *recordChecks) checkSlot(e entry) {
	if _, ok := licensing.ParseSlot(e.rest); !ok || len(e.value) > 0 {
		v.report("slot", "cell/s/"+Opaque(e.rest), "key",
			"the key does not name a slot, or has a value")
	}
}

// checkSlotMap checks the map from slots to cells.
func (v *recordChecks) checkSlotMap(e entry) {
	if e.rest != "" {
		v.report("slot_map", "cell/map"+Opaque(e.rest), "key", "no key but cell/map may begin like this")
		return
	}
	moved, err := layout.DecodeSlotMap(e.value)
	if err != nil {
		v.report("slot_map", "cell/map", "value", "the value can't be read: %v", err)
		return
	}
	for _, slot := range v.slots {
		if moved.CellOf(slot) != layout.Here {
			v.report("slot_map", "cell/map", "moved", "slot %v is in use here, and in another cell by the map", slot)
		}
	}
}

// inCell reports whether the keys of a family are the cell's, and in no slot.
func inCell(family string) bool { return strings.HasPrefix(family, "cell/") }

// inOwnSlot reports whether a key is in the slot of its owner. The slot follows from the owner, an id or a hash in the
// key; keys, if not nil, decrypts the ids of licenses. inOwnSlot returns true for a key without any of these, which the
// check of the family reports.
func (e entry) inOwnSlot(family string, keys *keyring.LicenseKeys) bool {
	skip := 0
	switch family {
	case keyspace.SkipFamily:
		skip = len(e.rest) - len(keyspace.CutSkip(e.rest))
	case "z/":
		skip = keyspace.TimeSize
	}
	for x := range keyspace.DueIndexes() {
		if x.Family == family {
			skip = keyspace.TimeSize
			if x.Record == licensing.KindLicense {
				family = "l/"
			}
		}
	}
	rest := e.rest[min(skip, len(e.rest)):]
	var own licensing.Slot
	var known bool
	switch family {
	case "d/", "l/", "m/":
		id, ok := keyspace.LicenseIDOf(e.slot, rest[:min(len(rest), keyspace.LicenseIDSize)])
		if ok && keys != nil {
			own, known = keys.SlotOf(id.Block())
		}
	case "k/", "u/":
		if known = len(e.rest) == len(licensing.APIKey{}.Hash); known {
			own = keyring.SlotOfHash([32]byte([]byte(e.rest)))
		}
	case "p/", "v/", "x/w/":
		own, known = licensing.SlotIn(e.rest)
	case keyspace.AliasesFamily: // only the value names the owner
	default:
		owner, _, ok := keyspace.CutOwner(rest)
		own, known = licensing.SlotOf(owner), ok
	}
	return !known || own == e.slot
}

// findUnknown reports the keys that no family covers, one violation for each kind of them, if the families have fewer
// keys than the store.
func (v *verification) findUnknown(ctx context.Context) error {
	var all int64
	err := v.retry(ctx, func(ctx context.Context) error {
		response, err := v.kv.Get(ctx, keyspace.Prefix, clientv3.WithPrefix(), clientv3.WithCountOnly(),
			clientv3.WithRev(v.revision))
		if err == nil {
			all = response.Count
		}
		return err
	})
	if err != nil || all == v.summary.Keys {
		return err
	}
	var known []string
	for _, f := range v.families() {
		if inCell(f.prefix) {
			known = append(known, keyspace.Prefix+f.prefix)
			continue
		}
		for _, slot := range v.slots {
			known = append(known, keyspace.InSlot(slot, f.prefix))
		}
	}
	slices.Sort(known)
	from := keyspace.Prefix
	for _, prefix := range append(known, clientv3.GetPrefixRangeEnd(keyspace.Prefix)) {
		if err := v.checkUnknown(ctx, from, prefix); err != nil {
			return err
		}
		from = clientv3.GetPrefixRangeEnd(prefix)
	}
	return nil
}
