package node

import (
	"net/netip"
	"sync"
	"time"

	"licet/licensing"
)

// The names of the limits of changes, in metrics and headers.
const (
	PolicyReserve = "reserve" // while the store is almost full
	PolicyClaims  = "claims"  // of an owner beyond its budget, under new Idempotency-Keys
	PolicyTrials  = "trials"  // new trials of an owner's products
	// PolicyAddressTrials limits the new trials that one network starts without an API key.
	PolicyAddressTrials = "address_trials"
)

var (
	// reserveLimit is how many changes an owner may make while a limit of changes applies, and how many trials it and
	// its end users may start. While the store is almost full, the end users of the owner may make as many changes.
	// With a few KiB for each change, an owner takes hours to write a GiB. Beyond its budget, an owner has claims of at
	// most 200 MB through a node: a claim is kept for 24 hours.
	reserveLimit = WriteLimit{Count: 100, Per: 10 * time.Second}
	// addressTrialsLimit is how many trials of an owner the end users of one network may start: a fifth, and a tenth of
	// the rate, of all end users.
	addressTrialsLimit = WriteLimit{Count: 20, Per: 20 * time.Second}
)

// changeLimit bounds the changes, or the new trials, of each changer. While the store is almost full, the limit is for
// all changes but those of the payment provider: each order is paid and refunded once.
type changeLimit struct {
	stopwatch
	meter func() *meter // made at its first use, since it takes 1 MiB
}

// changer identifies who makes a change: an owner, or the end users of an owner. Changes by end users do not count
// toward the owner's limit.
type changer struct {
	owner   licensing.Owner
	endUser bool
	network netip.Addr // of end users, if the limit is for each network
}

func newChangeLimit(cfg *Config, policy string, limit WriteLimit, message string) *changeLimit {
	return &changeLimit{
		stopwatch: newStopwatch(cfg.Clock),
		meter: sync.OnceValue(func() *meter {
			return newMeter(policy, limit, message)
		}),
	}
}

// refuse returns the refusal if a changer has no changes left, else nil.
func (l *changeLimit) refuse(who changer) error {
	m := l.meter()
	return m.refuse(cellsOf(m, who), l.now(), 1)
}

// take counts a change, or returns the refusal.
func (l *changeLimit) take(who changer) error {
	err := l.refuse(who)
	if err == nil {
		l.count(who)
	}
	return err
}

// count counts a change.
func (l *changeLimit) count(who changer) {
	m := l.meter()
	m.add(cellsOf(m, who), l.now(), 1)
}

// changerOf returns who makes the change of a command, and whether the changes of commands of this kind are limited.
// The payment provider and the service itself may change what they must. Validations and activations of bound devices
// change nothing while the store is almost full, unless stores says otherwise. Each lease is given back once, and the
// store has no room for new ones, so that is not limited.
func changerOf(
	ref licensing.Ref, record *licensing.Record, cmd licensing.Command, now time.Time,
) (who changer, limited bool) {
	switch cmd := cmd.(type) {
	case licensing.PayOrder, licensing.TryRefund, licensing.WithdrawRefund, licensing.DisableEndpoint,
		licensing.LapseLeases:
		return changer{}, false
	case licensing.DeactivateDevice:
		if l := record.License; l != nil && l.Lease.Leased() {
			return changer{}, false
		}
	case licensing.ValidateLicense:
		if !stores(record, cmd, now) {
			return changer{}, false
		}
	case licensing.Activate:
		if entry := record.Devices[cmd.Device]; entry != nil && entry.Bound && !stores(record, cmd, now) {
			return changer{}, false
		}
	case licensing.CancelOrder:
		who.endUser = cmd.By == licensing.EndUser
	}
	if record.License != nil {
		who.endUser = licensing.CallerOf(cmd) == licensing.Owner{}
	}
	who.owner = ownerOf(ref, record)
	return who, who.owner != licensing.Owner{}
}

// stores reports whether a command on a bound device stores a later end of its lease, a later day for its receipt, or,
// once an hour on a license that loses inactive devices, when the device was seen.
func stores(record *licensing.Record, cmd licensing.Command, now time.Time) bool {
	return licensing.RenewsLease(record, cmd, now) || licensing.RecordsReceipt(record, cmd, now) ||
		licensing.StoresSeen(record, cmd, now)
}

// ownerOf returns the owner of a record; zero for a license that is not stored, and for an alias.
func ownerOf(ref licensing.Ref, record *licensing.Record) licensing.Owner {
	if record.License != nil {
		return record.License.Owner
	}
	return ref.Owner
}
