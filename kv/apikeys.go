package kv

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/fair"
	"licet/kv/internal/claimwrite"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// apiKeys keeps API keys, and the fingerprints of master keys.
type apiKeys struct {
	*epochs
	keyLocks *fair.Places[keyName] // of the API keys that are being changed
}

// APIKey finds a key by the SHA-256 of its text; nil if there is no such key.
func (s *apiKeys) APIKey(ctx context.Context, hash [32]byte) (*licensing.APIKey, error) {
	value, err := s.etcd.Get(ctx, "api_key", keyspace.APIKeyKey(hash))
	if err != nil || value == nil {
		return nil, err
	}
	stored, err := layout.DecodeAPIKey(hash, value)
	if err != nil {
		return nil, layout.Internal(err)
	}
	return &stored.Key, nil
}

// PutAPIKey stores a key unless the key exists. An existing key stays as it is: it may have been revoked or rotated
// since.
func (s *apiKeys) PutAPIKey(ctx context.Context, key licensing.APIKey) error {
	return s.storeNewAPIKey(ctx, &key, nil)
}

// CreateAPIKey stores a new key, whose master key must be in use.
func (s *apiKeys) CreateAPIKey(ctx context.Context, key licensing.APIKey, claims ...store.Write) error {
	return s.storeNewAPIKey(ctx, &key, []clientv3.Cmp{masterInUse(key.MasterID)}, claims...)
}

// storeNewAPIKey stores a key and its entry in the index, unless either exists. Hash and id of a key are random, so a
// value stored under both is this key: an earlier copy of this transaction has landed.
func (s *apiKeys) storeNewAPIKey(
	ctx context.Context, key *licensing.APIKey, compares []clientv3.Cmp, claims ...store.Write,
) error {
	if own := licensing.SlotOf(key.Owner); !own.In(key.ID) || keyring.SlotOfHash(key.Hash) != own {
		return layout.Internal(errOtherSlot)
	}
	if err := s.registerOwner(ctx, key.Owner); err != nil {
		return etcd.Unavailable(err)
	}
	record, index := keyspace.APIKeyKey(key.Hash), keyspace.APIKeyIndexKey(key.Owner, key.ID)
	me := s.NextWriter()
	along := claimwrite.Of(claims, me)
	value := string((&layout.APIKey{Key: *key, Writers: []layout.Writer{me}}).Encode())
	growth := along.Growth.Plus(layout.SizeOf(len(record), len(value))).Plus(sizeOfAPIKeyIndex(index))
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "create_api_key", &inDoubt,
		slices.Concat(compares, along.Compares, []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(record), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(index), "=", 0),
		}),
		slices.Concat(along.Puts, putAPIKeyIndex(index, key.Hash), []clientv3.Op{
			clientv3.OpPut(record, value),
		}, s.markAPIKeys(key.Owner)),
		append([]clientv3.Op{clientv3.OpGet(record), clientv3.OpGet(index)}, along.Gets...))
	if err != nil {
		return err
	}
	if response.Succeeded {
		s.growth.note(key.Owner, response.Header.Revision, growth)
		return nil
	}
	haveRecord, haveIndex := etcd.First(response.Responses, 0), etcd.First(response.Responses, 1)
	switch {
	case haveRecord == nil && haveIndex == nil && along.Lost(response.Responses[2:]):
		return store.ErrClaimTaken
	case haveRecord == nil && haveIndex == nil:
		return errMasterUnused(key.MasterID)
	case haveRecord == nil:
		return errAPIKeyTaken
	}
	have, err := layout.DecodeAPIKey(key.Hash, haveRecord.Value)
	switch {
	case err != nil:
		return layout.Internal(err)
	case have.Key.ID != key.ID || have.Key.Owner != key.Owner:
		return errAPIKeyTaken
	case haveIndex == nil:
		return s.indexAPIKey(ctx, key.Owner, index, key.Hash)
	case layout.FindSwap(have.Writers, nil, me) == layout.SwapLanded:
		s.growth.note(key.Owner, haveRecord.CreateRevision, growth)
	}
	return nil
}

// indexAPIKey adds a key's entry to the index. The first builds stored keys without an index.
func (s *apiKeys) indexAPIKey(ctx context.Context, owner licensing.Owner, index string, hash [32]byte) error {
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "create_api_key", &inDoubt,
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(index), "=", 0)},
		putAPIKeyIndex(index, hash), nil)
	if err == nil && response.Succeeded {
		s.growth.note(owner, response.Header.Revision, sizeOfAPIKeyIndex(index))
	}
	return err
}

// sizeOfAPIKeyIndex returns the size of what putAPIKeyIndex puts.
func sizeOfAPIKeyIndex(index string) licensing.Size {
	size := layout.SizeOf(len(index), len(licensing.APIKey{}.Hash))
	for _, key := range keyspace.SkipKeys(index) {
		size = size.Plus(layout.SizeOf(len(key), 0))
	}
	return size
}

// putAPIKeyIndex puts a key's entry into the index, which is a listing.
func putAPIKeyIndex(index string, hash [32]byte) []clientv3.Op {
	puts := []clientv3.Op{clientv3.OpPut(index, string(hash[:]))}
	for _, key := range keyspace.SkipKeys(index) {
		puts = append(puts, clientv3.OpPut(key, ""))
	}
	return puts
}

