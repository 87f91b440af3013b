package kv

import (
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// markAPIKeys notes in a transaction that an API key of an owner was made or
// changed: in the mark of the owner's part, and in the mark of all keys. Both get
// the same value, which is never written again. So the same mark stands for the
// same keys, also in a store that was restored from a backup.
//
// The two puts compare nothing, so changes of keys never contend for the marks.
func (s *apiKeys) markAPIKeys(owner licensing.Owner) []clientv3.Op {
	mark := string(binary.BigEndian.AppendUint64(s.incarnation[:len(s.incarnation):len(s.incarnation)], s.swaps.Add(1)))
	return []clientv3.Op{clientv3.OpPut(layout.APIKeysMark, mark),
		clientv3.OpPut(layout.APIKeyPartMark(store.KeyPart(owner)), mark)}
}

// APIKeyMarks reads the marks that changes of API keys replace.
func (s *apiKeys) APIKeyMarks(ctx context.Context) (store.KeyMarks, error) {
	found, err := s.etcd.List(ctx, "api_key_mark", layout.APIKeysMark, clientv3.WithRange(layout.APIKeysMarkEnd))
	if err != nil {
		return store.KeyMarks{}, err
	}
	return keyMarks(found.Kvs), nil
}

// WatchAPIKeys calls wake whenever an API key may have changed, until ctx ends.
func (s *apiKeys) WatchAPIKeys(ctx context.Context, wake func()) {
	s.etcd.Watch(ctx, layout.APIKeysMark, wake)
}

// keyMarks makes the marks of their keys, read at one revision.
//
// Nodes of builds before there were parts, and operators by hand, replace the mark
// of all keys alone. etcd counts the puts of each key (Version), so the puts that
// no part shares show in a difference, whatever came after them. A restore starts
// that count again at the backup's, and so could hide one put behind another: but
// the first put after a restore changes the era.
func keyMarks(kvs []*mvccpb.KeyValue) (marks store.KeyMarks) {
	var all *mvccpb.KeyValue
	apart := int64(0)
	for _, kv := range kvs {
		part, is := layout.CutAPIKeyPart(string(kv.Key))
		switch {
		case string(kv.Key) == layout.APIKeysMark:
			all = kv
		case is:
			marks.Parts[part] = store.KeyMark(kv.Value)
			apart += kv.Version
		}
	}
	if all != nil {
		marks.All = store.KeyMark(fmt.Sprint(all.Version-apart, "/", layout.Era(all.ModRevision)))
	}
	return marks
}
