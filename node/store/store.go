package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"licet/licensing"
)

// Store is everything that the engine and the use cases ask of a database. An implementation offers
// all of it, and passes storetest.Run, storetest.RunListings, storetest.RunClaims, storetest.RunKeys,
// storetest.RunEvents and storetest.RunSubscriptions. Callers name the part that they need.
//
// Errors are licensing.Errors. Reads fail with ErrUnavailable. Writes fail with ErrUnavailable if
// nothing happened and nothing ever will, and with ErrOutcomeUnknown if the write may have happened,
// or may yet happen.
type Store interface {
	Records
	Queries
	Keys
	Events
	Sweeps
}

// Records are loaded together at one revision, and swapped together against the revision at which
// they were loaded.
type Records interface {
	// Load reads records, all at one revision and linearizably: Load sees every change that was
	// acknowledged before the call. The snapshots stand in the order of the wants. The caller may
	// change their records.
	Load(ctx context.Context, wants ...Want) ([]Snapshot, error)

	// Recall returns what the store remembers of a record, without a request to the database:
	// a guess that only a Commit, a Confirm or a Load can prove. ok is false if the store remembers
	// nothing. Entries of unsure devices are missing from the snapshot; all others are there. The
	// caller may change the record.
	Recall(want Want) (guess Snapshot, unsure []string, ok bool)

	// Confirm reports, linearizably, whether a record is still as Recall returned the record:
	// all that the guess says of the record and of its devices. ref and token are the guess's own.
	// Confirm reports false too if the store can't tell.
	Confirm(ctx context.Context, ref licensing.Ref, token Token) (bool, error)

	// Commit makes all writes of a change, or none. A change that lands proves all of each snapshot,
	// unless the record is only Touched: then the change proves only that the touched devices are
	// bound, and if they are more than MaxTouchedDevices, Commit leaves some of them out. Commit
	// resolves attempts in doubt by itself, as long as ctx lives. A record must not be in two
	// Commits of one store at a time; the record's mailbox ensures that.
	Commit(ctx context.Context, change Change) (Outcome, error)

	// MaxDevicesPerCommit returns how many devices of a record one Recall may name and one Commit may
	// touch: MaxTouchedDevices, or up to MaxFoldDevices if the store knows all devices of a license.
	// MaxDevicesPerCommit makes no request. The answer is a guess; if the guess is wrong, Recall
	// remembers nothing.
	MaxDevicesPerCommit(ref licensing.Ref) int
}

// Queries read without a swap to follow. Listings are in listings.go.
type Queries interface {
	Listings

	// OwnerOf returns the owner of a license, if the store remembers the license. OwnerOf makes no
	// request. The answer is a guess, for dividing places among owners.
	OwnerOf(ref licensing.Ref) (owner licensing.Owner, known bool)

	// ReadLicense reads a license with a page of its devices, at one revision and linearizably.
	// ReadLicense returns nil if there is no such license, or if it is of another owner than the page names.
	ReadLicense(ctx context.Context, key licensing.LicenseKey, page DevicePage) (*LicenseView, error)

	// ReadLicenses reads up to MaxReadLicenses licenses as ReadLicense reads one, all at one
	// revision, each with a first page of so many devices. With 0 devices, a license whose record
	// contains all its devices comes with all of them; any other license comes with none, and with a
	// Next that leads to them.
	ReadLicenses(ctx context.Context, keys []licensing.LicenseKey, devices int) ([]*LicenseView, error)

	// OrderOwner returns the owner of an order; ok is false if no order has the number.
	OrderOwner(ctx context.Context, orderNo string) (owner licensing.Owner, ok bool, err error)

	// DueSlots returns the slots in which something of a kind is due in a span of time.
	DueSlots(ctx context.Context, kind licensing.DueKind, span DueSpan) ([]licensing.Slot, error)

	// Due returns records of a slot for which something of a kind is due in a span of time, the longest
	// due first: up to limit of them, from the position that an earlier page returned, or from the
	// beginning if from is empty. The index changes in the same transaction as the record (License.Due,
	// Order.Due), but by the time that the caller has the page, the work may be done.
	Due(ctx context.Context, kind licensing.DueKind, slot licensing.Slot, span DueSpan, from string,
		limit int) (DuePage, error)

	// EachLeased calls each for the licenses of a slot that have leases, once for each. It remembers none of them. It
	// also reads licenses whose first work is due before a lease given now can end.
	EachLeased(ctx context.Context, slot licensing.Slot, now time.Time, each func(*licensing.License)) error

	// ReadRevocations reads entries of an owner's list of revocations. The reading is linearizable.
	ReadRevocations(ctx context.Context, owner licensing.Owner, want RevocationsWanted) (Revocations, error)

	// Ping makes a linearizable read, to show whether the database answers.
	Ping(ctx context.Context) error

	// Space returns which changes the database has room for, as of about a second ago. Space makes no request.
	Space() Space
}

