package kv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// ReadProviderEvents reads how far the events of an account at a payment provider are read, and the revision for
// PutProviderEvents. A value that can't be read counts as none: the events are read again.
func (s *Store) ReadProviderEvents(
	ctx context.Context, owner licensing.Owner,
) (read store.ProviderEvents, revision int64, err error) {
	key := keyspace.ProviderEventsKey(owner)
	found, err := s.etcd.GetAll(ctx, "read_provider_events", []string{key})
	if err != nil || found[0] == nil {
		return read, 0, err
	}
	read, err = layout.DecodeProviderEvents(found[0].Value)
	if s.etcd.Unreadable(key, "cell/pe/"+keyspace.OwnerPath(owner), err) {
		read = store.ProviderEvents{}
	}
	return read, found[0].ModRevision, nil
}

// PutProviderEvents stores how far the events of an account at a payment provider are read, unless another node has
// stored it since the revision. It returns the new revision, or 0 if another node has, or if the answer was lost: then
// the node may have stored it.
func (s *Store) PutProviderEvents(
	ctx context.Context, owner licensing.Owner, read store.ProviderEvents, revision int64,
) (stored int64, err error) {
	key := keyspace.ProviderEventsKey(owner)
	response, err := s.etcd.Txn(ctx, "put_provider_events",
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", revision)},
		[]clientv3.Op{clientv3.OpPut(key, string(layout.EncodeProviderEvents(read)))}, nil)
	if err != nil || !response.Succeeded {
		return 0, err
	}
	return response.Header.Revision, nil
}
