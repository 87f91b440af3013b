package verify

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// listingChecks checks the entries of listings and of due work.
type listingChecks struct{ *reading }

// checkListing checks one entry of an owner's listing of licenses.
func (v *listingChecks) checkListing(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	id, isID := keyspace.LicenseIDOf(e.slot, rest[min(len(rest), keyspace.TimeSize):])
	if !ok || !isID {
		v.report("listing", "i/"+Opaque(e.rest), "key", "this is not the key of an entry of a listing")
		return
	}
	at, shown := shownTime(rest)
	name := keyspace.LicensesOf(owner) + shown + "/" + id.String()
	v.checkBareEntry("listing", name, e)
	v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("listing", name, "license_missing", "the license listed here does not exist")
			return
		}
		stored, err := layout.DecodeLicense(id, kv.Value)
		if err != nil {
			return // reported with the licenses
		}
		if l := &stored.License; l.Owner != owner || l.CreatedAt.UnixMilli() != at {
			v.report("listing", name, "misplaced", "the license listed here belongs to %s%s",
				keyspace.OwnerPath(l.Owner), l.CreatedAt.Format(time.RFC3339Nano))
		}
	})
}

// checkBuyer checks an order's entry in the listing of its buyer.
func (v *listingChecks) checkBuyer(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || len(rest) < keyspace.BuyerSize || !licensing.ValidOrderNo(rest[keyspace.BuyerSize:]) {
		v.report("buyer", "b/"+Opaque(e.rest), "key",
			"this is not the key of an entry of a buyer's orders")
		return
	}
	number := rest[keyspace.BuyerSize:]
	name := "b/" + keyspace.OwnerPath(owner) + hex.EncodeToString([]byte(rest[:keyspace.BuyerSize])) + "/" + number
	v.checkBareEntry("buyer", name, e)
	v.want(keyspace.OrderKey(owner, number), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("buyer", name, "order_missing", "the order listed here does not exist")
			return
		}
		stored, err := layout.DecodeOrder(licensing.OrderRef(owner, number), kv.Value)
		if err != nil {
			return // reported with the orders
		}
		if keyspace.BuyerListingKey(&stored.Order) != e.key {
			v.report("buyer", name, "misplaced", "the order listed here names another buyer, or none")
		}
	})
}

// checkCatalog checks a product's entry in its owner's listing.
func (v *listingChecks) checkCatalog(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || len(rest) <= keyspace.TimeSize {
		v.report("catalog", "c/"+Opaque(e.rest), "key",
			"this is not the key of a product's entry of a listing")
		return
	}
	ref := licensing.ProductRef(owner, rest[keyspace.TimeSize:])
	_, shown := shownTime(rest)
	name := keyspace.ProductsOf(owner) + shown + "/" + ref.ID
	v.checkBareEntry("catalog", name, e)
	v.want(keyspace.ProductKey(owner, ref.ID), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("catalog", name, "product_missing", "the product listed here does not exist")
			return
		}
		stored, err := layout.DecodeProduct(ref, kv.Value)
		if err != nil {
			return // reported with the products
		}
		if p := &stored.Product; keyspace.CatalogKey(ref, p) != e.key {
			v.report("catalog", name, "misplaced", "the product listed here was made at %s",
				p.CreatedAt.Format(time.RFC3339Nano))
		}
	})
}

// checkBareEntry checks an entry of a listing whose key contains no record.
func (v *reading) checkBareEntry(family, name string, e entry) {
	if len(e.value) > 0 {
		v.report(family, name, "value", "it has a value")
	}
	v.checkEntry(family, name, e)
}

// checkEntry looks up an entry's keys on the upper levels of its listing.
func (v *reading) checkEntry(family, name string, e entry) {
	for level, above := range keyspace.SkipKeys(e.key) {
		v.want(above, func(kv *mvccpb.KeyValue) {
			if kv == nil {
				v.report(family, name, "skip_missing",
					"it is not on level %d of its listing, which makes the listing slow", level+1)
			}
		})
	}
}

// checkSkip checks an entry's key on an upper level of a listing.
func (v *listingChecks) checkSkip(e entry) {
	level := 0
	if e.rest != "" {
		level = int(e.rest[0]) - '0'
	}
	if level < 1 || level > keyspace.SkipLevels {
		v.report("skip", keyspace.SkipFamily+Opaque(e.rest), "key",
			"this is not a key on an upper level of a listing")
		return
	}
	below := keyspace.InSlot(e.slot, e.rest[1:])
	name := keyspace.SkipFamily + strconv.Itoa(level) + Opaque(e.rest[1:])
	if len(e.value) > 0 {
		v.report("skip", name, "value", "it has a value")
	}
	if keyspace.SkipHeight(below) < level {
		v.report("skip", name, "level", "its entry does not reach up to level %d", level)
	}
	v.want(below, func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("skip", name, "entry_missing", "there is no such entry in a listing")
		}
	})
}

// shownTime parses the time at the beginning of a text. It also returns the form in which violations show the time.
func shownTime(text string) (ms int64, shown string) {
	ms = int64(binary.BigEndian.Uint64([]byte(text)))
	return ms, time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)
}
