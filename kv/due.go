package kv

import (
	"context"
	"encoding/binary"
	"time"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// Due tells for which records something is due at a moment. The range that etcd
// counts ends at that moment: what is due later costs nothing.
func (s *Store) Due(ctx context.Context, kind licensing.DueKind, at time.Time, from string, limit int) (store.DuePage, error) {
	prefix := layout.DuePrefix(kind)
	until := prefix + string(binary.BigEndian.AppendUint64(nil, uint64(max(at.UnixMilli(), 0))+1))
	response, err := s.etcd.Page(ctx, "due_list", prefix+from, until, int64(limit), 0)
	if err != nil {
		return store.DuePage{}, err
	}
	var page store.DuePage
	for _, kv := range response.Kvs {
		// What has not the form of a place is for verify to report.
		if _, ref, ok := layout.DueRecord(kind, string(kv.Key[len(prefix):]), kv.Value); ok {
			page.Records = append(page.Records, ref)
		}
	}
	if response.More && len(response.Kvs) > 0 {
		page.Next = etcd.After(response.Kvs[len(response.Kvs)-1].Key[len(prefix):])
	}
	return page, nil
}
