package kv

import (
	"crypto/sha256"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// layout is the version that every key begins with.
const layout = "lc1/"

// What a store has once.
const (
	checkKey    = layout + "s/check"
	apiKeysMark = layout + "s/keys"
	// The marks of the parts of all API keys lie between apiKeysMark and its end.
	apiKeyPartMarks = apiKeysMark + "/"
	apiKeysMarkEnd  = apiKeysMark + "0"
	mastersPrefix   = layout + "s/master/"
	retiredPrefix   = layout + "s/retired/"
)

// nodesPrefix is where the nodes that are up are registered.
const nodesPrefix = layout + "n/"

func licenseKey(id licensing.LicenseID) string  { return layout + "l/" + string(id[:]) }
func metadataKey(id licensing.LicenseID) string { return layout + "m/" + string(id[:]) }
func orderOwnerKey(orderNo string) string       { return layout + "p/" + orderNo }
func apiKeyKey(hash [32]byte) string            { return layout + "k/" + string(hash[:]) }
func keyUseKey(hash [32]byte) string            { return layout + "u/" + string(hash[:]) }
func apiKeyPartMark(part uint8) string          { return apiKeyPartMarks + string([]byte{part}) }
func masterKeyKey(id string) string             { return mastersPrefix + id }
func retiredMasterKey(id string) string         { return retiredPrefix + id }

// keyPartOf returns the part of API keys whose mark an etcd key is.
func keyPartOf(key string) (part uint8, ok bool) {
	rest, ok := strings.CutPrefix(key, apiKeyPartMarks)
	if !ok || len(rest) != 1 {
		return 0, false
	}
	return rest[0], true
}

// apiKeyIndexKey is where a key's hash is found by its public id. Ids sort by
// time, so an owner's keys lie in the order they were made.
func apiKeyIndexKey(owner licensing.Owner, id string) string {
	return layout + apiKeysOf(owner) + id
}

// orderKey is an order's own key. Numbers sort by time, so an owner's orders lie
// in the order they were made.
func orderKey(owner licensing.Owner, orderNo string) string {
	return layout + ordersOf(owner) + orderNo
}

// placeOfOrder is an order's place among those of its buyer; empty where it does
// not say whose it is.
func placeOfOrder(o *licensing.Order) string {
	if o.BuyerEmail == "" {
		return ""
	}
	return layout + ordersOfBuyer(o.Owner, o.BuyerEmail) + o.OrderNo
}

func productKey(owner licensing.Owner, id string) string {
	return layout + "q/" + ownerPath(owner) + id
}

// listingKey is a license's place in its owner's listing, oldest first.
func listingKey(owner licensing.Owner, created time.Time, id licensing.LicenseID) string {
	return layout + licensesOf(owner) + timeInKey(created) + string(id[:])
}

// placeOfProduct is a product's place in its owner's listing, oldest first; empty
// for none.
func placeOfProduct(ref licensing.Ref, p *licensing.Product) string {
	if p == nil {
		return ""
	}
	return layout + productsOf(ref.Owner) + timeInKey(p.CreatedAt) + ref.ID
}

func claimKey(owner licensing.Owner, hash string) string {
	return layout + "y/" + ownerPath(owner) + hash
}

// claimAgePrefix is where the claims stand in the order they were made.
const claimAgePrefix = layout + "z/"

// claimAgeKey is a claim's place among all claims by age. What follows the time
// is the claim's own key without the layout and family.
func claimAgeKey(made time.Time, owner licensing.Owner, hash string) string {
	return claimAgePrefix + timeInKey(made) + ownerPath(owner) + hash
}

func ownerPath(owner licensing.Owner) string {
	mode := "l/"
	if owner.Mode == licensing.Test {
		mode = "t/"
	}
	return owner.AccountID + "/" + mode
}

// devicesPrefix is where the keys of a license's devices begin.
func devicesPrefix(id licensing.LicenseID) string { return layout + "d/" + string(id[:]) }

func deviceKey(id licensing.LicenseID, deviceID string) string {
	at := devicePosition(deviceID)
	return devicesPrefix(id) + string(at[:])
}

// devicePosition is a device's place in the listing order of its license.
func devicePosition(deviceID string) store.DeviceCursor {
	sum := sha256.Sum256([]byte(deviceID))
	return store.DeviceCursor(sum[:16])
}

// recordKey is the key that holds a record, and whose revision guards it.
func recordKey(ref licensing.Ref) string {
	switch ref.Kind {
	case licensing.KindLicense:
		return licenseKey(licensing.LicenseKey(ref.ID).ID())
	case licensing.KindOrder:
		return orderKey(ref.Owner, ref.ID)
	case licensing.KindWebhooks:
		return webhooksKey(ref.Owner)
	case licensing.KindClaim:
		return claimKey(ref.Owner, ref.ID)
	default:
		return productKey(ref.Owner, ref.ID)
	}
}

// An owner's endpoints of webhooks are one record. Who delivers to them looks at all
// of them again when webhooksMark has been written, as it is by each change. That an
// endpoint was deleted is noted, so that a sweep removes what became of its messages.
const (
	webhooksPrefix        = layout + "w/"
	webhooksMark          = layout + "s/webhooks"
	deletedWebhooksPrefix = layout + "x/w/"
)

func webhooksKey(owner licensing.Owner) string { return webhooksPrefix + ownerPath(owner) }

func deletedWebhookKey(endpointID string) string { return deletedWebhooksPrefix + endpointID }

// Two keys stand before changes as fences: a request with changes that depend on
// one compares its revision at the top, above all of them. Everyone reads them, and
// nobody writes them on the hot path.
//
//   - epochKey: the epoch that events are written into, see epoch.
//   - listenKey: which owners listen to activations. A change of a license was made of
//     a snapshot that says whether its owner does; a change for which that is no longer
//     so must be made anew. No owner writes listenKey: see listenmove.go.
//
// What a store remembers of them is a guess, as of records. Where it was wrong, the
// request has changed nothing, and says what is true.
const (
	epochKey  = layout + "s/epoch"
	listenKey = layout + "s/listen"
)

// sweptKey has the last epoch whose events are too old, of all owners, as eight bytes. It is
// raised before they are removed, so that a reader that goes on after it misses none. An
// owner may have given up more events, see eventLedger.
const sweptKey = layout + "s/swept"

const listenersPrefix = layout + "f/"

const listenRequests = layout + "x/a/"

func listenerKey(owner licensing.Owner) string { return listenersPrefix + ownerPath(owner) }

func listenRequestKey(owner licensing.Owner) string { return listenRequests + ownerPath(owner) }

// An owner of whom there are events has a key. It is written before the first of
// them, and stays. Without it, to find all owners of events would mean to search
// through the events: etcd counts every key up to a range's end, whatever the limit.
const eventOwnersPrefix = layout + "h/"

func eventOwnerKey(owner licensing.Owner) string { return eventOwnersPrefix + ownerPath(owner) }

func nodeKey(by store.Incarnation) string { return nodesPrefix + string(by[:]) }

// apiKeysMarkSize is the length of a mark: an incarnation and its counter.
const apiKeysMarkSize = len(store.Incarnation{}) + 8

// checkKeySize is how many bytes the check key has.
const checkKeySize = 32

const (
	// backupKey has when the last backup was begun that ended well, as eight bytes:
	// milliseconds of Unix time. A backup has the record of the one before it, and so
	// has a store that was made of one.
	backupKey = layout + "s/backup"
	// backupTimeSize is how many bytes that is.
	backupTimeSize = 8
)
