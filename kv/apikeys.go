package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet"
	"licet/node"
)

// APIKey finds a key by the SHA-256 of its text; nil where there is none.
func (s *Store) APIKey(ctx context.Context, hash [32]byte) (*licet.APIKey, error) {
	value, err := s.get(ctx, "api_key", apiKeyKey(hash))
	if err != nil || value == nil {
		return nil, err
	}
	stored, err := decodeAPIKey(hash, value)
	if err != nil {
		return nil, broken(err)
	}
	return &stored.key, nil
}

// PutAPIKey sees to it that a key is stored. One that is there already stays
// as it is: it may have been revoked or rotated since.
func (s *Store) PutAPIKey(ctx context.Context, key licet.APIKey) error {
	return s.storeNewAPIKey(ctx, &key, nil)
}

// CreateAPIKey stores a new key, whose master key must be in use.
func (s *Store) CreateAPIKey(ctx context.Context, key licet.APIKey, claims ...node.Write) error {
	return s.storeNewAPIKey(ctx, &key, []clientv3.Cmp{masterInUse(key.MasterID)}, claims...)
}

// storeNewAPIKey stores a key and its place in the index, unless either is
// taken. A key is told by its hash and id: both are random, so what is stored
// under them is this key, be it from a copy of this transaction that landed.
func (s *Store) storeNewAPIKey(ctx context.Context, key *licet.APIKey, compares []clientv3.Cmp, claims ...node.Write) error {
	record, index := apiKeyKey(key.Hash), apiKeyIndexKey(key.Owner, key.ID)
	me := s.nextWriter()
	along := writeClaims(claims, me)
	var doubted bool
	response, err := s.settle(ctx, "create_api_key", &doubted,
		slices.Concat(compares, along.compares, []clientv3.Cmp{
			clientv3.Compare(clientv3.CreateRevision(record), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(index), "=", 0),
		}),
		append(along.puts,
			clientv3.OpPut(record, string((&storedAPIKey{key: *key, writers: []writer{me}}).encode())),
			clientv3.OpPut(index, string(key.Hash[:])),
			s.markAPIKeys()),
		append([]clientv3.Op{clientv3.OpGet(record), clientv3.OpGet(index)}, along.gets...))
	if err != nil || response.Succeeded {
		return err
	}
	haveRecord, haveIndex := firstOf(response.Responses, 0), firstOf(response.Responses, 1)
	switch {
	case haveRecord == nil && haveIndex == nil && along.lost(response.Responses[2:]):
		return node.ErrClaimTaken
	case haveRecord == nil && haveIndex == nil:
		return errMasterUnused(key.MasterID)
	case haveRecord == nil:
		return errAPIKeyTaken
	}
	have, err := decodeAPIKey(key.Hash, haveRecord.Value)
	switch {
	case err != nil:
		return broken(err)
	case have.key.ID != key.ID || have.key.Owner != key.Owner:
		return errAPIKeyTaken
	case haveIndex == nil:
		return s.indexAPIKey(ctx, index, key.Hash)
	}
	return nil
}

// indexAPIKey gives a key its place in the index, which stores did not have
// from the first.
func (s *Store) indexAPIKey(ctx context.Context, index string, hash [32]byte) error {
	var doubted bool
	_, err := s.settle(ctx, "create_api_key", &doubted,
		[]clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(index), "=", 0)},
		[]clientv3.Op{clientv3.OpPut(index, string(hash[:]))}, nil)
	return err
}

var errAPIKeyTaken = fmt.Errorf("%w: another API key has this id or hash", licet.ErrInternal)

// FindAPIKey finds a key by its public id; nil where its owner has none of
// that id.
func (s *Store) FindAPIKey(ctx context.Context, owner licet.Owner, id string) (*licet.APIKey, error) {
	found, err := s.findAPIKey(ctx, owner, id)
	if err != nil || found == nil {
		return nil, err
	}
	return &found.key, nil
}

// readAPIKey is a key as it was read.
type readAPIKey struct {
	*storedAPIKey
	value    []byte
	revision int64
}

