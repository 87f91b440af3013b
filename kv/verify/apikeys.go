package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
)

// keyChecks checks API keys, their index, marks and uses, and master keys.
type keyChecks struct{ *reading }

func (v *keyChecks) checkAPIKey(e entry) {
	name := "k/" + Opaque(e.rest)
	if len(e.rest) != len(licensing.APIKey{}.Hash) {
		v.report("api_key", name, "key", "the key is no SHA-256")
		return
	}
	stored, err := layout.DecodeAPIKey([32]byte([]byte(e.rest)), e.value)
	if err != nil {
		v.report("api_key", name, "value", "the value can't be read: %v", err)
		return
	}
	key := &stored.Key
	switch {
	case key.ID == "":
		v.report("api_key", name, "id", "it has no public id")
		return
	case !keyspace.ValidAccount(key.Owner.AccountID):
		v.report("api_key", name, "owner", "its owner's account is malformed")
		return
	case !licensing.SlotOf(key.Owner).In(key.ID):
		v.report("api_key", name, "slot", "its public id does not contain the slot of its owner")
	}
	v.want(keyspace.APIKeyIndexKey(key.Owner, key.ID), func(kv *mvccpb.KeyValue) {
		switch {
		case kv == nil:
			v.report("api_key", name, "index_missing", "its id does not lead to it")
		case string(kv.Value) != e.rest:
			v.report("api_key", name, "index_other", "its id leads to another key")
		}
	})
	checkWriters(e.value, layout.APIKeyWriter,
		func(rule, format string, args ...any) { v.report("api_key", name, rule, format, args...) })
	if !key.RevokedAt.IsZero() {
		return // the secrets of the key are not needed any more
	}
	missing := func(id string) {
		v.report("api_key", name, "master_missing", "the store has no fingerprint of its master key %q", id)
	}
	v.wantMaster(key.MasterID, false, missing)
	if previous := key.Previous; previous != (licensing.PreviousSecret{}) && previous.MasterID != key.MasterID {
		v.wantMaster(previous.MasterID, true, missing)
	}
}

// wantMaster demands the fingerprint of a master key that a secret is derived from. Without the fingerprint, a node
// would start with a ring that lacks the key. If the secret may have expired, the master key may have been retired.
func (v *keyChecks) wantMaster(id string, mayBeRetired bool, missing func(id string)) {
	v.want(keyspace.MasterKeyKey(id), func(kv *mvccpb.KeyValue) {
		switch {
		case kv != nil:
		case mayBeRetired:
			v.want(keyspace.RetiredMasterKey(id), func(kv *mvccpb.KeyValue) {
				if kv == nil {
					missing(id)
				}
			})
		default:
			missing(id)
		}
	})
}

// checkAPIKeyIndex checks one entry that leads from an id to an API key.
func (v *keyChecks) checkAPIKeyIndex(e entry) {
	owner, id, ok := keyspace.CutOwner(e.rest)
	if !ok || id == "" {
		v.report("api_key_index", "a/"+Opaque(e.rest), "key", "this is not the key of an entry")
		return
	}
	name := keyspace.APIKeysOf(owner) + id
	v.checkEntry("api_key_index", name, e)
	if len(e.value) != len(licensing.APIKey{}.Hash) {
		v.report("api_key_index", name, "value", "the value is no SHA-256")
		return
	}
	hash := [32]byte(e.value)
	v.want(keyspace.APIKeyKey(hash), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("api_key_index", name, "api_key_missing", "the key that it leads to does not exist")
			return
		}
		stored, err := layout.DecodeAPIKey(hash, kv.Value)
		if err != nil {
			return // reported with the keys
		}
		if stored.Key.ID != id || stored.Key.Owner != owner {
			v.report("api_key_index", name, "misplaced", "the key that it leads to has another id or owner")
		}
	})
}

// checkAPIKeysMark checks the marks that changes of API keys replace.
func (v *keyChecks) checkAPIKeysMark(e entry) {
	_, ofPart := keyspace.CutAPIKeyPart(keyspace.APIKeysMark + e.rest)
	switch {
	case e.rest != "" && !ofPart:
		v.report("api_key_mark", "cell/keys"+Opaque(e.rest), "key", "this is the name of no mark")
	case len(e.value) != keyspace.APIKeysMarkSize:
		v.report("api_key_mark", "cell/keys", "value", "it has %d bytes, and not %d", len(e.value),
			keyspace.APIKeysMarkSize)
	}
}

// checkIDKey checks the sealed id key.
func (v *keyChecks) checkIDKey(e entry) {
	if e.rest != "" {
		v.report("id_key", "cell/id_key"+Opaque(e.rest), "key", "no key but cell/id_key may begin like this")
		return
	}
	stored, err := layout.DecodeIDKey(e.value)
	if err != nil {
		v.report("id_key", "cell/id_key", "value", "the value can't be read: %v", err)
		return
	}
	v.wantMaster(stored.MasterID, false, func(id string) {
		v.report("id_key", "cell/id_key", "master_missing", "the store has no fingerprint of its master key %q", id)
	})
}

// checkMasterKey checks the fingerprint of a master key.
func (v *keyChecks) checkMasterKey(e entry) {
	v.checkFingerprint("master_key", "cell/master/", e)
}

// checkRetiredMaster checks the fingerprint of a retired master key.
func (v *keyChecks) checkRetiredMaster(e entry) {
	if !v.checkFingerprint("retired_master_key", "cell/retired/", e) {
		return
	}
	v.want(keyspace.MasterKeyKey(e.rest), func(kv *mvccpb.KeyValue) {
		if kv != nil {
			v.report("retired_master_key", "cell/retired/"+e.rest, "in_use", "the master key is in use too")
		}
	})
}

func (v *keyChecks) checkFingerprint(family, prefix string, e entry) (good bool) {
	if _, err := keyring.NewMasterKey(e.rest, [keyring.MasterKeySize]byte{}); err != nil {
		v.report(family, prefix+Opaque(e.rest), "key", "the key does not name a master key")
		return false
	}
	if len(e.value) != keyring.FingerprintSize {
		v.report(family, prefix+e.rest, "value", "the fingerprint has %d bytes, and not %d", len(e.value),
			keyring.FingerprintSize)
		return false
	}
	return true
}

// checkAPIKeyUse checks when an API key was used last.
func (v *keyChecks) checkAPIKeyUse(e entry) {
	name := "u/" + Opaque(e.rest)
	if len(e.rest) != len(licensing.APIKey{}.Hash) {
		v.report("api_key_use", name, "key", "the key is no SHA-256")
		return
	}
	if at, err := layout.DecodeKeyUse(e.value); err != nil || at.IsZero() {
		v.report("api_key_use", name, "value", "the value can't be read as a time: %v", err)
	}
	v.want(keyspace.APIKeyKey([32]byte([]byte(e.rest))), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("api_key_use", name, "api_key_missing", "there is no such API key")
		}
	})
}