// Sweeps remove what is no longer kept.
type Sweeps interface {
	// SweepClaims removes claims that were made before a moment, the oldest first, and returns how
	// many it removed. After a removal there may be more to remove.
	SweepClaims(ctx context.Context, before time.Time) (removed int, err error)

	// SweepEvents removes events that are not to be kept at a moment, an owner's oldest first, and
	// returns how many it removed. After a removal there may be more to remove.
	SweepEvents(ctx context.Context, now time.Time, keep EventRetention) (removed int, err error)

	// SweepRevocations removes the revocations that void no receipt on a day or later, but not the newest of an owner,
	// which has the Epoch. It returns how many it removed.
	SweepRevocations(ctx context.Context, today licensing.ReceiptDay) (removed int, err error)

	// ReadProviderEvents returns how far the events of an account at a payment provider are read, and the revision for
	// PutProviderEvents; 0: nothing is stored. The account belongs to one owner. Without an account id, all owners
	// without an account of their own share it.
	ReadProviderEvents(ctx context.Context, owner licensing.Owner) (read ProviderEvents, revision int64, err error)

	// PutProviderEvents stores how far the events are read, unless it was stored since the revision. It returns the
	// revision of the new value, or 0 if the value was stored since. After an error the outcome is unknown.
	PutProviderEvents(
		ctx context.Context, owner licensing.Owner, read ProviderEvents, revision int64,
	) (stored int64, err error)
}

// RevocationsWanted says which entries of a list of revocations to read.
type RevocationsWanted struct {
	After int64                // the Revision of an earlier reading: only what was written later; 0: all
	Today licensing.ReceiptDay // entries that void no receipt any more may be left out
	Most  int                  // entries; the reading ends when it has found more
}

// Revocations are entries of an owner's list of revocations, in the order of their names.
type Revocations struct {
	Revision int64 // at which the entries were read
	// Epoch is the position of the list: at least the At of each of its entries. It rises with each new entry, and
	// never falls.
	Epoch    int64
	Complete bool // Entries has the whole list; else only what was written after the earlier reading
	Entries  []Revocation
	TooMany  bool // there are more entries than wanted, and Entries lacks some
}

// Revocation is an entry as it is stored.
type Revocation struct {
	licensing.Revocation
	At int64 // its position: of two lists, the one whose Epoch is not below has the entry
}

// Limits of one call, which every implementation keeps. Decision 11 says why a caller knows them.
const (
	// MaxTouchedDevices bounds the devices of one want or write, unless MaxDevicesPerCommit allows more.
	MaxTouchedDevices = 96
	// MaxFoldDevices is the most that MaxDevicesPerCommit ever allows.
	MaxFoldDevices = 256
	// MaxLapsed bounds the devices that are loaded because of Want.LapsedBy, and MaxWithLapsed the other devices of
	// such a want. Together they are MaxTouchedDevices.
	MaxLapsed, MaxWithLapsed = MaxTouchedDevices / 2, MaxTouchedDevices - MaxLapsed
	// MaxNewLicenses bounds the licenses that one change creates.
	MaxNewLicenses = 32
	// MaxReadLicenses bounds the licenses that one call reads.
	MaxReadLicenses = 60
	// MaxDue bounds the records of one page of Due. The bound is large because a store may count all
	// due records for every page.
	MaxDue = 1000
)

// ViewDevices is the number of devices that a lookup of one license returns; pages of devices follow.
const ViewDevices = 1000

