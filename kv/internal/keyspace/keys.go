package keyspace

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

const (
	// Prefix is the version of the layout, which every key begins with. The keys of owners continue with the owner's
	// slot; see InSlot.
	Prefix = "lc2/"
	// CellPrefix begins the keys of the store as a whole, and the keys that every node watches or polls.
	CellPrefix = Prefix + "cell/"
	// OldCheckKey is in every store of the layout before this one.
	OldCheckKey = "lc1/s/check"
)

// The keys that a store has once.
const (
	CheckKey    = CellPrefix + "check"
	APIKeysMark = CellPrefix + "keys"
	// The marks of the parts of all API keys lie between APIKeysMark and its end.
	apiKeyPartMarks = APIKeysMark + "/"
	APIKeysMarkEnd  = APIKeysMark + "0"
	MastersPrefix   = CellPrefix + "master/"
	RetiredPrefix   = CellPrefix + "retired/"
)

// APIKeysFamily begins the keys of the records of API keys.
const APIKeysFamily = "k/"

// NodesPrefix begins the keys of registered nodes.
const NodesPrefix = CellPrefix + "n/"

// LicenseKey returns the key of a license's record.
func LicenseKey(id licensing.LicenseID) string { return InSlot(id.Slot(), "l/"+BlockOf(id)) }

// OrderOwnerKey returns the key that contains the owner of an order, by the order's number alone.
func OrderOwnerKey(orderNo string) string { return inSlotOf(orderNo, "p/"+orderNo) }

// APIKeyKey returns the key of an API key's record.
func APIKeyKey(hash [32]byte) string {
	return InSlot(keyring.SlotOfHash(hash), APIKeysFamily+string(hash[:]))
}

// KeyUseKey returns the key that says when an API key was used last.
func KeyUseKey(hash [32]byte) string { return InSlot(keyring.SlotOfHash(hash), "u/"+string(hash[:])) }

// APIKeyPartMark returns the key of the mark of one part of all API keys.
func APIKeyPartMark(part uint8) string { return apiKeyPartMarks + string([]byte{part}) }

// MasterKeyKey returns the key of the fingerprint of a master key in use.
func MasterKeyKey(id string) string { return MastersPrefix + id }

// RetiredMasterKey returns the key of the fingerprint of a retired master key.
func RetiredMasterKey(id string) string { return RetiredPrefix + id }

// CutAPIKeyPart returns the part of API keys whose mark an etcd key is.
func CutAPIKeyPart(key string) (part uint8, ok bool) {
	rest, ok := strings.CutPrefix(key, apiKeyPartMarks)
	if !ok || len(rest) != 1 {
		return 0, false
	}
	return rest[0], true
}

// APIKeyIndexKey returns the key that has an API key's hash, by its public id. Ids sort by time, so an owner's keys
// are in the order of their creation.
func APIKeyIndexKey(owner licensing.Owner, id string) string {
	return InSlot(licensing.SlotOf(owner), APIKeysOf(owner)+id)
}

// OrderKey returns the key of an order. Numbers sort by time, so an owner's orders are in the order of their creation.
func OrderKey(owner licensing.Owner, orderNo string) string {
	return InSlot(licensing.SlotOf(owner), OrdersOf(owner)+orderNo)
}

// BuyerListingKey returns the key of an order in the listing of its buyer's orders; empty if the order has no buyer.
func BuyerListingKey(o *licensing.Order) string {
	if o.BuyerEmail == "" {
		return ""
	}
	return InSlot(licensing.SlotOf(o.Owner), OrdersOfBuyer(o.Owner, o.BuyerEmail)+o.OrderNo)
}

// CustomerKeys returns the keys of a license in the listings of the customer that its metadata names: of the buyer, and
// of the reference. A key is empty if the metadata has none.
func CustomerKeys(l *licensing.License, c licensing.Customer) (keys [2]string) {
	if c.BuyerEmail != "" {
		keys[0] = licenseIn(LicensesOfBuyer(l.Owner, c.BuyerEmail), l.Owner, l.CreatedAt, l.Key.ID())
	}
	if c.Reference != "" {
		keys[1] = licenseIn(LicensesOfReference(l.Owner, c.Reference), l.Owner, l.CreatedAt, l.Key.ID())
	}
	return keys
}

