package kv

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
)

// historyCompactor compacts etcd's history early.
type historyCompactor struct {
	*core
	seen int64 // the store's revision at the latest call; 0 while the data leave enough room
}

// CompactHistory compacts etcd's history up to the revision of the call before this one, if the data in use keep the
// store in its reserve or longer. So a caller that calls about once a minute keeps the history of the last minute: a
// watch, or a read at a revision, that is further behind ends with an error. Data that no change has replaced stay.
// Several nodes may compact the same history. One goroutine at a time may call CompactHistory.
func (s *historyCompactor) CompactHistory(ctx context.Context) error {
	if !s.etcd.DataHigh() {
		s.seen = 0
		return nil
	}
	read, err := s.etcd.List(ctx, "compact", layout.CheckKey, clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	until := s.seen
	s.seen = read.Header.Revision
	if until == 0 {
		return nil
	}
	if err := s.etcd.Compact(ctx, until); err != nil {
		return etcd.Unavailable(err)
	}
	s.log.Info().Int64("revision", until).Msg("etcd's history was compacted early, since the store is almost full")
	return nil
}
