package verify

import (
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// wantDue demands a record's entry in the index of due work.
func (v *reading) wantDue(d licensing.Due, record string, bad func(rule, format string, args ...any)) {
	place := keyspace.DueOf(d)
	if place == 0 {
		return
	}
	v.want(place.Key(record), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("due_missing", "its entry in the listing by time at %s is missing", place.At().Format(time.RFC3339Nano))
		}
	})
}

// checkDue returns the check of one entry of an index of due work.
func (v *listingChecks) checkDue(x keyspace.DueIndex) func(entry) {
	return func(e entry) {
		place, ref, ok := x.Decode(e.slot, e.rest, e.value)
		if !ok {
			v.report(x.Name, x.Family+Opaque(e.rest), "key",
				"the key or the value is not that of an entry")
			return
		}
		name := x.Family + place.At().Format(time.RFC3339Nano) + "/" + v.dueName(ref)
		v.want(keyspace.RecordKey(ref), func(kv *mvccpb.KeyValue) {
			if kv == nil {
				v.report(x.Name, name, "record_missing", "there is no such record")
				return
			}
			now, ok := dueNow(ref, kv.Value)
			if ok && now != place {
				v.report(x.Name, name, "misplaced", "its record does not say that this is due then")
			}
		})
	}
}

// dueName returns how violations name the record of an entry.
func (v *reading) dueName(ref licensing.Ref) string {
	if ref.Kind == licensing.KindLicense {
		return ref.LicenseID().String()
	}
	return keyspace.OwnerPath(ref.Owner) + ref.ID
}

// dueNow returns the work due for a record. The check of the record's family reports a record that can't be read.
func dueNow(ref licensing.Ref, value []byte) (keyspace.Due, bool) {
	switch ref.Kind {
	case licensing.KindLicense:
		license, err := layout.DecodeLicense(ref.LicenseID(), value)
		if err != nil {
			return 0, false
		}
		return keyspace.DueOf(license.License.Due()), true
	case licensing.KindProduct:
		product, err := layout.DecodeProduct(ref, value)
		if err != nil {
			return 0, false
		}
		return keyspace.DueOf(product.Product.Due()), true
	}
	order, err := layout.DecodeOrder(ref, value)
	if err != nil {
		return 0, false
	}
	return keyspace.DueOf(order.Order.Due()), true
}
