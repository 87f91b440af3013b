package kv

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

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
		return nil, unavailable(err)
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
		next := &storedAPIKey{key: have.key, writers: have.writers, unknown: have.unknown}
		next.key.Scopes = slices.Clone(next.key.Scopes)
		if err := change(&next.key); err != nil {
			return nil, err
		}
		if len(claims) == 0 && bytes.Equal(next.encode(), have.value) {
			return &next.key, nil
		}
		rival, err := s.swapAPIKey(ctx, have, next, claims)
		if err != nil {
			return nil, err
		}
		if rival == nil {
			return &next.key, nil
		}
		have = rival
	}
	return nil, unavailable(errors.New("others keep changing the API key"))
}

// swapAPIKey writes a key over the one that was read. If it lost, it answers
// what the rival wrote.
func (s *Store) swapAPIKey(ctx context.Context, have *readAPIKey, next *storedAPIKey, claims []store.Write) (rival *readAPIKey, err error) {
	me := s.nextWriter()
	next.writers = withWriter(have.writers, me)
	along := writeClaims(claims, me)
	record, master := apiKeyKey(next.key.Hash), next.key.MasterID
	compares := append(along.compares, clientv3.Compare(clientv3.ModRevision(record), "=", have.revision))
	if master != have.key.MasterID {
		compares = append(compares, masterInUse(master))
	}
	var doubted bool
	response, err := s.settle(ctx, "change_api_key", &doubted, compares,
		append(append(along.puts, clientv3.OpPut(record, string(next.encode()))), s.markAPIKeys(next.key.Owner)...),
		append([]clientv3.Op{clientv3.OpGet(record)}, along.gets...))
	if err != nil || response.Succeeded {
		return nil, err
	}
	kv := firstOf(response.Responses, 0)
	if kv == nil {
		return nil, licensing.ErrAPIKeyNotFound
	}
	if rival, err = newReadAPIKey(next.key.Hash, kv); err != nil {
		return nil, err
	}
	switch verdict := judge(rival.writers, have.writers, me); {
	case verdict == swapLanded:
		return nil, nil
	case verdict == swapEvicted && doubted:
		return nil, gaveUp(doubted, errEvicted)
	case along.lost(response.Responses[1:]):
		return nil, store.ErrClaimTaken
	case kv.ModRevision == have.revision:
		return nil, errMasterUnused(master)
	}
	rival.key.LastUsedAt = have.key.LastUsedAt
	return rival, nil
}

// nextWriter stands for one swap of this store.
func (s *Store) nextWriter() writer { return writer{by: s.incarnation, swap: s.swaps.Add(1)} }

// claimWrites is what a transaction of another record, such as an API key or a replay, does
// with claims.
type claimWrites struct {
	compares  []clientv3.Cmp
	puts      []clientv3.Op
	gets      []clientv3.Op
	revisions []int64    // of the claims as they were read; 0: there was none
	writers   [][]writer // of the claims as they were read
}

func writeClaims(claims []store.Write, me writer) claimWrites {
	var along claimWrites
	for _, w := range claims {
		token, _ := w.Token.(*stored)
		if token == nil {
			token = &stored{}
		}
		key, claim := recordKey(w.Ref), w.Record.Claim
		along.compares = append(along.compares, clientv3.Compare(clientv3.ModRevision(key), "=", token.revision))
		along.puts = append(along.puts,
			clientv3.OpPut(key, string(encodeClaim(claim, withWriter(token.writers, me)))),
			clientv3.OpPut(claimAgeKey(claim.CreatedAt, w.Ref.Owner, w.Ref.ID), ""))
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
		if kv := firstOf(answers, i); kv != nil {
			now = kv.ModRevision
		}
		if now != revision {
			return true
		}
	}
	return false
}

// judge tells from the answers to the gets whether the transaction me, which writes the
// claims, was made. It is for transactions of which nothing else that is kept tells.
func (c *claimWrites) judge(answers []*etcdserverpb.ResponseOp, me writer) (verdict, error) {
	for i, before := range c.writers {
		var now []writer
		if kv := firstOf(answers, i); kv != nil {
			var err error
			if _, now, err = decodeClaim(kv.Value); err != nil {
				return swapAbsent, broken(err)
			}
		}
		if verdict := judge(now, before, me); verdict != swapAbsent {
			return verdict, nil
		}
	}
	return swapAbsent, nil
}
