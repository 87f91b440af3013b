package kv

import (
	"context"

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
		at, err = layout.EndpointAt(owner, record[0].GetValue(), endpoint, state.revision)
	}
	return state, at, err
}
