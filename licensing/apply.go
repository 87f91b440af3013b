package licensing

import (
	"slices"
	"time"
)

// Kind tells what sort of record a [Ref] names.
type Kind byte

// The kinds of records that are guarded by a revision of their own.
const (
	KindLicense Kind = iota + 1
	KindOrder
	KindProduct
	KindClaim
	KindWebhooks
)

// String returns the name of a kind, as traces and logs have it.
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
	default:
		return "claim"
	}
}

// Ref names one record. Licenses are found by their key alone, since whoever
// activates knows no account; orders and products live under their owner.
type Ref struct {
	Kind  Kind
	Owner Owner  // zero for a license
	ID    string // canonical license key, order number, product id, or hash of an Idempotency-Key; empty for webhooks
}

// LicenseRef names the license of a canonical key.
func LicenseRef(key LicenseKey) Ref { return Ref{Kind: KindLicense, ID: string(key)} }

// OrderRef names an order of an owner.
func OrderRef(owner Owner, orderNo string) Ref {
	return Ref{Kind: KindOrder, Owner: owner, ID: orderNo}
}

// ProductRef names a product of an owner.
func ProductRef(owner Owner, id string) Ref {
	return Ref{Kind: KindProduct, Owner: owner, ID: id}
}

// Record is the unit of change: what one compare-and-swap guards. Exactly one
// of License, Order, Product, Claim and Webhooks is set, or none where nothing is stored.
type Record struct {
	License *License
	Devices Devices // of the license: the entries that the commands at hand touch
	// Metadata is the license's, where the commands at hand need it: see
	// NeedsMetadata. Nil where it is not known, and where a new license has none.
	Metadata *Metadata
	Order    *Order
	Product  *Product // nil, and Changed, where it is to be removed
	Claim    *Claim
	Webhooks *Webhooks

	// Issued is the license that a change of the order makes; it is stored in
	// the same transaction.
	Issued *License
	// Listening tells whether the license's owner wants to hear of activations; then
	// their events are recorded. It is the store's to know: see store.Store.
	Listening bool
	// Events are those of the changes, in their order: of the record, and of
	// Issued. They are stored in the same transaction.
	Events []Event
	// Changed tells whether the record differs from what is stored.
	Changed bool
	// Touched tells whether it differs in when devices were seen. That alone is
	// not worth a transaction of its own: see Seen.
	Touched bool
}

// Clone makes a copy that shares nothing with r that Apply would change.
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
	if r.Issued != nil {
		l := *r.Issued
		r.Issued = &l
	}
	r.Events = slices.Clone(r.Events)
	if r.Devices != nil {
		devices := make(Devices, len(r.Devices))
		for id, entry := range r.Devices {
			e := *entry
			devices[id] = &e
		}
		r.Devices = devices
	}
	return r
}

// Command is one change that is asked of one record, or a question that must
// be answered in line with the changes.
type Command interface {
	// DeviceID is the device the command touches, or empty. Apply needs its
	// entry in Record.Devices, found or known absent.
	DeviceID() string
	apply(r *Record, now time.Time) (Result, error)
}

// Result is what a command answers, right after it and before the next one.
// Which members are set depends on the command.
type Result struct {
	License License
	Device  Device
	Order   Order
	// Product is the product that was put, or removed. It must not be changed.
	Product *Product
	// Endpoint is the endpoint of webhooks that was made, changed or removed. It must
	// not be changed either.
	Endpoint *Endpoint
	// Invalid is why a validation found that the device may not use the license;
	// empty: it may.
	Invalid Reason

	Bound   bool // Activate: the device was not bound
	Removed bool // RemoveDevice, DeactivateDevice: the device was bound
	Created bool // PutProduct: there was none
	// RefundDue: the order's money must go back, and the caller must see to it: say
	// so with TryRefund, ask the provider, and record what came of it with
	// RefundOrder. See also Order.Due.
	RefundDue bool
}

// NeedsMetadata tells whether a command can only be run where the metadata of
// its license is known.
func NeedsMetadata(c Command) bool {
	switch c := c.(type) {
	case UpdateLicense:
		return c.Metadata != ""
	case RedactLicense:
		return true
	}
	return false
}

// Apply runs one command on a record, in place. Where it answers an error the
// record is untouched, but for one case: that a license is full may be an event, and
// then the record is Changed, and the error is told once that is stored. The same
// record, command and time always give the same answer; now is in UTC and in whole
// milliseconds.
func Apply(r *Record, c Command, now time.Time) (Result, error) {
	return c.apply(r, now)
}
