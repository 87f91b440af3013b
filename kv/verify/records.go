package verify

import (
	"encoding/json"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// recordChecks checks products, usage, settings, and single keys such as nodes.
type recordChecks struct {
	*reading
	events   *eventChecks
	usages   map[licensing.Owner]licensing.Size     // as the usage records say
	settings map[licensing.Owner]licensing.Settings // see licenseChecks
}

// named parses the key of a record that an owner and a hash name. It returns the reference of the record, and bad,
// which reports a violation of the record. ok is false if the key is in another form; named has reported that.
func (v *reading) named(
	e entry, what, family string, read func(rest string) (licensing.Ref, bool),
) (ref licensing.Ref, bad func(rule, format string, args ...any), ok bool) {
	if ref, ok = read(e.rest); !ok {
		v.report(what, family+Opaque(e.rest), "key", "this is not the key of a %s", what)
		return ref, nil, false
	}
	name := family + keyspace.OwnerPath(ref.Owner) + Opaque(ref.ID)
	return ref, func(rule, format string, args ...any) { v.report(what, name, rule, format, args...) }, true
}

func (v *recordChecks) checkProduct(e entry) {
	owner, id, ok := keyspace.CutOwner(e.rest)
	if !ok || id == "" {
		v.report("product", "q/"+Opaque(e.rest), "key", "this is not the key of a product")
		return
	}
	name := "q/" + keyspace.OwnerPath(owner) + id
	bad := func(rule, format string, args ...any) { v.report("product", name, rule, format, args...) }
	ref := licensing.ProductRef(owner, id)
	stored, err := layout.DecodeProduct(ref, e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.ProductWriter, bad)
	v.want(keyspace.CatalogKey(ref, &stored.Product), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("catalog_missing", "it is not in its owner's listing")
		}
	})
	if terms := stored.Product.Terms; !licensing.ValidKeyPrefix(terms.KeyPrefix) || terms.MaxDevices < 0 ||
		terms.SelfService.RemovalsPerMonth < 0 {
		bad("terms", "no license can be issued with its terms")
	}
	if p := &stored.Product; p.Entitlements.Version() != p.Terms.Version {
		bad("terms_version", "its terms do not have the version of its entitlements")
	}
	v.wantTerms(owner, stored.Product.Terms.Version, bad)
	v.checkRollout(owner, &stored.Product, bad)
	if metadata := stored.Product.Metadata; metadata != "" && !isObject([]byte(metadata)) {
		bad("metadata", "its metadata is no JSON object")
	}
}

// checkRollout checks the rollout of a product.
func (v *recordChecks) checkRollout(
	owner licensing.Owner, p *licensing.Product, bad func(rule, format string, args ...any),
) {
	o := &p.Rollout
	if *o == (licensing.Rollout{}) {
		return
	}
	v.wantDue(p.Due(), keyspace.ProductKey(owner, p.ID), bad)
	v.wantTerms(owner, o.Terms.Version, bad)
	n := o.Counts
	if o.StartedAt.IsZero() || o.Canceled && o.EndedAt.IsZero() || !o.Applies.Valid() ||
		min(n.Licenses, n.Updated, n.LimitsKept, n.Failed) < 0 {
		bad("rollout", "its rollout contradicts itself")
	}
}

// wantTerms looks up a version of terms that a product or a license names.
func (v *reading) wantTerms(
	owner licensing.Owner, version licensing.TermsVersion, bad func(rule, format string, args ...any),
) {
	if version == 0 {
		return
	}
	v.want(keyspace.TermsKey(licensing.TermsRef(owner, version)), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("terms_missing", "its version of the terms does not exist")
		}
	})
}

// checkTerms checks a version of terms.
func (v *recordChecks) checkTerms(e entry) {
	owner, version, ok := keyspace.CutOwner(e.rest)
	name := keyspace.TermsFamily + Opaque(e.rest)
	bad := func(rule, format string, args ...any) { v.report("terms", name, rule, format, args...) }
	if !ok {
		bad("key", "this is not the key of a version of terms")
		return
	}
	terms, err := layout.DecodeTerms(e.value)
	switch {
	case err != nil:
		bad("value", "the value can't be read: %v", err)
	case licensing.TermsRef(owner, terms.Entitlements.Version()).ID != version:
		bad("version", "its key is not the hash of its entitlements")
	}
}

// checkCheckKey checks the check key of license keys. The checks of licenses report a missing check key.
func (v *recordChecks) checkCheckKey(e entry) {
	switch {
	case e.rest != "":
		v.report("check_key", "cell/check"+Opaque(e.rest), "key",
			"no key but cell/check may begin like this")
	case len(e.value) != keyspace.CheckKeySize:
		v.report("check_key", "cell/check", "value", "it has %d bytes, and not %d", len(e.value), keyspace.CheckKeySize)
	}
}

func isObject(value []byte) bool {
	return len(value) > 0 && value[0] == '{' && json.Valid(value)
}

func (v *recordChecks) checkNode(e entry) {
	if len(e.rest) != len(store.Incarnation{}) {
		v.report("node", "cell/n/"+Opaque(e.rest), "key", "this is not the key of a node")
		return
	}
	if _, _, err := layout.DecodeNode(e.rest, e.value); err != nil {
		v.report("node", "cell/n/"+Opaque(e.rest), "value", "the registration of a node can't be read: %v", err)
	}
}

// checkBackup checks the record of the last backup.
func (v *recordChecks) checkBackup(e entry) {
	switch {
	case e.rest != "":
		v.report("backup", "cell/backup"+Opaque(e.rest), "key", "no key but cell/backup may begin like this")
	case len(e.value) != keyspace.BackupTimeSize:
		v.report("backup", "cell/backup", "value", "it has %d bytes, and not %d", len(e.value), keyspace.BackupTimeSize)
	}
}
