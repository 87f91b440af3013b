package verify

import (
	"context"
	"encoding/json"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// recordChecks checks licenses with their devices and metadata, orders, products, and single keys such as nodes.
type recordChecks struct {
	*reading
	events *eventChecks
	usages map[licensing.Owner]licensing.Size // as the usage records say
	// ofMany counts the licenses that name an order for several licenses, by the number of the order. The check of
	// licenses comes first and fills it.
	ofMany map[string]int
	// settings are the settings of owners. The families before licenses fill it.
	settings map[licensing.Owner]licensing.Settings
}

// named parses the key of a record that an owner and a hash name, and returns how to report what is wrong with the
// record. It reports a key in another form, and then ok is false.
func (v *recordChecks) named(
	e entry, what, family string, read func(rest string) (licensing.Ref, bool),
) (ref licensing.Ref, bad func(rule, format string, args ...any), ok bool) {
	if ref, ok = read(e.rest); !ok {
		v.report(what, family+Opaque(e.rest), "key", "the key is not in the form of a %s's", what)
		return ref, nil, false
	}
	name := family + keyspace.OwnerPath(ref.Owner) + Opaque(ref.ID)
	return ref, func(rule, format string, args ...any) { v.report(what, name, rule, format, args...) }, true
}

// checkOrders reads orders together with the listings of their payments. Both have the same order, so nothing must be
// kept in memory.
func (v *recordChecks) checkOrders(ctx context.Context) error {
	orders, payments := v.stream("o/"), v.stream(keyspace.PaymentListings)
	defer orders.close()
	defer payments.close()
	for {
		e, more, err := orders.next(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if err := v.strayPayments(ctx, payments, e); err != nil {
			return err
		}
		listed, err := v.checkListedPayments(ctx, payments, e)
		if err != nil {
			return err
		}
		v.checkOrder(e, listed)
		if err := v.lookUp(ctx, lookupBatch); err != nil {
			return err
		}
	}
	if err := v.strayPayments(ctx, payments, entry{slot: licensing.Slots}); err != nil {
		return err
	}
	return v.lookUp(ctx, 0)
}

// checkOrder checks one order: its own value, and whether its license, its payments and the pointer to its owner agree
// with it.
func (v *recordChecks) checkOrder(e entry, listed *balance) {
	owner, number, ok := keyspace.CutOwner(e.rest)
	if !ok || !licensing.ValidOrderNo(number) {
		v.report("order", "o/"+Opaque(e.rest), "key", "the key is not in the form of an order's")
		return
	}
	name := keyspace.OrdersOf(owner) + number
	v.checkEntry("order", name, e)
	bad := func(rule, format string, args ...any) { v.report("order", name, rule, format, args...) }
	if !licensing.SlotOf(owner).In(number) {
		bad("slot", "its number does not contain the slot of its owner")
	}
	v.want(keyspace.OrderOwnerKey(number), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("owner_missing", "the entry that leads from its number to its owner is missing")
			return
		}
		if pointed, err := layout.DecodeOwner(kv.Value); err == nil && pointed != owner {
			bad("owner_other", "its number leads to another owner")
		}
	})
	order, err := layout.DecodeOrder(licensing.OrderRef(owner, number), e.value)
	if err != nil {
		v.events.links.unread = true
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.OrderWriter, bad)
	v.checkPlaceOfOrder(&order.Order, bad)
	checkPayment(&order.Order, bad)
	checkRefunds(&order.Order, bad)
	checkCheckout(&order.Order, bad)
	checkDisputes(&order.Order, bad)
	checkSubscription(&order.Order, bad)
	v.checkPaymentOfOrder(&order.Order, bad)
	v.checkBalance(&order.Order, listed, bad)
	if order.Order.PayHash == [32]byte{} {
		bad("pay_hash", "it has no hash of its pay token, so its pay page can't be opened")
	}
	v.wantDue(order.Order.Due(), keyspace.OrderKey(owner, number), bad)
	v.events.wantOrderEvents(order, bad)
	v.checkQuantity(&order.Order, bad)
	v.checkOrderLicenses(&order.Order, bad)
}

// checkPlaceOfOrder looks up an order's entry in the listing of its buyer.
func (v *recordChecks) checkPlaceOfOrder(o *licensing.Order, bad func(rule, format string, args ...any)) {
	place := keyspace.BuyerListingKey(o)
	if place == "" {
		return
	}
	v.want(place, func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("buyer_missing", "it is not among the orders of its buyer")
		}
	})
}

// checkPayment compares the payment of an order with its license. A paid order has a license, and keeps the license
// when the order is refunded. A canceled order never gets a license; money that arrives for the order goes back.
func checkPayment(o *licensing.Order, bad func(rule, format string, args ...any)) {
	paid, canceled, refunded := !o.PaidAt.IsZero(), !o.CanceledAt.IsZero(), !o.RefundedAt.IsZero()
	licensed := !o.LicenseKey.IsZero()
	switch {
	case canceled && licensed:
		bad("canceled_license", "it was canceled, and has a license")
	case !canceled && paid && !licensed:
		bad("paid_license", "it is paid, and has no license")
	case !paid && licensed:
		bad("paid_license", "it is not paid, and has a license")
	}
	switch {
	case o.RefundDue && (!paid || refunded && o.OpenRefund() == 0):
		bad("refund_due", "a refund is due of an order that is not paid, or refunded already")
	case canceled && paid && !refunded && !o.RefundDue:
		bad("refund_due", "it was paid after it was canceled, and no refund is due")
	case refunded && !paid:
		bad("refund", "it was refunded, and never paid")
	}
	if o.Late && !paid {
		bad("late", "it was paid late, and never paid")
	}
}

