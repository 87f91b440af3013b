package verify

import (
	"encoding/hex"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkCustomerOf checks the customer that a license names, and looks up the entries of the license in the listings of
// that customer.
func (v *licenseChecks) checkCustomerOf(
	l *licensing.License, c licensing.Customer, bad func(rule, format string, args ...any),
) {
	if l.OrderNo != "" && c.BuyerEmail != "" {
		bad("customer_buyer", "it names a buyer, and so does its order")
	}
	for i, place := range keyspace.CustomerKeys(l, c) {
		if place == "" {
			continue
		}
		v.want(place, func(kv *mvccpb.KeyValue) {
			if kv == nil {
				bad("customer_missing", "it is not among the licenses of its %s",
					[...]string{"buyer", "customer's reference"}[i])
			}
		})
	}
}

// checkCustomer checks a license's entry in a listing of a customer's licenses.
func (v *listingChecks) checkCustomer(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	id, isID := keyspace.LicenseIDOf(e.slot, rest[min(len(rest), keyspace.CustomerSize+keyspace.TimeSize):])
	if !ok || !isID || rest[0] != 'b' && rest[0] != 'r' {
		v.report("customer", keyspace.CustomersFamily+Opaque(e.rest), "key",
			"this is not the key of an entry of a customer's licenses")
		return
	}
	customer, rest := rest[:keyspace.CustomerSize], rest[keyspace.CustomerSize:]
	_, shown := shownTime(rest)
	name := keyspace.CustomersFamily + keyspace.OwnerPath(owner) + customer[:1] +
		hex.EncodeToString([]byte(customer[1:])) + "/" + shown + "/" + id.String()
	v.checkBareEntry("customer", name, e)
	v.want(keyspace.LicenseKey(id), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			v.report("customer", name, "license_missing", "the license listed here does not exist")
			return
		}
		stored, err := layout.DecodeLicense(id, kv.Value)
		if err != nil {
			return // reported with the licenses
		}
		v.want(keyspace.MetadataKey(id), func(kv *mvccpb.KeyValue) {
			m, _, err := layout.DecodeMetadata(kv.GetValue())
			if kv != nil && err != nil {
				return // reported with the licenses
			}
			if places := keyspace.CustomerKeys(&stored.License, m.Customer); !slices.Contains(places[:], e.key) {
				v.report("customer", name, "misplaced", "the license listed here has another customer, or none")
			}
		})
	})
}