// Want names a record to load, and the devices whose entries to load.
type Want struct {
	Ref      licensing.Ref
	Devices  []string
	Metadata bool // of a license
	// If LapsedBy is set, Load also returns up to MaxLapsed devices whose leases ended by LapsedBy. Recall does not
	// find them: that may take a read of all devices. Devices must name no more than MaxWithLapsed.
	LapsedBy time.Time
}

// Token is the store's own note about a loaded record: its revision, and where its parts are stored.
// A nil token means that the record does not exist. A token never changes and may be used again.
type Token any

// Snapshot is a record at a revision. Its fields are empty if no record is stored. If the store has at hand all devices
// of a license with leases, Record.Devices has them all, and Record.Leases says so.
type Snapshot struct {
	Record licensing.Record
	Token  Token
	// Writer is the node that last wrote the license, if the store keeps that. Placement uses it.
	Writer Incarnation
	// AsOf is when the node asked for the snapshot; the node sets it. Zero: the store must still prove the snapshot.
	AsOf time.Time
}

// Change is a set of writes for one transaction.
type Change struct {
	Writes []Write
}

// Write replaces one record, provided that the record is still as in its snapshot. A nil Token
// requires that the record does not exist. A license's metadata is written if it has changed. A nil
// product is deleted: if an attempt to delete it was in doubt and the product is gone, the change has
// landed.
type Write struct {
	Ref    licensing.Ref
	Token  Token
	Record licensing.Record
}

// Outcome is the result of a Commit.
type Outcome struct {
	// Landed: the writes are stored. Otherwise another writer was first, and nothing was written or ever will be.
	Landed bool
	// Rivals are, after a loss, the current records of the writes, read in the swap's own round trip, with the entries
	// of the same devices. If Rivals is nil, the caller must load the records.
	Rivals []Snapshot
	// Bytes is about what the writes took: keys and values. It is 0 unless the writes are stored.
	Bytes int
}

// DueSpan is a span of times at which work is due, both ends included, in milliseconds.
type DueSpan struct {
	Since time.Time // the zero time: from the earliest on
	Until time.Time // the zero time: to the latest
}

// DuePage is a page of records for which work is due.
type DuePage struct {
	Records []licensing.Ref
	Next    string // the position of the next page; empty at the end
}

// DeviceCursor is a position in the listing order of a license's devices.
// The zero cursor is the beginning.
type DeviceCursor [16]byte

// DevicePage asks for up to Limit devices after After.
type DevicePage struct {
	After DeviceCursor
	Limit int
	// Owner is the owner of the license; zero: any. Of a license of another owner, the store reads neither metadata nor
	// devices, and returns nil.
	Owner licensing.Owner
	// Enter, if it is not nil, may delay or refuse the read of devices that are not in the license's own
	// record. The store calls Enter before such a read, and leave after it.
	Enter func() (leave func(), err error)
}

// LicenseView is a license with its metadata and a page of its devices.
type LicenseView struct {
	License  licensing.License
	Metadata licensing.Metadata
	// Entitled are the entitlements of the license. The use cases set them, no store does.
	Entitled licensing.Entitled
	Devices  []licensing.Device
	// Next is the position of the next page; nil at the end.
	Next *DeviceCursor
}

// HideLapsed removes the leases from a view that have lapsed by a time, and, if the view has all devices, from the
// license's count. The license's LeaseClock counts if it is later.
func (v *LicenseView) HideLapsed(leaseTime time.Time) {
	l := &v.License
	if !l.Lease.Leased() {
		return
	}
	complete := v.Next == nil && len(v.Devices) == l.CurrentDevices
	v.Devices = slices.DeleteFunc(v.Devices, func(d licensing.Device) bool { return d.Lapsed(l.LeaseTime(leaseTime)) })
	if complete {
		l.CurrentDevices = len(v.Devices)
	}
}

// ErrNewerFormat reports, along with licensing.ErrInternal, that only nodes of a newer version can read a value.
var ErrNewerFormat = errors.New("a newer version of Licet may have written the value")

// ErrClaimTaken reports that a transaction stored nothing, because another writer has stored one of
// its claims or other records first.
var ErrClaimTaken = errors.New(
	"nothing was stored: another request has written the Idempotency-Key or another record first")
