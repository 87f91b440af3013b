package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// Due tells for which records something is due at a moment. The range that etcd
// counts ends at that moment: what is due later costs nothing.
func (s *Store) Due(ctx context.Context, kind licensing.DueKind, at time.Time, from string, limit int) (store.DuePage, error) {
	prefix := layout.DuePrefix(kind)
	until := prefix + string(binary.BigEndian.AppendUint64(nil, uint64(max(at.UnixMilli(), 0))+1))
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	started := s.counts.asked()
	response, err := s.kv.Get(ctx, prefix+from, clientv3.WithRange(until), clientv3.WithLimit(int64(limit)))
	s.answered(ctx, "due_list", started, err)
	if err != nil {
		return store.DuePage{}, fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	var page store.DuePage
	for _, kv := range response.Kvs {
		// What has not the form of a place is for verify to report.
		if _, ref, ok := layout.DueRecord(kind, string(kv.Key[len(prefix):]), kv.Value); ok {
			page.Records = append(page.Records, ref)
		}
	}
	if response.More && len(response.Kvs) > 0 {
		page.Next = string(response.Kvs[len(response.Kvs)-1].Key[len(prefix):]) + "\x00"
	}
	return page, nil
}
