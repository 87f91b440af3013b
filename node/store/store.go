package store

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
)

// Store is what a node needs of the database: records that are read together
// and swapped against the revision they were read at. Package kv keeps them in
// etcd. Every implementation must pass storetest.Run, storetest.RunListings and
// storetest.RunClaims; one that tells of events, storetest.RunEvents and
// storetest.RunSubscriptions too.
//
// Errors are licensing.Errors. Reads fail with ErrUnavailable. Commit fails with
// ErrUnavailable where nothing happened and never will, and with
// ErrOutcomeUnknown where it may have happened, or may yet.
type Store interface {
	// Load reads records, all at one revision and linearizably: it sees every
	// change that was acknowledged before the call. The snapshots stand in the
	// order of the wants; their records are the caller's to change.
	Load(ctx context.Context, wants ...Want) ([]Snapshot, error)

	// Recall tells what the store remembers of a record, without asking anyone:
	// a guess that only a swap, a Confirm or a Load can prove. ok is false where nothing is
	// remembered. Entries of unsure devices are missing from the snapshot; all
	// others are there. The record is the caller's to change.
	Recall(want Want) (guess Snapshot, unsure []string, ok bool)

	// OwnerOf returns whose license a record is, if the store remembers the license.
	// It asks nobody. The answer is a guess, for sharing out places.
	OwnerOf(ref licensing.Ref) (owner licensing.Owner, known bool)

	// Room tells how many devices one Commit of a record may touch, and Recall
	// tell of: MaxTouchedDevices, or up to MaxFoldDevices where the store knows all
	// devices of a license. It asks nobody, and may be wrong as Recall may; then
	// Recall remembers nothing.
	Room(ref licensing.Ref) int

	// Confirm tells, linearizably, whether a record is still as Recall gave it:
	// all that the guess says of it and of its devices. ref and token are the
	// guess's own. It answers false also where it can't tell.
	Confirm(ctx context.Context, ref licensing.Ref, token Token) (bool, error)

	// Commit makes all writes of a change, or none. That it lands proves of each
	// record that all of the snapshot was true, unless the record is only Touched:
	// then it proves nothing but that the touched devices are bound, and of more
	// than MaxTouchedDevices some are left out. It settles attempts whose
	// outcome is in doubt by itself, as long as ctx lives. A record must not be
	// in two Commits of one store at a time; its mailbox sees to that.
	Commit(ctx context.Context, change Change) (Outcome, error)

	// ReadLicense reads a license with a page of its devices, at one revision
	// and linearizably. It answers nil where the license does not exist.
	ReadLicense(ctx context.Context, key licensing.LicenseKey, page DevicePage) (*LicenseView, error)

	// ReadLicenses reads up to MaxReadLicenses licenses as ReadLicense reads one,
	// all at one revision, each with a first page of so many devices. With 0 it
	// reads nothing beyond the licenses: each comes with all of its devices if they
	// lie in it, and else with none, and a Next that leads to them.
	ReadLicenses(ctx context.Context, keys []licensing.LicenseKey, devices int) ([]*LicenseView, error)

	Listings

	// OrderOwner tells whose order a number is; ok is false where no order has it.
	OrderOwner(ctx context.Context, orderNo string) (owner licensing.Owner, ok bool, err error)

	// APIKey finds a key by the SHA-256 of its text; nil where there is none.
	APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error)

	// SweepClaims removes up to limit claims that were made before a moment, and
	// tells how many it removed.
	SweepClaims(ctx context.Context, before time.Time, limit int) (int, error)

	// Due tells for which records something of a kind is due at a moment, those for
	// which it has been due longest first: up to limit of them, from where an earlier
	// page says; from the beginning where that is empty. What the records say of
	// themselves (License.Due, Order.Due) is changed and told in one, but by the time
	// that the answer is here it may be done.
	Due(ctx context.Context, kind licensing.DueKind, at time.Time, from string, limit int) (DuePage, error)

	// APIKeyMarks reads, linearizably, in what state the API keys are. Any change of
	// a key that was acknowledged before the call gives another mark of its owner's
	// part, or of all keys. While both marks stay the same, no key of the part has
	// changed in anything that matters here.
	APIKeyMarks(ctx context.Context) (KeyMarks, error)

	// WatchAPIKeys calls wake when it begins to watch and whenever the mark may
	// have changed since, until ctx ends. It is a hint: what watches may hang, so
	// that a call comes late or not at all.
	WatchAPIKeys(ctx context.Context, wake func())

	// Ping makes a linearizable read, to tell whether the store can be reached.
	Ping(ctx context.Context) error
}

