package verify

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// orderChecks checks orders and payments.
type orderChecks struct {
	*reading
	events *eventChecks
	ofMany map[string]int // see licenseChecks, whose check of licenses comes first
}

// checkOrders reads orders together with the listings of their payments. Both have the same order, so nothing must be
// kept in memory.
func (v *orderChecks) checkOrders(ctx context.Context) error {
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
func (v *orderChecks) checkOrder(e entry, listed *balance) {
	owner, number, ok := keyspace.CutOwner(e.rest)
	if !ok || !licensing.ValidOrderNo(number) {
		v.report("order", "o/"+Opaque(e.rest), "key", "this is not the key of an order")
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
func (v *orderChecks) checkPlaceOfOrder(o *licensing.Order, bad func(rule, format string, args ...any)) {
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
		bad("refund", "it says that it was refunded, and was never paid")
	}
	if o.Late && !paid {
		bad("late", "it says that it was paid late, and was never paid")
	}
}

// checkQuantity checks how many licenses an order is for, how many it has, and how many licenses name it. As each
// license of the order is looked up by its key, no further license names the order if both numbers agree.
func (v *orderChecks) checkQuantity(o *licensing.Order, bad func(rule, format string, args ...any)) {
	if o.Quantity < 0 || o.Quantity == 1 || o.Quantity > licensing.MaxQuantity || o.LicensesIssued < 0 ||
		o.LicensesIssued > o.Quantity || (o.KeySeed != licensing.KeySeed{}) != (o.LicensesIssued > 0) ||
		o.Quantity > 1 && (o.LicensesIssued > 0) == o.LicenseKey.IsZero() {
		bad("quantity", "it is for %d licenses and has %d, which can't be", o.Quantity, o.LicensesIssued)
		return
	}
	if due := o.OrderOthers; (due != licensing.OrderOthers{}) && (due.Others == licensing.OthersDone ||
		due.Others > licensing.OthersRevoke || due.OthersFrom < 1 || int(due.OthersFrom) >= o.LicensesIssued ||
		(due.Others == licensing.OthersRevoke) == o.RefundedAt.IsZero()) {
		bad("others", "it has %d licenses, and those from index %d must get the change %d, which can't be",
			o.LicensesIssued, due.OthersFrom, due.Others)
	}
	if named := v.ofMany[o.OrderNo]; o.Quantity > 1 && named != o.LicensesIssued {
		bad("licenses", "it has %d licenses, and %d licenses name it", o.LicensesIssued, named)
	}
}

// checkOrderLicenses looks up the licenses of an order. The keys of an order for several licenses follow from its seed.
func (v *orderChecks) checkOrderLicenses(o *licensing.Order, bad func(rule, format string, args ...any)) {
	if o.LicenseKey.IsZero() {
		return
	}
	v.checkOrderLicense(o, 0, o.LicenseKey, bad)
	if v.cfg.Keys == nil || o.LicensesIssued > licensing.MaxQuantity {
		return
	}
	for i := range o.LicensesIssued {
		key := v.cfg.Keys.SeededKey(o.KeySeed, o.Terms.KeyPrefix, o.Owner, i)
		switch {
		case i > 0:
			v.checkOrderLicense(o, i, key, bad)
		case key != o.LicenseKey:
			bad("license_seed", "the key of its first license does not follow from its seed")
		}
	}
}

// checkOrderLicense looks up the license of an order with an index and a key.
func (v *orderChecks) checkOrderLicense(
	o *licensing.Order, i int, key licensing.LicenseKey, bad func(rule, format string, args ...any),
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
		case !o.RefundedAt.IsZero() && l.RevokedAt.IsZero() &&
			(o.Others != licensing.OthersRevoke || i < int(o.OthersFrom)):
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
func (v *orderChecks) checkOrderOwner(e entry) {
	if !licensing.ValidOrderNo(e.rest) {
		v.report("order_owner", "p/"+Opaque(e.rest), "key", "the key does not name an order")
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