// ProductKey returns the key of a product's record.
func ProductKey(owner licensing.Owner, id string) string {
	return OfOwner(owner, "q/") + id
}

// ListingKey returns the key of a license in its owner's listing, oldest first.
func ListingKey(owner licensing.Owner, created time.Time, id licensing.LicenseID) string {
	return licenseIn(LicensesOf(owner), owner, created, id)
}

// licenseIn returns the key of a license in a listing. All listings of licenses have the same order.
func licenseIn(listing string, owner licensing.Owner, created time.Time, id licensing.LicenseID) string {
	return InSlot(licensing.SlotOf(owner), listing+TimeInKey(created)+BlockOf(id))
}

// CatalogKey returns the key of a product in its owner's listing, oldest first; empty if there is no product.
func CatalogKey(ref licensing.Ref, p *licensing.Product) string {
	if p == nil {
		return ""
	}
	return InSlot(licensing.SlotOf(ref.Owner), ProductsOf(ref.Owner)+TimeInKey(p.CreatedAt)+ref.ID)
}

// ClaimHashSize is the length of the hash of an Idempotency-Key in a key.
const ClaimHashSize = 16

// ClaimKey returns the key of a claim on an Idempotency-Key.
func ClaimKey(owner licensing.Owner, hash string) string {
	return OfOwner(owner, "y/") + hash
}

// ClaimAges begins the keys of claims in the order they were made.
const ClaimAges = "z/"

// ClaimAgeKey returns the key of a claim in the index by age.
func ClaimAgeKey(made time.Time, owner licensing.Owner, hash string) string {
	return InSlot(licensing.SlotOf(owner), ClaimAges+TimeInKey(made)+OwnerPath(owner)+hash)
}

// ClaimAge is a decoded key of the index by age.
type ClaimAge struct {
	Key   string // of the claim
	Made  time.Time
	Owner licensing.Owner
}

// ClaimOfAge decodes a key of the index by age.
func ClaimOfAge(key string) (c ClaimAge, ok bool) {
	slot, path, ok := CutSlot(key)
	rest, is := strings.CutPrefix(path, ClaimAges)
	if !ok || !is || len(rest) < TimeSize {
		return ClaimAge{}, false
	}
	c.Made = time.UnixMilli(int64(binary.BigEndian.Uint64([]byte(rest))))
	c.Key = InSlot(slot, "y/"+rest[TimeSize:])
	c.Owner, _, ok = CutOwner(rest[TimeSize:])
	return c, ok
}

// OwnerPath returns the part of a key that names an owner.
func OwnerPath(owner licensing.Owner) string {
	mode := "l/"
	if owner.Mode == licensing.Test {
		mode = "t/"
	}
	return owner.AccountID + "/" + mode
}

// DevicesPrefix begins the keys of a license's devices.
func DevicesPrefix(id licensing.LicenseID) string { return InSlot(id.Slot(), "d/"+BlockOf(id)) }

// DeviceKey returns the key of a device of a license with more than [MaxInline] devices.
func DeviceKey(id licensing.LicenseID, deviceID string) string {
	at := DevicePosition(deviceID)
	return DevicesPrefix(id) + string(at[:])
}

// DevicePosition returns a device's place in the listing of its license's devices.
func DevicePosition(deviceID string) store.DeviceCursor {
	sum := sha256.Sum256([]byte(deviceID))
	return store.DeviceCursor(sum[:16])
}

// RecordKey returns the key that contains a record. The revision of this key guards the record.
func RecordKey(ref licensing.Ref) string {
	switch ref.Kind {
	case licensing.KindLicense:
		return LicenseKey(ref.LicenseID())
	case licensing.KindOrder:
		return OrderKey(ref.Owner, ref.ID)
	case licensing.KindWebhooks:
		return WebhooksKey(ref.Owner)
	case licensing.KindUsage:
		return UsageKey(ref.Owner)
	case licensing.KindClaim:
		return ClaimKey(ref.Owner, ref.ID)
	case licensing.KindAlias:
		return AliasKey(ref.AliasName())
	case licensing.KindSettings:
		return SettingsKey(ref.Owner)
	case licensing.KindReceiptKeys:
		return ReceiptKeysKey(ref.Owner)
	case licensing.KindTrial:
		return TrialKey(ref)
	case licensing.KindPayment:
		return PaymentKey(ref)
	case licensing.KindSandbox:
		return SandboxKey(ref)
	case licensing.KindTerms:
		return TermsKey(ref)
	default:
		return ProductKey(ref.Owner, ref.ID)
	}
}

