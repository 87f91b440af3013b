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
	// ID has the bytes of a LicenseID, an AliasName or a TrialName, the order number, the product id, the bytes of a
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
	// ActsByTime says whether the node may act by its clock, see clockInDoubt, leaseClockAt and receiptsOut. The engine
	// sets it before each command that needs it: see NeedsClock.
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
	// ReadAgo is how long ago the node began to read the record; 0: the node proves the record later. The engine sets
	// it along with Documents.
	ReadAgo time.Duration
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

// Result is the result of a command: the state right after it and before the next command. Which
// fields are set depends on the command.
//
// An activation copies its Result several times. So the Result contains what only commands on other records return by
// pointers, and methods read these values.
type Result struct {
	License License
	Device  Device
	// LeaseLeft is how long the device still has its lease; 0: it has none. Clients count from when they sent the
	// request, so that their clocks don't matter.
	LeaseLeft time.Duration
	// Receipt are the times of the receipt that Activate, ValidateLicense or StartTrial leads to, of the state of
	// License and Device.
	Receipt ReceiptTimes
	// Invalid is the reason why the device may not use the license; empty if it may.
	Invalid Reason

	Bound   bool // Activate: the device was not bound
	Removed bool // RemoveDevice, DeactivateDevice: the device was bound; ForgetTrial: the trial was due
	Created bool // PutProduct, StartTrial: there was none
	// RefundDue: the order's money must be refunded, and the caller must do so: record the try with
	// TryRefund, ask the payment provider, and record the result with RefundOrder. See also Order.Due.
	RefundDue bool

	order    *Order
	refund   *Payment
	open     *Return
	settings *Settings
	sandbox  *SandboxOrder
	// Product is the product that was put or deleted. Callers must not change it.
	Product *Product
	// Endpoint is the webhook endpoint that was created, changed or deleted. Callers must not change
	// it.
	Endpoint *Endpoint
	// ReceiptKeys are the owner's receipt keys. Callers must not change them.
	ReceiptKeys *ReceiptKeys
	// Plan is what the license must get in the same transaction; nil: nothing. See ExtendLicense.
	Plan *Plan

	rare *rareResult
}

// rareResult contains the values of a Result that few commands return. Its methods on Result describe them.
type rareResult struct {
	Stored, Corrected Size
	Trial             Trial
	Back              int64
}

// WithOrder returns the result with another order.
func (r Result) WithOrder(o Order) Result {
	r.order = &o
	return r
}

// Order returns the order; the zero Order if the command was on another record.
func (r Result) Order() Order { return valueOf(r.order) }

// Refund returns the record of a refund that PutRefund must store in the same transaction; zero: none.
func (r Result) Refund() Payment { return valueOf(r.refund) }

// Return returns the open refund of a further payment that RequestReturn or TryReturn leads to; zero: none.
func (r Result) Return() Return { return valueOf(r.open) }

// Settings returns the owner's settings after ChangeSettings or FixKeyMatching.
func (r Result) Settings() Settings { return valueOf(r.settings) }

// Stored returns the size of the owner's usage after AddUsage or SetUsage.
func (r Result) Stored() Size { return valueOf(r.rare).Stored }

// Corrected returns the change of the owner's usage that SetUsage made.
func (r Result) Corrected() Size { return valueOf(r.rare).Corrected }

// Trial returns the trial after StartTrial.
func (r Result) Trial() Trial { return valueOf(r.rare).Trial }

// Back returns how much more of an invoice has gone back; see NoteInvoiceRefund.
func (r Result) Back() int64 { return valueOf(r.rare).Back }

// Sandbox returns what the sandbox knows about the order after a command that plays in the sandbox.
func (r Result) Sandbox() SandboxOrder { return valueOf(r.sandbox) }

// valueOf returns the value at a pointer; the zero value if the pointer is nil.
func valueOf[T any](at *T) (value T) {
	if at != nil {
		value = *at
	}
	return value
}
