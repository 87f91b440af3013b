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
	// OrdinaryGrowth: all other growth, such as grants, orders, products, webhook endpoints, API keys, metadata,
	// and devices of licenses with unlimited devices.
	OrdinaryGrowth
)

// GrowthOf returns the growth of a command that is about to run on a record. The growth of an Activate depends on
// the record and the time; the growth of any other command depends on the command alone.
func GrowthOf(c Command, r *Record, now time.Time) Growth { return c.growth(r, now) }

// bound reports whether a device is bound to the record's license.
func (r *Record) bound(device string) bool {
	entry := r.Devices[device]
	return entry != nil && entry.Bound
}