var errAPIKeyTaken = fmt.Errorf("%w: another API key has this id or hash", licensing.ErrInternal)

// FindAPIKey finds a key by its public id; nil if the owner has no key with that id.
func (s *apiKeys) FindAPIKey(ctx context.Context, owner licensing.Owner, id string) (*licensing.APIKey, error) {
	found, err := s.findAPIKey(ctx, owner, id)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.Key, nil
}

// readAPIKey is a key as it was read.
type readAPIKey struct {
	*layout.APIKey
	value    []byte
	revision int64
}

func (s *apiKeys) findAPIKey(ctx context.Context, owner licensing.Owner, id string) (*readAPIKey, error) {
	// Nothing removes an entry of the index or its record, and an entry always leads to the same record. So the two
	// need not be read at one revision.
	value, err := s.etcd.Get(ctx, "find_api_key", keyspace.APIKeyIndexKey(owner, id))
	if err != nil || value == nil {
		return nil, err
	}
	found, bad, err := s.readAPIKeys(ctx, [][]byte{value})
	if err = cmp.Or(err, bad); err != nil {
		return nil, err
	}
	return found[0], nil
}

// keysAtOnce bounds the keys that one transaction reads: each is two
// operations, of the 128 that etcd allows.
const keysAtOnce = 60

// readAPIKeys reads up to keysAtOnce keys by the hashes in index entries, and when each key was last used. A key is nil
// if it does not exist, or can't be read: then bad is the reason.
func (s *apiKeys) readAPIKeys(ctx context.Context, hashes [][]byte) (keys []*readAPIKey, bad, err error) {
	at := make([][32]byte, len(hashes)) // zero, which no key has, if the entry can't be read
	wanted := make([]string, 0, 2*len(hashes))
	for i, hash := range hashes {
		if len(hash) == len(at[i]) {
			at[i] = [32]byte(hash)
		} else {
			bad = layout.Internal(fmt.Errorf("the index of API keys: %w", layout.ErrMalformed))
			s.etcd.Unreadable("a/"+string(hash), "an entry of the index of API keys", bad)
		}
		wanted = append(wanted, keyspace.APIKeyKey(at[i]), keyspace.KeyUseKey(at[i]))
	}
	found, err := s.etcd.GetAll(ctx, "read_api_keys", wanted)
	if err != nil {
		return nil, nil, err
	}
	keys = make([]*readAPIKey, len(hashes))
	for i := range hashes {
		kv, use := found[2*i], found[2*i+1]
		if kv == nil {
			continue
		}
		key, err := newReadAPIKey(at[i], kv)
		if s.etcd.Unreadable(wanted[2*i], "an API key", err) {
			bad = err
			continue
		}
		if use != nil {
			key.Key.LastUsedAt, err = layout.DecodeKeyUse(use.Value)
			s.etcd.Unreadable(wanted[2*i+1], "the last use of an API key", err)
		}
		keys[i] = key
	}
	return keys, bad, nil
}

func newReadAPIKey(hash [32]byte, kv *mvccpb.KeyValue) (*readAPIKey, error) {
	stored, err := layout.DecodeAPIKey(hash, kv.Value)
	if err != nil {
		return nil, layout.Internal(err)
	}
	return &readAPIKey{stored, kv.Value, kv.ModRevision}, nil
}

// NoteKeysUsed stores when API keys were last used, for the keys where that is worth a write. It changes neither the
// keys' own records nor their mark: a changed mark makes every node read its keys again.
func (s *apiKeys) NoteKeysUsed(ctx context.Context, uses []store.KeyUse) error {
	for some := range slices.Chunk(uses, keysAtOnce) {
		if err := s.noteKeysUsed(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *apiKeys) noteKeysUsed(ctx context.Context, uses []store.KeyUse) error {
	var gets, puts []clientv3.Op
	for _, use := range uses {
		gets = append(gets, clientv3.OpGet(keyspace.KeyUseKey(use.Hash)))
	}
	have, err := s.etcd.Txn(ctx, "read_key_uses", nil, gets, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	for i, use := range uses {
		var noted time.Time
		var revision int64
		if kv := etcd.First(have.Responses, i); kv != nil {
			var err error
			noted, err = layout.DecodeKeyUse(kv.Value)
			s.etcd.Unreadable(keyspace.KeyUseKey(use.Hash), "the last use of an API key", err) // written anew below
			revision = kv.ModRevision
		}
		if use.At.Sub(noted) < store.KeyUseStep {
			continue
		}
		// Each use is a transaction of its own: another node may note the same key at this moment.
		at := keyspace.KeyUseKey(use.Hash)
		puts = append(puts, clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(at), "=", revision)},
			[]clientv3.Op{clientv3.OpPut(at, string(layout.EncodeKeyUse(use.At)))}, nil))
	}
	if len(puts) == 0 {
		return nil
	}
	if _, err := s.etcd.Txn(ctx, "note_key_uses", nil, puts, nil); err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
	}
	return nil
}