func (s *Store) findAPIKey(ctx context.Context, owner licet.Owner, id string) (*readAPIKey, error) {
	// Nothing removes or changes an entry of the index or the record that it
	// leads to, so that the two need not be read at one revision.
	value, err := s.get(ctx, "find_api_key", apiKeyIndexKey(owner, id))
	if err != nil || value == nil {
		return nil, err
	}
	found, err := s.readAPIKeys(ctx, [][]byte{value})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// ListAPIKeys reads a page of an owner's keys, the newest id first.
func (s *Store) ListAPIKeys(ctx context.Context, owner licet.Owner, page node.KeyPage) (node.KeyList, error) {
	prefix := apiKeyIndexKey(owner, "")
	end := clientv3.GetPrefixRangeEnd(prefix)
	if page.Before != "" {
		end = prefix + page.Before
	}
	limit := min(max(page.Limit, 1), node.MaxKeyPage)
	// Backwards, etcd sorts all that is in the range: an owner's keys are few.
	response, err := s.list(ctx, "list_api_keys", prefix,
		clientv3.WithRange(end), clientv3.WithLimit(int64(limit)+1), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
	if err != nil {
		return node.KeyList{}, err
	}
	var list node.KeyList
	kvs := response.Kvs
	if len(kvs) > limit {
		kvs = kvs[:limit]
		list.Next = string(kvs[limit-1].Key[len(prefix):])
	}
	hashes := make([][]byte, len(kvs))
	for i, kv := range kvs {
		hashes[i] = kv.Value
	}
	for some := range slices.Chunk(hashes, keysAtOnce) {
		found, err := s.readAPIKeys(ctx, some)
		if err != nil {
			return node.KeyList{}, err
		}
		for i := range found {
			list.Keys = append(list.Keys, found[i].key)
		}
	}
	return list, nil
}

// keysAtOnce bounds the keys that one transaction reads: each is two
// operations, of the 128 that etcd allows.
const keysAtOnce = 60

// readAPIKeys reads the keys that index entries lead to, and when they were
// used last.
func (s *Store) readAPIKeys(ctx context.Context, hashes [][]byte) ([]readAPIKey, error) {
	if len(hashes) == 0 {
		return nil, nil
	}
	var gets []clientv3.Op
	for _, hash := range hashes {
		if len(hash) != 32 {
			return nil, broken(fmt.Errorf("the index of API keys: %w", errMalformed))
		}
		gets = append(gets, clientv3.OpGet(apiKeyKey([32]byte(hash))), clientv3.OpGet(keyUseKey([32]byte(hash))))
	}
	response, err := s.txn(ctx, "read_api_keys", nil, gets, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licet.ErrUnavailable, err)
	}
	var found []readAPIKey
	for i := range hashes {
		kv, use := firstOf(response.Responses, 2*i), firstOf(response.Responses, 2*i+1)
		if kv == nil {
			continue
		}
		one, err := newReadAPIKey([32]byte(hashes[i]), kv)
		if err != nil {
			return nil, err
		}
		if use != nil {
			if one.key.LastUsedAt, err = decodeKeyUse(use.Value); err != nil {
				return nil, broken(err)
			}
		}
		found = append(found, *one)
	}
	return found, nil
}

func newReadAPIKey(hash [32]byte, kv *mvccpb.KeyValue) (*readAPIKey, error) {
	stored, err := decodeAPIKey(hash, kv.Value)
	if err != nil {
		return nil, broken(err)
	}
	return &readAPIKey{stored, kv.Value, kv.ModRevision}, nil
}

// apiKeysMarkSize is the length of the mark: an incarnation and its counter.
const apiKeysMarkSize = len(incarnation{}) + 8

// markAPIKeys notes in a transaction that an API key was made or changed. Each
// gets a value that is never written again, so that the same mark stands for
// the same keys, also in a store that was put back from a copy.
func (s *Store) markAPIKeys() clientv3.Op {
	number := binary.BigEndian.AppendUint64(nil, s.swaps.Add(1))
	return clientv3.OpPut(apiKeysMark, string(s.incarnation[:])+string(number))
}

// APIKeyMark reads the mark that every change of an API key replaces.
func (s *Store) APIKeyMark(ctx context.Context) (node.KeyMark, error) {
	value, err := s.get(ctx, "api_key_mark", apiKeysMark)
	return node.KeyMark(value), err
}

// list reads a range of keys.
func (s *Store) list(ctx context.Context, operation, from string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	started := time.Now()
	response, err := s.kv.Get(ctx, from, opts...)
	s.observe(operation, started, err)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", licet.ErrUnavailable, err)
	}
	return response, nil
}

// firstOf is what the i-th get of a transaction has found, or nil.
func firstOf(responses []*etcdserverpb.ResponseOp, i int) *mvccpb.KeyValue {
	kvs := responses[i].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return nil
	}
	return kvs[0]
}
