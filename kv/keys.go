package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"licet"
	"licet/node"
)

// layout is the version that every key begins with.
const layout = "lc1/"

// What a store has once.
const (
	checkKey      = layout + "s/check"
	apiKeysMark   = layout + "s/keys"
	mastersPrefix = layout + "s/master/"
	retiredPrefix = layout + "s/retired/"
)

// nodesPrefix is where the nodes that are up are registered.
const nodesPrefix = layout + "n/"

func licenseKey(id licet.LicenseID) string  { return layout + "l/" + string(id[:]) }
func metadataKey(id licet.LicenseID) string { return layout + "m/" + string(id[:]) }
func orderOwnerKey(orderNo string) string   { return layout + "p/" + orderNo }
func apiKeyKey(hash [32]byte) string        { return layout + "k/" + string(hash[:]) }
func keyUseKey(hash [32]byte) string        { return layout + "u/" + string(hash[:]) }
func masterKeyKey(id string) string         { return mastersPrefix + id }
func retiredMasterKey(id string) string     { return retiredPrefix + id }

// apiKeyIndexKey is where a key's hash is found by its public id. Ids sort by
// time, so an owner's keys lie in the order they were made.
func apiKeyIndexKey(owner licet.Owner, id string) string {
	return layout + "a/" + ownerPath(owner) + id
}

func orderKey(owner licet.Owner, orderNo string) string {
	return layout + "o/" + ownerPath(owner) + orderNo
}

func productKey(owner licet.Owner, id string) string {
	return layout + "q/" + ownerPath(owner) + id
}

// listingKey is a license's place in its owner's listing, oldest first.
func listingKey(owner licet.Owner, created time.Time, id licet.LicenseID) string {
	var at [8]byte
	binary.BigEndian.PutUint64(at[:], uint64(created.UnixMilli()))
	return layout + "i/" + ownerPath(owner) + string(at[:]) + string(id[:])
}

func claimKey(owner licet.Owner, hash string) string {
	return layout + "y/" + ownerPath(owner) + hash
}

// claimAgePrefix is where the claims stand in the order they were made.
const claimAgePrefix = layout + "z/"

// claimAgeKey is a claim's place among all claims by age. What follows the time
// is the claim's own key without the layout and family.
func claimAgeKey(made time.Time, owner licet.Owner, hash string) string {
	return claimAgePrefix + string(binary.BigEndian.AppendUint64(nil, uint64(made.UnixMilli()))) + ownerPath(owner) + hash
}

func ownerPath(owner licet.Owner) string {
	mode := "l/"
	if owner.Mode == licet.Test {
		mode = "t/"
	}
	return owner.AccountID + "/" + mode
}

// devicesPrefix is where the keys of a license's devices begin.
func devicesPrefix(id licet.LicenseID) string { return layout + "d/" + string(id[:]) }

func deviceKey(id licet.LicenseID, deviceID string) string {
	at := devicePosition(deviceID)
	return devicesPrefix(id) + string(at[:])
}

// devicePosition is a device's place in the listing order of its license.
func devicePosition(deviceID string) node.DeviceCursor {
	sum := sha256.Sum256([]byte(deviceID))
	return node.DeviceCursor(sum[:16])
}

// recordKey is the key that holds a record, and whose revision guards it.
func recordKey(ref licet.Ref) string {
	switch ref.Kind {
	case licet.KindLicense:
		return licenseKey(licet.LicenseKey(ref.ID).ID())
	case licet.KindOrder:
		return orderKey(ref.Owner, ref.ID)
	case licet.KindClaim:
		return claimKey(ref.Owner, ref.ID)
	default:
		return productKey(ref.Owner, ref.ID)
	}
}
