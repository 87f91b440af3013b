package kv

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// putReceiptKeys writes an owner's receipt keys. The master key that seals the root secret must be in use when the
// transaction lands, since it may have been retired meanwhile.
func (sw *swap) putReceiptKeys(
	key []byte, keys *licensing.ReceiptKeys, token *stored, writers []layout.Writer,
) {
	record := layout.ReceiptKeys{ReceiptKeys: *keys, Writers: writers, Unknown: token.unknown}
	sw.putRecord(key, record.Encode(), token)
	sw.put([]byte(keyspace.ReceiptKeysMark), nil)
	if keys.Root.MasterID != token.sealedUnder {
		sw.compares = append(sw.compares, exists([]byte(keyspace.MasterKeyKey(keys.Root.MasterID))))
	}
}

// RootsSealedElsewhere returns the owners whose root secret for receipts is not sealed under a master key. It reads no
// receipt keys if no other master key is in use.
func (s *apiKeys) RootsSealedElsewhere(ctx context.Context, masterID string) ([]licensing.Owner, error) {
	response, err := s.etcd.Txn(ctx, "scan_masters", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.MastersPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	}, nil)
	if err != nil {
		return nil, etcd.Unavailable(err)
	}
	others := false
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		others = others || string(kv.Key) != keyspace.MasterKeyKey(masterID)
	}
	if !others {
		return nil, nil
	}
	var owners []licensing.Owner
	err = s.etcd.EachInSlots(ctx, "scan_masters", etcd.Family(keyspace.ReceiptKeysFamily), masterPage,
		response.Header.Revision, func(kv *mvccpb.KeyValue) {
			owner, ok := keyspace.OwnerIn(kv.Key, keyspace.ReceiptKeysFamily)
			if !ok {
				return
			}
			stored, err := layout.DecodeReceiptKeys(owner, kv.Value)
			if err == nil && stored.ReceiptKeys.Root.MasterID != masterID {
				owners = append(owners, owner)
			}
		})
	return owners, err
}