// checkQuantity checks how many licenses an order is for, how many it has, and how many licenses name it. As each
// license of the order is looked up by its key, no further license names the order if both numbers agree.
func (v *recordChecks) checkQuantity(o *licensing.Order, bad func(rule, format string, args ...any)) {
	if o.Quantity < 0 || o.Quantity == 1 || o.Quantity > licensing.MaxQuantity || o.LicensesIssued < 0 ||
		o.LicensesIssued > o.Quantity || (o.KeySeed != licensing.KeySeed{}) != (o.LicensesIssued > 0) ||
		o.Quantity > 1 && (o.LicensesIssued > 0) == o.LicenseKey.IsZero() {
		bad("quantity", "it is for %d licenses and has %d, which can't be", o.Quantity, o.LicensesIssued)
		return
	}
	if named := v.ofMany[o.OrderNo]; o.Quantity > 1 && named != o.LicensesIssued {
		bad("licenses", "it has %d licenses, and %d licenses name it", o.LicensesIssued, named)
	}
}

// checkOrderLicenses looks up the licenses of an order. The keys of an order for several licenses follow from its seed.
func (v *recordChecks) checkOrderLicenses(o *licensing.Order, bad func(rule, format string, args ...any)) {
	if o.LicenseKey.IsZero() {
		return
	}
	v.checkOrderLicense(o, o.LicenseKey, bad)
	if v.cfg.Keys == nil || o.LicensesIssued > licensing.MaxQuantity {
		return
	}
	for i := range o.LicensesIssued {
		key := v.cfg.Keys.SeededKey(o.KeySeed, o.Terms.KeyPrefix, o.Owner, i)
		switch {
		case i > 0:
			v.checkOrderLicense(o, key, bad)
		case key != o.LicenseKey:
			bad("license_seed", "the key of its first license does not follow from its seed")
		}
	}
}

// checkOrderLicense looks up the license of an order with a key.
func (v *recordChecks) checkOrderLicense(
	o *licensing.Order, key licensing.LicenseKey, bad func(rule, format string, args ...any),
) {
	id := key.ID()
	v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("license_missing", "its license %s does not exist", id)
			return
		}
		stored, err := layout.DecodeLicense(id, kv.Value)
		if err != nil {
			return // reported with the licenses
		}
		switch l := &stored.License; {
		case l.Key != key:
			bad("license_key", "its license %s has another prefix", id)
		case l.Owner != o.Owner:
			bad("license_owner", "its license %s belongs to another owner", id)
		case l.OrderNo != o.OrderNo:
			bad("license_other_order", "its license %s names %s", id, orderOrNone(l.OrderNo))
		case !o.RefundedAt.IsZero() && l.RevokedAt.IsZero():
			bad("refunded_license", "it was refunded, and its license %s was not revoked", id)
		case o.Subscribed() && l.RevokedAt.IsZero():
			if product, _ := o.Pays(); l.ProductID != product {
				bad("license_product", "its subscription pays for %q, and its license %s is of %q", product, id,
					l.ProductID)
			}
		}
	})
}

// checkOrderOwner checks one pointer from an order's number to its owner.
func (v *recordChecks) checkOrderOwner(e entry) {
	if !licensing.ValidOrderNo(e.rest) {
		v.report("order_owner", "p/"+Opaque(e.rest), "key", "the key is not in the form of an order number")
		return
	}
	name := "p/" + e.rest
	owner, err := layout.DecodeOwner(e.value)
	if err != nil {
		v.report("order_owner", name, "value", "the value can't be read: %v", err)
		return
	}
	v.want(keyspace.OrderKey(owner, e.rest), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("order_owner", name, "order_missing", "%s has no order of this number", keyspace.OwnerPath(owner))
		}
	})
}

func (v *recordChecks) checkProduct(e entry) {
	owner, id, ok := keyspace.CutOwner(e.rest)
	if !ok || id == "" {
		v.report("product", "q/"+Opaque(e.rest), "key", "the key is not in the form of a product's")
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
func (v *recordChecks) wantTerms(
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
		bad("key", "the key is not in the form of a version of terms")
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
			"there is one check key, and this is not its name")
	case len(e.value) != keyspace.CheckKeySize:
		v.report("check_key", "cell/check", "value", "it has %d bytes, and not %d", len(e.value), keyspace.CheckKeySize)
	}
}

func isObject(value []byte) bool {
	return len(value) > 0 && value[0] == '{' && json.Valid(value)
}

func (v *recordChecks) checkNode(e entry) {
	if len(e.rest) != len(store.Incarnation{}) {
		v.report("node", "cell/n/"+Opaque(e.rest), "key", "the key is not in the form of a node's")
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
		v.report("backup", "cell/backup"+Opaque(e.rest), "key", "there is one, and this is not its name")
	case len(e.value) != keyspace.BackupTimeSize:
		v.report("backup", "cell/backup", "value", "it has %d bytes, and not %d", len(e.value), keyspace.BackupTimeSize)
	}
}
