package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkReceiptKeys checks the receipt keys of an owner.
func (v *keyChecks) checkReceiptKeys(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("receipt_keys", keyspace.ReceiptKeysFamily+Opaque(e.rest), "key",
			"the key does not name an owner")
		return
	}
	name := keyspace.ReceiptKeysFamily + keyspace.OwnerPath(owner)
	bad := func(rule, format string, args ...any) { v.report("receipt_keys", name, rule, format, args...) }
	stored, err := layout.DecodeReceiptKeys(owner, e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.ReceiptKeysWriter, bad)
	keys := stored.ReceiptKeys.Keys
	if len(keys) > licensing.MaxReceiptKeys {
		bad("limit", "it has %d receipt keys, and may have %d", len(keys), licensing.MaxReceiptKeys)
	}
	for i, key := range keys {
		if key.Number == 0 || key.CreatedAt.IsZero() || i > 0 && key.Number != keys[i-1].Number+1 {
			bad("order", "the receipt keys are not numbered in order")
			break
		}
	}
	v.wantMaster(stored.ReceiptKeys.Root.MasterID, false, func(id string) {
		bad("master_missing", "the store has no fingerprint of the master key %q, which seals the root key", id)
	})
	v.want(keyspace.ReceiptKeysMark, func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("mark_missing", "cell/receipts is missing, so the master key could be retired")
		}
	})
}

// checkReceiptsMark checks keyspace.ReceiptKeysMark.
func (v *keyChecks) checkReceiptsMark(e entry) {
	if e.rest != "" || len(e.value) > 0 {
		v.report("receipts_mark", "cell/receipts"+Opaque(e.rest), "key", "there is one, and it is empty")
	}
}
