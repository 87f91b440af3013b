package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/claimwrite"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// changeTries bounds how often ChangeAPIKey starts over because another writer changed the key first.
const changeTries = 12

// ChangeAPIKey calls change with an API key, and swaps the key for the result. As with licenses, the record's writers
// show whose swap landed. That requires that a store makes one change of a key at a time; changes of other keys
// continue meanwhile.
func (s *apiKeys) ChangeAPIKey(
	ctx context.Context, owner licensing.Owner, id string, change func(*licensing.APIKey) error, claims ...store.Write,
) (*licensing.APIKey, error) {
	name := keyName{owner, id}
	if err := s.keyLocks.Enter(ctx, name); err != nil {
		return nil, etcd.Unavailable(err)
	}
	defer s.keyLocks.Leave(name)
	have, err := s.findAPIKey(ctx, owner, id)
	switch {
	case err != nil:
		return nil, err
	case have == nil:
		return nil, licensing.ErrAPIKeyNotFound
	}
	for range changeTries {
		next := &layout.APIKey{Key: have.Key, Writers: have.Writers, Unknown: have.Unknown}
		next.Key.Scopes = slices.Clone(next.Key.Scopes)
		if err := change(&next.Key); err != nil {
			return nil, err
		}
		if len(claims) == 0 && bytes.Equal(next.Encode(), have.value) {
			return &next.Key, nil
		}
		rival, err := s.swapAPIKey(ctx, have, next, claims)
		if err != nil {
			return nil, err
		}
		if rival == nil {
			return &next.Key, nil
		}
		have = rival
	}
	return nil, etcd.Unavailable(errors.New("other requests keep changing the API key"))
}

// swapAPIKey replaces the key that was read. If the swap lost, swapAPIKey returns what the winner wrote.
func (s *apiKeys) swapAPIKey(
	ctx context.Context, have *readAPIKey, next *layout.APIKey, claims []store.Write,
) (rival *readAPIKey, err error) {
	me := s.NextWriter()
	next.Writers = layout.WithWriter(have.Writers, me)
	along := claimwrite.Of(claims, me)
	record, master := keyspace.APIKeyKey(next.Key.Hash), next.Key.MasterID
	compares := append(along.Compares, clientv3.Compare(clientv3.ModRevision(record), "=", have.revision))
	if master != have.Key.MasterID {
		compares = append(compares, masterInUse(master))
	}
	value := string(next.Encode())
	growth := along.Growth.Plus(licensing.Size{Bytes: int64(len(value) - len(have.value))})
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "change_api_key", &inDoubt, compares,
		append(append(along.Puts, clientv3.OpPut(record, value)), s.markAPIKeys(next.Key.Owner)...),
		append([]clientv3.Op{clientv3.OpGet(record)}, along.Gets...))
	if err != nil {
		return nil, err
	}
	if response.Succeeded {
		s.growth.note(next.Key.Owner, response.Header.Revision, growth)
		return nil, nil
	}
	kv := etcd.First(response.Responses, 0)
	if kv == nil {
		return nil, licensing.ErrAPIKeyNotFound
	}
	if rival, err = newReadAPIKey(next.Key.Hash, kv); err != nil {
		return nil, err
	}
	switch verdict := layout.FindSwap(rival.Writers, have.Writers, me); {
	case verdict == layout.SwapLanded:
		s.growth.note(next.Key.Owner, kv.ModRevision, growth)
		return nil, nil
	case verdict == layout.SwapEvicted && inDoubt:
		return nil, etcd.GaveUp(inDoubt, layout.ErrEvicted)
	case along.Lost(response.Responses[1:]):
		return nil, store.ErrClaimTaken
	case kv.ModRevision == have.revision:
		return nil, errMasterUnused(master)
	}
	rival.Key.LastUsedAt = have.Key.LastUsedAt
	return rival, nil
}

// keyName names an API key.
type keyName struct {
	owner licensing.Owner
	id    string
}

// markAPIKeys returns the puts with which a transaction notes that an API key of an owner was created or changed. They
// replace the mark of the owner's part, and the mark of all keys. Both get the same value, which is never written
// again. So equal marks mean equal keys, also in a store that was restored from a backup.
//
// The two puts compare nothing, so changes of keys never contend for the marks.
func (s *apiKeys) markAPIKeys(owner licensing.Owner) []clientv3.Op {
	mark := string(binary.BigEndian.AppendUint64(s.incarnation[:len(s.incarnation):len(s.incarnation)], s.swaps.Add(1)))
	return []clientv3.Op{clientv3.OpPut(keyspace.APIKeysMark, mark),
		clientv3.OpPut(keyspace.APIKeyPartMark(store.KeyPart(owner)), mark)}
}

// APIKeyMarks reads the marks that changes of API keys replace.
func (s *apiKeys) APIKeyMarks(ctx context.Context) (store.KeyMarks, error) {
	found, err := s.etcd.List(ctx, "api_key_mark", keyspace.APIKeysMark, clientv3.WithRange(keyspace.APIKeysMarkEnd))
	if err != nil {
		return store.KeyMarks{}, err
	}
	return keyMarks(found.Kvs), nil
}

// WatchAPIKeys calls wake whenever an API key may have changed, until ctx ends.
func (s *apiKeys) WatchAPIKeys(ctx context.Context, wake func()) {
	s.etcd.Watch(ctx, keyspace.APIKeysMark, wake)
}

// keyMarks returns the marks in these keys, which were read at one revision.
//
// Each change of a key puts the mark of all keys and the mark of its part. Builds without parts, and operators by hand,
// put only the mark of all keys. etcd counts the puts of each key (Version), so the difference of the counts shows the
// puts without a part. A restore resets the counts to those of the backup, which could hide a put. Therefore the mark
// also has the timeline, which the first put after a restore changes.
func keyMarks(kvs []*mvccpb.KeyValue) (marks store.KeyMarks) {
	var all *mvccpb.KeyValue
	apart := int64(0)
	for _, kv := range kvs {
		part, is := keyspace.CutAPIKeyPart(string(kv.Key))
		switch {
		case string(kv.Key) == keyspace.APIKeysMark:
			all = kv
		case is:
			marks.Parts[part] = store.KeyMark(kv.Value)
			apart += kv.Version
		}
	}
	if all != nil {
		marks.All = store.KeyMark(fmt.Sprint(all.Version-apart, "/", keyspace.Timeline(all.ModRevision)))
	}
	return marks
}
