package licensing

import "time"

// Growth says how much a change adds to the store, and who may refuse the change for that. A limit refuses all
// growth above a certain value.
type Growth byte

// The values of Growth, in ascending order. All but the first add data; any change also records its event.
const (
	// NoGrowth: the change removes data, replaces data by data of about the same size, or does not happen. Such
	// are removals, suspensions, revocations, cancellations, deletions and new secrets, and also activations of
	// bound devices. No limit of size refuses these changes.
	NoGrowth Growth = iota
	// RequiredGrowth: payments, refunds and renewals. A customer has paid for the change, or gets money back. No
	// limit of size refuses these changes either.
	RequiredGrowth
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