// An owner's webhook endpoints are one record. Each change of them also writes WebhooksMark: then the workers look at
// all endpoints again. A deleted endpoint leaves a key behind, so that a sweep removes its messages.
const (
	WebhooksFamily        = "w/"
	WebhooksMark          = CellPrefix + "webhooks"
	DeletedWebhooksFamily = "x/w/"
)

// WebhooksKey returns the key of the record with an owner's endpoints.
func WebhooksKey(owner licensing.Owner) string { return OfOwner(owner, WebhooksFamily) }

// DeletedWebhookKey returns the key that marks a deleted endpoint until its deliveries are removed.
func DeletedWebhookKey(endpointID string) string {
	return inSlotOf(endpointID, DeletedWebhooksFamily+endpointID)
}

// Two keys are fences of changes: a request with changes that depend on a fence compares the revision of that fence
// at its top, above all changes. Every request reads the fences, and no request of the hot path writes them.
//
//   - EpochKey: the epoch that events are written into, see epoch.
//   - ListenKey: which owners listen to activations. A change of a license was made of
//     a snapshot that says whether its owner listens; if that has changed, the change
//     must be made anew. No owner writes ListenKey: see listenmove.go.
//
// What a store remembers of the fences is a guess, as it is of records. If the guess was wrong, the request
// has changed nothing, and its answer has the true revisions.
const (
	EpochKey  = CellPrefix + "epoch"
	ListenKey = CellPrefix + "listen"
)

// TrimmedKey has the last epoch whose events are too old, of all owners, as eight bytes. A sweep raises it before it
// removes the events, so that no reader misses events without knowing. An owner may have given up more events, see
// Ledger.
const TrimmedKey = CellPrefix + "swept"

// ListenersPrefix begins the keys of owners that listen to activations.
const ListenersPrefix = CellPrefix + "f/"

// ListenRequests begins the keys of owners' requests to listen to activations, or no longer to.
const ListenRequests = CellPrefix + "a/"

// ListenerKey returns the key that says that an owner listens to activations.
func ListenerKey(owner licensing.Owner) string { return ListenersPrefix + OwnerPath(owner) }

// ListenRequestKey returns the key of an owner's request to listen, or no longer to.
func ListenRequestKey(owner licensing.Owner) string { return ListenRequests + OwnerPath(owner) }

// OwnersFamily begins the keys of owners. An owner's key is written before the owner's first record, and stays. Without
// these keys, finding all owners would mean to search through their records: etcd counts every key up to a range's end,
// whatever the limit.
const OwnersFamily = "h/"

// OwnerKey returns the key that says that there are records of an owner.
func OwnerKey(owner licensing.Owner) string { return OfOwner(owner, OwnersFamily) }

// NodeKey returns the key of a node's registration.
func NodeKey(by store.Incarnation) string { return NodesPrefix + string(by[:]) }

// APIKeysMarkSize is the length of a mark: an incarnation and its counter.
const APIKeysMarkSize = len(store.Incarnation{}) + 8

// CheckKeySize is how many bytes the check key has.
const CheckKeySize = 32

const (
	// BackupKey has the time at which the last successful backup began, as eight bytes: milliseconds of Unix time. A
	// backup has the time of the backup before it, and so has a store that was restored from it.
	BackupKey = CellPrefix + "backup"
	// BackupTimeSize is the length of that time.
	BackupTimeSize = 8
)

// IDKeyKey contains the sealed id key of the store.
const IDKeyKey = CellPrefix + "id_key"

// SlotMapKey contains the map from slots to cells. A store without the key has all slots.
const SlotMapKey = CellPrefix + "map"
