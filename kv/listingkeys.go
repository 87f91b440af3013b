package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"licet/licensing"
)

func licensesOf(owner licensing.Owner) string { return "i/" + ownerPath(owner) }

func ordersOf(owner licensing.Owner) string { return "o/" + ownerPath(owner) }

func productsOf(owner licensing.Owner) string { return "c/" + ownerPath(owner) }

func apiKeysOf(owner licensing.Owner) string { return "a/" + ownerPath(owner) }

// ordersOfBuyer is the listing of a buyer's orders. The address itself stands
// only in the orders.
func ordersOfBuyer(owner licensing.Owner, email string) string {
	sum := sha256.Sum256([]byte(licensing.FoldEmail(email)))
	return "b/" + ownerPath(owner) + string(sum[:buyerLength])
}

// buyerLength is how much of the hash of an address stands in a key.
const buyerLength = 16

const timeLength = 8

// timeInKey is a time as it stands in keys, which so sort by it.
func timeInKey(t time.Time) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli())))
}
