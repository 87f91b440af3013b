package survey

import (
	"context"
	"encoding/binary"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
)

// Content is what the store contains. If Err is not nil, the other fields are empty.
type Content struct {
	Err     error
	APIKeys int64
	Masters int64     // master keys that the store knows
	Nodes   []string  // the version of each node that is up; empty: unknown, since the node registers none
	Backup  time.Time // when the last backup began; zero: there is none
}

// maxNodes bounds the nodes that a survey reads.
const maxNodes = 1000

// content reads what the store contains.
func (s *surveyor) content(ctx context.Context) {
	c := &s.facts.Content
	_, err := bounded(ctx, func(ctx context.Context) (any, error) { return nil, etcd.RefuseOldLayout(ctx, s.client) })
	if err != nil {
		*c = Content{Err: err}
		return
	}
	slots, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, keyspace.SlotsPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	})
	if err != nil {
		*c = Content{Err: err}
		return
	}
	counts := map[string]*int64{keyspace.MastersPrefix: &c.Masters}
	for _, slot := range etcd.SlotsIn(slots.Kvs) {
		counts[keyspace.InSlot(slot, keyspace.APIKeysFamily)] = &c.APIKeys
	}
	for prefix, count := range counts {
		found, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		})
		if err != nil {
			*c = Content{Err: err}
			return
		}
		*count += found.Count
	}
	nodes, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, keyspace.NodesPrefix, clientv3.WithPrefix(), clientv3.WithLimit(maxNodes))
	})
	if err != nil {
		*c = Content{Err: err}
		return
	}
	for _, kv := range nodes.Kvs {
		// A node whose registration can't be read is of a version that this one does not know.
		node, _, _ := layout.DecodeNode(string(kv.Key[len(keyspace.NodesPrefix):]), kv.Value)
		c.Nodes = append(c.Nodes, node.Version)
	}
	found, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, keyspace.BackupKey)
	})
	if err != nil {
		*c = Content{Err: err}
		return
	}
	if len(found.Kvs) == 1 && len(found.Kvs[0].Value) == keyspace.BackupTimeSize {
		c.Backup = time.UnixMilli(int64(binary.BigEndian.Uint64(found.Kvs[0].Value))) //nolint:gosec // a time of ours
	}
}
