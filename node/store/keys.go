package store

import (
	"context"
	"licet/licensing"
	"time"
)

// Keys are the API keys, and the master keys that their secrets are derived from.
//
// Errors are those of [Store], and ErrAPIKeyNotFound. Methods that write resolve attempts in doubt
// by themselves, as long as ctx lives.
type Keys interface {
	// APIKey finds a key by the SHA-256 of its text; nil if there is none.
	APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error)

	// APIKeyMarks reads, linearizably, the marks of all API keys. A change of a key that was
	// acknowledged before the call gives a new mark to the part of the key's owner, or to all keys.
	// While both marks stay the same, no key of the part has changed in any member that the service
	// checks.
	APIKeyMarks(ctx context.Context) (KeyMarks, error)

	// WatchAPIKeys calls wake when the watch begins and whenever a mark may have changed since,
	// until ctx ends. A call is a hint: a watch may hang, so that a call comes late or never.
	WatchAPIKeys(ctx context.Context, wake func())

	// CheckRing tells, by an error that names them, which master keys the store
	// uses and the ring lacks, or has other ones of under the same id.
	CheckRing(ctx context.Context, ring licensing.MasterRing) error

	// UseMaster notes that secrets are derived from a master key from now on.
	// It refuses one whose id stands for another key in the store.
	UseMaster(ctx context.Context, master licensing.MasterKey) error

	// CreateAPIKey stores a new key. Its master key must be in use. Storing the
	// same key again changes nothing; another one under its id or hash is an
	// error. Claims are stored in the same transaction; where one of them is not
	// as it was read, nothing is, and the answer is ErrClaimTaken.
	CreateAPIKey(ctx context.Context, key licensing.APIKey, claims ...Write) error

	// FindAPIKey finds a key by its public id; nil where its owner has none of
	// that id.
	FindAPIKey(ctx context.Context, owner licensing.Owner, id string) (*licensing.APIKey, error)

	// ListAPIKeys reads a page of an owner's keys, as [Listings] says.
	ListAPIKeys(ctx context.Context, owner licensing.Owner, page Page) (List[licensing.APIKey], error)

	// ChangeAPIKey swaps a key for what change makes of it. change may be
	// called again, on what another writer has stored meanwhile; its error ends
	// the call. A change that moves the key to another master key needs that
	// one in use. No two callers are answered the same change. Claims are as with
	// CreateAPIKey.
	ChangeAPIKey(ctx context.Context, owner licensing.Owner, id string, change func(*licensing.APIKey) error, claims ...Write) (*licensing.APIKey, error)

	// NoteKeysUsed stores when keys were used, of those that are not known to
	// have been used less than KeyUseStep before. FindAPIKey and ListAPIKeys tell
	// it as LastUsedAt; APIKey does not. It changes no mark.
	NoteKeysUsed(ctx context.Context, uses []KeyUse) error
}

// KeyUseStep is how coarsely the store keeps when a key was used last: a use
// is not stored within that time of one that is.
const KeyUseStep = time.Minute

// KeyUse is when an API key was used, by the SHA-256 of its text.
type KeyUse struct {
	Hash [32]byte
	At   time.Time
}