// Limits of one Load or Commit. A store transaction holds at most 128
// operations (etcd's default); the rest is room for what goes along.
const (
	// MaxTouchedDevices bounds the devices of one want or write, unless the
	// store has room for more.
	MaxTouchedDevices = 96
	// MaxFoldDevices is the most that it ever has room for.
	MaxFoldDevices = 256
	// MaxNewLicenses bounds the licenses that one change creates.
	MaxNewLicenses = 32
	// MaxReadLicenses bounds the licenses that one call reads.
	MaxReadLicenses = 60
	// MaxSweep bounds the claims that one SweepClaims removes.
	MaxSweep = 60
	// MaxDue bounds the records that one Due tells of. It is large because etcd
	// counts all that are due for every page.
	MaxDue = 1000
)

// ViewDevices is how many devices a lookup of one license shows; a listing
// leads on from there.
const ViewDevices = 1000

// Want names a record to load, and the devices whose entries are wanted.
type Want struct {
	Ref      licensing.Ref
	Devices  []string
	Metadata bool // of a license
}

// Token is the store's own memory of a record as it was read: its revision
// and where its parts lie. Nil stands for a record that does not exist. A
// token is never changed and may be used again.
type Token any

// Snapshot is a record at a revision. Nothing is set where none is stored.
type Snapshot struct {
	Record licensing.Record
	Token  Token
	// Writer is who wrote the license last, where the store keeps that; placement
	// goes by it.
	Writer Incarnation
}

// Change is a set of writes that one transaction makes together.
type Change struct {
	Writes []Write
}

// Write replaces one record, provided that it is still as its snapshot was.
// A nil Token demands that it does not exist. A license's metadata is written
// where it has changed, and a product that is nil is removed: if an attempt at
// that was in doubt, and there is none any more, the change has landed.
type Write struct {
	Ref    licensing.Ref
	Token  Token
	Record licensing.Record
}

// Outcome is how a swap ended.
type Outcome struct {
	// Landed: the writes are stored. Otherwise another writer was first,
	// nothing was written, and it never will be.
	Landed bool
	// Rivals, after a loss: the records of the writes as they stand now, read
	// in the swap's own round trip, with the same devices' entries. It may be
	// nil; then they must be loaded.
	Rivals []Snapshot
}

// DuePage is some of the records for which something is due.
type DuePage struct {
	Records []licensing.Ref
	Next    string // where the following page begins; empty at the end
}

// DeviceCursor is a position in the listing order of a license's devices.
// The zero cursor is the beginning.
type DeviceCursor [16]byte

// DevicePage asks for up to Limit devices from After on.
type DevicePage struct {
	After DeviceCursor
	Limit int
}

// LicenseView is a license as a lookup shows it.
type LicenseView struct {
	License  licensing.License
	Metadata string // a compact JSON object, or empty
	Devices  []licensing.Device
	// Next is where the following page begins; nil at the end.
	Next *DeviceCursor
}

// ErrClaimTaken tells that a claim was not stored, nor anything that was to be
// stored with it: somebody else was first, with the Idempotency-Key or with one of
// the other records.
var ErrClaimTaken = errors.New("nothing was stored: somebody else has claimed the Idempotency-Key, or has made what goes along")
