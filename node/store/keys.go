package store

import (
	"context"
	"time"

	"licet/licensing"
	"licet/licensing/keyring"
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

	// CheckRing returns an error that names the master keys which the store uses and the ring lacks,
	// or which differ under the same id.
	CheckRing(ctx context.Context, ring keyring.MasterRing) error

	// UseMaster records that secrets are derived from a master key from now on. It refuses a key if the store has
	// another key under its id.
	UseMaster(ctx context.Context, master keyring.MasterKey) error

	// CreateAPIKey stores a new key. Its master key must be in use. Storing the same key again is a
	// no-op; another key with the same id or hash is an error. The same transaction stores the claims.
	// If a claim is not as it was read, CreateAPIKey stores nothing and returns ErrClaimTaken.
	CreateAPIKey(ctx context.Context, key licensing.APIKey, claims ...Write) error

	// FindAPIKey returns a key by its public id; nil if its owner has none with that id.
	FindAPIKey(ctx context.Context, owner licensing.Owner, id string) (*licensing.APIKey, error)

	// ListAPIKeys reads a page of an owner's keys, as [Listings] says.
	ListAPIKeys(ctx context.Context, owner licensing.Owner, page Page) (List[licensing.APIKey], error)

	// ChangeAPIKey replaces a key by the result of change. It may call change again with the key that
	// another writer has stored meanwhile. An error of change ends the call. A change to another
	// master key requires that the key is in use. No two callers get the same change as their result.
	// Claims work as in CreateAPIKey.
	ChangeAPIKey(
		ctx context.Context, owner licensing.Owner, id string,
		change func(*licensing.APIKey) error, claims ...Write,
	) (*licensing.APIKey, error)

	// NoteKeysUsed stores when keys were last used, except for keys with a stored use less than
	// KeyUseStep earlier. FindAPIKey and ListAPIKeys return the use as LastUsedAt; APIKey does not.
	// NoteKeysUsed changes no mark.
	NoteKeysUsed(ctx context.Context, uses []KeyUse) error
}

// KeyUseStep is the resolution of stored key uses: the store skips a use within that time after a
// stored one.
const KeyUseStep = time.Minute

// KeyUse is the use of an API key, by the SHA-256 of its text.
type KeyUse struct {
	Hash [32]byte
	At   time.Time
}
