package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkSettings checks the settings of an owner, and keeps them for the checks of external keys.
func (v *recordChecks) checkSettings(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("settings", "f/"+Opaque(e.rest), "key", "this is not the key of an owner's settings")
		return
	}
	name := keyspace.SettingsFamily + keyspace.OwnerPath(owner)
	bad := func(rule, format string, args ...any) { v.report("settings", name, rule, format, args...) }
	stored, err := layout.DecodeSettings(owner, e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.SettingsWriter, bad)
	if m := stored.Settings.Matching(); m != licensing.MatchExact && m != licensing.MatchCompact {
		bad("external_keys", "external keys are matched in a way that this build does not know")
	}
	v.settings[owner] = stored.Settings
}

// checkExternalKey checks the external key of a license: its alias must lead to the license.
func (v *licenseChecks) checkExternalKey(
	l *licensing.License, m licensing.Metadata, bad func(rule, format string, args ...any),
) {
	if m.ExternalKey == "" || v.cfg.Keys == nil {
		return
	}
	id := l.Key.ID()
	key, ok := v.cfg.Keys.OpenExternalKey(id, m.ExternalKey)
	if !ok {
		bad("external_key", "its external key was not sealed for it with this store's id key")
		return
	}
	v.wantAlias(v.aliasOf(l.Owner, key), id, func(rule, format string, args ...any) {
		bad("alias_"+rule, "the alias of its external key "+format, args...)
	})
}

// wantAlias looks up an alias, which must lead to a license.
func (v *licenseChecks) wantAlias(
	name licensing.AliasName, id licensing.LicenseID, bad func(rule, format string, args ...any),
) {
	v.want(keyspace.AliasKey(name), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("missing", "is missing, so that key finds no license")
			return
		}
		if alias, err := layout.DecodeAlias(kv.Value); err == nil && alias.License != id {
			bad("other", "leads to the license %s", alias.License)
		}
	})
}

// aliasOf returns the alias of an external key.
func (v *licenseChecks) aliasOf(owner licensing.Owner, key string) licensing.AliasName {
	settings := v.settings[owner]
	return v.cfg.Keys.AliasOf(owner, settings.Matching().Of(key))
}

// checkReissues checks the keys that a license got after its first one: an alias must lead from each to the license.
func (v *licenseChecks) checkReissues(l *licensing.License, bad func(rule, format string, args ...any)) {
	id := l.Key.ID()
	before := l.CreatedAt
	for i := range l.Reissues.Count() {
		if at := l.Reissues.At(i); at.Before(before) && i > 0 {
			bad("reissues", "its keys are not in the order of time")
		} else {
			before = at
		}
		own := licensing.NewLicenseID(id.Slot(), [licensing.LicenseBlockSize]byte([]byte(l.Reissues.Block(i))))
		if v.cfg.Keys != nil && !v.cfg.Keys.Made(own) {
			bad("reissues", "one of its keys was not made with this store's id key, or not for its slot")
			continue
		}
		v.wantAlias(licensing.AliasName(own), id, func(rule, format string, args ...any) {
			bad("reissue_"+rule, "the alias of one of its keys "+format, args...)
		})
	}
}

// checkAlias checks an alias: the license that it leads to must have the external key, or the reissued key.
func (v *licenseChecks) checkAlias(e entry) {
	name := keyspace.AliasesFamily + Opaque(e.rest)
	bad := func(rule, format string, args ...any) { v.report("alias", name, rule, format, args...) }
	if len(e.rest) != keyspace.LicenseIDSize {
		bad("key", "this is not the key of an alias")
		return
	}
	alias, err := layout.DecodeAlias(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	id := alias.License
	if e.slot != licensing.SlotOf(alias.Owner) || e.slot != id.Slot() {
		bad("slot", "it is not in the slot of its owner and of the license %s", id)
		return
	}
	reissued := false
	v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("license_missing", "its license %s does not exist", id)
			return
		}
		l, err := layout.DecodeLicense(id, kv.Value)
		if err != nil {
			return // reported with the licenses
		}
		if l.License.Owner != alias.Owner {
			bad("license_owner", "its license %s belongs to another owner", id)
		}
		reissued = l.License.Reissues.Number(e.rest) > 0
	})
	v.want(keyspace.MetadataKey(id), func(kv *mvccpb.KeyValue) {
		if reissued {
			return
		}
		if settings := v.settings[alias.Owner]; !settings.KeysFixed {
			bad("keys_fixed", "its owner has external keys, and may still change how they are matched")
		}
		var m licensing.Metadata
		if kv != nil {
			if m, _, err = layout.DecodeMetadata(kv.Value); err != nil {
				return // reported with the metadata
			}
		}
		if m.ExternalKey == "" {
			bad("external_key_missing", "its license %s has neither an external key nor this key", id)
			return
		}
		if v.cfg.Keys == nil {
			return
		}
		if key, ok := v.cfg.Keys.OpenExternalKey(id, m.ExternalKey); ok {
			if of := keyspace.AliasKey(v.aliasOf(alias.Owner, key)); of != e.key {
				bad("external_key_other", "its license %s has another external key", id)
			}
		}
	})
}
