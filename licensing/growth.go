package licensing

import "time"

// Growth says how much a change adds to the store, and who may refuse the change for that. A limit of the store refuses
// all growth above a certain value; [Growth.Budgeted] says what a budget refuses.
type Growth byte

// The values of Growth, in ascending order. All but the first add data; any change also records its event.
const (
	// NoGrowth: the change removes data, replaces data by data of about the same size, or does not happen. Such
	// are removals, suspensions, revocations, cancellations, deletions and new secrets, and also activations of
	// bound devices. Their reasons have at most MaxSmallReason bytes. No limit of size refuses these changes.
	NoGrowth Growth = iota
	// RequiredGrowth: payments, refunds and renewals. A customer has paid for the change, or gets money back. No
	// limit of size refuses these changes either, nor the receipt keys of an owner, which are made once.
	RequiredGrowth
	// UrgentGrowth: small growth of existing records: new keys of licenses, reasons of more than MaxSmallReason bytes,
	// and a larger finite MaxDevices, which lets devices be bound as BoundedGrowth. The budget of an account refuses
	// it. A store that is almost full does not: a key may have leaked, and the store limits the changes of each owner.
	UrgentGrowth
	// BoundedGrowth: existing records bound the growth. Such are devices within a finite MaxDevices, and
	// records of the end of a license or an order. The budget of an account does not refuse this growth; a store
	// that is almost full does.
	BoundedGrowth
	// Replacement: the change replaces metadata, a product or a webhook endpoint, and the new data is not larger. The
	// budget of an account does not refuse it. A store that is almost full does, since etcd keeps the old data until
	// the next compaction.
	Replacement
	// OrdinaryGrowth: all other growth, such as grants, orders, products, webhook endpoints, API keys, metadata,
	// and devices of licenses with unlimited devices.
	OrdinaryGrowth
)

// Budgeted reports whether the budget of an account refuses a growth.
func (g Growth) Budgeted() bool { return g == UrgentGrowth || g == OrdinaryGrowth }

// MaxSmallReason is the most bytes of a reason for which no budget refuses a change.
const MaxSmallReason = 255

// withReason returns the growth of a change that also stores a reason.
func (g Growth) withReason(reason string) Growth {
	if len(reason) > MaxSmallReason {
		return UrgentGrowth
	}
	return g
}

// GrowthOf returns the growth of a command that is about to run on a record. It is NoGrowth if the command will fail
// because of the record: then the caller learns that error, and nothing about another owner.
func GrowthOf(c Command, r *Record, now time.Time) Growth { return c.growth(r, now) }

// growthFrom returns the growth of replacing data of a size by data of another size.
func growthFrom(before, after int) Growth {
	if after <= before {
		return Replacement
	}
	return OrdinaryGrowth
}

// bound reports whether a device is bound to the record's license.
func (r *Record) bound(device string) bool {
	entry := r.Devices[device]
	return entry != nil && entry.Bound
}
