package layout

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

// OrdersOfBuyer returns the listing of a buyer's orders. Its keys hold a hash of the address; only the orders hold the
// address itself.
func OrdersOfBuyer(owner licensing.Owner, email string) string {
	sum := sha256.Sum256([]byte(licensing.FoldEmail(email)))
	return "b/" + OwnerPath(owner) + string(sum[:BuyerSize])
}

// BuyerSize is how many bytes of the hash of an address a key has.
const BuyerSize = 16

// TimeSize is the length of a time in a key.
const TimeSize = 8

// TimeInKey returns a time as it stands in keys, which sort by it.
func TimeInKey(t time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli())))
}
