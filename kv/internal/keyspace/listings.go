package keyspace

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"licet/licensing"
)

// A listing is the beginning of its entries' keys below the slot.

// LicensesOf returns the listing of an owner's licenses.
func LicensesOf(owner licensing.Owner) string { return "i/" + OwnerPath(owner) }

// OrdersOf returns the listing of an owner's orders.
func OrdersOf(owner licensing.Owner) string { return "o/" + OwnerPath(owner) }

// ProductsOf returns the listing of an owner's products.
func ProductsOf(owner licensing.Owner) string { return "c/" + OwnerPath(owner) }

// APIKeysOf returns the listing of an owner's API keys.
func APIKeysOf(owner licensing.Owner) string { return "a/" + OwnerPath(owner) }

// OrdersOfBuyer returns the listing of a buyer's orders. Its keys have a hash of the address; only the orders have the
// address itself.
func OrdersOfBuyer(owner licensing.Owner, email string) string {
	sum := sha256.Sum256([]byte(licensing.FoldEmail(email)))
	return "b/" + OwnerPath(owner) + string(sum[:BuyerSize])
}

// LicensesOfBuyer returns the listing of a buyer's licenses: of the buyer's orders, and granted licenses that name the
// buyer themselves. Its keys contain a hash of the address.
func LicensesOfBuyer(owner licensing.Owner, email string) string {
	return licensesOfCustomer(owner, 'b', licensing.FoldEmail(email))
}

// LicensesOfReference returns the listing of the licenses with a customer's reference. Its keys contain a hash of the
// reference.
func LicensesOfReference(owner licensing.Owner, reference string) string {
	return licensesOfCustomer(owner, 'r', reference)
}

// CustomersFamily begins the keys of the listings of customers' licenses.
const CustomersFamily = "g/"

func licensesOfCustomer(owner licensing.Owner, kind byte, customer string) string {
	sum := sha256.Sum256([]byte(customer))
	return CustomersFamily + OwnerPath(owner) + string(kind) + string(sum[:BuyerSize])
}

// CustomerSize is the length of the part of a key that names a customer: its kind, and the hash.
const CustomerSize = 1 + BuyerSize

// BuyerSize is how many bytes of the hash of an address a key has.
const BuyerSize = 16

// TimeSize is the length of a time in a key.
const TimeSize = 8

// TimeInKey returns a time as it stands in keys, which sort by it.
func TimeInKey(t time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli())))
}
