package survey

import (
	"context"
	"encoding/binary"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
)

// Content is what the store holds. If Err is not nil, the other fields are empty.
type Content struct {
	Err     error
	APIKeys int64
	Masters int64     // master keys that the store knows
	Nodes   int64     // nodes that are up
	Backup  time.Time // when the last backup began; zero: there is none
}

// content reads what the store holds.
func (s *surveyor) content(ctx context.Context) {
	c := &s.facts.Content
	for prefix, count := range map[string]*int64{
		layout.APIKeysPrefix: &c.APIKeys, layout.MastersPrefix: &c.Masters, layout.NodesPrefix: &c.Nodes,
	} {
		found, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
			return s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		})
		if err != nil {
			*c = Content{Err: err}
			return
		}
		*count = found.Count
	}
	found, err := bounded(ctx, func(ctx context.Context) (*clientv3.GetResponse, error) {
		return s.client.Get(ctx, layout.BackupKey)
	})
	if err != nil {
		*c = Content{Err: err}
		return
	}
	if len(found.Kvs) == 1 && len(found.Kvs[0].Value) == layout.BackupTimeSize {
		c.Backup = time.UnixMilli(int64(binary.BigEndian.Uint64(found.Kvs[0].Value))) //nolint:gosec // a time of ours
	}
}
