package licensing

import (
	"slices"
	"time"
)

// Kind is the kind of record that a [Ref] names.
type Kind byte

// The kinds of records. Each record has a revision of its own.
const (
	KindLicense Kind = iota + 1
	KindOrder
	KindProduct
	KindClaim
	KindWebhooks
	KindUsage
	KindAlias
	KindSettings
	KindTerms
	KindTrial
	KindReceiptKeys
	KindPayment
	KindSandbox
)

// String returns the name of a kind, for traces and logs.
func (k Kind) String() string {
	switch k {
	case KindLicense:
		return "license"
	case KindOrder:
		return "order"
	case KindProduct:
		return "product"
	case KindWebhooks:
		return "webhooks"
	case KindUsage:
		return "usage"
	case KindAlias:
		return "alias"
	case KindSettings:
		return "settings"
	case KindTerms:
		return "terms"
	case KindTrial:
		return "trial"
	case KindReceiptKeys:
		return "receipt_keys"
	case KindPayment:
		return "payment"
	case KindSandbox:
		return "sandbox"
	default:
		return "claim"
	}
}

// Ref names one record. A license has no owner in its Ref, since end users who activate a key know no
// account. Orders and products are found by owner and id.
type Ref struct {
	Kind  Kind
	Owner Owner // zero for a license and an alias
	// ID holds the bytes of a LicenseID, an AliasName or a TrialName, the order number, the product id, the bytes of a
	// TermsVersion, the hash of an Idempotency-Key or of a payment's reference; empty for webhooks, usage, settings and
	// receipt keys.
	ID string
}

// LicenseRef names the license of a key. The license may have another prefix than the key: commands compare the
// prefix; see [Target].
func LicenseRef(key LicenseKey) Ref { return Ref{Kind: KindLicense, ID: key.id()} }

// LicenseID returns the id of the license that a Ref names.
func (r Ref) LicenseID() (id LicenseID) {
	copy(id[:], r.ID)
	return id
}

// OrderRef names an order of an owner.
func OrderRef(owner Owner, orderNo string) Ref {
	return Ref{Kind: KindOrder, Owner: owner, ID: orderNo}
}

// ProductRef names a product of an owner.
func ProductRef(owner Owner, id string) Ref {
	return Ref{Kind: KindProduct, Owner: owner, ID: id}
}

// Record is the unit of change that one compare-and-swap replaces. Exactly one of License, Order,
// Product, Claim, Webhooks, Usage, Alias, Settings, Terms, Trial, ReceiptKeys, Payment and Sandbox is set, or none if
// nothing is stored.
type Record struct {
	License *License
	Devices Devices // of the license: the entries that the commands touch
	// Metadata is the license's metadata, loaded only for commands with NeedsMetadata. Nil if it is
	// not loaded, and if a new license has none. For a new trial, it is the metadata of Issued.
	Metadata *Metadata
	Order    *Order
	Product  *Product // nil and Changed: delete the product
	Claim    *Claim
	Webhooks *Webhooks
	Usage    *Usage
	Alias    *Alias // never changed
	Settings *Settings
	Terms    *VersionedTerms // never changed
	Trial    *Trial          // nil and Changed: delete the trial; otherwise never changed
	// ReceiptKeys are replaced, and never changed in place.
	ReceiptKeys *ReceiptKeys
	Payment     *Payment // replaced, and never changed in place
	Sandbox     *SandboxOrder

	// NewAliases are names that the license gets: the transaction also creates the aliases, which must not exist.
	NewAliases []AliasName
	// Revocations void receipts of the license. The same transaction stores them.
	Revocations []Revocation
	// NewTerms are the terms that a change of the product stores, if the store does not have them.
	NewTerms []VersionedTerms
	// Issued are the licenses that a change of the order or of the trial creates, and IssuedDevices are the devices of
	// the license of a trial. The same transaction stores them.
	Issued        []*License
	IssuedDevices Devices
	// Leases says which leases of the license are known.
	Leases KnownLeases
	// Behind is by how much the latest of the nodes' clocks is ahead of the node's clock, at most, if not ActsByTime;
	// negative: unknown. The engine sets it along with ActsByTime, see seenAt.
	Behind time.Duration
	// ActsByTime says whether the node may act by its clock, see clockInDoubt, stampAt and receiptsOut. The engine sets
	// it before each command that needs it: see NeedsClock.
	ActsByTime bool
	// Listening reports whether the license's or the trial's owner has an endpoint for activations. Only then are
	// their events recorded. The store sets it: see store.Store.
	Listening bool
	// Removed: delete the license, which is as it was.
	Removed bool
	// Changed reports whether the record differs from the stored one.
	Changed bool
	// Touched reports whether the record differs in when devices were last seen. That alone does not
	// justify a transaction: see Seen.
	Touched bool
	// Documents says how the node dates documents. The engine sets it, see DatesDocument.
	Documents *DocumentClock
	// RecountAt is, with Usage, the revision of the latest recount that has begun; 0: none has. The store sets it.
	RecountAt int64
	// Events are the events of the changes to the record and to Issued, in order. The same transaction
	// stores them.
	Events []Event
}

