package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// changeTries bounds how often a change of an API key is made again because
// another writer was first.
const changeTries = 12

// ChangeAPIKey swaps a key for what change makes of it. The record's writers
// tell whose swap it was, as those of a license do. They can only because a
// store makes one change of a key at a time. Changes of other keys go on meanwhile.
func (s *Store) ChangeAPIKey(ctx context.Context, owner licensing.Owner, id string, change func(*licensing.APIKey) error, claims ...store.Write) (*licensing.APIKey, error) {
	done, err := s.keyTurns.take(ctx, keyName{owner, id})
	if err != nil {
		return nil, etcd.Unavailable(err)
	}
	defer done()
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
	return nil, etcd.Unavailable(errors.New("others keep changing the API key"))
}

// swapAPIKey writes a key over the one that was read. If it lost, it answers
// what the rival wrote.
func (s *Store) swapAPIKey(ctx context.Context, have *readAPIKey, next *layout.APIKey, claims []store.Write) (rival *readAPIKey, err error) {
	me := s.nextWriter()
	next.Writers = layout.WithWriter(have.Writers, me)
	along := writeClaims(claims, me)
	record, master := layout.APIKeyKey(next.Key.Hash), next.Key.MasterID
	compares := append(along.compares, clientv3.Compare(clientv3.ModRevision(record), "=", have.revision))
	if master != have.Key.MasterID {
		compares = append(compares, masterInUse(master))
	}
	var doubted bool
	response, err := s.etcd.Resolve(ctx, "change_api_key", &doubted, compares,
		append(append(along.puts, clientv3.OpPut(record, string(next.Encode()))), s.markAPIKeys(next.Key.Owner)...),
		append([]clientv3.Op{clientv3.OpGet(record)}, along.gets...))
	if err != nil || response.Succeeded {
		return nil, err
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
		return nil, nil
	case verdict == layout.SwapEvicted && doubted:
		return nil, etcd.GaveUp(doubted, errEvicted)
	case along.lost(response.Responses[1:]):
		return nil, store.ErrClaimTaken
	case kv.ModRevision == have.revision:
		return nil, errMasterUnused(master)
	}
	rival.Key.LastUsedAt = have.Key.LastUsedAt
	return rival, nil
}

// nextWriter stands for one swap of this store.
func (s *Store) nextWriter() layout.Writer {
	return layout.Writer{By: s.incarnation, Swap: s.swaps.Add(1)}
}

// claimWrites is what a transaction of another record, such as an API key or a replay, does
// with claims.
type claimWrites struct {
	compares  []clientv3.Cmp
	puts      []clientv3.Op
	gets      []clientv3.Op
	revisions []int64           // of the claims as they were read; 0: there was none
	writers   [][]layout.Writer // of the claims as they were read
}

func writeClaims(claims []store.Write, me layout.Writer) claimWrites {
	var along claimWrites
	for _, w := range claims {
		token, _ := w.Token.(*stored)
		if token == nil {
			token = &stored{}
		}
		key, claim := layout.RecordKey(w.Ref), w.Record.Claim
		along.compares = append(along.compares, clientv3.Compare(clientv3.ModRevision(key), "=", token.revision))
		along.puts = append(along.puts,
			clientv3.OpPut(key, string(layout.EncodeClaim(claim, layout.WithWriter(token.writers, me)))),
			clientv3.OpPut(layout.ClaimAgeKey(claim.CreatedAt, w.Ref.Owner, w.Ref.ID), ""))
		along.gets = append(along.gets, clientv3.OpGet(key))
		along.revisions = append(along.revisions, token.revision)
		along.writers = append(along.writers, token.writers)
	}
	return along
}

// lost tells from the answers to the gets whether somebody else has written one
// of the claims.
func (c *claimWrites) lost(answers []*etcdserverpb.ResponseOp) bool {
	for i, revision := range c.revisions {
		var now int64
		if kv := etcd.First(answers, i); kv != nil {
			now = kv.ModRevision
		}
		if now != revision {
			return true
		}
	}
	return false
}

// layout.FindSwap tells from the answers to the gets whether the transaction me, which writes the
// claims, was made. It is for transactions of which nothing else that is kept tells.
func (c *claimWrites) judge(answers []*etcdserverpb.ResponseOp, me layout.Writer) (layout.Verdict, error) {
	for i, before := range c.writers {
		var now []layout.Writer
		if kv := etcd.First(answers, i); kv != nil {
			var err error
			if _, now, err = layout.DecodeClaim(kv.Value); err != nil {
				return layout.SwapAbsent, layout.Internal(err)
			}
		}
		if verdict := layout.FindSwap(now, before, me); verdict != layout.SwapAbsent {
			return verdict, nil
		}
	}
	return layout.SwapAbsent, nil
}
