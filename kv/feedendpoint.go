package kv

import (
	"context"
	"fmt"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// feedStateFor reads how far the feed goes and, unless endpoint is empty, this endpoint of
// the owner, in one transaction.
func (s *Store) feedStateFor(ctx context.Context, owner licensing.Owner, endpoint string) (state feedState, at store.EndpointAt, err error) {
	if endpoint == "" {
		state, _, err = s.feedStateOf(ctx, owner)
		return state, at, err
	}
	state, record, err := s.feedStateOf(ctx, owner, layout.WebhooksKey(owner))
	if err == nil {
		at, err = endpointAt(owner, record[0], endpoint, state.revision)
	}
	return state, at, err
}

// endpointAt finds an endpoint in its owner's record, which was read at a revision of the
// store. record is nil where the owner has none.
func endpointAt(owner licensing.Owner, record *mvccpb.KeyValue, endpoint string, revision int64) (store.EndpointAt, error) {
	at := store.EndpointAt{Revision: revision}
	if record == nil {
		return at, nil
	}
	stored, err := layout.DecodeWebhooks(owner, record.Value)
	if err != nil {
		return at, broken(fmt.Errorf("the webhooks of %s: %w", owner.AccountID, err))
	}
	if found := stored.Webhooks.Find(endpoint); found != nil {
		at.Endpoint, at.Found = *found, true
	}
	return at, nil
}