// Clone returns a copy. Apply on the copy does not change r.
func (r Record) Clone() Record {
	if r.License != nil {
		l := *r.License
		r.License = &l
	}
	if r.Metadata != nil {
		m := *r.Metadata
		r.Metadata = &m
	}
	if r.Order != nil {
		o := *r.Order
		r.Order = &o
	}
	if r.Product != nil {
		p := *r.Product
		r.Product = &p
	}
	if r.Claim != nil {
		c := *r.Claim
		r.Claim = &c
	}
	if r.Webhooks != nil {
		r.Webhooks = r.Webhooks.Clone()
	}
	if r.Usage != nil {
		u := *r.Usage
		r.Usage = &u
	}
	if r.Settings != nil {
		s := *r.Settings
		r.Settings = &s
	}
	if r.Sandbox != nil {
		s := *r.Sandbox
		r.Sandbox = &s
	}
	r.Issued = slices.Clone(r.Issued)
	for i, l := range r.Issued {
		r.Issued[i] = new(*l)
	}
	r.Events, r.NewAliases = slices.Clone(r.Events), slices.Clone(r.NewAliases)
	r.Revocations = slices.Clone(r.Revocations)
	r.Devices, r.IssuedDevices = r.Devices.clone(), r.IssuedDevices.clone()
	return r
}

func (d Devices) clone() Devices {
	if d == nil {
		return nil
	}
	devices, entries := make(Devices, len(d)), make([]DeviceEntry, 0, len(d)) // one allocation for all entries
	for id, entry := range d {
		entries = append(entries, *entry)
		devices[id] = &entries[len(entries)-1]
	}
	return devices
}

// Command is a change of one record, or a query that must be consistent with the changes.
type Command interface {
	// DeviceID returns the device that the command touches, or "". Apply needs the entry of the device
	// in Record.Devices, bound or known not to be bound.
	DeviceID() string
	// growth is for GrowthOf.
	growth(r *Record, now time.Time) Growth
	apply(r *Record, now time.Time) (Result, error)
}

// NeedsMetadata reports whether a command needs the metadata of its license.
func NeedsMetadata(c Command) bool {
	switch c := c.(type) {
	case UpdateLicense:
		return c.Metadata != "" || c.Entitlements != "" || c.BuyerEmail != nil || c.CustomerReference != nil
	case RedactLicense, ReissueLicense, ForgetTrial, UpgradeTrial:
		return true
	}
	return false
}

// Apply runs one command on a record, in place. If Apply returns an error, the record is unchanged,
// with one exception: a full license may record an event. Then the record is Changed, and the caller
// gets the error once the record is stored. The same record, command and time always give the same
// result. now is in UTC and in whole milliseconds.
func Apply(r *Record, c Command, now time.Time) (Result, error) {
	if r.License != nil && r.License.Revision != 0 {
		return applyShown(r, c, now)
	}
	return c.apply(r, now)
}
