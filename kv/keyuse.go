package kv

import (
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// NoteKeysUsed stores when API keys were used last, of those of which that is
// worth a write. It leaves the keys' own records and their mark alone: a change
// of these makes every node read its keys anew.
func (s *apiKeys) NoteKeysUsed(ctx context.Context, uses []store.KeyUse) error {
	for some := range slices.Chunk(uses, keysAtOnce) {
		if err := s.noteKeysUsed(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *apiKeys) noteKeysUsed(ctx context.Context, uses []store.KeyUse) error {
	var gets, puts []clientv3.Op
	for _, use := range uses {
		gets = append(gets, clientv3.OpGet(layout.KeyUseKey(use.Hash)))
	}
	have, err := s.etcd.Txn(ctx, "read_key_uses", nil, gets, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrUnavailable, err)
	}
	for i, use := range uses {
		var noted time.Time
		var revision int64
		if kv := etcd.First(have.Responses, i); kv != nil {
			// One that can't be read is written anew.
			noted, _ = layout.DecodeKeyUse(kv.Value)
			revision = kv.ModRevision
		}
		if use.At.Sub(noted) < store.KeyUseStep {
			continue
		}
		// Each by itself: another node may note the same key at this moment.
		at := layout.KeyUseKey(use.Hash)
		puts = append(puts, clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(at), "=", revision)},
			[]clientv3.Op{clientv3.OpPut(at, string(layout.EncodeKeyUse(use.At)))}, nil))
	}
	if len(puts) == 0 {
		return nil
	}
	if _, err := s.etcd.Txn(ctx, "note_key_uses", nil, puts, nil); err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
	}
	return nil
}
